"""Charts of logs over the spans of ``inside_outside``, safe for any finite scores: for log marginals and for draws.

Charts hold a span of head ``h`` up to ``m`` at ``[h, m]``, and transposed beside, so that all terms of a sum are in two
rows; each sum is taken at once, relative to its largest term.

Nothing here may be reordered (``vector_jit``): a helper that is first compiled for such a caller may be reordered too,
and ``exponentiate`` must not be.
"""

import numpy as np

from treeparse.kernels.compile import exact_kernel
from treeparse.kernels.exponential import exponentiate
from treeparse.kernels.logspace import log_add, log_sum
from treeparse.kernels.weights import load_log_weights, range_sum

CHARTS = 7
WEIGHTS, FULL, FULL_T, ARC, ARC_T, OUTER, OUTER_T = range(CHARTS)


@exact_kernel
def fill_log_marginals(scores, n, single_root, top, result):
    """Store the log probabilities of one item's arcs, where ``top`` are the columns' maxima; what has none stays."""
    charts, work = np.empty((CHARTS, n + 1, n + 1)), np.empty(n + 1)
    load(scores, n, top, charts[WEIGHTS])
    inside(charts, n, single_root, work)
    if charts[FULL, 0, n] > -np.inf:
        _outside(charts, n, single_root, work)
        _store(charts[ARC], n, result)


@exact_kernel
def load(scores, n, top, weights):
    """Fill the log weights ``w[dependent, head]``."""
    load_log_weights(scores, n, top, weights, weights)
    weights[0] = -np.inf  # node 0 has no head


@exact_kernel
def inside(charts, n, single_root, work):
    """Fill the full spans and the arc spans."""
    weights, full, full_t, arc, arc_t = charts[WEIGHTS], charts[FULL], charts[FULL_T], charts[ARC], charts[ARC_T]
    for j in range(n + 1):
        full[j, j] = full_t[j, j] = 0.0
        for i in range(j - 1, -1, -1):
            between = _dot(full, i, i, full, j, i + 1, j - i, work)
            arc[i, j] = arc_t[j, i] = weights[j, i] + between
            arc[j, i] = arc_t[i, j] = weights[i, j] + between
            right = _dot(arc, i, i + 1, full_t, j, i + 1, j - i, work)
            full[i, j] = full_t[j, i] = -np.inf if single_root and i == 0 and j < n else right
            full[j, i] = full_t[i, j] = _dot(arc, j, i, full_t, i, i, j - i, work)


@exact_kernel
def _outside(charts, n, single_root, work):
    """Fill the derivatives of log Z in the full spans, and turn the arc spans into log marginals ``[dependent, head]``.

    The derivative in ``between`` replaces the weights of the two arcs.
    """
    between, full, full_t, arc, arc_t = charts[WEIGHTS], charts[FULL], charts[FULL_T], charts[ARC], charts[ARC_T]
    outer, outer_t = charts[OUTER], charts[OUTER_T]
    for j in range(n, 0, -1):
        for i in range(j):
            right = _dot(between, i, j + 1, full_t, j + 1, j + 1, n - j, work)
            right = log_add(right, _dot(outer_t, j, 0, arc_t, i, 0, i, work))
            left = _dot(between, j, 0, full_t, i - 1, 0, i, work)
            left = log_add(left, _dot(outer_t, i, j + 1, arc_t, j, j + 1, n - j, work))
            if i == 0 and j == n:
                right = -full[0, n]
            elif i == 0 and single_root:
                right = -np.inf
            outer[i, j] = outer_t[j, i] = right
            outer[j, i] = outer_t[i, j] = left
            right = _dot(outer, i, j, full, j, j, n + 1 - j, work)  # from here on the derivatives in the arc spans
            left = _dot(outer, j, 0, full, i, 0, i + 1, work)
            arc[j, i], arc[i, j] = arc[i, j] + right, arc[j, i] + left
            between[i, j] = between[j, i] = log_add(between[i, j] + left, between[j, i] + right)


@exact_kernel
def _dot(x, row, start, y, other, offset, count, work):
    """The log of the sum of the products of ``x[row, start + k]`` and ``y[other, offset + k]`` over ``count`` terms."""
    top = -np.inf
    for k in range(count):
        work[k] = x[row, start + k] + y[other, offset + k]
        top = work[k] if work[k] > top else top
    if top == -np.inf:
        return top
    for k in range(count):
        work[k] -= top
    exponentiate(work[:count])
    return top + np.log(range_sum(work, 0, count))


@exact_kernel
def _store(log_marginals, n, result):
    """Store log marginals ``[dependent, head]``; columns are normalised, which removes the common rounding."""
    for j in range(1, n + 1):
        row = log_marginals[j]
        row[j] = -np.inf
        total = log_sum(row, 0, n + 1)
        for i in range(n + 1):
            result[i, j] = row[i] - total
