"""Distributions over labelled trees: any distribution over trees, with labels that are independent given the tree."""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np
import torch
from torch import Size, Tensor

from treeparse.batch import readable_without_sync
from treeparse.errors import TreeparseError
from treeparse.names import Decoder
from treeparse.trees.checks import (
    check_count,
    check_head_range,
    check_heads,
    check_label_scores,
    check_trees,
    check_whole_trees,
    labeled_tree,
)
from treeparse.trees.distribution import TreeDistribution
from treeparse.trees.families import DistinctMethod
from treeparse.trees.flat import FlatTrees
from treeparse.trees.labels import sums
from treeparse.trees.labels.base import LabeledBase
from treeparse.trees.labels.best import best_under_bounds
from treeparse.trees.labels.flat import FlatLabeledTrees
from treeparse.trees.labels.kbest import LabeledKBest
from treeparse.trees.labels.scores import FlatLabels
from treeparse.trees.labels.sources import (
    ForbiddenLabels,
    LabelsDetached,
    LabelsForbidden,
    LabelsGiven,
    LabelsOfItems,
    LabelSource,
    LabelsRearranged,
    LabelsScaled,
    LabelTensor,
)
from treeparse.trees.labels.tree_marginals import TreeMarginals, tree_marginals
from treeparse.trees.labels.trees import BestLabeledTrees, DistinctLabeledTrees, LabeledPair, LabeledTree
from treeparse.trees.part_values import expected_accuracy
from treeparse.trees.randomness import Generators, item_seeds
from treeparse.trees.registry import DISTRIBUTIONS
from treeparse.trees.relaxed import arcs_of, check_hard, perturbed, straight_through
from treeparse.trees.tree_lists import growing_indices, pad_lists, sort_by_score


class LabeledCRF(TreeDistribution):
    """A distribution over pairs ``heads, labels``, whose score is that of the arcs plus that of their labels.

    Summed over labels it is a distribution over trees, ``arcs``, in which every arc weighs what its labels weigh
    together; given the tree, labels are independent. ``labels`` ``(..., n+1)`` are -1 at node 0 and at padding.

    The rules for derivatives are those of ``TreeCRF``: one ``backward`` a distribution, no ``torch.func``. So are those
    for what waits for a device.

    Args:
        base: the distribution whose trees, scores and lengths these are.
        label_scores: ``(*batch, n+1, n+1, L)`` log weights, ``[..., head, dependent, label]``, added to the arc's; or
            what gives them by slices and at chosen arcs, so that they need not be held at once
            (``treeparse.trees.LabelSource``). -inf forbids a label, finite ones lie between -1e12 and 1e12. Where the
            base ignores scores, these are too.
        validate_args: as for the base, whose setting None takes.

    Raises:
        TreeparseError: for label scores that do not fit the base, or in a tensor are NaN, +inf or too large on an arc.
        NoTreeError: as the base does.
    """

    has_labels = True

    def __init__(
        self, base: LabeledBase, label_scores: Tensor | LabelSource, *, validate_args: bool | None = None
    ) -> None:
        self.base, self.label_scores = base, label_scores
        self.scores, self.lengths = base.scores, base.lengths
        validate = base.flat.validate if validate_args is None else validate_args
        super().__init__(base.batch_shape, base.event_shape, validate_args=validate)
        check_label_scores(label_scores, base.scores, base.lengths, values=validate)

    @property
    def kind_of_trees(self) -> str:
        return self.base.kind_of_trees

    @property
    def components(self) -> tuple[Self]:
        """This distribution: it is no mixture of others."""
        return (self,)

    @property
    def shape(self) -> Size:
        """``(*batch, n+1, n+1, L)``, one number a labelled arc."""
        return self.label_scores.shape

    @property
    def device(self) -> torch.device:
        """The device of the scores."""
        return self.scores.device

    def as_crf(self, purpose: str) -> Self:
        """Return this distribution, in which a tree's score is a sum over its arcs."""
        return self

    def _with(self, base: LabeledBase, label_scores: Tensor | LabelSource) -> Self:
        """The same with another base and other label scores, which are not checked."""
        result = type(self)(base, label_scores, validate_args=False)
        result._validate_args = self._validate_args
        return result

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of values: that of the scores of arcs and of labels, but float32 at least."""
        return torch.promote_types(self._score_dtype, torch.float32)

    @property
    def _score_dtype(self) -> torch.dtype:
        return torch.promote_types(self.scores.dtype, self.label_scores.dtype)

    @cached_property
    @torch.enable_grad()
    def arcs(self) -> LabeledBase:
        """The distribution of the trees, whatever their labels; float64."""
        scores = self.base.flat.arcs + self.labels.log_sums
        return self.base.with_scores(scores.reshape(self.scores.shape), validate_args=self._validate_args)

    @cached_property
    def flat(self) -> FlatLabeledTrees:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The labelled trees as one flat batch in float64, from which all values are made."""
        return FlatLabeledTrees(self.base.flat, self.arcs.flat, self.labels)

    @cached_property
    @torch.enable_grad()
    def labels(self) -> FlatLabels:
        """The label scores of the flat batch, as they are read."""
        given = self.label_scores
        source = LabelTensor(given) if isinstance(given, Tensor) else given
        return FlatLabels(source, self.base.flat.is_arc & (self.base.flat.arcs > -torch.inf))

    @cached_property
    @torch.enable_grad()
    def marginals(self) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The probability of every labelled arc ``(*batch, n+1, n+1, L)``, differentiable."""

        def labelled(scores: Tensor, marginals: Tensor) -> Tensor:
            return self._round(marginals.unsqueeze(-1) * sums.log_probs(scores).exp())

        return self.arcs.flat.unflat(self.labels.reduce(labelled, self.arcs.flat.marginals))

    @cached_property
    def _best(self) -> FlatTrees:
        """Trees by the score of their best labels."""
        return self._over(self.base.flat.arcs.detach() + self.labels.best())

    def _over(self, arcs: Tensor, *, alone: bool = False) -> FlatTrees:
        """The trees under other scores of arcs ``(B, n+1, n+1)``; if ``alone``, other allowed parts score 0."""
        parts = self.base.flat.parts.neutral() if alone else self.base.flat.parts
        return self.base.flat.with_parts(parts.with_arcs(arcs), validate=bool(self._validate_args))

    @property
    def _bound(self) -> float | None:
        """The bound of label scores by which best trees are searched for; on a device each round would wait for it."""
        return self.labels.source.bound if readable_without_sync(self.base.flat.arcs) else None

    @property
    def mode(self) -> LabeledTree:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Heads and labels ``(*batch, n+1)`` of the best labelled tree."""
        arcs, bound = self.base.flat.arcs.detach(), self._bound
        if bound is None:
            return self._with_best_labels(self._best.heads)

        def worth(item: Tensor, head: Tensor, dependent: Tensor) -> Tensor:
            return arcs[item, head, dependent] + self.labels.at(item, head, dependent).detach().amax(-1)

        def worth_of_all(items: Tensor) -> Tensor:
            return arcs[items] + self.labels.of_items(items).best()

        return self._with_best_labels(best_under_bounds(self._over(arcs + bound), worth, worth_of_all))

    def minimum_risk(self) -> LabeledTree:
        """Heads and labels ``(*batch, n+1)`` of the labelled tree of the support with the highest expected LAS.

        That is the best tree where an arc's score is the greatest probability of any label on it ([Exp] §6.1).
        """
        marginals, allowed = self.arcs.flat.marginals.detach(), self.arcs.flat.arcs > -torch.inf

        def greatest(scores: Tensor, marginals: Tensor) -> Tensor:
            return marginals * sums.log_probs(scores).amax(-1).exp()

        def worth(item: Tensor, head: Tensor, dependent: Tensor) -> Tensor:
            return greatest(self.labels.at(item, head, dependent).detach(), marginals[item, head, dependent])

        def worth_of_all(items: Tensor) -> Tensor:
            expected = self.labels.of_items(items).reduce(greatest, marginals[items]).detach()
            return torch.where(allowed[items], expected, -torch.inf)

        if self._bound is None:
            every = torch.arange(len(marginals), device=marginals.device)
            return self._with_best_labels(self._over(worth_of_all(every), alone=True).heads)
        bounds = self._over(torch.where(allowed, marginals, -torch.inf), alone=True)
        return self._with_best_labels(best_under_bounds(bounds, worth, worth_of_all))

    def _with_best_labels(self, heads: Tensor) -> LabeledTree:
        """Trees ``(B, n+1)`` and the best label of each of their arcs, ``(*batch, n+1)`` both."""
        labels = torch.where(heads >= 0, self.labels.of_trees(heads).argmax(-1), -1)
        return LabeledTree(self.base.flat.unflat(heads), self.base.flat.unflat(labels))

    def decode(self, decoder: Decoder) -> LabeledTree:
        """Return heads and labels ``(*batch, n+1)`` of the tree that a decoder chooses."""
        return self.minimum_risk() if decoder == "minimum_risk" else self.for_decoder(decoder).mode

    def for_decoder(self, decoder: Decoder) -> "LabeledCRF":
        """Return the distribution over the trees among which a decoder searches, with the same scores."""
        if decoder in ("best", "minimum_risk") or isinstance(self.base, DISTRIBUTIONS[decoder]):
            return self
        self.base.flat.check_arcs_alone("Searches among other trees than a distribution's own")
        validate = self.base.flat.validate
        base = DISTRIBUTIONS[decoder](
            self.base.scores, self.lengths, single_root=self.base.single_root, validate_args=validate
        )
        return LabeledCRF(base, self.label_scores)

    def topk(self, k: int) -> BestLabeledTrees:
        """The k best labelled trees: heads and labels ``(*batch, k, n+1)``, unnormalised scores ``(*batch, k)``.

        Best first, exact and distinct: trees that differ in a label alone count too. Past the number of labelled trees
        heads and labels are -1 and scores -inf. Of equal scores, the greater sum of arc keys comes first (``ties``),
        then the better labels of the earlier words; of an arc's equal labels the lowest comes first.
        """
        found = self._make_best(check_count(k))
        scores, heads, labels = sort_by_score(found.scores, found.heads, found.labels)
        return self._listed(heads, labels, scores)

    def best_first(self) -> Iterator[BestLabeledTrees]:
        """All labelled trees, best first, made as they are asked for: heads, labels ``(*batch, n+1)``, scores.

        Shorter lists are padded as in ``topk``; the iteration ends with the longest.
        """
        found = self._make_best(1)
        for index in growing_indices(found):
            yield self._listed(*(column[:, index] for column in (found.heads, found.labels, found.scores)))

    def _listed(self, heads: np.ndarray, labels: np.ndarray, scores: np.ndarray) -> BestLabeledTrees:
        """Return arrays ``(B, ...)`` of a list of trees as tensors ``(*batch, ...)``."""
        as_batch = self._best.as_batch
        return BestLabeledTrees(as_batch(heads), as_batch(labels), self._round(as_batch(scores)))

    def _make_best(self, count: int) -> LabeledKBest:
        """A new list of the best labelled trees with so many of them made."""
        best = self._best
        best.check_arcs_alone("Lists of the best labelled trees")
        trees = best.family.k_best(best.parts, best.lengths)
        found = LabeledKBest(trees, self.base.flat.arcs, best.lengths, self.labels)
        found.extend(count, threads=torch.get_num_threads())
        best.require(torch.from_numpy(found.scores[:, 0] > -np.inf))
        return found

    def given(self, heads: Tensor, labels: Tensor | None = None) -> Self:
        """The distribution of the labelled trees that have these heads and labels ``(*batch, n+1)``; -1 leaves open.

        Competing arcs get the score -inf, and so do competing labels on all arcs into a word of known label.
        Differentiable in both scores. Where no labelled tree has these, the result is a distribution without a tree.

        Raises:
            TreeparseError: for heads or labels that are no integers, have another shape, or do not exist.
        """
        scores = self.label_scores
        if labels is not None:
            known = self._known_labels(labels)
            scores = LabelsGiven(self.labels.source, known.reshape(-1, known.shape[-1]))
            if isinstance(self.label_scores, Tensor):
                scores = scores.from_heads(0, known.shape[-1]).reshape(self.label_scores.shape)
        return self._with(self.base.given(heads), scores)

    def conditioned(self, condition: Callable[["LabeledCRF"], "LabeledCRF"]) -> "LabeledCRF":
        """Return ``condition`` of this distribution."""
        return condition(self)

    def _known_labels(self, labels: Tensor) -> Tensor:
        """Labels ``(*batch, n+1)``, -1 where open, at node 0 and at padding."""
        labels = check_heads(labels, self.word_mask, name="Known labels")
        if (self._validate_args or readable_without_sync(labels)) and bool((labels >= self.labels.count).any()):
            raise TreeparseError(
                f"Known labels must lie below the number of labels, {self.labels.count}; -1 leaves one open."
            )
        return labels

    def within(self, mask: Tensor) -> Self:
        """The distribution of the labelled trees all of whose arcs lie in a mask ``(*batch, n+1, n+1)`` bool.

        Everything else is as for the base.
        """
        return self._with(self.base.within(mask), self.label_scores)

    def forbidding(self, forbidden: ForbiddenLabels) -> Self:
        """The distribution of the labelled trees of a flat batch without some labels on some arcs.

        Where no tree is left, the result is a distribution without a tree.
        """
        return self._with(self.base, LabelsForbidden(self.labels.source, forbidden))

    def of_items(self, items: Tensor) -> Self:
        """The distributions of items ``(I,)`` of a flat batch, in order; there it is no error to have no tree."""
        result = self._with(self.base.of_items(items), LabelsOfItems(self.labels.source, items))
        result._validate_args = False
        return result

    def relabelled(self, places: Sequence[int]) -> Self:
        """The distribution over labels in another order: for each its place in this one, -1 for one that is impossible.

        Labels that have no place there become impossible, too.
        """
        return self._with(self.base, LabelsRearranged(self.labels.source, places))

    def detach(self) -> Self:
        """The same distribution, a constant for autograd."""
        scores = self.label_scores
        detached = scores.detach() if isinstance(scores, Tensor) else LabelsDetached(scores)
        return self._with(self.base.detach(), detached)

    def tempered(self, temperature: float) -> Self:
        """The distribution whose probabilities are proportional to the power ``1 / temperature`` of these; float64.

        Raises:
            TreeparseError: unless the temperature is above 0 and, arguments being validated, scores stay in range.
        """
        base = self.base.tempered(temperature)
        if not isinstance(self.label_scores, Tensor):
            return self._with(base, LabelsScaled(self.label_scores, 1 / temperature))
        scores = self.label_scores.double() / temperature
        check_label_scores(scores, base.scores, base.lengths, values=bool(self._validate_args))
        return self._with(base, scores)

    def sample(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, sample_shape: Size | Sequence[int] = (), *, generator: Generators = None
    ) -> LabeledTree:
        """Heads and labels ``(*sample, *batch, n+1)`` of exact, independent samples; generators as for the base."""
        shape = Size(sample_shape)
        seeds = item_seeds(generator, self.batch_shape.numel())
        heads = self.arcs.flat.sample(seeds, shape.numel()).transpose(0, 1)
        labels = self.labels.sample_of_trees(heads, seeds)
        full = shape + self.scores.shape[:-1]
        return LabeledTree(heads.reshape(full), labels.reshape(full))

    def relaxed_sample(self, temperature: float, hard: bool = False, *, generator: Generators = None) -> Tensor:
        """A random labelled tree made soft ``(*batch, n+1, n+1, L)``: noise comes to every labelled arc.

        Everything else is as for the base. All label scores are held at once.
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
        """Different labelled trees in the order drawn: heads, labels ``(*batch, k, n+1)``, log probabilities and keys.

        Trees that differ in a label alone count too. Everything else is as for the base.
        """
        seeds = item_seeds(generator, self.batch_shape.numel())
        draw = self.arcs.flat.sample_without_replacement
        rows, log_probs, keys = draw(seeds, check_count(k), method, self.labels)
        heads, labels = rows.chunk(2, -1)
        return DistinctLabeledTrees(heads, labels, self._round(log_probs), self._round(keys))

    def log_prob(self, value: Tensor | LabeledPair, labels: Tensor | None = None) -> Tensor:
        """Log probability ``(*sample, *batch)`` of heads and labels ``(*sample, *batch, n+1)``; a pair is taken too.

        It is -inf for what is not in the support: where a word of a tree has no label, or one that does not exist, too.

        Raises:
            TreeparseError: for heads without labels; the rest as for the base.
        """
        total, possible = self._checked_score(*labeled_tree(value, labels))
        return self._round(torch.where(possible, total - self.flat.log_partition, -torch.inf))

    def score(self, value: Tensor | LabeledPair, labels: Tensor | None = None) -> Tensor:
        """Summed scores ``(*sample, *batch)`` of arcs and labels; the rest as for ``log_prob``."""
        total, possible = self._checked_score(*labeled_tree(value, labels))
        return self._round(torch.where(possible, total, -torch.inf))

    def log_prob_of_scored(self, heads: Tensor, labels: Tensor, scores: Tensor) -> Tensor:
        """Return log probabilities ``(*sample, *batch)`` of trees whose scores are known: scores less log partition."""
        return scores - self.log_partition

    def label_log_prob(self, heads: Tensor, labels: Tensor) -> Tensor:
        """Log probability ``(*sample, *batch)`` of labels given their arcs, ``(*sample, *batch, n+1)`` both.

        Words whose head or label is negative, so unknown, count nothing; -inf where some label does not exist.
        Differentiable in the label scores.
        """
        heads, labels = check_trees(heads, labels, self.word_mask, samples=True)
        if self._validate_args:
            check_head_range(heads, self.lengths)
        known, names = map(self.base.flat.samples_of, (torch.where(labels >= 0, heads, -1), labels))
        values = self.labels.log_probs_of_trees(known, names).reshape(heads.shape[:-1])
        missing = (heads > self.lengths.unsqueeze(-1)) | ((heads >= 0) & (labels >= self.labels.count))
        return self._round(torch.where(missing.any(-1), -torch.inf, values))

    def enumerate_support(self, expand: bool = True) -> LabeledTree:  # pyright: ignore[reportIncompatibleMethodOverride]
        """All labelled trees ``(trees, *batch, n+1)`` twice, small n and L only; items with fewer are padded by -1."""
        support = self.arcs.enumerate_support()
        trees = support.reshape(len(support), self.batch_shape.numel(), support.shape[-1]).unbind(1)
        lengths = self.lengths.flatten().tolist()
        pairs = [
            self.labels.labelings(heads[(heads >= 0).any(-1)], item, lengths[item]) for item, heads in enumerate(trees)
        ]
        heads, labels = ([pair[part] for pair in pairs] for part in range(2))
        return LabeledTree(*(pad_lists(part, like=self.scores[..., 0]) for part in (heads, labels)))

    def entropy_or_none(self) -> Tensor:
        """Return the entropy ``(*batch,)``."""
        return self.entropy()

    def expected_gradient_or_none(self) -> Tensor:
        """Return `expected_gradient` ``(*batch,)``."""
        return self.expected_gradient()

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
        trees, names = map(flat.samples_of, (heads, labels))
        power = math.prod(label_powers) ** (1 / len(label_powers))
        marginals = tree_marginals(self.arc_marginals(), self.labels, trees, names, power)
        return TreeMarginals(*(part.reshape(heads.shape) for part in marginals))

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
        scores = self._all_label_scores()
        return self._with(self.base.expand(batch_shape), scores.expand(*batch_shape, *scores.shape[-3:]))

    def _all_label_scores(self) -> Tensor:
        scores = self.label_scores
        return scores if isinstance(scores, Tensor) else scores.from_heads(0, scores.shape[-2]).reshape(scores.shape)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base}, label_scores: {tuple(self.label_scores.shape)})"

    def comparable(self, q: TreeDistribution) -> TreeDistribution:
        """q, or an error that says why it cannot be compared with this distribution."""
        if not isinstance(q, LabeledCRF):
            raise TreeparseError(f"A {type(self).__name__} cannot be compared with a {type(q).__name__}.")
        self.base.comparable(q.base)
        if q.labels.count != self.labels.count:
            counts = f"{self.labels.count} and {q.labels.count}"
            raise TreeparseError(f"The two distributions have different numbers of labels, {counts}.")
        return q

    def _in_support(self, value: LabeledPair) -> Tensor:
        """Which pairs of heads and labels are a tree and hold nothing forbidden."""
        return self._score(*check_trees(*labeled_tree(value), self.word_mask, samples=True))[1]

    def _checked_score(self, heads: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """``_score`` of trees as they are given; raises for heads that can be no tree of any scores."""
        heads, labels = check_trees(heads, labels, self.word_mask, samples=True)
        total, possible = self._score(heads, labels)
        if self._validate_args and not bool(possible.all()):  # as trees mostly are, and the check takes longer
            check_whole_trees(heads, self.word_mask, self.lengths)
        return total, possible

    def _score(self, heads: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """Summed scores of labelled trees ``(*sample, *batch)``, and which of them are in the support."""
        shape = heads.shape[:-1]
        heads, names = map(self.base.flat.samples_of, (heads, labels))
        total, possible = self.base.flat.scores_of(heads)
        fits = ((heads < 0) | ((names >= 0) & (names < self.labels.count))).all(-1)
        values = self.labels.of_labeled_trees(heads, names).sum(-1)
        return (total + values).reshape(shape), (possible & fits & (values > -torch.inf)).reshape(shape)

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
