"""Values of parts whose sums over a tree have expectations: dense, or sparse at the cost of their entries ([Exp] §5).

Batch dimensions are one axis of size B here. The P parts of a distribution, arcs of all heads or labelled arcs, and
parts of other kinds after them, are one axis too.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Size, Tensor

from treeparse.errors import TreeparseError
from treeparse.lazy import cached_property
from treeparse.trees.checks import BROADCASTING, check_device, check_tensor, fits
from treeparse.trees.look_ups import gather


class DenseValues:
    """``count`` values of each of the first P parts, ``(B, P, count)``; other parts, and parts of no tree, count 0."""

    def __init__(self, values: Tensor, possible: Tensor) -> None:
        self.values: Tensor = torch.where(possible.unsqueeze(-1), values, 0.0)
        self.count: int = values.shape[2]

    @property
    def ids(self) -> Tensor:
        """The indices ``(C,)`` of the columns that are not 0 throughout."""
        return torch.arange(self.count, device=self.values.device)

    def columns(self) -> Tensor:
        """Return these columns ``(C, B, P)``, dense."""
        return self.values.permute(2, 0, 1)

    def weighted_sums(self, weights: Tensor) -> Tensor:
        """Sum the values over the parts under each of V weightings ``(V, B, P or more) -> (B, V, count)``."""
        return weights[..., : self.values.shape[1]].transpose(0, 1) @ self.values


class SparseValues:
    """``DenseValues`` as entries ``(nnz,)`` at indices ``(3, nnz)``: item, part and column. Equal indices add up."""

    def __init__(self, indices: Tensor, values: Tensor, shape: tuple[int, int], count: int) -> None:
        self.item, self.part, self.column = indices
        self.values, self.shape, self.count = values, shape, count

    @cached_property
    def _used(self) -> tuple[Tensor, Tensor]:
        return self.column.unique(return_inverse=True)

    @property
    def ids(self) -> Tensor:
        """As for ``DenseValues``."""
        return self._used[0]

    def columns(self) -> Tensor:
        """As for ``DenseValues``."""
        ids, column = self._used
        empty = self.values.new_zeros(len(ids), *self.shape)
        return empty.index_put((column, self.item, self.part), self.values, accumulate=True)

    def weighted_sums(self, weights: Tensor) -> Tensor:
        """As for ``DenseValues``."""
        terms = weights[:, self.item, self.part] * self.values
        items = self.shape[0]
        sums = terms.new_zeros(items * self.count, len(weights))
        sums = sums.index_add(0, self.item * self.count + self.column, terms.T)
        return sums.reshape(items, self.count, len(weights)).transpose(1, 2)

    def products(self, right: "SparseValues", weights: Tensor) -> Tensor:
        """Sums over the parts of ``left right^T``, the left's entries weighted ``(nnz,)``: ``(B, count, count)``."""
        keys, order = (right.item * self.shape[1] + right.part).sort()
        left_keys = self.item * self.shape[1] + self.part
        # The right's entries of a left entry's part are one range of the sorted ones.
        first = torch.searchsorted(keys, left_keys)
        matches = torch.searchsorted(keys, left_keys, right=True) - first
        left = torch.repeat_interleave(matches)
        before = matches.cumsum(0) - matches
        other = order[first[left] + torch.arange(len(left), device=left.device) - before[left]]
        index = (self.item[left] * self.count + self.column[left]) * right.count + right.column[other]
        terms = (self.values * weights)[left] * right.values[other]
        sums = terms.new_zeros(self.shape[0] * self.count * right.count).index_add(0, index, terms)
        return sums.reshape(self.shape[0], self.count, right.count)


PartValues = DenseValues | SparseValues


def read_values(values: Tensor, shape: Size, possible: Tensor) -> PartValues:
    """Return values ``(*shape)`` or ``(*shape, R)`` of parts, dense or sparse COO, in float64.

    Args:
        values: one or R numbers for every part.
        shape: the batch dimensions, and the shape of one item's parts.
        possible: which parts are in some tree, ``(B, P)`` bool.

    Raises:
        TreeparseError: for any other shape.
    """
    values, count = full_values(values, shape)
    check_device(values, "Values", possible.device)
    if values.layout == torch.sparse_coo:
        indices, entries = sparse_entries(values, shape, possible.shape[1])
        entries = torch.where(possible[indices[0], indices[1]], entries, 0.0)
        return SparseValues(indices, entries, (possible.shape[0], possible.shape[1]), count)
    return DenseValues(values.to(torch.float64).reshape(*possible.shape, count), possible)


def join_values(kinds: Sequence[PartValues]) -> PartValues:
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
    """Expand values to ``(*shape)`` or ``(*shape, R)``; return R too, which is 1 without that dimension.

    Dimensions of size 1 broadcast, but sparse values must have the full shape.

    Raises:
        TreeparseError: for any other shape.
    """
    check_tensor(values, "Values")
    sizes, axes = tuple(values.shape), len(shape)
    if len(sizes) > axes + 1 or not fits(sizes[:axes], tuple(shape)):
        raise TreeparseError(
            f"Values must have the shape of the distribution's marginals, {tuple(shape)}, or one dimension more, got "
            f"{sizes}: {BROADCASTING}."
        )
    if sizes[:axes] != tuple(shape):
        if values.layout == torch.sparse_coo:
            raise TreeparseError(f"Sparse values must have the shape {tuple(shape)} in full, got {sizes}: expand them.")
        values = values.expand(*shape, *sizes[axes:])
    return values, sizes[-1] if len(sizes) > axes else 1


def sparse_entries(values: Tensor, shape: Size, parts: int) -> tuple[Tensor, Tensor]:
    """Return item, part and column of every entry ``(3, nnz)``, and the entries ``(nnz,)``."""
    if values.sparse_dim() < len(shape):
        raise TreeparseError(f"Sparse values must be sparse in {len(shape)} dimensions, got {values.sparse_dim()}.")
    values = values.coalesce()
    indices, entries = values.indices(), values.values().to(torch.float64)
    index = torch.zeros_like(indices[0])
    for axis, size in enumerate(shape):
        index = index * size + indices[axis]
    if entries.dim() == 2:  # a dense row of columns for every part
        column = torch.arange(entries.shape[1], device=index.device).repeat(len(index))
        index, entries = index.repeat_interleave(entries.shape[1]), entries.reshape(-1)
    else:
        column = indices[len(shape)] if len(indices) > len(shape) else torch.zeros_like(index)
    return torch.stack([index // parts, index % parts, column]), entries


def bilinear_form(left: PartValues, right: PartValues, products: Callable[[Tensor], Tensor]) -> Tensor:
    """``left^T H right`` of every item ``(B, left.count, right.count)`` for a symmetric H.

    ``products`` returns H v for vectors ``(C, B, P)``, one for each column of the side with fewer ([Exp] §5.2, T2); its
    vectors may have fewer parts than H.
    """
    if len(left.ids) < len(right.ids):
        return bilinear_form(right, left, products).transpose(1, 2)
    form = left.weighted_sums(products(right.columns())).transpose(1, 2)
    result = form.new_zeros(*form.shape[:2], right.count)
    return result.index_copy(2, right.ids, form)


def expected_accuracy(marginals: Tensor, heads: Tensor, weights: Tensor | float = 1.0) -> Tensor:
    """Return the mean probability of the known heads ``(*batch,)``, each times its word's weight; 1 without any.

    Args:
        marginals: of arcs, ``(*batch, n+1, n+1)``.
        heads: ``(*batch, n+1)``, negative where unknown, at node 0 and at padding. A head that is no node is never
            right.
        weights: ``(*batch, n+1)``, or one number.
    """
    last = heads.shape[-1] - 1
    right = gather(marginals, -2, heads.clamp(0, last).unsqueeze(-2)).squeeze(-2) * weights
    total = (heads >= 0).sum(-1)
    right = torch.where((heads >= 0) & (heads <= last), right, 0.0)
    return torch.where(total > 0, right.sum(-1) / total.clamp_min(1), 1.0)
