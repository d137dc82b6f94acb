"""Sums over projective trees by inside and outside passes over Eisner's chart, in O(n^3) (Eisner 1996; 2000).

A span from node i to node j is of one of five kinds, and its weight is the sum over its splits:

    right      complete, headed by i    right(i, j) = sum over i < k <= j of right_arc(i, k) right(k, j)
    left       complete, headed by j    left(i, j)  = sum over i <= k < j of left_arc(k, j) left(i, k)
    between    what an arc spans        between(i, j) = sum over i <= k < j of right(i, k) left(k+1, j)
    right_arc  the arc i -> j too       right_arc(i, j) = w(i -> j) between(i, j)
    left_arc   the arc j -> i too       left_arc(i, j) = w(j -> i) between(i, j)

where right(i, i) = left(i, i) = 1. Every projective tree is one derivation of right(0, n) and no other, so that is Z.
For a single root right(0, j) is 0 where 0 < j < n: after its first dependent node 0 cannot take a second one.

The outside of a span is the derivative of log Z in it, by reverse mode through the inside pass. The probability of an
arc is the inside times the outside of its span. Nothing is subtracted, so small ones keep their relative accuracy.

A product with the Hessian is the derivative of the marginals along a vector v, by a complex step (Squire and Trapp
1998): the same passes run on ``w (1 + i STEP v)``. Imaginary parts are then ``STEP`` times the derivatives along v of
real parts, which themselves change by no more than rounding.

Weights are scaled so that each column sums to 1. No span's weight is then above 1, and a cell loses 1e-308 at most by
underflow: where Z is above ``SAFE``, no more than 1e-28 of any probability. Otherwise the item is done in logs, by
``in_logs.spans``.

Spans from i to j are at ``[j, i]``. Rows are filled from the right to the left. As soon as the weight of a span is
known, it is combined with all spans that end where it begins, so every inner loop runs over
contiguous cells and is vectorised.
"""

import numpy as np

from treeparse.kernels.arrays import FloatArray, IntArray, places_of_nan
from treeparse.kernels.compile import exact_kernel, kernel
from treeparse.kernels.exponential import exponentiate
from treeparse.kernels.sums.centring import load_vectors
from treeparse.kernels.sums.in_logs import charts as log_charts
from treeparse.kernels.sums.in_logs.spans import LOG_PARTITION, MARGINALS, multiply_items, sum_items
from treeparse.kernels.threads import run_batch
from treeparse.kernels.weights import LARGE, column_maxima, load_log_weights, range_sum, square

SAFE = 1e-280
STEP = 2.0**-40  # its square, times that of a thousand words, is below rounding
CHARTS = 8
WEIGHTS, RIGHT, LEFT, RIGHT_ARC, LEFT_ARC, OUTER_RIGHT, OUTER_LEFT, OUTER_RIGHT_ARC = range(CHARTS)


def log_partition(scores: FloatArray, lengths: IntArray, *, single_root: bool, threads: int = 1) -> FloatArray:
    """Return the log of the summed weight of all projective trees, ``(B, n+1, n+1) -> (B,)``; -inf without a tree."""
    log_z = np.empty(len(lengths))
    arguments = lengths, scores, single_root, log_z, scores[:0]
    run_batch(_sum_trees, lambda n: n**3 / 2, *arguments, threads=threads)
    batch, options = ((scores,), lengths, places_of_nan(log_z)), {"single_root": single_root, "threads": threads}
    sum_items(*batch, LOG_PARTITION, log_z, **options)
    return log_z


def log_partition_and_marginals(
    scores: FloatArray, lengths: IntArray, *, single_root: bool, threads: int = 1
) -> tuple[FloatArray, FloatArray]:
    """Return the log partition ``(B,)`` and the probability of every arc ``(B, n+1, n+1)``, 0 without a tree."""
    log_z, marginals = np.empty(len(lengths)), np.zeros_like(scores)
    arguments = lengths, scores, single_root, log_z, marginals
    run_batch(_sum_trees, lambda n: 1.5 * n**3, *arguments, threads=threads)
    batch, options = ((scores,), lengths, places_of_nan(log_z)), {"single_root": single_root, "threads": threads}
    sum_items(*batch, MARGINALS, log_z, (marginals,), **options)
    return log_z, marginals


def log_marginals(scores: FloatArray, lengths: IntArray, *, single_root: bool, threads: int = 1) -> FloatArray:
    """Return the log probability of every arc ``(B, n+1, n+1)`` in nats; it is -inf exactly where no tree has the arc.

    Right to relative accuracy however improbable the arc: the absolute error of a logarithm is about 1e-15 times the
    summed largest magnitudes of the words' scores. Where there is no tree at all, everything is -inf.
    """
    logs = np.full_like(scores, -np.inf)
    run_batch(_fill_logs, lambda n: 20 * n**3, lengths, scores, single_root, logs, threads=threads)
    return logs


def hessian_vector_product(
    scores: FloatArray, lengths: IntArray, vectors: FloatArray, *, single_root: bool, threads: int = 1
) -> FloatArray:
    """Return the Hessian of the log partition in the scores times ``vectors``, all ``(B, n+1, n+1)``.

    Ignored entries, forbidden arcs and items without a tree have 0, whatever ``vectors`` hold there.
    """
    product, in_logs = np.zeros_like(scores), np.zeros(len(lengths), np.bool_)
    arguments = lengths, scores, vectors, single_root, in_logs, product
    run_batch(_multiply, lambda n: 5 * n**3, *arguments, threads=threads)
    batch, options = ((scores,), lengths, in_logs.nonzero()[0]), {"single_root": single_root, "threads": threads}
    multiply_items(*batch, (product,), (vectors,), **options)
    return product


@exact_kernel
def _sum_trees(start, stop, lengths, scores, single_root, log_z, marginals):
    """Store the log partition, NaN where plain weights are not safe, and marginals where there is room for them."""
    size = scores.shape[1]
    buffer, lines, top = np.empty(CHARTS * size * size), np.empty((3, size)), np.empty(size)
    for b in range(start, stop):
        n = lengths[b]
        log_z[b] = column_maxima(scores[b], n, top)
        if log_z[b] == -np.inf:
            continue
        charts = new_charts(buffer, n)
        load_scaled_weights(scores[b], n, top, charts[WEIGHTS])
        log_sums = divide_by_sums(charts[WEIGHTS], n)
        total = inside(charts, n, single_root, lines)
        log_z[b] += log_sums + np.log(total) if total > SAFE else np.nan
        if total > SAFE and len(marginals) > 0:
            _outside(charts, n, single_root, lines)
            _store(charts, n, 1.0, marginals[b])


@exact_kernel
def _fill_logs(start, stop, lengths, scores, single_root, logs):
    top = np.empty(scores.shape[1])
    for b in range(start, stop):
        if column_maxima(scores[b], lengths[b], top) > -np.inf:
            log_charts.fill_log_marginals(scores[b], lengths[b], single_root, top, logs[b])


@exact_kernel
def _multiply(start, stop, lengths, scores, vectors, single_root, in_logs, product):
    size = scores.shape[1]
    buffer, lines = np.empty(CHARTS * size * size, np.complex128), np.empty((3, size), np.complex128)
    real, top = np.empty((2, size * size)), np.empty(size)
    for b in range(start, stop):
        n = lengths[b]
        if column_maxima(scores[b], n, top) == -np.inf:
            continue
        charts, w, v = new_charts(buffer, n), square(real[0], n), square(real[1], n)
        load_scaled_weights(scores[b], n, top, w)
        scale = load_vectors(vectors[b], n, w, 0.0, 1.0, v)
        divide_by_sums(w, n)
        for j in range(n + 1):
            for i in range(n + 1):
                charts[WEIGHTS, j, i] = w[j, i]
        for j in range(1, n + 1):
            for i in range(n + 1):
                charts[WEIGHTS, j, i] += 1j * (STEP * v[j, i] * w[j, i])
        in_logs[b] = not inside(charts, n, single_root, lines).real > SAFE
        if not in_logs[b]:
            _outside(charts, n, single_root, lines)
            _store(charts.imag, n, 1.0 / STEP, product[b])
            for j in range(size):
                for i in range(size):
                    product[b, j, i] *= scale


@exact_kernel
def new_charts(buffer, n):
    """Return charts whose strides depend on n alone, so an item has the same bits in a batch and alone."""
    return buffer[: CHARTS * (n + 1) * (n + 1)].reshape(CHARTS, n + 1, n + 1)


@exact_kernel
def load_scaled_weights(scores, n, top, w):
    """Fill ``w[dependent, head]`` with weights whose columns have maximum 1; node 0 has no head."""
    load_log_weights(scores, n, top, w, w)
    w[0] = -np.inf
    exponentiate(w.reshape((n + 1) * (n + 1)))


@kernel
def divide_by_sums(w, n):
    """Divide every word's weights by their sum; returns the log of the product of the sums."""
    divided, product = 0.0, 1.0
    for j in range(1, n + 1):
        total = range_sum(w[j], 0, n + 1)
        product *= total
        if product > LARGE:
            divided += np.log(product)
            product = 1.0
        for i in range(n + 1):
            w[j, i] /= total
    return divided + np.log(product)


@kernel
def inside(charts, n, single_root, lines):
    """Fill the charts of spans; returns Z."""
    w, right, left = charts[WEIGHTS], charts[RIGHT], charts[LEFT]
    right_arc, left_arc = charts[RIGHT_ARC], charts[LEFT_ARC]
    between, rights, lefts = lines[0], lines[1], lines[2]  # row j, as far as it is summed
    right[0, 0] = left[0, 0] = 1.0
    for j in range(1, n + 1):
        for i in range(j):
            between[i] = right[j - 1, i]
            rights[i] = lefts[i] = 0.0
        for i in range(j - 1, -1, -1):
            right_arc[j, i], left_arc[j, i] = w[j, i] * between[i], w[i, j] * between[i]
            right[j, i], left[j, i] = rights[i] + right_arc[j, i], lefts[i] + left_arc[j, i]
            row, factor = right[i - 1], left[j, i]
            for t in range(i):
                between[t] += row[t] * factor
            row, factor = right_arc[i], right[j, i]
            for t in range(i):
                rights[t] += row[t] * factor
            row, factor = left[i], left_arc[j, i]
            for t in range(i):
                lefts[t] += row[t] * factor
        right[j, j] = left[j, j] = 1.0
        if single_root and j < n:
            right[j, 0] = 0.0
    return right[n, 0]


@kernel
def _outside(charts, n, single_root, lines):
    """Fill the charts of derivatives, and turn the arcs' spans into their marginals: ``inside`` in reverse."""
    w, right, left = charts[WEIGHTS], charts[RIGHT], charts[LEFT]
    right_arc, left_arc = charts[RIGHT_ARC], charts[LEFT_ARC]
    outer_right, outer_left, outer_right_arc = charts[OUTER_RIGHT], charts[OUTER_LEFT], charts[OUTER_RIGHT_ARC]
    outer_between = lines[0]
    charts[OUTER_RIGHT:] = 0.0
    outer_right[n, 0] = 1.0 / right[n, 0]
    for j in range(n, 0, -1):
        outer_rights, outer_lefts = outer_right[j], outer_left[j]
        if single_root and j < n:
            outer_rights[0] = 0.0
        for i in range(j):
            row, factor, outer_row, total = right_arc[i], right[j, i], outer_right_arc[i], outer_rights[i]
            for t in range(i):
                total += outer_rights[t] * row[t]
                outer_row[t] += outer_rights[t] * factor
            outer_rights[i] = total
            row, factor, outer_row, total = right[i - 1], left[j, i], outer_right[i - 1], outer_lefts[i]
            for t in range(i):
                total += outer_between[t] * row[t]
                outer_row[t] += outer_between[t] * factor
            outer_lefts[i] = total
            row, factor, outer_row = left[i], left_arc[j, i], outer_left[i]
            for t in range(i):
                total += outer_lefts[t] * row[t]
                outer_row[t] += outer_lefts[t] * factor
            outer_right_arc[j, i] += outer_rights[i]
            outer_between[i] = w[j, i] * outer_right_arc[j, i] + w[i, j] * total
            right_arc[j, i] *= outer_right_arc[j, i]
            left_arc[j, i] *= total
        for i in range(j):
            outer_right[j - 1, i] += outer_between[i]


@exact_kernel
def _store(charts, n, factor, result):
    """Store what the charts of arc spans hold, times a factor."""
    for j in range(1, n + 1):
        for i in range(j):
            result[i, j] = charts[RIGHT_ARC, j, i] * factor
        for i in range(1, j):
            result[j, i] = charts[LEFT_ARC, j, i] * factor
