"""Sums over non-projective trees in tensor operations on the whole batch, for any device.

The elimination of ``treeparse.kernels.sums.elimination`` ([GTH]), head-major and without permutation: n steps, each a
rank-1 update. Step ``k`` reads row and column ``k``, which later steps do not change, so the reverse loop needs no
further storage. Items whose plain weights are not safe are done by the CPU's kernels; the test whether there are some
is the only device sync.

Functions take float64 scores ``(B, n+1, n+1)`` and int64 lengths ``(B,)``, and record nothing for autograd.
"""

import torch
from torch import Tensor

from treeparse.kernels.sums import elimination, hessian
from treeparse.kernels.sums.elimination import LINEAR_LIMIT
from treeparse.trees.checks import arc_mask
from treeparse.trees.families.padded_arrays import run

COARSE = 1024.0  # sums of multiples are exact


class Plain:
    """A batch prepared for the elimination, and its operations on plain numbers; sums run over the last axis.

    Args:
        real: bool ``(B, n+1, n+1)``, the arcs of the items; other arcs make padding neutral.
        weights: ``(B, n+1, n+1)``, the maximum of every word's column is 1.
        direction: ``(B, n+1, n+1)``, the derivatives of the log weights; 0 where there is no arc.
    """

    def __init__(self, real: Tensor, weights: Tensor, direction: Tensor) -> None:
        self.real, self.weights, self.direction = real, weights, direction

    def load(self) -> Tensor:
        """Return a new tensor of the weights as numbers."""
        return self.weights.clone()

    def arc_values(self, adjoint: Tensor) -> Tensor:
        """Return every arc's marginal, or its derivative, ``(B, n+1, n+1)`` from d log Z / d weight as numbers."""
        return adjoint * self.weights

    def values(self, numbers: Tensor) -> Tensor:
        """Return numbers without derivatives."""
        return numbers

    def total(self, numbers: Tensor) -> Tensor:
        """Return the sum."""
        return numbers.sum(-1)

    def divide(self, numbers: Tensor, divisor: Tensor) -> Tensor:
        """Return quotients."""
        return numbers / divisor

    def multiply(self, matrix: Tensor, vector: Tensor) -> Tensor:
        """Multiply a matrix by a vector."""
        return (matrix * vector.unsqueeze(-2)).sum(-1)  # twice as fast as bmm on small matrices

    def add_product_(self, matrix: Tensor, column: Tensor, row: Tensor) -> None:
        """Add the outer product of a column and a row to a matrix, in place."""
        matrix.addcmul_(column.unsqueeze(-1), row.unsqueeze(-2))

    def add_remainder(self, numbers: Tensor, factors: Tensor, mask: Tensor) -> Tensor:
        """Add ``mask * (1 - sum(numbers * factors))``, mask 0 or 1, clamped at 0: the only subtraction."""
        remainder = 1.0 - (numbers * factors).sum(-1, keepdim=True)
        return torch.addcmul(numbers, mask, remainder).clamp_(min=0.0)


class PlainDual(Plain):
    """Numbers and their derivatives."""

    def load(self) -> Tensor:
        return torch.stack([self.weights, self.weights * self.direction])

    def arc_values(self, adjoint: Tensor) -> Tensor:
        return torch.addcmul(adjoint[1], adjoint[0], self.direction) * self.weights

    def values(self, numbers: Tensor) -> Tensor:
        return numbers[0]

    def divide(self, numbers: Tensor, divisor: Tensor) -> Tensor:
        quotient = numbers / divisor[0]
        quotient[1].addcmul_(quotient[0], divisor[1] / divisor[0], value=-1)
        return quotient

    def multiply(self, matrix: Tensor, vector: Tensor) -> Tensor:
        product = super().multiply(matrix, vector[0])
        product[1] += super().multiply(matrix[0], vector[1])
        return product

    def add_product_(self, matrix: Tensor, column: Tensor, row: Tensor) -> None:
        super().add_product_(matrix, column, row[0])
        super().add_product_(matrix[1], column[0], row[1])

    def add_remainder(self, numbers: Tensor, factors: Tensor, mask: Tensor) -> Tensor:
        slope = (numbers * factors.flip(0)).sum(-1, keepdim=True).sum(0)
        value = super().add_remainder(numbers[0], factors[0], mask)
        return torch.stack([value, torch.addcmul(numbers[1], mask, slope, value=-1)])


def finite(logs: Tensor) -> Tensor:
    """Replace -inf by 0, so that it can be subtracted from -inf."""
    return torch.where(logs > -torch.inf, logs, 0.0)


def shifted_log_weights(scores: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the possible arcs, log weights less their column's maximum ``(B, n+1, n+1)``, and the maxima ``(B, n+1)``.

    Padding hangs from node 1, and that from node 0 if it is padding itself, by arcs of weight 1: this changes no sum,
    probability or derivative.
    """
    nodes = scores.shape[-1]
    log_weights = torch.where(arc_mask(lengths, nodes), scores, -torch.inf)
    real = log_weights > -torch.inf
    padding = (torch.arange(nodes, device=scores.device) > lengths.unsqueeze(-1)).unsqueeze(1)
    log_weights[:, 1:2, 2:].masked_fill_(padding[..., 2:], 0.0)
    log_weights[:, :1, 1:2].masked_fill_(padding[..., 1:2], 0.0)
    top = log_weights.amax(1, keepdim=True)
    return real, log_weights.sub_(finite(top)), top.squeeze(1)


@torch.no_grad()
def log_partition(scores: Tensor, lengths: Tensor, *, single_root: bool) -> Tensor:
    """Return the log of the summed weight of all trees, ``(B, n+1, n+1) -> (B,)``; -inf where there is none."""
    arithmetic, top = _prepare(scores, lengths)
    log_z, _, unsafe = _solve(arithmetic, single_root, differentiate=False)
    log_z = _add_tops(log_z, top)
    if len(unsafe):
        log_z[unsafe] = run(elimination.log_partition, scores[unsafe], lengths[unsafe], single_root=single_root)
    return log_z


@torch.no_grad()
def log_partition_and_marginals(scores: Tensor, lengths: Tensor, *, single_root: bool) -> tuple[Tensor, Tensor]:
    """Return the log partition ``(B,)`` and the probability of every arc ``(B, n+1, n+1)``, 0 without any tree."""
    arithmetic, top = _prepare(scores, lengths)
    log_z, marginals, unsafe = _solve(arithmetic, single_root)
    log_z = _add_tops(log_z, top)
    if len(unsafe):
        again = elimination.log_partition_and_marginals, scores[unsafe], lengths[unsafe]
        log_z[unsafe], marginals[unsafe] = run(*again, single_root=single_root)
    return log_z, marginals


@torch.no_grad()
def hessian_vector_product(scores: Tensor, lengths: Tensor, vectors: Tensor, *, single_root: bool) -> Tensor:
    """Multiply the Hessian of the log partition by vectors ``(B, n+1, n+1)``: the marginals' derivative along them.

    At forbidden arcs, column 0, the diagonal and padding ``vectors`` are ignored and the product is 0, as it is where
    there is no tree.
    """
    arithmetic, _ = _prepare(scores, lengths, vectors)
    _, product, unsafe = _solve(arithmetic, single_root)
    if len(unsafe):
        again = hessian.hessian_vector_product, scores[unsafe], lengths[unsafe], vectors[unsafe].double()
        product[unsafe] = run(*again, single_root=single_root)
    return product


def _prepare(scores: Tensor, lengths: Tensor, vectors: Tensor | None = None) -> tuple[Plain, Tensor]:
    """Return a batch, and the maxima ``(B, n)`` subtracted from its columns; -inf if a word has no arc.

    With vectors, numbers have derivatives along these.
    """
    real, log_weights, top = shifted_log_weights(scores, lengths)
    weights = log_weights.exp()
    if vectors is None:
        return Plain(real, weights, torch.zeros_like(weights)), top[:, 1:]
    # A constant added to a column changes nothing: subtracting its weighted mean leaves less to cancel.
    direction = torch.where(real, vectors, 0.0)
    mean = (weights * direction).sum(1, keepdim=True) / weights.sum(1, keepdim=True)
    return PlainDual(real, weights, torch.where(real, direction - mean, 0.0)), top[:, 1:]


def _add_tops(log_z: Tensor, top: Tensor) -> Tensor:
    """Add the maxima of columns to log partitions; large ones may cancel, so their whole thousands are added alone."""
    coarse = (finite(top) / COARSE).round() * COARSE
    return coarse.sum(-1) + ((finite(top) - coarse).sum(-1) + log_z)


def _solve(arithmetic: Plain, single_root: bool, differentiate: bool = True) -> tuple[Tensor, Tensor, Tensor]:
    """Return log Z, a value for every arc, and the items ``(I,)`` for which plain weights are not safe."""
    w = arithmetic.load()
    rooted = _eliminate(arithmetic, w, single_root)
    log_z = arithmetic.values(w).diagonal(dim1=-2, dim2=-1)[..., 1:].log().sum(-1)
    values = log_z.new_empty(len(log_z), 0, 0)
    if differentiate:
        adjoint = _differentiate(arithmetic, w, rooted)
        values = torch.where(arithmetic.real, arithmetic.arc_values(adjoint), 0.0)
    sums = arithmetic.weights.sum(1)[:, 1:]
    safe = (log_z - sums.log().sum(-1) >= LINEAR_LIMIT) & (log_z < torch.inf) & values.sum((1, 2)).isfinite()
    unsafe = (~safe & (sums > 0.0).all(-1)).nonzero().squeeze(-1)
    return torch.where(safe, log_z, -torch.inf), torch.where(safe[:, None, None], values, 0.0), unsafe


def _eliminate(arithmetic: Plain, w: Tensor, single_root: bool) -> list[Tensor]:
    """Eliminate in place: column ``k`` is divided by its pivot, which is stored at ``w[k, k]``.

    With a single root, a word that no other word reaches is the root word. The remaining words then hang from it as the
    words of a multi-root tree hang from node 0: its row replaces row 0.

    Returns:
        For every ``k``, whether the pivot contains the arc from node 0, ``(B,)`` bool; at ``n + 1`` the first state.
    """
    rows, columns = w.unbind(-2), w.unbind(-1)
    rooted = [torch.full((w.shape[-3],), not single_root, device=w.device)] * (len(rows) + 1)
    for k in range(len(rows) - 1, 0, -1):
        column, row = columns[k][..., :k], rows[k][..., :k]
        pivot = arithmetic.total(column)
        if single_root:
            from_words = arithmetic.total(column[..., 1:])
            rooted[k] = rooted[k + 1] | (arithmetic.values(from_words) == 0.0)
            pivot = torch.where(rooted[k], pivot, from_words)
            rows[0][..., :k].masked_fill_((rooted[k] ^ rooted[k + 1]).unsqueeze(-1), 0.0)
        column.copy_(arithmetic.divide(column, pivot.unsqueeze(-1)))
        arithmetic.add_product_(w[..., :k, :k], column, row)
        columns[k][..., k] = pivot
    return rooted


def _differentiate(arithmetic: Plain, w: Tensor, rooted: list[Tensor]) -> Tensor:
    """Return the derivative of log Z in every weight, by reversing ``_eliminate``, whose result is ``w``."""
    adjoint = torch.zeros_like(w)
    in_pivot = torch.ones_like(arithmetic.weights[:, 0])
    adjoint_rows, adjoint_columns, rows, columns = adjoint.unbind(-2), adjoint.unbind(-1), w.unbind(-2), w.unbind(-1)
    for k in range(1, len(rows)):
        block, column = adjoint[..., :k, :k], columns[k][..., :k]
        gradient = arithmetic.multiply(block, rows[k][..., :k])
        adjoint_rows[k][..., :k] = arithmetic.multiply(block.mT, column)
        in_pivot[:, 0] = rooted[k]
        gradient = arithmetic.add_remainder(gradient, column, in_pivot[:, :k])
        adjoint_columns[k][..., :k] = arithmetic.divide(gradient, columns[k][..., k].unsqueeze(-1))
        if rooted[k] is not rooted[k + 1]:
            adjoint_rows[0][..., :k].masked_fill_((rooted[k] ^ rooted[k + 1]).unsqueeze(-1), 0.0)
    return adjoint
