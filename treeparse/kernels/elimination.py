"""Sums over non-projective trees by elimination without subtraction ([GTH]).

Words are eliminated one after the other: the weight of a path ``i -> k -> j`` through the eliminated word ``k`` moves
to the arc ``i -> j``. Nothing is subtracted, so nothing cancels however sure of itself the model is, where the
determinant of the Laplacian loses every digit. Marginals are the derivative of the log partition, by reverse mode
through the same loop; its one subtraction has an absolute error of about 1e-16 n.

Matrices are dependent-major here: ``w[j, i]`` is the weight of the arc ``i -> j`` and node 0 the root, so that every
inner loop runs over contiguous heads. Entries ``w[j, j]`` collect what is never read.
"""

import numpy as np

from treeparse.kernels._compile import FloatArray, IntArray, jit, run_batch, vector_jit
from treeparse.kernels._logspace import log_add, log_add_number, log_sum
from treeparse.kernels._weights import column_maxima, load_log_weights, load_weights, range_sum, square

LINEAR_LIMIT = -600.0  # of log Z' - sum of log column sums: below, underflow may have lost trees


def log_partition(scores: FloatArray, lengths: IntArray, *, single_root: bool, threads: int = 1) -> FloatArray:
    """Log of the summed weight of all trees, ``(B, n+1, n+1) -> (B,)``; -inf where there is none."""
    log_z = np.empty(len(lengths))
    unwanted = np.empty((1, 0, 0))
    run_batch(_sum_trees, lengths**3 / 3, lengths, scores, single_root, False, log_z, unwanted, threads=threads)
    return log_z


def log_partition_and_marginals(
    scores: FloatArray, lengths: IntArray, *, single_root: bool, threads: int = 1
) -> tuple[FloatArray, FloatArray]:
    """The log partition ``(B,)`` and the probability of every arc ``(B, n+1, n+1)``; all 0 where there is no tree."""
    log_z = np.empty(len(lengths))
    marginals = np.zeros_like(scores)
    run_batch(_sum_trees, lengths**3, lengths, scores, single_root, True, log_z, marginals, threads=threads)
    return log_z, marginals


@jit
def _sum_trees(start, stop, lengths, scores, single_root, with_marginals, log_z, marginals):
    size = scores.shape[1]
    buffers = np.empty((3, size * size))
    vectors = np.empty((4, size))
    order = np.empty(size, np.int64)
    for b in range(start, stop):
        n = lengths[b]
        out = marginals[b if with_marginals else 0]
        shift = column_maxima(scores[b], n, vectors[0])
        weight = -np.inf
        if shift > -np.inf:
            weight = _linear_item(scores[b], n, single_root, with_marginals, buffers, vectors, order, out)
            if np.isnan(weight):
                weight = _log_item(scores[b], n, single_root, with_marginals, buffers, vectors, order, out)
        log_z[b] = shift + weight


@jit
def _linear_item(scores, n, single_root, with_marginals, buffers, vectors, order, marginals):
    """One item with plain weights; returns log Z' (columns scaled to maximum 1), or NaN where that is not safe."""
    w, original, adjoint = square(buffers[0], n), square(buffers[1], n), square(buffers[2], n)
    top, pivots, row, gradient = vectors[0], vectors[1], vectors[2], vectors[3]
    bound = load_weights(scores, n, top, w, original)
    weight = _eliminate(w, n, single_root, pivots, row, order)
    if not (weight - bound >= LINEAR_LIMIT and weight < np.inf):
        return np.nan
    if with_marginals:
        _differentiate(w, n, single_root, pivots, row, gradient, adjoint)
        if not _store_marginals(adjoint, original, n, order, marginals):
            return np.nan
    return weight


@jit
def _log_item(scores, n, single_root, with_marginals, buffers, vectors, order, marginals):
    """One item in log space, slower and safe for any finite scores; returns log Z', -inf if there is no tree."""
    w, original, adjoint = square(buffers[0], n), square(buffers[1], n), square(buffers[2], n)
    top, pivots, row, gradient = vectors[0], vectors[1], vectors[2], vectors[3]
    load_log_weights(scores, n, top, w, original)
    weight = _eliminate_log(w, n, single_root, pivots, row, order)
    if with_marginals:
        if weight > -np.inf:
            _differentiate_log(w, n, single_root, pivots, row, gradient, adjoint)
            _store_log_marginals(adjoint, original, n, order, marginals)
        else:
            marginals.fill(0.0)
    return weight


@jit
def _first_head(k, single_root):
    """The first head in the pivot of word ``k``: with a single root, only the last word left hangs from node 0."""
    return 1 if single_root and k > 1 else 0


@jit
def _make_last(w, n, k, order):
    """Exchange word ``k``, which only the root reaches, with word 1, which is eliminated last."""
    order[1], order[k] = order[k], order[1]
    for i in range(n + 1):
        w[1, i], w[k, i] = w[k, i], w[1, i]
    for j in range(1, n + 1):
        w[j, 1], w[j, k] = w[j, k], w[j, 1]


@vector_jit
def _eliminate(w, n, single_root, pivots, row, order):
    """Eliminate in place; ``w``, ``pivots`` and ``order`` keep what the reverse loop needs. Returns log Z' or -inf."""
    for i in range(n + 1):
        order[i] = i
    log_z = 0.0
    exchanged = False
    for k in range(n, 0, -1):
        first = _first_head(k, single_root)
        pivot = range_sum(w[k], first, k)
        if pivot == 0.0 and single_root and not exchanged and k > 1:
            _make_last(w, n, k, order)
            exchanged = True
            pivot = range_sum(w[k], first, k)
        if pivot == 0.0:
            return -np.inf
        pivots[k] = pivot
        log_z += np.log(pivot)
        for i in range(k):
            row[i] = w[k, i] / pivot
        for j in range(1, k):
            through = w[j, k]
            for i in range(k):
                w[j, i] += through * row[i]
    return log_z


@vector_jit
def _differentiate(w, n, single_root, pivots, row, gradient, adjoint):
    """Fill ``adjoint`` with the derivative of log Z' in every weight: the reverse of ``_eliminate``."""
    for k in range(1, n + 1):
        first = _first_head(k, single_root)
        for i in range(k):
            row[i] = w[k, i] / pivots[k]
            gradient[i] = 0.0
        for j in range(1, k):
            through = w[j, k]
            total = 0.0
            for i in range(k):
                total += adjoint[j, i] * row[i]
                gradient[i] += adjoint[j, i] * through
            adjoint[j, k] = total
        dependents = 0.0
        for i in range(k):
            dependents += gradient[i] * row[i]
        for i in range(k):
            rest = 1.0 - dependents if i >= first else 0.0
            value = (gradient[i] + rest) / pivots[k]
            adjoint[k, i] = 0.0 if value < 0.0 else value  # NaN stays, to be found
        adjoint[k, k] = 0.0


@jit
def _store_marginals(adjoint, original, n, order, marginals):
    """Marginal = derivative times weight, back in head-major order; returns whether all are finite."""
    finite = True
    for j in range(1, n + 1):
        for i in range(n + 1):
            head, dependent = order[i], order[j]
            value = adjoint[j, i] * original[dependent, head]
            finite &= np.isfinite(value)
            marginals[head, dependent] = value
    return finite


@jit
def _eliminate_log(w, n, single_root, pivots, row, order):
    """``_eliminate`` on log weights."""
    for i in range(n + 1):
        order[i] = i
    log_z = 0.0
    exchanged = False
    for k in range(n, 0, -1):
        first = _first_head(k, single_root)
        pivot = log_sum(w[k], first, k)
        if pivot == -np.inf and single_root and not exchanged and k > 1:
            _make_last(w, n, k, order)
            exchanged = True
            pivot = log_sum(w[k], first, k)
        if pivot == -np.inf:
            return -np.inf
        pivots[k] = pivot
        log_z += pivot
        for i in range(k):
            row[i] = w[k, i] - pivot
        for j in range(1, k):
            through = w[j, k]
            if through > -np.inf:
                for i in range(k):
                    w[j, i] = log_add(w[j, i], through + row[i])
    return log_z


@jit
def _differentiate_log(w, n, single_root, pivots, row, gradient, adjoint):
    """``_differentiate`` on log weights; ``adjoint`` holds logs of derivatives, none of which is negative."""
    for k in range(1, n + 1):
        first = _first_head(k, single_root)
        for i in range(k):
            row[i] = w[k, i] - pivots[k]
            gradient[i] = -np.inf
        for j in range(1, k):
            through = w[j, k]
            total = -np.inf
            for i in range(k):
                total = log_add(total, adjoint[j, i] + row[i])
                gradient[i] = log_add(gradient[i], adjoint[j, i] + through)
            adjoint[j, k] = total
        dependents = 0.0
        for i in range(k):
            dependents += np.exp(gradient[i] + row[i])
        for i in range(k):
            rest = 1.0 - dependents if i >= first else 0.0
            adjoint[k, i] = log_add_number(gradient[i], rest) - pivots[k]
        adjoint[k, k] = -np.inf


@jit
def _store_log_marginals(adjoint, original, n, order, marginals):
    """``_store_marginals`` from logs; columns are normalised, which takes the common part of the rounding out."""
    for j in range(1, n + 1):
        dependent = order[j]
        total = 0.0
        for i in range(n + 1):
            head = order[i]
            marginals[head, dependent] = np.exp(adjoint[j, i] + original[dependent, head])
            total += marginals[head, dependent]
        for i in range(n + 1):
            marginals[i, dependent] /= total
