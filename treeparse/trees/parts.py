"""The values of a tree's parts as one object: arcs ``(*batch, n+1, n+1)`` first, then the other kinds.

A tree's score is the sum of the scores of its parts. Every tree has arcs; a family of trees may have further kinds of
part, such as pairs of adjacent siblings, each described by a ``PartKind``.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import torch
from torch import Tensor

from treeparse.trees.look_ups import gather, rows_at


class PartKind(ABC):
    """A kind of part besides arcs. The heads of a tree determine its parts of every kind.

    A kind depends neither on the scores nor on how a family computes with them, so that several families may share it.

    Attributes:
        name: what error messages call the kind, in the plural: "siblings".
    """

    name: str

    @abstractmethod
    def shape(self, nodes: int) -> tuple[int, ...]:
        """Return the shape of the scores of a sentence of ``nodes`` nodes, the root included."""

    @abstractmethod
    def mask(self, lengths: Tensor, nodes: int) -> Tensor:
        """Return the entries ``(B, *shape)`` bool that are parts of some tree of ``lengths`` words."""

    @abstractmethod
    def of_trees(self, heads: Tensor, lengths: Tensor) -> Tensor:
        """Return the parts ``(T, W)`` of trees ``(T, n+1)``: indices into the flattened shape, -1 for no part.

        W is any width that the trees' parts fit in. Heads that form no tree may give any indices of the shape.
        """


def named(kinds: Sequence[PartKind]) -> str:
    """Name the kinds of part of a family in a message."""
    return " and ".join(["arcs", *(kind.name for kind in kinds)])


class Parts(tuple[Tensor, ...]):
    """One tensor ``(*batch, *part)`` for each kind of part: scores, marginals, or any other values of parts.

    The arcs ``(*batch, n+1, n+1)`` come first, the other kinds in the order of their family. A score of -inf forbids a
    part, which all methods preserve.
    """

    __slots__ = ()

    @property
    def arcs(self) -> Tensor:
        """``(*batch, n+1, n+1)``."""
        return self[0]

    @property
    def others(self) -> tuple[Tensor, ...]:
        """The tensors of all kinds but arcs."""
        return self[1:]

    def map(self, function: Callable[[Tensor], Tensor]) -> "Parts":
        """Apply a function to the tensor of each kind."""
        return Parts([function(part) for part in self])

    def with_arcs(self, arcs: Tensor) -> "Parts":
        """Replace the arcs; all other kinds stay."""
        return Parts((arcs, *self[1:]))

    def detach(self) -> "Parts":
        """Return the values as constants for autograd."""
        return self.map(Tensor.detach)

    def to(self, *args: Any) -> "Parts":
        """Convert every tensor as ``Tensor.to`` does: to a device, a dtype, or both."""
        return self.map(lambda part: part.to(*args))

    def of_items(self, items: Tensor | slice) -> "Parts":
        """Select items of a flat batch."""
        return self.map(lambda part: part[items] if isinstance(items, slice) else rows_at(part, items))

    def expand(self, batch_shape: Sequence[int], axes: int) -> "Parts":
        """Expand the first ``axes`` dimensions, the batch, to another shape; memory is shared."""
        return self.map(lambda part: part.expand(*batch_shape, *part.shape[axes:]))

    def power(self, order: float) -> "Parts":
        """Multiply log weights by ``order``; -inf stays -inf, at order 0 too."""
        return self.map(lambda part: power(part, order))

    def neutral(self) -> "Parts":
        """Set the score of all allowed parts to 0, so that all trees of the support have equal scores."""
        return self.power(0.0)

    def expected(self, marginals: "Parts") -> Tensor:
        """Return expected scores ``(B,)``; the marginals are of these kinds, or of more; at marginal 0 they count 0."""
        return reduce(torch.add, map(_sum_of_items, map(_terms, self, marginals)))

    def total(self) -> Tensor:
        """Sum the values of each item ``(B,)``."""
        return reduce(torch.add, map(_sum_of_items, self))

    def shifted(self, is_arc: Tensor) -> tuple["Parts", Tensor]:
        """Subtract from every column of arcs its maximum; return the maxima ``(B, n+1)`` too, 0 where there is none.

        A tree has one arc of every column, so its score falls by their sum. The maxima are constants for autograd. Arcs
        where ``is_arc`` is False get 0, and -inf stays.
        """
        finite = torch.where(is_arc & (self[0] > -torch.inf), self[0].detach(), -torch.inf)
        best = finite.amax(-2, keepdim=True)
        best = torch.where(best > -torch.inf, best, 0.0)
        return self.with_arcs(torch.where(is_arc, self[0] - best, 0.0)), best.squeeze(-2)

    @property
    def width(self) -> int:
        """The number of values of an item of a flat batch, all kinds together."""
        return sum(part.shape[1:].numel() for part in self)

    def flatten(self, axes: int = 1) -> Tensor:
        """Put all values of an item into one row: ``(..., P)`` after ``axes`` batch dimensions."""
        rows = [part.flatten(axes) for part in self]
        return rows[0] if len(rows) == 1 else torch.cat(rows, -1)

    def unflatten(self, rows: Tensor) -> "Parts":
        """Undo ``flatten``, for values ``(..., P)`` of parts of the shapes that these have after one dimension."""
        shapes = [part.shape[1:] for part in self]
        columns = rows.split([shape.numel() for shape in shapes], -1) if len(shapes) > 1 else [rows]
        return Parts([column.unflatten(-1, shape) for column, shape in zip(columns, shapes, strict=True)])

    @staticmethod
    def mean(items: "Sequence[Parts]") -> "Parts":
        """Return the mean of several scores of the same kinds of part; a part that one of them forbids is forbidden."""
        return Parts([torch.stack(part).mean(0) for part in zip(*items, strict=True)])


def power(scores: Tensor, order: float) -> Tensor:
    """Multiply log weights by ``order``; -inf stays -inf, at order 0 too."""
    finite = scores > -torch.inf
    return torch.where(finite, torch.where(finite, scores, 0.0) * order, -torch.inf)


def scores_of_parts(kind: PartKind, scores: Tensor, heads: Tensor, lengths: Tensor) -> Tensor:
    """Return the scores ``(S, B, W)`` float64 of the parts of a kind of trees ``(S, B, n+1)``; 0 for no part.

    ``scores`` are ``(B, ...)``, ``lengths`` ``(B,)``.
    """
    samples, items = heads.shape[:2]
    parts = kind.of_trees(heads.flatten(0, 1), lengths.expand(samples, items).reshape(-1)).unflatten(0, heads.shape[:2])
    width = parts.shape[-1]
    columns = parts.clamp_min(0).transpose(0, 1).reshape(items, samples * width)
    values = gather(scores.flatten(1), 1, columns).reshape(items, samples, width).transpose(0, 1)
    return torch.where(parts >= 0, values.double(), 0.0)


def _terms(scores: Tensor, marginals: Tensor) -> Tensor:
    return marginals * torch.where((marginals > 0) & (scores > -torch.inf), scores, 0.0)


def _sum_of_items(values: Tensor) -> Tensor:
    """Sum the values of each item: ``(B, ...) -> (B,)``."""
    return values.sum(tuple(range(1, values.dim())))


def arcs_of(heads: Tensor) -> Tensor:
    """Return the arcs of trees ``(*batch, n+1)`` as a mask ``(*batch, n+1, n+1)`` bool."""
    return heads.unsqueeze(-2) == torch.arange(heads.shape[-1], device=heads.device).unsqueeze(-1)


def arcs_agreeing_with(heads: Tensor) -> Tensor:
    """Return the arcs ``(*batch, n+1, n+1)`` bool of trees that have known heads ``(*batch, n+1)``; -1 is unknown."""
    return arcs_of(heads) | (heads < 0).unsqueeze(-2)


def straight_through(relaxed: Tensor, chosen: Tensor) -> Tensor:
    """Return a bool mask as exactly 0 and 1, with the gradient of its relaxation of the same shape."""
    return chosen.to(relaxed.dtype) + (relaxed - relaxed.detach())
