"""Label scores that are read by slices of heads or at chosen arcs: tensors, and wrappers that change a source."""

from collections.abc import Hashable, Sequence
from copy import copy
from typing import NamedTuple, Protocol, Self, runtime_checkable

import torch
from torch import Size, Tensor

from treeparse.batch import readable_without_sync
from treeparse.trees.look_ups import gather, rows_at

FLOAT64 = torch.finfo(torch.float64).eps


@runtime_checkable
class LabelSource(Protocol):
    """Label scores of B sentences in one flat batch, which a ``LabeledCRF`` takes instead of a tensor.

    Entries that are no arc may hold anything. All methods return the same scores, except for rounding.

    Attributes:
        shape: ``(*batch, n+1, n+1, L)``.
        dtype: the dtype of the scores.
        device: the device of the scores.
        requires_grad: whether the scores have a gradient.
        bound: a number that no score exceeds, 0 for log probabilities; None if it is unknown before labels are scored.
        support: a value that identifies which labels are forbidden on which arcs: sources of equal support forbid the
            same labels. None if that is unknown before labels are scored.
        resolution: the relative precision of expectations over labels: the epsilon of float64 for scores in a tensor,
            that of float32 for scores that a network computes in float32.
    """

    shape: Size
    dtype: torch.dtype
    device: torch.device
    requires_grad: bool
    resolution: float

    @property
    def bound(self) -> float | None: ...

    @property
    def support(self) -> Hashable | None: ...

    def from_heads(self, first: int, last: int) -> Tensor:
        """Return the scores ``(B, last - first, n+1, L)`` of all arcs from the heads ``first`` to ``last - 1``."""
        ...

    def among(self, first: int, last: int, item: Tensor, head: Tensor, dependent: Tensor) -> Tensor:
        """Return scores ``(A, L)`` of arcs from these heads, given by item, head and dependent ``(A,)``.

        Callers read a large share of the arcs at once. The dtype is float32 or float64, whichever has the resolution.
        A constant may be added to all labels of an arc, because callers take the softmax.
        """
        ...

    def at(self, item: Tensor, head: Tensor, dependent: Tensor) -> Tensor:
        """Return the scores ``(A, L)`` of arcs, given by item, head and dependent ``(A,)``."""
        ...

    def at_labels(self, item: Tensor, head: Tensor, dependent: Tensor, label: Tensor) -> Tensor:
        """Return the score ``(A,)`` of one label of each arc."""
        ...

    def log_sums(self, arcs: Tensor) -> Tensor | None:
        """Return the log of the summed weight of each arc's labels ``(B, n+1, n+1)``; None if labels must be scored.

        Only the arcs of the mask ``(B, n+1, n+1)`` matter.
        """
        ...

    def of_items(self, items: Tensor) -> "LabelSource":
        """Return the scores of items ``(I,)`` of the flat batch, in order."""
        ...


class LabelTensor:
    """Label scores that are a tensor ``(*batch, n+1, n+1, L)``."""

    values: Tensor
    shape: Size
    dtype: torch.dtype
    device: torch.device
    requires_grad: bool

    bound = support = None
    resolution = FLOAT64

    def __init__(self, values: Tensor) -> None:
        self.values, self.shape = values, values.shape
        self.dtype, self.device, self.requires_grad = values.dtype, values.device, values.requires_grad
        with torch.enable_grad():  # the flat scores must have a graph even if first used without one
            self.flat: Tensor = values if values.dim() == 4 else values.reshape(-1, *values.shape[-3:])

    def from_heads(self, first: int, last: int) -> Tensor:
        return self.flat[:, first:last]

    def among(self, first: int, last: int, item: Tensor, head: Tensor, dependent: Tensor) -> Tensor:
        return rows_at(self.flat, item, head, dependent).double()

    def at(self, item: Tensor, head: Tensor, dependent: Tensor) -> Tensor:
        return rows_at(self.flat, item, head, dependent)

    def at_labels(self, item: Tensor, head: Tensor, dependent: Tensor, label: Tensor) -> Tensor:
        return rows_at(self.flat, item, head, dependent, label)

    def log_sums(self, arcs: Tensor) -> None:
        return None

    def of_items(self, items: Tensor) -> "LabelTensor":
        return LabelTensor(rows_at(self.flat, items))


class ChangedLabels:
    """A source that changes the label scores of another one when they are read; ``support`` is unknown by default."""

    shape: Size
    dtype: torch.dtype
    device: torch.device
    requires_grad: bool
    bound: float | None
    resolution: float

    support: Hashable | None = None

    def __init__(self, source: LabelSource) -> None:
        self.source = source
        self.shape, self.dtype, self.device = source.shape, source.dtype, source.device
        self.requires_grad, self.bound, self.resolution = source.requires_grad, source.bound, source.resolution

    def change(self, scores: Tensor) -> Tensor:
        """Change scores ``(..., L)``, if the change depends neither on the arc nor on the label."""
        return scores

    def change_arcs(self, scores: Tensor, item: Tensor, head: Tensor, dependent: Tensor) -> Tensor:
        """Change scores ``(A, L)`` of arcs."""
        return self.change(scores)

    def from_heads(self, first: int, last: int) -> Tensor:
        return self.change(self.source.from_heads(first, last))

    def among(self, first: int, last: int, item: Tensor, head: Tensor, dependent: Tensor) -> Tensor:
        return self.change_arcs(self.source.among(first, last, item, head, dependent), item, head, dependent)

    def at(self, item: Tensor, head: Tensor, dependent: Tensor) -> Tensor:
        return self.change_arcs(self.source.at(item, head, dependent), item, head, dependent)

    def at_labels(self, item: Tensor, head: Tensor, dependent: Tensor, label: Tensor) -> Tensor:
        return self.change(self.source.at_labels(item, head, dependent, label))

    def log_sums(self, arcs: Tensor) -> Tensor | None:
        return None

    def of_items(self, items: Tensor) -> Self:
        """Return the same change of items of the source, unless the change depends on the item."""
        result = copy(self)
        result.source, result.shape = self.source.of_items(items), Size((len(items), *self.shape[-3:]))
        result.requires_grad = self.requires_grad and result.source.requires_grad
        return result


class LabelsGiven(ChangedLabels):
    """Label scores with -inf for labels that compete with a known one.

    Args:
        source: the scores.
        labels: ``(B, n+1)`` known labels of words; -1 leaves the label open.
    """

    def __init__(self, source: LabelSource, labels: Tensor) -> None:
        super().__init__(source)
        self.labels = labels

    def from_heads(self, first: int, last: int) -> Tensor:
        return self._masked(self.source.from_heads(first, last), self.labels.unsqueeze(1))

    def change_arcs(self, scores: Tensor, item: Tensor, head: Tensor, dependent: Tensor) -> Tensor:
        return self._masked(scores, self.labels[item, dependent])

    def at_labels(self, item: Tensor, head: Tensor, dependent: Tensor, label: Tensor) -> Tensor:
        known = self.labels[item, dependent]
        competing = (known >= 0) & (known != label)
        return self.source.at_labels(item, head, dependent, label).masked_fill(competing, -torch.inf)

    def log_sums(self, arcs: Tensor) -> Tensor | None:
        sums = self.source.log_sums(arcs)
        if sums is None or not readable_without_sync(arcs):  # to select words of known label would cause a device sync
            return None
        item, head, dependent = (arcs & (self.labels >= 0).unsqueeze(1)).nonzero(as_tuple=True)
        known = self.labels[item, dependent]
        scores = self.source.at_labels(item, head, dependent, known.clamp_max(self.shape[-1] - 1))
        scores = scores.masked_fill(known >= self.shape[-1], -torch.inf)  # no label has this id
        return sums.index_put((item, head, dependent), scores.to(sums.dtype))

    def of_items(self, items: Tensor) -> "LabelsGiven":
        return LabelsGiven(self.source.of_items(items), self.labels[items])

    def _masked(self, scores: Tensor, known: Tensor) -> Tensor:
        """Mask scores ``(..., L)`` of arcs into words of known labels ``(...)``."""
        ids = torch.arange(scores.shape[-1], device=scores.device)
        known = known.unsqueeze(-1)
        return scores.masked_fill((known >= 0) & (known != ids), -torch.inf)


class ForbiddenLabels(NamedTuple):
    """F sets of labels, each forbidden on the arc from one head, or from any head, to a word of an item."""

    item: Tensor  # (F,)
    head: Tensor  # (F,), -1 for any
    dependent: Tensor  # (F,)
    labels: Tensor  # (F, L) bool

    def on(self, item: Tensor, head: Tensor, dependent: Tensor) -> Tensor:
        """Tell which labels are forbidden on arcs ``(A,)``: ``(A, L)`` bool."""
        item, head, dependent = item.unsqueeze(-1), head.unsqueeze(-1), dependent.unsqueeze(-1)
        applies = (item == self.item) & (dependent == self.dependent) & ((head == self.head) | (self.head < 0))
        return applies.float() @ self.labels.float() > 0


class LabelsForbidden(ChangedLabels):
    """Label scores with -inf for forbidden labels; every arc is compared with every set of forbidden labels."""

    def __init__(self, source: LabelSource, forbidden: ForbiddenLabels) -> None:
        super().__init__(source)
        self.forbidden = forbidden

    def from_heads(self, first: int, last: int) -> Tensor:
        scores = self.source.from_heads(first, last).clone()
        arcs = zip(*(part.tolist() for part in self.forbidden[:3]), self.forbidden.labels, strict=True)
        for item, head, dependent, labels in arcs:
            if head < 0 or first <= head < last:
                heads = slice(None) if head < 0 else slice(head - first, head - first + 1)
                scores[item, heads, dependent] = scores[item, heads, dependent].masked_fill(labels, -torch.inf)
        return scores

    def change_arcs(self, scores: Tensor, item: Tensor, head: Tensor, dependent: Tensor) -> Tensor:
        return scores.masked_fill(self.forbidden.on(item, head, dependent), -torch.inf)

    def at_labels(self, item: Tensor, head: Tensor, dependent: Tensor, label: Tensor) -> Tensor:
        scores = self.source.at_labels(item, head, dependent, label)
        return scores.masked_fill(at_label(self.forbidden.on(item, head, dependent), label), -torch.inf)

    def of_items(self, items: Tensor) -> "LabelsForbidden":
        new_item, which = (items.unsqueeze(-1) == self.forbidden.item).nonzero(as_tuple=True)
        _, head, dependent, labels = (part[which] for part in self.forbidden)
        return LabelsForbidden(self.source.of_items(items), ForbiddenLabels(new_item, head, dependent, labels))


class LabelsOfItems(ChangedLabels):
    """Label scores of items of another source; an item may come several times.

    If the source caches scores, scores of arcs that it has cached are not computed again.

    Args:
        source: the scores.
        items: ``(I,)`` indices into its flat batch.
    """

    items: Tensor
    shape: Size

    def __init__(self, source: LabelSource, items: Tensor) -> None:
        super().__init__(source)
        self.items, self.shape = items, Size((len(items), *source.shape[-3:]))

    def from_heads(self, first: int, last: int) -> Tensor:
        return self.source.of_items(self.items).from_heads(first, last)

    def among(self, first: int, last: int, item: Tensor, head: Tensor, dependent: Tensor) -> Tensor:
        return self.source.among(first, last, self.items[item], head, dependent)

    def at(self, item: Tensor, head: Tensor, dependent: Tensor) -> Tensor:
        return self.source.at(self.items[item], head, dependent)

    def at_labels(self, item: Tensor, head: Tensor, dependent: Tensor, label: Tensor) -> Tensor:
        return self.source.at_labels(self.items[item], head, dependent, label)

    def of_items(self, items: Tensor) -> "LabelsOfItems":
        return LabelsOfItems(self.source, self.items[items])


class LabelsDetached(ChangedLabels):
    """Label scores as constants for autograd."""

    requires_grad: bool
    support: Hashable | None

    def __init__(self, source: LabelSource) -> None:
        super().__init__(source)
        self.requires_grad, self.support = False, source.support

    def change(self, scores: Tensor) -> Tensor:
        return scores.detach()

    def log_sums(self, arcs: Tensor) -> Tensor | None:
        sums = self.source.log_sums(arcs)
        return None if sums is None else sums.detach()


class LabelsReordered(ChangedLabels):
    """Labels in another order.

    Args:
        source: the scores.
        indices: for each label its index in the source, -1 for a label that the source lacks: it is forbidden.
    """

    def __init__(self, source: LabelSource, indices: Sequence[int]) -> None:
        super().__init__(source)
        self.indices: Tensor = torch.tensor(indices, device=source.device)
        self.shape: Size = Size((*source.shape[:-1], len(indices)))
        self.support = None if source.support is None else (source.support, frozenset(enumerate(indices)))

    def change(self, scores: Tensor) -> Tensor:
        return scores[..., self.indices.clamp_min(0)].masked_fill(self.indices < 0, -torch.inf)

    def at_labels(self, item: Tensor, head: Tensor, dependent: Tensor, label: Tensor) -> Tensor:
        index = self.indices[label]
        scores = self.source.at_labels(item, head, dependent, index.clamp_min(0))
        return scores.masked_fill(index < 0, -torch.inf)


class LabelsScaled(ChangedLabels):
    """Label scores times a factor above 0, in float64."""

    factor: float
    dtype: torch.dtype
    support: Hashable | None

    def __init__(self, source: LabelSource, factor: float) -> None:
        super().__init__(source)
        self.factor, self.dtype, self.support = factor, torch.float64, source.support
        self.bound: float | None = None if source.bound is None else source.bound * factor

    def change(self, scores: Tensor) -> Tensor:
        return scores.double() * self.factor

    def among(self, first: int, last: int, item: Tensor, head: Tensor, dependent: Tensor) -> Tensor:
        return self.source.among(first, last, item, head, dependent) * self.factor


def at_label(values: Tensor, label: Tensor) -> Tensor:
    """Return one value ``(A,)`` of each row ``(A, L)``, by label ``(A,)``."""
    return gather(values, -1, label.unsqueeze(-1)).squeeze(-1)
