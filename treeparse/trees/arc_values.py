"""Values of arcs whose sums over a tree have expectations: dense, or sparse at a cost of what is there ([Exp] §5).

Batch dimensions are one axis of size B here, and so are the parts of a distribution, arcs or labelled arcs: P.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property

import torch
from torch import Size, Tensor

from treeparse.errors import TreeparseError
from treeparse.trees.checks import BROADCASTING, fits


class ArcValues(ABC):
    """``count`` values of every part. Parts that are in no tree count 0, whatever they hold."""

    count: int
    width: int  # the number P of parts

    @abstractmethod
    def widened(self, width: int) -> "ArcValues":
        """The same values, and 0 for further parts up to so many in all."""

    @property
    @abstractmethod
    def ids(self) -> Tensor:
        """The columns ``(C,)`` that may hold anything but 0."""

    @abstractmethod
    def columns(self) -> Tensor:
        """These columns ``(C, B, P)``, dense."""

    @abstractmethod
    def weighted_sums(self, weights: Tensor) -> Tensor:
        """Sums of the values over the parts under each of V weightings ``(V, B, P) -> (B, V, count)``."""


class DenseValues(ArcValues):
    """Values ``(B, P, count)``."""

    def __init__(self, values: Tensor, possible: Tensor) -> None:
        self.values = torch.where(possible.unsqueeze(-1), values, 0.0)
        self.width, self.count = values.shape[1:]

    def widened(self, width: int) -> "DenseValues":
        if width == self.width:
            return self
        values = torch.nn.functional.pad(self.values, (0, 0, 0, width - self.width))
        return DenseValues(values, torch.ones_like(values[..., 0], dtype=torch.bool))

    @property
    def ids(self) -> Tensor:
        return torch.arange(self.count, device=self.values.device)

    def columns(self) -> Tensor:
        return self.values.permute(2, 0, 1)

    def weighted_sums(self, weights: Tensor) -> Tensor:
        return weights.transpose(0, 1) @ self.values


class SparseValues(ArcValues):
    """Values ``(nnz,)`` at places ``(3, nnz)``, item, part and column, in the shape (B, P). Repeated places add up."""

    def __init__(self, places: Tensor, values: Tensor, shape: tuple[int, int], count: int) -> None:
        self.item, self.part, self.column = places
        self.values, self.shape, self.count = values, shape, count
        self.width = shape[1]

    def widened(self, width: int) -> "SparseValues":
        if width == self.width:
            return self
        return SparseValues(
            torch.stack([self.item, self.part, self.column]), self.values, (self.shape[0], width), self.count
        )

    @cached_property
    def _used(self) -> tuple[Tensor, Tensor]:
        return self.column.unique(return_inverse=True)

    @property
    def ids(self) -> Tensor:
        return self._used[0]

    def columns(self) -> Tensor:
        ids, column = self._used
        empty = self.values.new_zeros(len(ids), *self.shape)
        return empty.index_put((column, self.item, self.part), self.values, accumulate=True)

    def weighted_sums(self, weights: Tensor) -> Tensor:
        terms = weights[:, self.item, self.part] * self.values
        items = self.shape[0]
        sums = terms.new_zeros(items * self.count, len(weights))
        sums = sums.index_add(0, self.item * self.count + self.column, terms.T)
        return sums.reshape(items, self.count, len(weights)).transpose(1, 2)

    def products(self, right: "SparseValues", weights: Tensor) -> Tensor:
        """Sums over the parts of ``left right^T``, the left's entries weighted ``(nnz,)``: ``(B, count, count)``."""
        keys, order = (right.item * self.shape[1] + right.part).sort()
        wanted = self.item * self.shape[1] + self.part
        # The right's entries of a left entry's part are one range of the sorted ones.
        first = torch.searchsorted(keys, wanted)
        matches = torch.searchsorted(keys, wanted, right=True) - first
        left = torch.repeat_interleave(matches)
        before = matches.cumsum(0) - matches
        other = order[first[left] + torch.arange(len(left), device=left.device) - before[left]]
        place = (self.item[left] * self.count + self.column[left]) * right.count + right.column[other]
        terms = (self.values * weights)[left] * right.values[other]
        sums = terms.new_zeros(self.shape[0] * self.count * right.count).index_add(0, place, terms)
        return sums.reshape(self.shape[0], self.count, right.count)


def arc_values(values: Tensor, shape: Size, possible: Tensor) -> ArcValues:
    """Values ``(*shape)`` or ``(*shape, R)``, dense or sparse COO, of the parts of a batch as float64.

    Args:
        values: one or R numbers for every part.
        shape: that of the distribution's parts: batch dimensions, then one part's.
        possible: ``(B, P)``, which parts are in some tree.

    Raises:
        TreeparseError: for any other shape.
    """
    values, count = full_values(values, shape)
    if values.layout == torch.sparse_coo:
        places, entries = sparse_entries(values, shape, possible.shape[1])
        entries = torch.where(possible[places[0], places[1]], entries, 0.0)
        return SparseValues(places, entries, (possible.shape[0], possible.shape[1]), count)
    return DenseValues(values.to(torch.float64).reshape(*possible.shape, count), possible)


def side_by_side(kinds: Sequence[ArcValues]) -> ArcValues:
    """Values of several kinds of part as one.

    Raises:
        TreeparseError: for sparse values of one kind among several.
    """
    if len(kinds) == 1:
        return kinds[0]
    dense = [values.values for values in kinds if isinstance(values, DenseValues)]
    if len(dense) < len(kinds):
        raise TreeparseError("Values of several kinds of part must be dense tensors, got a sparse one: use to_dense().")
    if len({values.count for values in kinds}) > 1:
        counts = ", ".join(str(values.count) for values in kinds)
        raise TreeparseError(f"Values of all kinds of part must have the same last dimension, got {counts}.")
    values = torch.cat(dense, 1)
    return DenseValues(values, torch.ones_like(values[..., 0], dtype=torch.bool))


def full_values(values: Tensor, shape: Size) -> tuple[Tensor, int]:
    """Values ``(*shape)`` or ``(*shape, R)`` in full, and R, 1 where there is no such dimension; an error for others.

    Dimensions of size 1 broadcast, but not those of sparse values.
    """
    if not isinstance(values, Tensor):
        raise TreeparseError(f"Values must be a tensor, got a {type(values).__name__}.")
    own, axes = tuple(values.shape), len(shape)
    if len(own) > axes + 1 or not fits(own[:axes], tuple(shape)):
        raise TreeparseError(
            f"Values must have the shape of the distribution's marginals, {tuple(shape)}, or one dimension more, not "
            f"{own}: {BROADCASTING}."
        )
    if own[:axes] != tuple(shape):
        if values.layout == torch.sparse_coo:
            raise TreeparseError(f"Sparse values must have the shape {tuple(shape)} in full, not {own}: expand them.")
        values = values.expand(*shape, *own[axes:])
    return values, own[-1] if len(own) > axes else 1


def sparse_entries(values: Tensor, shape: Size, parts: int) -> tuple[Tensor, Tensor]:
    """Item, part and column of every entry ``(3, nnz)``, and the entries ``(nnz,)``."""
    if values.sparse_dim() < len(shape):
        raise TreeparseError(f"Sparse values of arcs must be sparse in their first {len(shape)} dimensions.")
    values = values.coalesce()
    indices, entries = values.indices(), values.values().to(torch.float64)
    place = torch.zeros_like(indices[0])
    for axis, size in enumerate(shape):
        place = place * size + indices[axis]
    if entries.dim() == 2:  # a dense row of columns at every place
        column = torch.arange(entries.shape[1], device=place.device).repeat(len(place))
        place, entries = place.repeat_interleave(entries.shape[1]), entries.reshape(-1)
    else:
        column = indices[len(shape)] if len(indices) > len(shape) else torch.zeros_like(place)
    return torch.stack([place // parts, place % parts, column]), entries


def bilinear_form(left: ArcValues, right: ArcValues, products: Callable[[Tensor], Tensor]) -> Tensor:
    """``left^T H right`` of every item ``(B, left.count, right.count)`` for a symmetric H.

    ``products`` gives H v for vectors ``(C, B, P)``: as many as the fewer columns of the two ([Exp] §5.2, T2).
    """
    if len(left.ids) < len(right.ids):
        return bilinear_form(right, left, products).transpose(1, 2)
    form = left.weighted_sums(products(right.columns())).transpose(1, 2)
    result = form.new_zeros(*form.shape[:2], right.count)
    return result.index_copy(2, right.ids, form)
