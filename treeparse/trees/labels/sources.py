"""Label scores that are read by slices of heads or at chosen arcs: tensors, changes of a source, and rules."""

from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Size, Tensor

from treeparse.batch import readable_without_sync
from treeparse.trees.look_ups import gather, rows_at

FLOAT64 = torch.finfo(torch.float64).eps
Arcs = tuple[Tensor, Tensor, Tensor]  # item, head and dependent (...), which broadcast
Change = Callable[..., Tensor]  # from arcs, and scores (..., L) of theirs from each source, to scores (..., L)
LARGEST = 2**24  # numbers in the cache
LookUp = Callable[[Tensor, Tensor, Tensor], Tensor]  # item, head and dependent (A,) of arcs -> scores (A, L)


@runtime_checkable
class LabelSource(Protocol):
    """Label scores of B sentences in one batch dimension, which a ``LabeledCRF`` takes instead of a tensor.

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
        """Return the scores of items ``(I,)`` of the batch, in order."""
        ...


class LabelTensor:
    """Label scores that are a tensor ``(*batch, n+1, n+1, L)``."""

    bound = support = None
    resolution = FLOAT64

    def __init__(self, values: Tensor) -> None:
        self.values, self.shape = values, values.shape
        self.dtype, self.device, self.requires_grad = values.dtype, values.device, values.requires_grad
        with torch.enable_grad():  # the batched scores must have a graph even if first used without one
            self.batched: Tensor = values if values.dim() == 4 else values.reshape(-1, *values.shape[-3:])

    def from_heads(self, first: int, last: int) -> Tensor:
        return self.batched[:, first:last]

    def among(self, first: int, last: int, item: Tensor, head: Tensor, dependent: Tensor) -> Tensor:
        return rows_at(self.batched, item, head, dependent).double()

    def at(self, item: Tensor, head: Tensor, dependent: Tensor) -> Tensor:
        return rows_at(self.batched, item, head, dependent)

    def at_labels(self, item: Tensor, head: Tensor, dependent: Tensor, label: Tensor) -> Tensor:
        return rows_at(self.batched, item, head, dependent, label)

    def log_sums(self, arcs: Tensor) -> None:
        return None

    def of_items(self, items: Tensor) -> "LabelTensor":
        return LabelTensor(rows_at(self.batched, items))


class ChangedLabels:
    """Label scores that are made of other sources' scores when they are read.

    If a source caches scores, scores of arcs that it has cached are not computed again.

    Args:
        sources: one or more, of one shape.
        change: from arcs of the sources, and the scores of each source at these arcs, to the new scores.
        items: ``(I,)`` indices into the sources' batch, some perhaps several times; None takes all items.
        log_sums: the method of a ``LabelSource``, if log sums are known without scoring all labels.
        attributes: attributes of a ``LabelSource`` that differ from the first source's; the support is None by default.
    """

    def __init__(
        self,
        sources: Sequence[LabelSource],
        change: Change,
        *,
        items: Tensor | None = None,
        log_sums: Callable[[Tensor], Tensor | None] | None = None,
        **attributes: Any,
    ) -> None:
        first = sources[0]
        self._sources, self._change, self._items, self._log_sums = sources, change, items, log_sums
        self._attributes = attributes
        self.shape, self.dtype, self.device = first.shape, first.dtype, first.device
        self.bound, self.support = first.bound, None
        self.requires_grad = any(source.requires_grad for source in sources)
        self.resolution = max(source.resolution for source in sources)
        vars(self).update(attributes)
        if items is not None:
            self.shape = Size((len(items), *self.shape[-3:]))

    def from_heads(self, first: int, last: int) -> Tensor:
        items, sources, nodes = self._items, self._sources, torch.arange(self.shape[-2], device=self.device)
        if items is not None:
            sources = [source.of_items(items) for source in sources]
        scores = [source.from_heads(first, last) for source in sources]
        items = torch.arange(scores[0].shape[0], device=self.device) if items is None else items
        return self._change((items.reshape(-1, 1, 1), nodes[first:last].unsqueeze(-1), nodes), *scores)

    def among(self, first: int, last: int, item: Tensor, head: Tensor, dependent: Tensor) -> Tensor:
        arcs = self._in_sources(item), head, dependent
        return self._change(arcs, *(source.among(first, last, *arcs) for source in self._sources))

    def at(self, item: Tensor, head: Tensor, dependent: Tensor) -> Tensor:
        arcs = self._in_sources(item), head, dependent
        return self._change(arcs, *(source.at(*arcs) for source in self._sources))

    def at_labels(self, item: Tensor, head: Tensor, dependent: Tensor, label: Tensor) -> Tensor:
        return gather(self.at(item, head, dependent), -1, label.unsqueeze(-1)).squeeze(-1)

    def log_sums(self, arcs: Tensor) -> Tensor | None:
        return None if self._log_sums is None else self._log_sums(arcs)

    def of_items(self, items: Tensor) -> "ChangedLabels":
        return ChangedLabels(self._sources, self._change, items=self._in_sources(items), **self._attributes)

    def _in_sources(self, item: Tensor) -> Tensor:
        return item if self._items is None else self._items[item]


def of_items(source: LabelSource, items: Tensor) -> ChangedLabels:
    """Select the label scores of items ``(I,)`` of the batch."""
    return ChangedLabels([source], lambda _, scores: scores, items=items, support=source.support)


def with_known_labels(source: LabelSource, labels: Tensor) -> ChangedLabels:
    """Forbid labels that compete with a known one of ``(B, n+1)``; -1 leaves the label open."""

    def change(arcs: Arcs, scores: Tensor) -> Tensor:
        item, _, dependent = arcs
        known, ids = labels[item, dependent].unsqueeze(-1), torch.arange(scores.shape[-1], device=scores.device)
        return scores.masked_fill((known >= 0) & (known != ids), -torch.inf)

    def log_sums(arcs: Tensor) -> Tensor | None:
        sums = source.log_sums(arcs)
        if sums is None or not readable_without_sync(arcs):  # to select words of known label would cause a device sync
            return None
        item, head, dependent = (arcs & (labels >= 0).unsqueeze(1)).nonzero(as_tuple=True)
        known = labels[item, dependent]
        scores = source.at_labels(item, head, dependent, known.clamp_max(source.shape[-1] - 1))
        scores = scores.masked_fill(known >= source.shape[-1], -torch.inf)  # no label has this id
        return sums.index_put((item, head, dependent), scores.to(sums.dtype))

    return ChangedLabels([source], change, log_sums=log_sums)


class ForbiddenLabels(NamedTuple):
    """F sets of labels, each forbidden on the arc from one head, or from any head, to a word of an item."""

    item: Tensor  # (F,)
    head: Tensor  # (F,), -1 for any
    dependent: Tensor  # (F,)
    labels: Tensor  # (F, L) bool


def without_labels(source: LabelSource, forbidden: ForbiddenLabels) -> ChangedLabels:
    """Forbid labels; every arc that is read is compared with every set of forbidden labels."""
    of_items, of_heads, of_dependents, labels = forbidden

    def change(arcs: Arcs, scores: Tensor) -> Tensor:
        item, head, dependent = (index.unsqueeze(-1) for index in arcs)
        applies = (item == of_items) & (dependent == of_dependents) & ((head == of_heads) | (of_heads < 0))
        return scores.masked_fill(applies.float() @ labels.float() > 0, -torch.inf)

    return ChangedLabels([source], change)


def detached(source: LabelSource) -> ChangedLabels:
    """Return label scores as constants for autograd."""

    def log_sums(arcs: Tensor) -> Tensor | None:
        sums = source.log_sums(arcs)
        return None if sums is None else sums.detach()

    attributes = {"requires_grad": False, "support": source.support}
    return ChangedLabels([source], lambda _, scores: scores.detach(), log_sums=log_sums, **attributes)


def reordered(source: LabelSource, indices: Sequence[int]) -> ChangedLabels:
    """Put labels in another order: each has its index in the source, or -1, which makes a label that is forbidden."""
    chosen = torch.tensor(indices, device=source.device)

    def change(_: Arcs, scores: Tensor) -> Tensor:
        return scores[..., chosen.clamp_min(0)].masked_fill(chosen < 0, -torch.inf)

    support = None if source.support is None else (source.support, frozenset(enumerate(indices)))
    return ChangedLabels([source], change, shape=Size((*source.shape[:-1], len(indices))), support=support)


def reserved(source: LabelSource, label: int) -> ChangedLabels:
    """Reserve a label for arcs from the root."""
    return ChangedLabels([source], lambda arcs, scores: with_root_rule(scores, arcs[1] == 0, label))


def scaled(source: LabelSource, factor: float) -> ChangedLabels:
    """Multiply label scores by a factor above 0, in float64."""
    bound = None if source.bound is None else source.bound * factor
    attributes = {"dtype": torch.float64, "bound": bound, "support": source.support}
    return ChangedLabels([source], lambda _, scores: scores.double() * factor, **attributes)


def renormalised(source: LabelSource, power: float, possible: Tensor | None = None) -> ChangedLabels:
    """Raise the label probabilities of each arc to a power above 0, and normalise them among the possible labels.

    ``possible`` ``(B, L)`` bool leaves a label to every arc of an item; None allows all.
    """

    def change(arcs: Arcs, scores: Tensor) -> Tensor:
        scores = scores * power
        return (scores if possible is None else scores.masked_fill(~possible[arcs[0]], -torch.inf)).log_softmax(-1)

    def log_sums(arcs: Tensor) -> Tensor:
        return torch.zeros((), dtype=torch.float64, device=source.device).expand(arcs.shape)

    support = source.support if possible is None else None
    return ChangedLabels([source], change, log_sums=log_sums, bound=0.0, support=support)


class ArcRows:
    """The label scores of the arcs that were read, a row each.

    Args:
        shape: ``(B, n+1, n+1, L)``.
        look_up: computes the scores of arcs.
        step: the most arcs that are computed at once.
    """

    def __init__(self, shape: Size, look_up: LookUp, step: int) -> None:
        self._shape, self._look_up, self._step = shape, look_up, step
        self._row_of: np.ndarray | None = None  # (B, n+1, n+1) flattened: each arc's row, -1 for none
        self._rows = torch.empty(0, shape[-1])

    def at(self, item: Tensor, head: Tensor, dependent: Tensor) -> Tensor:
        """Return the rows ``(A, L)`` of arcs, after computing those that the cache lacks."""
        items, nodes = self._shape[:2]
        if self._row_of is None or self._rows.numel() > LARGEST:
            self._row_of = np.full(items * nodes * nodes, -1)
            self._rows = self._rows[:0]
        arcs = ((item * nodes + head) * nodes + dependent).numpy()
        new = torch.from_numpy(np.unique(arcs[self._row_of[arcs] < 0]))
        if len(new):
            rows = [
                self._look_up(part // (nodes * nodes), part // nodes % nodes, part % nodes)
                for part in new.split(self._step)
            ]
            self._row_of[new.numpy()] = len(self._rows) + np.arange(len(new))
            self._rows = torch.cat([self._rows.to(rows[0].dtype), *rows])
        return self._rows[torch.from_numpy(self._row_of[arcs])]


def with_root_rule(scores: Tensor, from_root: Tensor, root_label: int) -> Tensor:
    """Return label scores ``(..., L)`` of arcs, with -inf where the rule forbids a label.

    Args:
        scores: the scores.
        from_root: ``(...)`` bool, or of a shape that broadcasts to it: which arcs are from the root.
        root_label: the index of the label that is reserved for arcs from the root; -1 if none is.
    """
    count = scores.shape[-1]
    if root_label < 0 or count == 1:
        return scores
    is_root = torch.arange(count, device=scores.device) == root_label
    return scores.masked_fill(is_root != from_root.unsqueeze(-1), -torch.inf)
