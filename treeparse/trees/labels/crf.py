"""Distributions over labelled trees: any distribution over trees, with labels that are independent given the tree."""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Self

import numpy as np
import torch
from torch import Size, Tensor

from treeparse.names import Decoder
from treeparse.trees.checks import check_count, check_head_range, check_trees, check_whole_trees, labeled_tree
from treeparse.trees.families import DistinctMethod
from treeparse.trees.labels import sums
from treeparse.trees.labels.best import BestLabeled
from treeparse.trees.labels.parameters import LabeledParameters
from treeparse.trees.labels.trees import (
    BestLabeledTrees,
    DistinctLabeledTrees,
    LabeledPair,
    LabeledTree,
    TreeMarginals,
)
from treeparse.trees.part_values import expected_accuracy
from treeparse.trees.randomness import Generators, item_seeds
from treeparse.trees.registry import DISTRIBUTIONS
from treeparse.trees.relaxed import arcs_of, check_hard, perturbed, straight_through
from treeparse.trees.tree_lists import growing_indices, pad_lists, sort_by_score


class LabeledCRF(LabeledParameters):
    """A distribution over labelled trees, ``heads, labels``. A tree's score is the sum over its parts and its labels.

    Summed over labels it is a distribution over trees, ``arcs``, where an arc has the summed weight of its labels.
    Given the tree, labels are independent. ``labels`` ``(..., n+1)`` are -1 at node 0 and at padding.

    Derivatives follow the rules of ``TreeCRF``: call ``backward`` once a distribution; ``torch.func`` raises. Device
    syncs follow them too.

    Args:
        base: the distribution over trees: its trees, scores and lengths.
        label_scores: ``(*batch, n+1, n+1, L)`` log weights, ``[..., head, dependent, label]``, added to the arc's
            score; or a ``treeparse.trees.LabelSource``, which scores slices and chosen arcs, so that not all labels are
            in memory at once. -inf forbids a label; finite scores lie between -1e12 and 1e12. Entries that are no arc
            are ignored.
        validate_args: as for the base; None takes the base's setting.

    Raises:
        TreeparseError: for label scores that do not fit the base; in a tensor also for NaN, +inf and too large scores.
        NoTreeError: as the base does.
    """

    @property
    def components(self) -> tuple[Self]:
        """This distribution only: it is no mixture."""
        return (self,)

    def conditioned(self, condition: Callable[["LabeledCRF"], "LabeledCRF"]) -> "LabeledCRF":
        """Return ``condition`` of this distribution."""
        return condition(self)

    def as_crf(self, purpose: str) -> Self:
        """Return this distribution, because a tree's score is a sum over its parts."""
        return self

    @cached_property
    @torch.enable_grad()
    def marginals(self) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The probability of every labelled arc ``(*batch, n+1, n+1, L)``, differentiable."""

        def labelled(scores: Tensor, marginals: Tensor) -> Tensor:
            return self._round(marginals.unsqueeze(-1) * sums.log_probs(scores).exp())

        return self.arcs.flat.unflat(self.labels.reduce(labelled, self.arcs.flat.marginals))

    @cached_property
    def _best(self) -> BestLabeled:
        return BestLabeled(self.base.flat, self.labels, validate=bool(self._validate_args))

    @property
    def mode(self) -> LabeledTree:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Heads and labels ``(*batch, n+1)`` of the best labelled tree."""
        return self._best.mode()

    def minimum_risk(self) -> LabeledTree:
        """Return heads and labels ``(*batch, n+1)`` of the labelled tree of the support with the highest expected LAS.

        It is the best tree if an arc scores the greatest probability of any label on it ([Exp] §6.1).
        """
        return self._best.minimum_risk(self.arcs.flat)

    def decode(self, decoder: Decoder) -> LabeledTree:
        """Return heads and labels ``(*batch, n+1)`` of the tree that a decoder chooses."""
        return self.minimum_risk() if decoder == "minimum_risk" else self.for_decoder(decoder).mode

    def for_decoder(self, decoder: Decoder) -> "LabeledCRF":
        """Return the distribution over the trees among which a decoder searches, with the same scores.

        Raises:
            TreeparseError: for trees of another kind with parts other than arcs, which the decoder does not score.
        """
        if decoder in ("best", "minimum_risk") or isinstance(self.base, DISTRIBUTIONS[decoder]):
            return self
        self.base.flat.check_arcs_alone("Searches among other trees than a distribution's own")
        validate = self.base.flat.validate
        base = DISTRIBUTIONS[decoder](
            self.base.scores, self.lengths, single_root=self.base.single_root, validate_args=validate
        )
        return LabeledCRF(base, self.label_scores)

    def topk(self, k: int) -> BestLabeledTrees:
        """Return the k best labelled trees: heads and labels ``(*batch, k, n+1)``, unnormalised scores ``(*batch, k)``.

        Best first, exact and distinct: trees that differ in a label only are different. Past the number of labelled
        trees heads and labels are -1 and scores -inf. Of equal scores, the greater sum of arc keys comes first
        (``ties``), then the better labels of the earlier words; of an arc's equal labels the lowest comes first.
        """
        trees = self._best.k_best(check_count(k))
        scores, heads, labels = sort_by_score(trees.scores, trees.heads, trees.labels)
        return self._listed(heads, labels, scores)

    def best_first(self) -> Iterator[BestLabeledTrees]:
        """Yield all labelled trees, best first, made on demand: heads, labels ``(*batch, n+1)`` and scores.

        Shorter lists are padded as in ``topk``; the iteration ends with the longest.
        """
        trees = self._best.k_best(1)
        for index in growing_indices(trees):
            yield self._listed(*(column[:, index] for column in (trees.heads, trees.labels, trees.scores)))

    def _listed(self, heads: np.ndarray, labels: np.ndarray, scores: np.ndarray) -> BestLabeledTrees:
        """Return arrays ``(B, ...)`` of a list of trees as tensors ``(*batch, ...)``."""
        as_batch = self.base.flat.as_batch
        return BestLabeledTrees(as_batch(heads), as_batch(labels), self._round(as_batch(scores)))

    def sample(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, sample_shape: Size | Sequence[int] = (), *, generator: Generators = None
    ) -> LabeledTree:
        """Draw exact, independent samples: heads and labels ``(*sample, *batch, n+1)``; generators as for the base."""
        shape = Size(sample_shape)
        seeds = item_seeds(generator, self.batch_shape.numel())
        heads = self.arcs.flat.sample(seeds, shape.numel()).transpose(0, 1)
        labels = self.labels.sample_of_trees(heads, seeds)
        full = shape + self.scores.shape[:-1]
        return LabeledTree(heads.reshape(full), labels.reshape(full))

    def relaxed_sample(self, temperature: float, hard: bool = False, *, generator: Generators = None) -> Tensor:
        """Draw a relaxed labelled tree ``(*batch, n+1, n+1, L)``, with noise on the score of every labelled arc.

        All label scores are in memory at once. All else is as for the base.
        """
        check_hard(hard)
        p = self._with(self.base, perturbed(self._all_label_scores(), self.batch_shape, generator))
        relaxed = p.tempered(temperature).marginals
        if hard:
            heads, labels = p.mode
            is_label = labels.unsqueeze(-1) == torch.arange(self.labels.count, device=labels.device)
            relaxed = straight_through(relaxed, arcs_of(heads).unsqueeze(-1) & is_label.unsqueeze(-3))
        return relaxed.to(self._score_dtype)

    def sample_without_replacement(
        self, k: int, *, generator: Generators = None, method: DistinctMethod | None = None
    ) -> DistinctLabeledTrees:
        """Draw different labelled trees: heads, labels ``(*batch, k, n+1)``, log probabilities and keys, in order.

        Trees that differ in a label only are different. All else is as for the base.
        """
        seeds = item_seeds(generator, self.batch_shape.numel())
        draw = self.arcs.flat.sample_without_replacement
        rows, log_probs, keys = draw(seeds, check_count(k), method, self.labels)
        heads, labels = rows.chunk(2, -1)
        return DistinctLabeledTrees(heads, labels, self._round(log_probs), self._round(keys))

    def log_prob(self, value: Tensor | LabeledPair, labels: Tensor | None = None) -> Tensor:
        """Return log probabilities ``(*sample, *batch)`` of heads and labels ``(*sample, *batch, n+1)``, or of a pair.

        -inf for a tree that is not in the support, and for a tree with a word whose label is -1 or does not exist.

        Raises:
            TreeparseError: for heads without labels; otherwise as for the base.
        """
        total, possible = self._checked_score(*labeled_tree(value, labels))
        return self._round(torch.where(possible, total - self.flat.log_partition, -torch.inf))

    def score(self, value: Tensor | LabeledPair, labels: Tensor | None = None) -> Tensor:
        """Return summed scores ``(*sample, *batch)`` of parts and labels; all else is as for ``log_prob``."""
        total, possible = self._checked_score(*labeled_tree(value, labels))
        return self._round(torch.where(possible, total, -torch.inf))

    def log_prob_of_scored(self, heads: Tensor, labels: Tensor, scores: Tensor) -> Tensor:
        """Return log probabilities ``(*sample, *batch)`` of trees whose scores are known: scores less log partition."""
        return scores - self.log_partition

    def label_log_prob(self, heads: Tensor, labels: Tensor) -> Tensor:
        """Return log probabilities ``(*sample, *batch)`` of labels given their arcs, ``(*sample, *batch, n+1)`` both.

        Words whose head or label is negative, that is unknown, count nothing; -inf if a label does not exist.
        Differentiable in the label scores.
        """
        heads, labels = check_trees(heads, labels, self.word_mask, samples=True)
        if self._validate_args:
            check_head_range(heads, self.lengths)
        known, ids = map(self.base.flat.samples_of, (torch.where(labels >= 0, heads, -1), labels))
        values = self.labels.log_probs_of_trees(known, ids).reshape(heads.shape[:-1])
        missing = (heads > self.lengths.unsqueeze(-1)) | ((heads >= 0) & (labels >= self.labels.count))
        return self._round(torch.where(missing.any(-1), -torch.inf, values))

    def enumerate_support(self, expand: bool = True) -> LabeledTree:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Return all labelled trees: heads and labels ``(trees, *batch, n+1)``, padded by -1; small n and L only."""
        support = self.arcs.enumerate_support()
        trees = support.reshape(len(support), self.batch_shape.numel(), support.shape[-1]).unbind(1)
        lengths = self.lengths.flatten().tolist()
        pairs = [
            self.labels.labelings(heads[(heads >= 0).any(-1)], item, lengths[item]) for item, heads in enumerate(trees)
        ]
        heads, labels = ([pair[part] for pair in pairs] for part in range(2))
        return LabeledTree(*(pad_lists(part, like=self.scores[..., 0]) for part in (heads, labels)))

    def arc_marginals(self) -> Tensor:
        """Return the probability of every arc, whatever its label, ``(B, n+1, n+1)``: float64 constants."""
        return self.arcs.flat.marginals.detach()

    def tree_marginals(self, heads: Tensor, labels: Tensor, label_powers: Sequence[float] = (1.0,)) -> TreeMarginals:
        """Return the marginals of the arcs, and of the labelled arcs, of trees ``(*sample, *batch, n+1)``: constants.

        `LabeledDistribution.tree_marginals` documents the arguments; the power is the geometric mean of the powers.
        """
        heads, labels = check_trees(heads, labels, self.word_mask, samples=True)
        flat = self.base.flat
        if flat.validate:
            check_head_range(heads, self.lengths)
        trees, ids = map(flat.samples_of, (heads, labels))
        power = math.prod(label_powers) ** (1 / len(label_powers))
        marginals = self.labels.tree_marginals(self.arc_marginals(), trees, ids, power)
        return TreeMarginals(*(part.reshape(heads.shape) for part in marginals))

    def expected_uas(self, heads: Tensor) -> Tensor:
        """Return the expected share ``(*batch,)`` of right heads among words of known head, whatever the labels."""
        return self._round(self.arcs.expected_uas(heads))

    def expected_las(self, heads: Tensor, labels: Tensor) -> Tensor:
        """Return the expected share ``(*batch,)`` of words whose head and label are right in a random labelled tree.

        Words count if their head and label are known (>= 0); without such words the share is 1. A label that does not
        exist is never right. Differentiable ([Exp] §6.1).
        """
        return self._round(self._expected_las(heads, labels))

    def risk(self, heads: Tensor, labels: Tensor) -> Tensor:
        """Return the expected share ``(*batch,)`` of words with a wrong head or label, 1 - ``expected_las``."""
        return self._round(1 - self._expected_las(heads, labels))

    def _in_support(self, value: LabeledPair) -> Tensor:
        """Return which pairs of heads and labels are a tree without forbidden arcs and labels."""
        return self._score(*check_trees(*labeled_tree(value), self.word_mask, samples=True))[1]

    def _checked_score(self, heads: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """Return ``_score`` of unchecked trees; raises for heads that are no tree under any scores."""
        heads, labels = check_trees(heads, labels, self.word_mask, samples=True)
        total, possible = self._score(heads, labels)
        if self._validate_args and not bool(possible.all()):  # most trees are possible, and the check takes longer
            check_whole_trees(heads, self.word_mask, self.lengths)
        return total, possible

    def _score(self, heads: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """Return summed scores of labelled trees ``(*sample, *batch)``, and which of them are in the support."""
        shape = heads.shape[:-1]
        heads, ids = map(self.base.flat.samples_of, (heads, labels))
        total, possible = self.base.flat.scores_of(heads)
        exist = ((heads < 0) | ((ids >= 0) & (ids < self.labels.count))).all(-1)
        values = self.labels.of_labeled_trees(heads, ids).sum(-1)
        return (total + values).reshape(shape), (possible & exist & (values > -torch.inf)).reshape(shape)

    def _expected_las(self, heads: Tensor, labels: Tensor) -> Tensor:
        heads, labels = check_trees(heads, labels, self.word_mask)
        if self._validate_args:
            check_head_range(heads, self.lengths)
        known = torch.where(labels >= 0, heads, -1)
        scores = self.labels.of_trees(known.reshape(-1, known.shape[-1]))
        probs = sums.log_probs(scores).exp().reshape(*known.shape, self.labels.count)
        right = probs.gather(-1, labels.clamp(0, self.labels.count - 1).unsqueeze(-1)).squeeze(-1)
        weights = torch.where(labels < self.labels.count, right, 0.0)
        return expected_accuracy(self.arcs.flat.unflat(self.arcs.flat.marginals), known, weights)
