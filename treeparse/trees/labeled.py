"""Distributions over labelled trees: any distribution over trees, with labels that are independent given the tree."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np
import torch
from torch import Size, Tensor

from treeparse.core import TreeparseError
from treeparse.trees import label_sums
from treeparse.trees.base import TreeCRF
from treeparse.trees.checks import check_count, check_label_scores
from treeparse.trees.distribution import TreeDistribution
from treeparse.trees.labeled_expectations import LabeledExpectations
from treeparse.trees.labeled_kbest import LabeledKBest
from treeparse.trees.lists import in_order, places, side_by_side
from treeparse.trees.samplers import DistinctSampler
from treeparse.trees.sampling import Generators, item_seeds

LabeledTree = tuple[Tensor, Tensor]


class LabeledCRF(LabeledExpectations):
    """A distribution over pairs ``heads, labels``, whose score is that of the arcs plus that of their labels.

    Summed over labels it is a distribution over trees, ``arcs``, in which every arc weighs what its labels weigh
    together; given the tree, labels are independent. ``labels`` ``(..., n+1)`` are -1 at node 0 and at padding.

    The rules for derivatives are those of ``TreeCRF``: one ``backward`` a distribution, no ``torch.func``.

    Args:
        base: the distribution whose trees, scores and lengths these are.
        label_scores: ``(*batch, n+1, n+1, L)`` log weights, ``[..., head, dependent, label]``, added to the arc's. -inf
            forbids a label, finite ones lie between -1e12 and 1e12. Where the base ignores scores, these are too.
        validate_args: as for the base, whose setting None takes.

    Raises:
        TreeparseError: for label scores that do not fit the base, or are NaN, +inf or too large on an arc.
        NoTreeError: as the base does.
    """

    def __init__(self, base: TreeCRF, label_scores: Tensor, *, validate_args: bool | None = None) -> None:
        self.base, self.label_scores = base, label_scores
        self.scores, self.lengths = base.scores, base.lengths
        validate = base._validate_args if validate_args is None else validate_args
        super().__init__(base.batch_shape, base.event_shape, validate_args=validate)
        check_label_scores(label_scores, base.scores, base.lengths, values=validate)

    @cached_property
    def _best(self) -> TreeCRF:
        """Trees by the score of their best labels."""
        best = self._labels.reduce(lambda scores: scores.amax(-1))
        return self._over_arcs(self.base._sums.scores.detach(), best.detach())

    @property
    def mode(self) -> LabeledTree:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Heads and labels ``(*batch, n+1)`` of the best labelled tree."""
        return self._with_best_labels(self._best.mode)

    def topk(self, k: int) -> tuple[Tensor, Tensor, Tensor]:
        """The k best labelled trees: heads and labels ``(*batch, k, n+1)``, unnormalised scores ``(*batch, k)``.

        Best first, exact and distinct: trees that differ in a label alone count too. Past the number of labelled trees
        heads and labels are -1 and scores -inf. Of equal scores, the greater sum of arc keys comes first (``ties``),
        then the better labels of the earlier words; of an arc's equal labels the lowest comes first.
        """
        found = self._make_best(check_count(k))
        scores, heads, labels = in_order(found.scores, found.heads, found.labels)
        return self._best._as_batch(heads), self._best._as_batch(labels), self._round(self._best._as_batch(scores))

    def best_first(self) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """All labelled trees, best first, made as they are asked for: heads, labels ``(*batch, n+1)``, scores.

        Shorter lists are padded as in ``topk``; the iteration ends with the longest.
        """
        found = self._make_best(1)
        for place in places(found):
            heads, labels, scores = (
                self._best._as_batch(column[:, place]) for column in (found.heads, found.labels, found.scores)
            )
            yield heads, labels, self._round(scores)

    def minimum_risk(self) -> LabeledTree:
        """Heads and labels ``(*batch, n+1)`` of the labelled tree of the support with the highest expected LAS.

        That is the best tree where an arc's score is the greatest probability of any label on it ([Exp] §6.1).
        """

        def greatest(scores: Tensor, marginals: Tensor) -> Tensor:
            return marginals * label_sums.log_probs(scores).amax(-1).exp()

        best = self._best
        expected = self._labels.reduce(greatest, self.arcs._marginals).detach().reshape(best.scores.shape)
        tree = best.with_scores(torch.where(best.scores > -torch.inf, expected, -torch.inf)).mode
        return self._with_best_labels(tree)

    def given(self, heads: Tensor, labels: Tensor | None = None) -> Self:
        """The distribution of the labelled trees that have these heads and labels ``(*batch, n+1)``; -1 leaves open.

        Competing arcs get the score -inf, and so do competing labels on all arcs into a word of known label.
        Differentiable in both scores. Where no labelled tree has these, the result is a distribution without a tree.

        Raises:
            TreeparseError: for heads or labels that are no integers, have another shape, or do not exist.
        """
        scores = self.label_scores if labels is None else self._label_scores_given(labels)
        result = type(self)(self.base.given(heads), scores, validate_args=False)
        result._validate_args = self._validate_args
        return result

    def sample(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, sample_shape: Size | Sequence[int] = (), *, generator: Generators = None
    ) -> LabeledTree:
        """Heads and labels ``(*sample, *batch, n+1)`` of exact, independent samples; generators as for the base."""
        shape = Size(sample_shape)
        seeds = item_seeds(generator, self.batch_shape.numel())
        heads = self.arcs._sample_by(seeds, shape)
        lists = heads.reshape(shape.numel(), len(seeds), heads.shape[-1])
        return heads, self._labels.sample_of_trees(lists, seeds).reshape(heads.shape)

    def sample_without_replacement(
        self, k: int, *, generator: Generators = None, method: DistinctSampler | None = None
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Different labelled trees in the order drawn: heads, labels ``(*batch, k, n+1)``, log probabilities and keys.

        Trees that differ in a label alone count too. Everything else is as for the base.
        """
        seeds = item_seeds(generator, self.batch_shape.numel())
        rows, log_probs, keys = self.arcs._sample_distinct_by(seeds, k, method, self._labels)
        heads, labels = rows.chunk(2, -1)
        return heads, labels, self._round(log_probs), self._round(keys)

    def log_prob(self, value: Tensor | LabeledTree, labels: Tensor | None = None) -> Tensor:
        """Log probability ``(*sample, *batch)`` of heads and labels ``(*sample, *batch, n+1)``; a pair is taken too.

        It is -inf for what is not in the support.
        """
        pair: Any = value if labels is None else (value, labels)
        total, possible = self._score(*pair)
        return self._round(torch.where(possible, total - self._log_partition, -torch.inf))

    def enumerate_support(self, expand: bool = True) -> LabeledTree:  # pyright: ignore[reportIncompatibleMethodOverride]
        """All labelled trees ``(trees, *batch, n+1)`` twice, small n and L only; items with fewer are padded by -1."""
        support = self.arcs.enumerate_support()
        trees = support.reshape(len(support), self.batch_shape.numel(), support.shape[-1]).unbind(1)
        lengths = self.lengths.flatten().tolist()
        pairs = [
            self._labels.labelings(heads[(heads >= 0).any(-1)], item, lengths[item]) for item, heads in enumerate(trees)
        ]
        heads, labels = ([pair[part] for pair in pairs] for part in range(2))
        return side_by_side(heads, like=self.scores[..., 0]), side_by_side(labels, like=self.scores[..., 0])

    def expected_uas(self, heads: Tensor) -> Tensor:
        """The share ``(*batch,)`` of words with a known head whose head is expected to be right, whatever its label."""
        return self._round(self.arcs.expected_uas(heads))

    def expected_las(self, heads: Tensor, labels: Tensor) -> Tensor:
        """The share ``(*batch,)`` of words that a random labelled tree is expected to get right, head and label.

        Words count whose head and label are known (>= 0); without any it is 1. A label that the model does not have is
        never right. Differentiable ([Exp] §6.1).
        """
        return self._round(self._expected_las(heads, labels))

    def risk(self, heads: Tensor, labels: Tensor) -> Tensor:
        """The expected share of words with a wrong head or label, 1 - ``expected_las``."""
        return self._round(1 - self._expected_las(heads, labels))

    def expand(self, batch_shape: Any, _instance: Any = None) -> Self:
        """The same distribution with new leading batch dimensions, sharing memory."""
        label_scores = self.label_scores.expand(*batch_shape, *self.label_scores.shape[-3:])
        result = type(self)(self.base.expand(batch_shape), label_scores, validate_args=False)
        result._validate_args = self._validate_args
        return result

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base}, label_scores: {tuple(self.label_scores.shape)})"

    def _check_comparable(self, q: TreeDistribution) -> TreeDistribution:
        if not isinstance(q, LabeledCRF):
            raise TreeparseError(f"A {type(self).__name__} cannot be compared with a {type(q).__name__}.")
        self.base._check_comparable(q.base)
        if q.label_scores.shape[-1] != self.label_scores.shape[-1]:
            counts = f"{self.label_scores.shape[-1]} and {q.label_scores.shape[-1]}"
            raise TreeparseError(f"The two distributions have different numbers of labels, {counts}.")
        return q

    def _make_best(self, count: int) -> LabeledKBest:
        """A new list of the best labelled trees with so many of them made."""
        trees = self._best._k_best(*self._best._flat)
        found = LabeledKBest(trees, *self.base._flat, self._labels)
        found.extend(count, threads=torch.get_num_threads())
        self._best._require_trees(lambda: torch.from_numpy(found.scores[:, 0] > -np.inf))
        return found

    def _label_scores_given(self, labels: Tensor) -> Tensor:
        """The label scores, -inf where a label competes with a known one ``(*batch, n+1)``."""
        count, shape = self.label_scores.shape[-1], self.scores.shape[:-1]
        labels = self.base._check_heads(labels, name="Known labels")
        if labels.shape != shape:
            raise TreeparseError(
                f"Known labels must have the shape (*batch, n+1), here {tuple(shape)}, not {tuple(labels.shape)}."
            )
        position = torch.arange(shape[-1], device=labels.device)
        labels = torch.where((position > 0) & (position <= self.lengths.unsqueeze(-1)), labels, -1)
        if bool((labels >= count).any()):
            raise TreeparseError(f"Known labels must lie below the number of labels, {count}; -1 leaves one open.")
        names = torch.arange(count, device=labels.device)
        competing = (labels.unsqueeze(-1) >= 0) & (labels.unsqueeze(-1) != names)
        return self.label_scores.masked_fill(competing.unsqueeze(-3), -torch.inf)

    def _with_best_labels(self, heads: Tensor) -> LabeledTree:
        """Trees ``(*batch, n+1)`` and the best label of each of their arcs."""
        labels = self._labels.of_trees(heads.reshape(-1, heads.shape[-1])).argmax(-1).reshape(heads.shape)
        return heads, torch.where(heads >= 0, labels, -1)

    def _in_support(self, value: LabeledTree) -> Tensor:
        """Which pairs of heads and labels are a tree and hold nothing forbidden."""
        return self._score(*value)[1]

    def _score(self, heads: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """Summed scores of labelled trees ``(*sample, *batch)``, and which of them are in the support."""
        heads, labels = torch.broadcast_tensors(*self._check_trees(heads, labels))
        total, possible = self.base._score_heads(heads)
        fits = torch.where(heads >= 0, (labels >= 0) & (labels < self._labels.count), labels == -1).all(-1)
        items = self._labels.is_arc.shape[:2]
        flat = heads.shape[: heads.dim() - self.scores.dim() + 1].numel(), *items
        values = self._labels.of_labeled_trees(heads.reshape(flat), labels.reshape(flat)).sum(-1).reshape(total.shape)
        return total + values, possible & fits & (values > -torch.inf)

    def _expected_las(self, heads: Tensor, labels: Tensor) -> Tensor:
        heads, labels = self._check_trees(heads, labels)
        known = torch.where(labels >= 0, heads, -1)
        scores = self._labels.of_trees(known.reshape(-1, known.shape[-1]))
        probs = label_sums.log_probs(scores).exp().reshape(*known.shape, self._labels.count)
        right = probs.gather(-1, labels.clamp(0, self._labels.count - 1).unsqueeze(-1)).squeeze(-1)
        return self.arcs._expected_accuracy(known, torch.where(labels < self._labels.count, right, 0.0))

    def _check_trees(self, heads: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        return self.base._check_heads(heads), self.base._check_heads(labels, name="Labels")
