"""Label scores by slices of heads and at chosen arcs: from a tensor, or from whatever computes them when asked."""

from collections.abc import Hashable, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import torch
from torch import Size, Tensor

from treeparse.batch import readable_without_sync

FLOAT64 = torch.finfo(torch.float64).eps


@runtime_checkable
class LabelSource(Protocol):
    """What a ``LabeledCRF`` takes in the place of a tensor of label scores: B sentences in one flat batch.

    Scores on what is no arc may be anything. Scores found either way are equal but for rounding.

    Attributes:
        shape: ``(*batch, n+1, n+1, L)``.
        dtype: of the scores.
        device: where they are.
        requires_grad: whether gradients flow into them.
        bound: what no score exceeds, 0 for log probabilities; None where nothing is known without a look at all.
        support: what tells which labels are forbidden on which arcs: sources of equal support forbid the same ones;
            None where that is not known without a look at all.
        resolution: the relative precision to which expectations over labels are worth computing: that of float64 for
            scores that are given, that of float32 for those that a network computes in it.
    """

    @property
    def shape(self) -> Size: ...

    @property
    def dtype(self) -> torch.dtype: ...

    @property
    def device(self) -> torch.device: ...

    @property
    def requires_grad(self) -> bool: ...

    @property
    def bound(self) -> float | None: ...

    @property
    def support(self) -> Hashable | None: ...

    @property
    def resolution(self) -> float: ...

    def from_heads(self, first: int, last: int) -> Tensor:
        """The scores ``(B, last - first, n+1, L)`` of all arcs from the heads ``first`` to ``last - 1``."""
        ...

    def among(self, first: int, last: int, item: Tensor, head: Tensor, dependent: Tensor) -> Tensor:
        """The scores ``(A, L)`` of a good part of these arcs, each given by item, head and dependent ``(A,)``.

        In that of float32 and float64 which has the resolution. The labels of an arc may all have another constant
        added: what is made of these is made of their softmax.
        """
        ...

    def at(self, item: Tensor, head: Tensor, dependent: Tensor) -> Tensor:
        """The scores ``(A, L)`` of arcs, each given by item, head and dependent ``(A,)``."""
        ...

    def at_labels(self, item: Tensor, head: Tensor, dependent: Tensor, label: Tensor) -> Tensor:
        """The score ``(A,)`` of one label each of such arcs."""
        ...

    def log_sums(self, arcs: Tensor) -> Tensor | None:
        """Log of the summed weight of every arc's labels ``(B, n+1, n+1)`` where it is known without a look at all.

        ``arcs`` ``(B, n+1, n+1)`` bool says which arcs are asked for.
        """
        ...

    def of_items(self, items: Tensor) -> "LabelSource":
        """The scores of some items ``(I,)`` of the flat batch, in order."""
        ...


class LabelTensor:
    """Label scores that are a tensor ``(*batch, n+1, n+1, L)``."""

    bound = support = None
    resolution = FLOAT64

    def __init__(self, values: Tensor) -> None:
        self.values, self.shape = values, values.shape
        self.dtype, self.device, self.requires_grad = values.dtype, values.device, values.requires_grad
        with torch.enable_grad():  # the graph must be there even if it is first used without one
            self.flat = values if values.dim() == 4 else values.reshape(-1, *values.shape[-3:])

    def from_heads(self, first: int, last: int) -> Tensor:
        return self.flat[:, first:last]

    def among(self, first: int, last: int, item: Tensor, head: Tensor, dependent: Tensor) -> Tensor:
        return self.flat[item, head, dependent].double()

    def at(self, item: Tensor, head: Tensor, dependent: Tensor) -> Tensor:
        return self.flat[item, head, dependent]

    def at_labels(self, item: Tensor, head: Tensor, dependent: Tensor, label: Tensor) -> Tensor:
        return self.flat[item, head, dependent, label]

    def log_sums(self, arcs: Tensor) -> None:
        return None

    def of_items(self, items: Tensor) -> "LabelTensor":
        return LabelTensor(self.flat[items])


class LabelsGiven:
    """Label scores of another source, -inf where a label competes with a known one.

    Args:
        source: the scores.
        labels: ``(B, n+1)`` known labels of words, -1 where open.
    """

    support = None

    def __init__(self, source: LabelSource, labels: Tensor) -> None:
        self.source, self.labels = source, labels
        self.shape, self.dtype, self.device = source.shape, source.dtype, source.device
        self.resolution = source.resolution

    @property
    def bound(self) -> float | None:
        return self.source.bound

    @property
    def requires_grad(self) -> bool:
        return self.source.requires_grad

    def from_heads(self, first: int, last: int) -> Tensor:
        return self._masked(self.source.from_heads(first, last), self.labels.unsqueeze(1))

    def among(self, first: int, last: int, item: Tensor, head: Tensor, dependent: Tensor) -> Tensor:
        return self._masked(self.source.among(first, last, item, head, dependent), self.labels[item, dependent])

    def at(self, item: Tensor, head: Tensor, dependent: Tensor) -> Tensor:
        return self._masked(self.source.at(item, head, dependent), self.labels[item, dependent])

    def at_labels(self, item: Tensor, head: Tensor, dependent: Tensor, label: Tensor) -> Tensor:
        known = self.labels[item, dependent]
        competing = (known >= 0) & (known != label)
        return self.source.at_labels(item, head, dependent, label).masked_fill(competing, -torch.inf)

    def log_sums(self, arcs: Tensor) -> Tensor | None:
        sums = self.source.log_sums(arcs)
        if sums is None or not readable_without_sync(arcs):  # to pick out the known ones would wait for a device
            return None
        item, head, dependent = (arcs & (self.labels >= 0).unsqueeze(1)).nonzero(as_tuple=True)
        known = self.labels[item, dependent]
        scores = self.source.at_labels(item, head, dependent, known.clamp_max(self.shape[-1] - 1))
        scores = scores.masked_fill(known >= self.shape[-1], -torch.inf)  # there is no such label
        return sums.index_put((item, head, dependent), scores.to(sums.dtype))

    def of_items(self, items: Tensor) -> "LabelsGiven":
        return LabelsGiven(self.source.of_items(items), self.labels[items])

    def _masked(self, scores: Tensor, known: Tensor) -> Tensor:
        """Scores ``(..., L)`` of arcs into words of known labels ``(...)``."""
        names = torch.arange(scores.shape[-1], device=scores.device)
        known = known.unsqueeze(-1)
        return scores.masked_fill((known >= 0) & (known != names), -torch.inf)


class ForbiddenLabels(NamedTuple):
    """F times some labels that arcs into a word of an item may not have: from one head, or from any."""

    item: Tensor  # (F,)
    head: Tensor  # (F,), -1 for any
    dependent: Tensor  # (F,)
    labels: Tensor  # (F, L) bool

    def on(self, item: Tensor, head: Tensor, dependent: Tensor) -> Tensor:
        """Which labels arcs ``(A,)`` may not have, ``(A, L)`` bool."""
        item, head, dependent = item.unsqueeze(-1), head.unsqueeze(-1), dependent.unsqueeze(-1)
        meant = (item == self.item) & (dependent == self.dependent) & ((head == self.head) | (self.head < 0))
        return meant.float() @ self.labels.float() > 0


class LabelsForbidden:
    """Label scores of another source, -inf where labels are forbidden; all arcs are compared with all of these."""

    support = None

    def __init__(self, source: LabelSource, forbidden: ForbiddenLabels) -> None:
        self.source, self.forbidden = source, forbidden
        self.shape, self.dtype, self.device = source.shape, source.dtype, source.device
        self.bound, self.requires_grad, self.resolution = source.bound, source.requires_grad, source.resolution

    def from_heads(self, first: int, last: int) -> Tensor:
        scores = self.source.from_heads(first, last).clone()
        arcs = zip(*(part.tolist() for part in self.forbidden[:3]), self.forbidden.labels, strict=True)
        for item, head, dependent, labels in arcs:
            if head < 0 or first <= head < last:
                heads = slice(None) if head < 0 else slice(head - first, head - first + 1)
                scores[item, heads, dependent] = scores[item, heads, dependent].masked_fill(labels, -torch.inf)
        return scores

    def among(self, first: int, last: int, item: Tensor, head: Tensor, dependent: Tensor) -> Tensor:
        scores = self.source.among(first, last, item, head, dependent)
        return scores.masked_fill(self.forbidden.on(item, head, dependent), -torch.inf)

    def at(self, item: Tensor, head: Tensor, dependent: Tensor) -> Tensor:
        scores = self.source.at(item, head, dependent)
        return scores.masked_fill(self.forbidden.on(item, head, dependent), -torch.inf)

    def at_labels(self, item: Tensor, head: Tensor, dependent: Tensor, label: Tensor) -> Tensor:
        scores = self.source.at_labels(item, head, dependent, label)
        forbidden = self.forbidden.on(item, head, dependent).gather(-1, label.unsqueeze(-1)).squeeze(-1)
        return scores.masked_fill(forbidden, -torch.inf)

    def log_sums(self, arcs: Tensor) -> None:
        return None

    def of_items(self, items: Tensor) -> "LabelsForbidden":
        place, which = (items.unsqueeze(-1) == self.forbidden.item).nonzero(as_tuple=True)
        _, head, dependent, labels = (part[which] for part in self.forbidden)
        return LabelsForbidden(self.source.of_items(items), ForbiddenLabels(place, head, dependent, labels))


class LabelsOfItems:
    """Label scores of items of another source, the same item several times too.

    What that source keeps of arcs that were looked up is not computed again.

    Args:
        source: the scores.
        items: ``(I,)`` of its flat batch.
    """

    support = None

    def __init__(self, source: LabelSource, items: Tensor) -> None:
        self.source, self.items = source, items
        self.shape = Size((len(items), *source.shape[-3:]))
        self.dtype, self.device, self.resolution = source.dtype, source.device, source.resolution
        self.bound, self.requires_grad = source.bound, source.requires_grad

    def from_heads(self, first: int, last: int) -> Tensor:
        return self.source.of_items(self.items).from_heads(first, last)

    def among(self, first: int, last: int, item: Tensor, head: Tensor, dependent: Tensor) -> Tensor:
        return self.source.among(first, last, self.items[item], head, dependent)

    def at(self, item: Tensor, head: Tensor, dependent: Tensor) -> Tensor:
        return self.source.at(self.items[item], head, dependent)

    def at_labels(self, item: Tensor, head: Tensor, dependent: Tensor, label: Tensor) -> Tensor:
        return self.source.at_labels(self.items[item], head, dependent, label)

    def log_sums(self, arcs: Tensor) -> None:
        return None

    def of_items(self, items: Tensor) -> "LabelsOfItems":
        return LabelsOfItems(self.source, self.items[items])


class LabelsDetached:
    """Label scores of another source as constants."""

    requires_grad = False

    def __init__(self, source: LabelSource) -> None:
        self.source, self.shape, self.dtype, self.device = source, source.shape, source.dtype, source.device
        self.bound, self.support, self.resolution = source.bound, source.support, source.resolution

    def from_heads(self, first: int, last: int) -> Tensor:
        return self.source.from_heads(first, last).detach()

    def among(self, first: int, last: int, item: Tensor, head: Tensor, dependent: Tensor) -> Tensor:
        return self.source.among(first, last, item, head, dependent).detach()

    def at(self, item: Tensor, head: Tensor, dependent: Tensor) -> Tensor:
        return self.source.at(item, head, dependent).detach()

    def at_labels(self, item: Tensor, head: Tensor, dependent: Tensor, label: Tensor) -> Tensor:
        return self.source.at_labels(item, head, dependent, label).detach()

    def log_sums(self, arcs: Tensor) -> Tensor | None:
        sums = self.source.log_sums(arcs)
        return None if sums is None else sums.detach()

    def of_items(self, items: Tensor) -> "LabelsDetached":
        return LabelsDetached(self.source.of_items(items))


class LabelsRearranged:
    """Labels of another source in another order.

    Args:
        source: the scores.
        places: for each label its place in the source, -1 for one that the source does not have: it is forbidden.
    """

    def __init__(self, source: LabelSource, places: Sequence[int]) -> None:
        self.source, self.places = source, torch.tensor(places, device=source.device)
        self.shape = Size((*source.shape[:-1], len(places)))
        self.dtype, self.device, self.bound = source.dtype, source.device, source.bound
        self.resolution = source.resolution
        known = frozenset(enumerate(places))
        self.support = None if source.support is None else (source.support, known)

    @property
    def requires_grad(self) -> bool:
        return self.source.requires_grad

    def from_heads(self, first: int, last: int) -> Tensor:
        return self._rearranged(self.source.from_heads(first, last))

    def among(self, first: int, last: int, item: Tensor, head: Tensor, dependent: Tensor) -> Tensor:
        return self._rearranged(self.source.among(first, last, item, head, dependent))

    def at(self, item: Tensor, head: Tensor, dependent: Tensor) -> Tensor:
        return self._rearranged(self.source.at(item, head, dependent))

    def at_labels(self, item: Tensor, head: Tensor, dependent: Tensor, label: Tensor) -> Tensor:
        place = self.places[label]
        scores = self.source.at_labels(item, head, dependent, place.clamp_min(0))
        return scores.masked_fill(place < 0, -torch.inf)

    def log_sums(self, arcs: Tensor) -> None:
        return None

    def of_items(self, items: Tensor) -> "LabelsRearranged":
        return LabelsRearranged(self.source.of_items(items), self.places.tolist())

    def _rearranged(self, scores: Tensor) -> Tensor:
        return scores[..., self.places.clamp_min(0)].masked_fill(self.places < 0, -torch.inf)


class LabelsScaled:
    """Label scores of another source times a factor above 0, in float64."""

    dtype = torch.float64

    def __init__(self, source: LabelSource, factor: float) -> None:
        self.source, self.factor = source, factor
        self.shape, self.device, self.resolution = source.shape, source.device, source.resolution

    @property
    def bound(self) -> float | None:
        return None if self.source.bound is None else self.source.bound * self.factor

    @property
    def support(self) -> Hashable | None:
        return self.source.support

    @property
    def requires_grad(self) -> bool:
        return self.source.requires_grad

    def from_heads(self, first: int, last: int) -> Tensor:
        return self.source.from_heads(first, last).double() * self.factor

    def among(self, first: int, last: int, item: Tensor, head: Tensor, dependent: Tensor) -> Tensor:
        return self.source.among(first, last, item, head, dependent) * self.factor

    def at(self, item: Tensor, head: Tensor, dependent: Tensor) -> Tensor:
        return self.source.at(item, head, dependent).double() * self.factor

    def at_labels(self, item: Tensor, head: Tensor, dependent: Tensor, label: Tensor) -> Tensor:
        return self.source.at_labels(item, head, dependent, label).double() * self.factor

    def log_sums(self, arcs: Tensor) -> None:
        return None

    def of_items(self, items: Tensor) -> "LabelsScaled":
        return LabelsScaled(self.source.of_items(items), self.factor)
