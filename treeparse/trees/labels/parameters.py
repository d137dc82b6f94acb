"""The parameters of a distribution over labelled trees, and the distributions that are made by changing them."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Self

import torch
from torch import Size, Tensor

from treeparse.batch import readable_without_sync
from treeparse.errors import TreeparseError
from treeparse.trees.checks import check_heads, check_label_scores
from treeparse.trees.distribution import TreeDistribution
from treeparse.trees.labels.base import LabeledBase
from treeparse.trees.labels.flat import FlatLabeledTrees
from treeparse.trees.labels.scores import FlatLabels
from treeparse.trees.labels.sources import (
    ForbiddenLabels,
    LabelsDetached,
    LabelsForbidden,
    LabelsGiven,
    LabelsOfItems,
    LabelSource,
    LabelsReordered,
    LabelsScaled,
    LabelTensor,
)


class LabeledParameters(TreeDistribution):
    """A base, the distribution of trees without labels, and label scores; arguments as for ``LabeledCRF``."""

    has_labels = True

    def __init__(
        self, base: LabeledBase, label_scores: Tensor | LabelSource, *, validate_args: bool | None = None
    ) -> None:
        self.base, self.label_scores = base, label_scores
        self.scores, self.lengths = base.scores, base.lengths
        validate = base.flat.validate if validate_args is None else validate_args
        super().__init__(base.batch_shape, base.event_shape, validate_args=validate)
        check_label_scores(label_scores, base.scores, base.lengths, values=validate)

    def _with(self, base: LabeledBase, label_scores: Tensor | LabelSource) -> Self:
        """Return the same with another base and other label scores, which are not checked."""
        result = type(self)(base, label_scores, validate_args=False)
        result._validate_args = self._validate_args
        return result

    @property
    def kind_of_trees(self) -> str:
        return self.base.kind_of_trees

    @property
    def shape(self) -> Size:
        """``(*batch, n+1, n+1, L)``, one number a labelled arc."""
        return self.label_scores.shape

    @property
    def device(self) -> torch.device:
        """The device of the scores."""
        return self.scores.device

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of values: that of the scores of arcs and of labels, but float32 at least."""
        return torch.promote_types(self._score_dtype, torch.float32)

    @property
    def _score_dtype(self) -> torch.dtype:
        return torch.promote_types(self.scores.dtype, self.label_scores.dtype)

    @cached_property
    @torch.enable_grad()
    def labels(self) -> FlatLabels:
        """The label scores of the flat batch."""
        scores = self.label_scores
        source = LabelTensor(scores) if isinstance(scores, Tensor) else scores
        return FlatLabels(source, self.base.flat.is_arc & (self.base.flat.arcs > -torch.inf))

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

    def _all_label_scores(self) -> Tensor:
        scores = self.label_scores
        return scores if isinstance(scores, Tensor) else scores.from_heads(0, scores.shape[-2]).reshape(scores.shape)

    def given(self, heads: Tensor, labels: Tensor | None = None) -> Self:
        """Condition on heads and labels ``(*batch, n+1)`` of words; -1 leaves a word's open.

        Competing arcs get the score -inf, and competing labels on all arcs into a word of known label. Differentiable
        in both scores. If no labelled tree agrees, the result is a distribution without a tree.

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

    def _known_labels(self, labels: Tensor) -> Tensor:
        """Check labels ``(*batch, n+1)`` and set them to -1 where open, at node 0 and at padding."""
        labels = check_heads(labels, self.word_mask, name="Known labels")
        if (self._validate_args or readable_without_sync(labels)) and bool((labels >= self.labels.count).any()):
            raise TreeparseError(
                f"Known labels must be below the number of labels, {self.labels.count}; -1 leaves a label open."
            )
        return labels

    def within(self, mask: Tensor) -> Self:
        """Condition on all arcs being in a mask ``(*batch, n+1, n+1)`` bool, as for the base."""
        return self._with(self.base.within(mask), self.label_scores)

    def forbidding(self, forbidden: ForbiddenLabels) -> Self:
        """Forbid some labels on some arcs of a flat batch.

        If no tree is left, the result is a distribution without a tree.
        """
        return self._with(self.base, LabelsForbidden(self.labels.source, forbidden))

    def of_items(self, items: Tensor) -> Self:
        """Return the distributions of items ``(I,)`` of a flat batch, in order; items without a tree do not raise."""
        result = self._with(self.base.of_items(items), LabelsOfItems(self.labels.source, items))
        result._validate_args = False
        return result

    def relabelled(self, indices: Sequence[int]) -> Self:
        """Reorder the labels: for each new label its index here, -1 for an impossible label.

        Labels whose index is missing become impossible.
        """
        return self._with(self.base, LabelsReordered(self.labels.source, indices))

    def detach(self) -> Self:
        """Return the same distribution, a constant for autograd."""
        scores = self.label_scores
        detached = scores.detach() if isinstance(scores, Tensor) else LabelsDetached(scores)
        return self._with(self.base.detach(), detached)

    def tempered(self, temperature: float) -> Self:
        """Return the distribution with probabilities proportional to the power ``1 / temperature`` of these; float64.

        Raises:
            TreeparseError: unless the temperature is above 0 and, arguments being validated, scores stay in range.
        """
        base = self.base.tempered(temperature)
        if not isinstance(self.label_scores, Tensor):
            return self._with(base, LabelsScaled(self.label_scores, 1 / temperature))
        scores = self.label_scores.double() / temperature
        check_label_scores(scores, base.scores, base.lengths, values=bool(self._validate_args))
        return self._with(base, scores)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Self:
        """Return the same distribution with new leading batch dimensions, sharing memory."""
        scores = self._all_label_scores()
        return self._with(self.base.expand(batch_shape), scores.expand(*batch_shape, *scores.shape[-3:]))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base}, label_scores: {tuple(self.label_scores.shape)})"

    def comparable(self, q: TreeDistribution) -> TreeDistribution:
        """Return q, or raise if it cannot be compared with this distribution."""
        if not isinstance(q, LabeledParameters):
            raise TreeparseError(f"A {type(self).__name__} cannot be compared with a {type(q).__name__}.")
        self.base.comparable(q.base)
        if q.labels.count != self.labels.count:
            counts = f"{self.labels.count} and {q.labels.count}"
            raise TreeparseError(f"The two distributions have different numbers of labels, {counts}.")
        return q
