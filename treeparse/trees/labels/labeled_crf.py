"""Distributions over labelled trees: any distribution over trees, with labels that are independent given the tree."""

from collections.abc import Iterator, Sequence
from typing import Any, Self

import torch
from torch import Size, Tensor

from treeparse.batch import is_plain, readable_without_sync
from treeparse.errors import TreeparseError
from treeparse.lazy import cached_property, graph_property
from treeparse.names import Decoder, decoder_named
from treeparse.trees.arc_crfs import NonProjectiveCRF, ProjectiveCRF
from treeparse.trees.checks import (
    check_count,
    check_head_range,
    check_heads,
    check_label_scores,
    check_trees,
    check_whole_trees,
    clamped,
    heads_and_labels,
)
from treeparse.trees.crf import TreeCRF, arcs_in_notebook
from treeparse.trees.distribution import TreeDistribution
from treeparse.trees.families import DistinctMethod
from treeparse.trees.labels import label_sums, sources
from treeparse.trees.labels.batched_labels import BatchedLabeledTrees, BatchedLabels
from treeparse.trees.labels.best_labels import BestLabeled
from treeparse.trees.labels.sources import ForbiddenLabels, LabelSource, LabelTensor
from treeparse.trees.look_ups import rows_at
from treeparse.trees.part_values import expected_accuracy
from treeparse.trees.parts import Parts, arcs_of, named, straight_through
from treeparse.trees.randomness import Generators, item_seeds, perturbed
from treeparse.trees.second_order_crfs import NonProjectiveSiblingCRF
from treeparse.trees.tree_lists import (
    BestLabeledTrees,
    DrawnLabeledTrees,
    LabeledPair,
    LabeledTree,
    TreeMarginals,
    growing_indices,
    pad_lists,
    sort_by_score,
)


class LabeledCRF(TreeDistribution):
    """A distribution over labelled trees, ``heads, labels``; a tree's score sums the scores of its parts and labels.

    Every method that takes a tree takes a pair, as ``mode`` and ``sample`` return it, or heads and labels as two
    arguments.

    The distribution of the trees without their labels is ``arcs``, where an arc weighs as much as its labels together.
    Given the tree, labels are independent. ``labels`` ``(..., n+1)`` are -1 at node 0 and at padding.

    The rules of ``TreeCRF`` for derivatives and device syncs hold: call ``backward`` once for each distribution.

    Args:
        base: the distribution over trees, with the scores of arcs and the lengths.
        label_scores: ``(*batch, n+1, n+1, L)`` log weights, ``[..., head, dependent, label]``, added to the arc's
            score; or a ``treeparse.trees.LabelSource``, which scores slices and chosen arcs, so that not all label
            scores are in memory at once. -inf forbids a label; finite scores lie between -1e6 and 1e6. Entries that
            are no arc are ignored.
        validate_args: as for the base, whose setting None takes.

    Raises:
        TreeparseError: for label scores that do not fit the base; in a tensor also for NaN, +inf and too large scores.
        NoTreeError: as the base does.
    """

    has_labels = True

    def __init__(self, base: TreeCRF, label_scores: Tensor | LabelSource, *, validate_args: bool | None = None) -> None:
        self.base: TreeCRF = base
        self.label_scores: Tensor | LabelSource = label_scores
        self.scores, self.lengths = base.scores, base.lengths
        validate = base.batched.validate if validate_args is None else validate_args
        if isinstance(label_scores, Tensor) and not is_plain(label_scores):  # values cannot be read
            validate = False
        super().__init__(base.batch_shape, base.event_shape, validate_args=validate)
        check_label_scores(label_scores, base.scores, base.lengths, values=validate)
        if isinstance(label_scores, Tensor) and not validate:
            self.label_scores = clamped(label_scores)

    def _with(self, base: TreeCRF, label_scores: Tensor | LabelSource, *, validate_args: bool | None = None) -> Self:
        """Replace the base and the label scores, without a check."""
        return self._replaced(
            base=base,
            label_scores=label_scores,
            scores=base.scores,
            lengths=base.lengths,
            _batch_shape=base.batch_shape,
            _event_shape=base.event_shape,
            _validate_args=self._validate_args if validate_args is None else validate_args,
        )

    @property
    def has_sums(self) -> bool:
        return self.base.batched.family.has_sums

    @property
    def kind_of_trees(self) -> str:
        return self.base.kind_of_trees

    @property
    def shape(self) -> Size:
        """``(*batch, n+1, n+1, L)``, one number a labelled arc."""
        return self.label_scores.shape

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of values: the scores' dtype, of arcs and labels, but at least float32."""
        dtype = torch.promote_types(self.scores.dtype, self.label_scores.dtype)
        return torch.promote_types(dtype, torch.float32)

    @graph_property
    def labels(self) -> BatchedLabels:
        """The label scores, in one batch dimension."""
        scores, batched = self.label_scores, self.base.batched
        source = LabelTensor(scores) if isinstance(scores, Tensor) else scores
        return BatchedLabels(source, batched.is_arc & (batched.arcs > -torch.inf))

    @graph_property
    def arcs(self) -> TreeCRF:
        """The distribution of the trees without their labels; float64."""
        scores = self.base.batched.arcs + self.labels.log_sums
        return self.base.with_scores(scores.reshape(self.scores.shape), validate_args=self._validate_args)

    @cached_property
    def batched(self) -> BatchedLabeledTrees:
        """The labelled trees in float64, from which all values are computed."""
        return BatchedLabeledTrees(self.base.batched, self.arcs.batched, self.labels)

    def _all_label_scores(self) -> Tensor:
        scores = self.label_scores
        return scores if isinstance(scores, Tensor) else scores.from_heads(0, scores.shape[-2]).reshape(scores.shape)

    @graph_property
    def marginals(self) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The probability of every labelled arc ``(*batch, n+1, n+1, L)``, differentiable."""

        def labelled(scores: Tensor, marginals: Tensor) -> Tensor:
            return self._round(marginals.unsqueeze(-1) * label_sums.log_probs(scores).exp())

        return self.arcs.batched.in_batch_shape(self.labels.reduce(labelled, self.arcs.batched.marginals))

    @property
    def part_marginals(self) -> Parts:
        """The probability of every part, labelled arcs first and other kinds after them, ``(*batch, ...)`` each."""
        return Parts((self.marginals, *map(self._round, self.arcs.part_marginals.others)))

    @cached_property
    def log_marginals(self) -> Tensor:
        """Log probability of every labelled arc ``(*batch, n+1, n+1, L)``, a constant, as ``TreeCRF.log_marginals``.

        ``p.marginals`` has a gradient.
        """

        def labelled(scores: Tensor, log_marginals: Tensor) -> Tensor:
            return self._round(log_marginals.unsqueeze(-1) + label_sums.log_probs(scores))

        return self.arcs.batched.in_batch_shape(self.labels.reduce(labelled, self.arcs.batched.log_marginals).detach())

    @cached_property
    def _best(self) -> BestLabeled:
        return BestLabeled(self.base.batched, self.labels, validate=bool(self._validate_args))

    @property
    def mode(self) -> LabeledTree:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Heads and labels ``(*batch, n+1)`` of the best labelled tree."""
        return self._best.mode()

    def minimum_risk(self) -> LabeledTree:
        """Return heads and labels ``(*batch, n+1)`` of the labelled tree of the support with the highest expected LAS.

        It is the best tree if the score of an arc is its greatest labelled marginal ([Exp] §6.1). Trees without sums
        take the marginals of ``mean_field``.
        """
        if not self.has_sums:
            return self.mean_field().minimum_risk()
        return self._best.minimum_risk(self.arcs.batched)

    def decode(self, decoder: Decoder) -> LabeledTree:
        """Return heads and labels ``(*batch, n+1)`` of the tree that a decoder chooses."""
        if decoder == "arcs_first":
            return self._best.arcs_first()
        return self.minimum_risk() if decoder == "minimum_risk" else self.for_decoder(decoder).mode

    def mean_field(self, rounds: int = 3) -> "LabeledCRF":
        """Approximate a distribution that scores arcs and siblings over all trees by one that scores arcs alone.

        Raises:
            TreeparseError: unless the base is a ``NonProjectiveSiblingCRF``; otherwise as its ``mean_field``.
        """
        if not isinstance(self.base, NonProjectiveSiblingCRF):
            raise TreeparseError(
                f"Mean field approximates nonprojective sibling trees, got {self.base.family.name} trees, which need "
                "no approximation."
            )
        assert isinstance(self.arcs, NonProjectiveSiblingCRF)  # the base, where a label's weight adds to its arc's
        approximation = self.arcs.mean_field(rounds)
        added = self.base.batched.in_batch_shape(self.labels.log_sums)
        scores = torch.where(added > -torch.inf, approximation.scores - added, -torch.inf)
        return self._with(approximation.with_scores(scores), self.label_scores)

    def for_decoder(self, decoder: Decoder) -> "LabeledCRF":
        """Return the distribution over the trees among which a decoder searches, with the same scores.

        Raises:
            TreeparseError: for trees of another kind with parts other than arcs, which the decoder does not score.
        """
        crossing = {"nonprojective": True, "projective": False}.get(decoder_named(decoder))
        if crossing in (None, self.base.family.crossing):
            return self
        if self.base.family.part_kinds:
            raise TreeparseError(
                f"The decoder {decoder!r} searches among trees that score arcs alone, but {self.base.family.name} "
                f"trees score {named(self.base.family.part_kinds)}: use the decoder 'best', 'arcs_first' or "
                "'minimum_risk'."
            )
        kind = NonProjectiveCRF if crossing else ProjectiveCRF
        base = kind(self.scores, self.lengths, single_root=self.base.single_root, validate_args=False)
        return self._with(base.with_scores(self.scores, validate_args=self.base.batched.validate), self.label_scores)

    def topk(self, k: int) -> BestLabeledTrees:
        """Return the k best labelled trees: heads, labels ``(k, *batch, n+1)``, scores and log_probs ``(k, *batch)``.

        Best first, exact and distinct: trees that differ in a label only are different. Past the number of labelled
        trees heads and labels are -1, scores and log probabilities -inf. Of equal scores, the greater sum of arc keys
        comes first (``ties``), then the better labels of the earlier words; of an arc's equal labels the lowest comes
        first. All columns are constants: ``p.score(*best[:2])`` and ``p.log_prob(*best[:2])`` have gradients.
        """
        trees = self._best.k_best(check_count(k))
        return BestLabeledTrees(*self._with_log_probs(*sort_by_score(trees.scores, trees.heads, trees.labels)))

    def best_first(self) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Yield all labelled trees, best first: heads, labels ``(*batch, n+1)`` and scores, each computed on request.

        Shorter lists are padded as in ``topk``; the iteration ends with the longest. All three are constants:
        ``p.score(heads, labels)`` has a gradient.
        """
        trees = self._best.k_best(1)
        for index in growing_indices(trees):
            columns = (column[:, index] for column in (trees.scores, trees.heads, trees.labels))
            heads, labels, scores = self._listed(*columns)
            yield heads, labels, self._round(scores)

    def sample(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, sample_shape: Size | Sequence[int] = (), *, generator: Generators = None
    ) -> LabeledTree:
        """Draw exact, independent samples: heads and labels ``(*sample, *batch, n+1)``; generators as for the base."""
        shape = Size(sample_shape)
        seeds = item_seeds(generator, self.batch_shape.numel())
        heads = self.arcs.batched.sample(seeds, shape.numel()).transpose(0, 1)
        labels = self.labels.sample_of_trees(heads, seeds)
        full = shape + self.scores.shape[:-1]
        return LabeledTree(heads.reshape(full), labels.reshape(full))

    def relaxed_sample(self, temperature: float, hard: bool = False, *, generator: Generators = None) -> Tensor:
        """Draw a relaxed labelled tree ``(*batch, n+1, n+1, L)``, with noise on the score of every labelled arc.

        All label scores are in memory at once. Arguments and derivatives are as for the base.
        """
        p = self._with(self.base, perturbed(self._all_label_scores(), self.batch_shape, generator))
        relaxed = p.tempered(temperature).marginals
        if hard:
            heads, labels = p.mode
            is_label = labels.unsqueeze(-1) == torch.arange(self.labels.count, device=labels.device)
            relaxed = straight_through(relaxed, arcs_of(heads).unsqueeze(-1) & is_label.unsqueeze(-3))
        return relaxed.to(torch.promote_types(self.scores.dtype, self.label_scores.dtype))

    def sample_without_replacement(
        self, k: int, *, generator: Generators = None, method: DistinctMethod | None = None
    ) -> DrawnLabeledTrees:
        """Draw different labelled trees: heads, labels ``(k, *batch, n+1)``, log probabilities and keys, in order.

        Trees that differ in a label only are different. Arguments and results are as for the base. All columns are
        constants: ``p.log_prob(*drawn[:2])`` has a gradient.
        """
        seeds = item_seeds(generator, self.batch_shape.numel())
        draw = self.arcs.batched.sample_without_replacement
        columns = draw(seeds, check_count(k), method, self.labels)
        rows, log_probs, keys = (column.movedim(len(self.batch_shape), 0) for column in columns)
        heads, labels = rows.chunk(2, -1)
        return DrawnLabeledTrees(heads, labels, self._round(log_probs), self._round(keys))

    def log_prob(self, value: Tensor | LabeledPair, labels: Tensor | None = None) -> Tensor:
        """Return log probabilities ``(*sample, *batch)`` of heads and labels ``(*sample, *batch, n+1)``, or of a pair.

        The value is -inf for a tree outside the support, and for a tree with a label that is negative or does not
        exist.

        Raises:
            TreeparseError: for heads without labels; otherwise as for the base.
        """
        scores, possible = self._checked_scores(value, labels)
        return self._round(torch.where(possible, scores - self.arcs.batched.log_partition, -torch.inf))

    def score(self, value: Tensor | LabeledPair, labels: Tensor | None = None) -> Tensor:
        """Return summed scores ``(*sample, *batch)`` of parts and labels; otherwise as ``log_prob``."""
        scores, possible = self._checked_scores(value, labels)
        return self._round(torch.where(possible, scores, -torch.inf))

    def log_prob_of_scored(self, heads: Tensor, labels: Tensor, scores: Tensor) -> Tensor:
        """Return log probabilities ``(*sample, *batch)`` of trees from their scores; NaN for trees without sums."""
        return self._round(self._log_probs_of_scored(scores))

    def label_log_prob(self, value: Tensor | LabeledPair, labels: Tensor | None = None) -> Tensor:
        """Return log probabilities ``(*sample, *batch)`` of labels given their arcs, ``(*sample, *batch, n+1)`` both.

        A word with a negative head or label, which means unknown, adds 0; a label that does not exist gives -inf.
        Differentiable in the label scores.
        """
        heads, labels = check_trees(value, labels, self.word_mask, samples=True)
        if self._validate_args:
            check_head_range(heads, self.lengths)
        known, ids = map(self.base.batched.samples_of, (torch.where(labels >= 0, heads, -1), labels))
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
        columns = ([pair[part] for pair in pairs] for part in range(2))
        return LabeledTree(*(pad_lists(column, like=self.scores[..., 0]) for column in columns))

    def arc_marginals(self) -> Tensor:
        """Return the probability of every arc, whatever its label, ``(*batch, n+1, n+1)``: float64 constants."""
        return self.arcs.batched.in_batch_shape(self.arcs.batched.marginals.detach())

    def tree_marginals(self, value: Tensor | LabeledPair, labels: Tensor | None = None) -> TreeMarginals:
        """Return the marginals of the arcs, and of the labelled arcs, of trees ``(*sample, *batch, n+1)``: constants.

        Labels are scored at these arcs only. An arc has the probability 0 if its head or label is negative or if there
        is no such label. The trees need not be in the support.

        Args:
            value: the trees, or their heads.
            labels: the labels of the trees, if ``value`` is heads.

        Raises:
            TreeparseError: for heads or labels that are not integers or have another shape, and for a head that is no
                node.
            NoTreeError: for an item without a tree, if arguments are validated.
        """
        heads, labels = check_trees(value, labels, self.word_mask, samples=True)
        batched = self.base.batched
        if batched.validate:
            check_head_range(heads, self.lengths)
        trees, ids = map(batched.samples_of, (heads, labels))
        marginals = self.labels.tree_marginals(self.arcs.batched.marginals.detach(), trees, ids)
        return TreeMarginals(*(part.reshape(heads.shape) for part in marginals))

    def _in_support(self, value: LabeledPair) -> Tensor:
        """Tell which pairs of heads and labels are trees without a forbidden part or label."""
        return self._scores_of(*check_trees(value, None, self.word_mask, samples=True))[1]

    def _checked_scores(self, value: Tensor | LabeledPair, labels: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return the ``_scores_of`` trees; raise for head lists that are no trees, whatever the scores."""
        heads, labels = check_trees(value, labels, self.word_mask, samples=True)
        scores, possible = self._scores_of(heads, labels)
        if self._validate_args and not bool(possible.all()):  # because the check takes longer
            check_whole_trees(heads, self.word_mask, self.lengths)
        return scores, possible

    def _scores_of(self, heads: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """Return the scores of labelled trees, and which trees are in the support: ``(*sample, *batch)`` both.

        Trees are heads and labels ``(*sample, *batch, n+1)``.
        """
        batched, shape = self.base.batched, heads.shape[:-1]
        heads, ids = map(batched.samples_of, (heads, labels))
        scores, possible = batched.scores_of(heads)
        exist = ((heads < 0) | ((ids >= 0) & (ids < self.labels.count))).all(-1)
        values = self.labels.of_labeled_trees(heads, ids)
        possible = possible & exist & (values > -torch.inf).all(-1)
        return (scores + values.sum(-1)).reshape(shape), possible.reshape(shape)

    def expected_uas(self, value: Tensor | LabeledPair) -> Tensor:
        """Return the expected share ``(*batch,)`` of right heads among words with a known head, whatever the labels.

        ``value`` is heads ``(*batch, n+1)``, or a pair whose labels are not read.
        """
        return self._round(self.arcs.expected_uas(heads_and_labels(value)[0]))

    def expected_las(self, value: Tensor | LabeledPair, labels: Tensor | None = None) -> Tensor:
        """Return the expected share ``(*batch,)`` of words whose head and label are right in a random labelled tree.

        Words count if their head and label ``(*batch, n+1)`` are known (>= 0); without such words the share is 1. A
        label that does not exist is never right. Differentiable ([Exp] §6.1).
        """
        return self._round(self._expected_las(value, labels))

    def risk(self, value: Tensor | LabeledPair, labels: Tensor | None = None) -> Tensor:
        """Return the expected share ``(*batch,)`` of words with a wrong head or label, 1 - ``expected_las``."""
        return self._round(1 - self._expected_las(value, labels))

    def _expected_las(self, value: Tensor | LabeledPair, labels: Tensor | None) -> Tensor:
        heads, labels = check_trees(value, labels, self.word_mask)
        if self._validate_args:
            check_head_range(heads, self.lengths)
        known = torch.where(labels >= 0, heads, -1)
        flat = (values.reshape(1, -1, known.shape[-1]) for values in (known, labels))
        right = self.labels.log_probs_of_arcs(*flat).exp().reshape(known.shape)
        weights = torch.where(labels < self.labels.count, right, 0.0)
        return expected_accuracy(self.arcs.batched.in_batch_shape(self.arcs.batched.marginals), known, weights)

    def given(self, value: Tensor | LabeledPair, labels: Tensor | None = None) -> Self:
        """Condition on heads and labels ``(*batch, n+1)``; a negative number leaves a word's head or label open.

        Heads alone leave all labels open. Arcs that compete with a known head get the score -inf, and so do labels that
        compete with a word's known label. Differentiable in the scores of arcs and labels. Where no labelled tree has
        these heads and labels, the result is a distribution without a tree.

        Raises:
            TreeparseError: for heads or labels that are not integers, have another shape, or do not exist.
        """
        scores, (heads, labels) = self.label_scores, heads_and_labels(value, labels)
        if labels is not None:
            known = check_heads(labels, self.word_mask, name="Known labels")
            if (self._validate_args or readable_without_sync(known)) and bool((known >= self.labels.count).any()):
                raise TreeparseError(
                    f"Known labels must be below the number of labels, {self.labels.count}; -1 leaves a label open."
                )
            scores = sources.with_known_labels(self.labels.source, known.reshape(-1, known.shape[-1]))
            if isinstance(self.label_scores, Tensor):
                scores = scores.from_heads(0, known.shape[-1]).reshape(self.label_scores.shape)
        return self._with(self.base.given(heads), scores)

    def within(self, mask: Tensor) -> Self:
        """Restrict to the trees whose arcs all lie in a mask ``(*batch, n+1, n+1)`` bool, as for the base."""
        return self._with(self.base.within(mask), self.label_scores)

    def forbidding(self, forbidden: ForbiddenLabels) -> Self:
        """Forbid some labels on some arcs of a flat batch.

        Where no labelled tree remains, the result is a distribution without a tree.
        """
        return self._with(self.base, sources.without_labels(self.labels.source, forbidden))

    def __getitem__(self, index: Any) -> Self:
        """Select from the batch, as a tensor of the batch's shape is indexed: ``p[0]``, ``p[2:5]``, ``p[mask]``.

        Raises:
            TreeparseError: if a ``LabelSource`` has the label scores, for one item or a batch of several dimensions.
        """
        places, scores = self._positions(index), self.label_scores
        if isinstance(scores, Tensor):
            selected = rows_at(scores.reshape(-1, *scores.shape[-3:]), places)
        elif places.dim() == 1:
            selected = sources.of_items(self.labels.source, places)
        else:
            raise TreeparseError(
                f"A LabelSource has the label scores of one dimension of items, got the index {index!r:.60}: select "
                "several items, p[i : i + 1], or give the label scores as a tensor."
            )
        return self._with(self.base[index], selected)

    def to(self, device: torch.device | str) -> Self:
        """Return the same distribution over scores on a device.

        Raises:
            TreeparseError: if a ``LabelSource`` on another device has the label scores.
        """
        scores = self.label_scores
        if isinstance(scores, Tensor):
            return self._with(self.base.to(device), scores.to(device))
        if scores.device != torch.device(device):
            raise TreeparseError(f"A LabelSource stays on its device, {scores.device}, got {torch.device(device)}.")
        return self._with(self.base.to(device), scores)

    def of_items(self, items: Tensor) -> Self:
        """Select items ``(I,)`` of a flat batch, in order; in the result, an item without a tree is no error."""
        items = self._positions(items)
        labels = sources.of_items(self.labels.source, items)
        return self._with(self.base.of_items(items), labels, validate_args=False)

    def relabelled(self, indices: Sequence[int]) -> Self:
        """Reorder the labels by the index here of each new label: -1 makes a new label that is forbidden.

        Labels whose index is left out are forbidden too.
        """
        return self._with(self.base, sources.reordered(self.labels.source, indices))

    def reserving(self, label: int) -> Self:
        """Reserve a label for arcs from the root: no other arcs have it, and these have no other label."""
        return self._with(self.base, sources.reserved(self.labels.source, label))

    def detach(self) -> Self:
        """Return the same distribution as a constant for autograd."""
        scores = self.label_scores
        detached = scores.detach() if isinstance(scores, Tensor) else sources.detached(scores)
        return self._with(self.base.detach(), detached)

    def tempered(self, temperature: float) -> Self:
        """Raise all probabilities to the power ``1 / temperature`` and normalise them; float64.

        Raises:
            TreeparseError: as for the base.
        """
        base = self.base.tempered(temperature)
        if not isinstance(self.label_scores, Tensor):
            return self._with(base, sources.scaled(self.label_scores, 1 / temperature))
        return self._with(base, self.label_scores.double() / temperature)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Self:
        """Add leading batch dimensions; memory is shared."""
        batch_shape = self._expanded(batch_shape)
        scores = self._all_label_scores()
        return self._with(self.base.expand(batch_shape), scores.expand(*batch_shape, *scores.shape[-3:]))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base}, label_scores: {tuple(self.label_scores.shape)})"

    def _repr_html_(self) -> str | None:
        """Return the probabilities of the first sentences' arcs, whatever their labels, for notebooks."""
        return arcs_in_notebook(self.arcs, repr(self))

    def comparable(self, q: TreeDistribution) -> TreeDistribution:
        """Return q, or raise if it cannot be compared with this distribution."""
        if not isinstance(q, LabeledCRF):
            raise TreeparseError(
                f"A {type(self).__name__} must be compared with a LabeledCRF, got a {type(q).__name__}."
            )
        self.base.comparable(q.base)
        if q.labels.count != self.labels.count:
            counts = f"{self.labels.count} and {q.labels.count}"
            raise TreeparseError(
                f"Two distributions to compare need equal label sets, got different numbers of labels, {counts}."
            )
        return q
