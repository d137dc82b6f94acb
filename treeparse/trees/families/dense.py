"""Sums over non-projective trees in tensor operations on the whole batch, for any device.

The elimination of ``treeparse.kernels.sums.elimination`` ([GTH]), head-major and without permutation: n steps, each a
rank-1 update. Step ``k`` reads row and column ``k``, which later steps do not change, so the reverse loop needs no
further storage. The only device sync is the test whether items must be computed again in log space.

Functions take float64 scores ``(B, n+1, n+1)`` and int64 lengths ``(B,)``, and record nothing for autograd.
"""

import torch
from torch import Tensor

from treeparse.kernels.sums.item import LINEAR_LIMIT
from treeparse.trees.families.dense_arithmetic import Arcs, Log, LogDual, Plain, PlainDual, shifted_log_weights


@torch.no_grad()
def log_partition(scores: Tensor, lengths: Tensor, *, single_root: bool) -> Tensor:
    """Return the log of the summed weight of all trees, ``(B, n+1, n+1) -> (B,)``; -inf where there is none."""
    arcs, shift = _prepare(scores, lengths)
    return shift + _solve(arcs, Plain, Log, single_root, differentiate=False)[0]


@torch.no_grad()
def log_partition_and_marginals(scores: Tensor, lengths: Tensor, *, single_root: bool) -> tuple[Tensor, Tensor]:
    """Return the log partition ``(B,)`` and the probability of every arc ``(B, n+1, n+1)``, 0 without any tree."""
    arcs, shift = _prepare(scores, lengths)
    log_z, marginals = _solve(arcs, Plain, Log, single_root)
    return shift + log_z, marginals


@torch.no_grad()
def hessian_vector_product(scores: Tensor, lengths: Tensor, vectors: Tensor, *, single_root: bool) -> Tensor:
    """Multiply the Hessian of the log partition by vectors ``(B, n+1, n+1)``: the marginals' derivative along them.

    At forbidden arcs, column 0, the diagonal and padding ``vectors`` are ignored and the product is 0, as it is where
    there is no tree.
    """
    arcs, _ = _prepare(scores, lengths, vectors)
    return _solve(arcs, PlainDual, LogDual, single_root)[1]


def _prepare(scores: Tensor, lengths: Tensor, vectors: Tensor | None = None) -> tuple[Arcs, Tensor]:
    """Return arcs, and the sum ``(B,)`` of the maxima subtracted from their columns; -inf if a word has no arc."""
    real, log_weights, top = shifted_log_weights(scores, lengths)
    weights = log_weights.exp()
    if vectors is None:
        direction = torch.zeros_like(weights)
    else:
        # A constant added to a column changes nothing: subtracting its weighted mean leaves less to cancel.
        direction = torch.where(real, vectors, 0.0)
        mean = (weights * direction).sum(1, keepdim=True) / weights.sum(1, keepdim=True)
        direction = torch.where(real, direction - mean, 0.0)
    return Arcs(real, log_weights, weights, direction), top[:, 1:].sum(-1)


def _solve(
    arcs: Arcs, linear: type[Plain], logarithmic: type[Log], single_root: bool, differentiate: bool = True
) -> tuple[Tensor, Tensor]:
    """Return log Z and a value for every arc: by plain weights where that is safe, otherwise in log space."""
    log_z, values = _run(linear(arcs), single_root, differentiate)
    sums = arcs.weights.sum(1)[:, 1:]
    safe = (log_z - sums.log().sum(-1) >= LINEAR_LIMIT) & (log_z < torch.inf) & values.sum((1, 2)).isfinite()
    again = (~safe & (sums > 0.0).all(-1)).nonzero().squeeze(-1)
    log_z = torch.where(safe, log_z, -torch.inf)
    values = torch.where(safe[:, None, None], values, 0.0)
    if len(again):
        selected = Arcs(*(tensor.index_select(0, again) for tensor in arcs))
        selected_log_z, selected_values = _run(logarithmic(selected), single_root, differentiate)
        exist = (selected_log_z > -torch.inf)[:, None, None]
        log_z.index_copy_(0, again, selected_log_z)
        values.index_copy_(0, again, torch.where(exist, selected_values, 0.0))
    return log_z, values


def _run(arithmetic: Plain, single_root: bool, differentiate: bool) -> tuple[Tensor, Tensor]:
    """Return log Z and arc values with one kind of numbers; they may not be finite where that kind is not safe."""
    w = arithmetic.load()
    rooted = _eliminate(arithmetic, w, single_root)
    log_z = arithmetic.log(w.diagonal(dim1=-2, dim2=-1)[..., 1:]).sum(-1)
    if not differentiate:
        return log_z, log_z.new_empty(len(log_z), 0, 0)
    adjoint = _differentiate(arithmetic, w, rooted)
    return log_z, torch.where(arithmetic.arcs.real, arithmetic.arc_values(adjoint), 0.0)


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
            rooted[k] = rooted[k + 1] | arithmetic.vanish(from_words)
            pivot = torch.where(rooted[k], pivot, from_words)
            arithmetic.clear_(rows[0][..., :k], (rooted[k] ^ rooted[k + 1]).unsqueeze(-1))
        column.copy_(arithmetic.divide(column, pivot.unsqueeze(-1)))
        arithmetic.add_product_(w[..., :k, :k], column, row)
        columns[k][..., k] = pivot
    return rooted


def _differentiate(arithmetic: Plain, w: Tensor, rooted: list[Tensor]) -> Tensor:
    """Return the derivative of log Z in every weight, by reversing ``_eliminate``, whose result is ``w``."""
    adjoint = torch.zeros_like(w)
    arithmetic.clear_(adjoint, rooted[0].new_ones(()))
    in_pivot = torch.ones_like(arithmetic.arcs.weights[:, 0])
    adjoint_rows, adjoint_columns, rows, columns = adjoint.unbind(-2), adjoint.unbind(-1), w.unbind(-2), w.unbind(-1)
    for k in range(1, len(rows)):
        block, column = adjoint[..., :k, :k], columns[k][..., :k]
        gradient = arithmetic.multiply(block, rows[k][..., :k])
        adjoint_rows[k][..., :k] = arithmetic.multiply(block.mT, column)
        in_pivot[:, 0] = rooted[k]
        gradient = arithmetic.add_remainder(gradient, column, in_pivot[:, :k])
        adjoint_columns[k][..., :k] = arithmetic.divide(gradient, columns[k][..., k].unsqueeze(-1))
        if rooted[k] is not rooted[k + 1]:
            arithmetic.clear_(adjoint_rows[0][..., :k], (rooted[k] ^ rooted[k + 1]).unsqueeze(-1))
    return adjoint
