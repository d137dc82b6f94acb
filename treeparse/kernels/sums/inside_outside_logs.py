"""``inside_outside`` on logs, slower and safe for any finite scores.

Charts hold a span of head ``h`` up to ``m`` at ``[h, m]``, and transposed beside, so that all terms of a sum are in two
rows; each sum is taken at once, relative to its largest term. A cell is a log and its tangent, which is the derivative
along a vector: the tangent of a sum is the weighted mean of the tangents of its
terms. Without a vector, tangents are not stored.

Nothing here may be reordered (``vector_jit``): a helper that is first compiled for such a caller may be reordered too,
and ``exponentiate`` must not be.
"""

import numpy as np

from treeparse.kernels.compile import jit
from treeparse.kernels.exponential import exponentiate
from treeparse.kernels.logspace import log_add, log_sum
from treeparse.kernels.sums.hessian import load_vectors
from treeparse.kernels.weights import load_log_weights, range_sum

LOG_PARTITION, MARGINALS, LOG_MARGINALS, PRODUCT = np.arange(4)  # the quantities that the log item stores
CHARTS = 7
WEIGHTS, FULL, FULL_T, ARC, ARC_T, OUTER, OUTER_T = range(CHARTS)
LOG_ZERO, LOG_ONE = (-np.inf, 0.0), (0.0, 0.0)  # cells


@jit
def log_item(scores, vectors, n, single_root, quantity, top, result):
    """Store a quantity in the first item of ``result``; return log Z' of the scores less ``top`` of their columns."""
    charts = np.empty((CHARTS, 2 if quantity == PRODUCT else 1, n + 1, n + 1))
    work = np.empty(n + 1)
    scale = load(scores, vectors, n, top, charts[WEIGHTS])
    inside(charts, n, single_root, work)
    log_z = charts[FULL, 0, 0, n]
    if quantity != LOG_PARTITION and log_z > -np.inf:
        _outside(charts, n, single_root, work)
        _store(charts[ARC], n, quantity, scale, result[0])
    return log_z


@jit
def load(scores, vectors, n, top, weights):
    """Fill the log weights ``w[dependent, head]`` and their tangents, of which it returns the scale."""
    load_log_weights(scores, n, top, weights[0], weights[0])
    weights[0, 0] = -np.inf  # node 0 has no head
    if len(weights) == 1:
        return 1.0
    scale = load_vectors(vectors, n, weights[0], -np.inf, 0.0, weights[1])
    weights[1, 0] = 0.0
    return scale


@jit
def inside(charts, n, single_root, work):
    """Fill the full spans and the arc spans."""
    weights, full, full_t, arc, arc_t = charts[WEIGHTS], charts[FULL], charts[FULL_T], charts[ARC], charts[ARC_T]
    for j in range(n + 1):
        _put(full, full_t, j, j, LOG_ONE)
        for i in range(j - 1, -1, -1):
            between = _dot(full, i, i, full, j, i + 1, j - i, work)
            _put(arc, arc_t, i, j, _product(_get(weights, j, i), between))
            _put(arc, arc_t, j, i, _product(_get(weights, i, j), between))
            right = _dot(arc, i, i + 1, full_t, j, i + 1, j - i, work)
            _put(full, full_t, i, j, LOG_ZERO if single_root and i == 0 and j < n else right)
            _put(full, full_t, j, i, _dot(arc, j, i, full_t, i, i, j - i, work))


@jit
def _outside(charts, n, single_root, work):
    """Fill the derivatives of log Z in the full spans, and turn the arc spans into marginals ``[dependent, head]``.

    The derivative in ``between`` replaces the weights of the two arcs.
    """
    between, full, full_t, arc, arc_t = charts[WEIGHTS], charts[FULL], charts[FULL_T], charts[ARC], charts[ARC_T]
    outer, outer_t = charts[OUTER], charts[OUTER_T]
    for j in range(n, 0, -1):
        for i in range(j):
            right = _dot(between, i, j + 1, full_t, j + 1, j + 1, n - j, work)
            right = _sum(right, _dot(outer_t, j, 0, arc_t, i, 0, i, work))
            left = _dot(between, j, 0, full_t, i - 1, 0, i, work)
            left = _sum(left, _dot(outer_t, i, j + 1, arc_t, j, j + 1, n - j, work))
            if i == 0 and j == n:
                right = -full[0, 0, n], -_get(full, 0, n)[1]
            elif i == 0 and single_root:
                right = LOG_ZERO
            _put(outer, outer_t, i, j, right)
            _put(outer, outer_t, j, i, left)
            right = _dot(outer, i, j, full, j, j, n + 1 - j, work)  # from here on the derivatives in the arc spans
            left = _dot(outer, j, 0, full, i, 0, i + 1, work)
            arcs = _product(_get(arc, i, j), right), _product(_get(arc, j, i), left)
            _set(arc, j, i, arcs[0])
            _set(arc, i, j, arcs[1])
            right, left = _product(_get(between, j, i), right), _product(_get(between, i, j), left)
            _put(between, between, i, j, _sum(left, right))


@jit
def _dot(x, row, start, y, other, offset, count, work):
    """The sum of the products of ``x[row, start + k]`` and ``y[other, offset + k]`` over ``count`` terms."""
    top = -np.inf
    for k in range(count):
        work[k] = x[0, row, start + k] + y[0, other, offset + k]
        top = work[k] if work[k] > top else top
    if top == -np.inf:
        return LOG_ZERO
    for k in range(count):
        work[k] -= top
    exponentiate(work[:count])
    total, tangent = range_sum(work, 0, count), 0.0
    if len(x) > 1:
        for k in range(count):
            tangent += work[k] * (x[1, row, start + k] + y[1, other, offset + k])
    return top + np.log(total), tangent / total


@jit
def _sum(x, y):
    if x[0] == -np.inf:
        return y
    return log_add(x[0], y[0]), x[1] + (y[1] - x[1]) / (1.0 + np.exp(x[0] - y[0]))


@jit
def _product(x, y):
    return x[0] + y[0], x[1] + y[1]


@jit
def _get(chart, i, j):
    return chart[0, i, j], chart[1, i, j] if len(chart) > 1 else 0.0


@jit
def _set(chart, i, j, cell):
    chart[0, i, j] = cell[0]
    if len(chart) > 1:
        chart[1, i, j] = cell[1]


@jit
def _put(chart, transpose, i, j, cell):
    _set(chart, i, j, cell)
    _set(transpose, j, i, cell)


@jit
def _store(marginals, n, quantity, scale, result):
    """Store what is quantity of the marginals ``[dependent, head]``.

    Columns are normalised, which removes the common part of the rounding.
    """
    for j in range(1, n + 1):
        row = marginals[0, j]
        row[j] = -np.inf
        total = log_sum(row, 0, n + 1)
        for i in range(n + 1):
            row[i] -= total
        if quantity != LOG_MARGINALS:
            exponentiate(row)
        if quantity == PRODUCT:
            tangents, mean = marginals[1, j], 0.0
            tangents[j] = 0.0
            for i in range(n + 1):
                mean += row[i] * tangents[i]
            for i in range(n + 1):
                row[i] *= scale * (tangents[i] - mean)
        for i in range(n + 1):
            result[i, j] = row[i]
