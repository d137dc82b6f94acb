"""Products of vectors with the Hessian of the log partition: the covariance of arc indicators, never formed.

``H v`` is how the marginals change when the scores move along ``v``. The two loops of ``elimination`` run first; then
tangents, which are the derivatives along ``v``, go through the same two loops. Names that end in ``_t`` are tangents. A
product of two numbers has a tangent of two products, so each function is its model in ``elimination`` with twice the
terms. Items whose plain weights are not safe, because they or the tangents under- or overflow, are computed by
``elimination_in_logs``.
"""

import numpy as np

from treeparse.kernels import FloatArray, IntArray
from treeparse.kernels.compile import kernel
from treeparse.kernels.sums.elimination import PANEL, PIVOTS, differentiate, eliminate_item
from treeparse.kernels.sums.elimination_in_logs import sum_in_logs
from treeparse.kernels.threads import run_batch
from treeparse.kernels.tree_weights import LANES, aligned, exchange, load_vector, matrices, padded

MATRICES = 6  # of an item: the three of ``elimination``, the vector, and tangents of weights and of derivatives
PIVOTS_T, LINES = 2, 3  # after the two vectors of ``elimination``


def hessian_vector_product(
    scores: FloatArray, lengths: IntArray, vectors: FloatArray, *, single_root: bool, threads: int = 1
) -> FloatArray:
    """Return the Hessian of the log partition in the scores times ``vectors``, all ``(B, n+1, n+1)``.

    Ignored entries, forbidden arcs and items without a tree have 0, whatever ``vectors`` hold there.
    """
    products, unsafe = np.empty_like(scores), np.zeros(len(lengths), np.bool_)
    arguments = lengths, scores, vectors, single_root, products, unsafe
    run_batch(_multiply_items, lambda n: 3 * n**3, *arguments, threads=threads)
    items = unsafe.nonzero()[0]
    if len(items):
        batch = scores[items], lengths[items], vectors[items]
        _, products[items] = sum_in_logs(*batch, single_root=single_root, threads=threads)
    return products


@kernel
def _multiply_items(start, stop, lengths, scores, vectors, single_root, products, unsafe):
    memory, lines = aligned(MATRICES * padded(scores.shape[1] - 1) ** 2), np.empty((LINES, scores.shape[1]))
    for b in range(start, stop):
        n = lengths[b]
        cut = matrices(memory, MATRICES, n)
        log_z, root_word = eliminate_item(scores[b], n, single_root, lines, cut)
        unsafe[b] = np.isnan(log_z)
        if n + 1 < scores.shape[1] or not log_z > -np.inf:
            products[b] = 0.0
        if not log_z > -np.inf:
            continue
        original, w, a, v, w_t, a_t = cut[0], cut[1], cut[2], cut[3], cut[4], cut[5]
        pivots, pivots_t = lines[PIVOTS], lines[PIVOTS_T]
        differentiate(w, n, single_root, pivots, a)
        largest = load_vector(vectors[b], n, root_word, original, 0.0, 1.0, v)
        for j in range(len(w)):
            for i in range(len(w)):
                w_t[j, i] = original[j, i] * v[j, i]
        _eliminate_tangents(w, w_t, n, single_root, pivots, pivots_t)
        limit = 4.0 * n * largest  # no log of a derivative changes faster, but for rounding
        _differentiate_tangents(w, w_t, n, single_root, pivots, pivots_t, a, a_t, limit)
        unsafe[b] = not _store(original, v, a, a_t, n, products[b])
        if root_word > 1:
            exchange(products[b], root_word)


@kernel
def _eliminate_tangents(w, w_t, n, single_root, pivots, pivots_t):
    """Turn tangents of weights into those of the eliminated weights ``w``."""
    last = n // PANEL * PANEL
    for first in range(last, -1, -PANEL):
        for k in range(last, first, -PANEL):
            _pull(w, w_t, first, first + PANEL, k)
        for k in range(min(first + PANEL - 1, n), max(first, 1) - 1, -1):
            pivot_t = 0.0
            for i in range(1 if single_root and k > 1 else 0, k):
                pivot_t += w_t[k, i]
            pivots_t[k] = pivot_t
            for i in range(k):
                w_t[k, i] = (w_t[k, i] - pivot_t * w[k, i]) / pivots[k]
            for j in range(first, k):
                through, through_t = w[j, k], w_t[j, k]
                for i in range(k):
                    w_t[j, i] += through_t * w[k, i] + through * w_t[k, i]


@kernel
def _pull(w, w_t, first, stop, k):
    count = (k + LANES - 1) // LANES * LANES
    for j in range(first, stop):
        c0, c1, c2, c3 = w[j, k], w[j, k + 1], w[j, k + 2], w[j, k + 3]
        t3 = w_t[j, k + 3]
        t2 = w_t[j, k + 2] + t3 * w[k + 3, k + 2] + c3 * w_t[k + 3, k + 2]
        t1 = w_t[j, k + 1] + t3 * w[k + 3, k + 1] + c3 * w_t[k + 3, k + 1]
        t1 += t2 * w[k + 2, k + 1] + c2 * w_t[k + 2, k + 1]
        t0 = w_t[j, k] + t3 * w[k + 3, k] + c3 * w_t[k + 3, k] + t2 * w[k + 2, k] + c2 * w_t[k + 2, k]
        t0 += t1 * w[k + 1, k] + c1 * w_t[k + 1, k]
        for i in range(count):
            w_t[j, i] += t0 * w[k, i] + t1 * w[k + 1, i] + t2 * w[k + 2, i] + t3 * w[k + 3, i]
        for i in range(count):
            w_t[j, i] += c0 * w_t[k, i] + c1 * w_t[k + 1, i] + c2 * w_t[k + 2, i] + c3 * w_t[k + 3, i]
        w_t[j, k], w_t[j, k + 1], w_t[j, k + 2], w_t[j, k + 3] = t0, t1, t2, t3


@kernel
def _differentiate_tangents(w, w_t, n, single_root, pivots, pivots_t, a, a_t, limit):
    """Fill the tangents of the derivatives ``a``; each is limited to ``limit`` times its derivative."""
    last = n // PANEL * PANEL
    for first in range(0, last + 1, PANEL):
        stop = first + PANEL
        width = (stop + LANES - 1) // LANES * LANES
        for k in range(first, stop):
            for i in range(width):
                a_t[k, i] = 0.0
        for j in range(0, first, PANEL):
            _gather(a, a_t, w, w_t, first, stop, j, width)
        for k in range(max(first, 1), min(stop, n + 1)):
            for j in range(first, k):
                through, through_t, total = w[j, k], w_t[j, k], 0.0
                for i in range(k):
                    total += a_t[j, i] * w[k, i] + a[j, i] * w_t[k, i]
                    a_t[k, i] += through * a_t[j, i] + through_t * a[j, i]
                a_t[j, k] = total
            rest_t = 0.0  # shares sum to 1, so their tangents to 0: what is subtracted in ``rest`` has none
            for i in range(k):
                rest_t -= a_t[k, i] * w[k, i] + pivots[k] * a[k, i] * w_t[k, i]
            root_t = (a_t[k, 0] - a[k, 0] * pivots_t[k]) / pivots[k]
            for i in range(k):
                tangent = (a_t[k, i] + rest_t - a[k, i] * pivots_t[k]) / pivots[k]
                bound = limit * a[k, i]
                tangent = bound if tangent > bound else tangent
                a_t[k, i] = -bound if tangent < -bound else tangent
            if single_root and k > 1:
                a_t[k, 0] = root_t
            for i in range(k, width):
                a_t[k, i] = 0.0
        for k in range(stop, last + 1, PANEL):
            _spread(a, a_t, w, w_t, first, stop, k)


@kernel
def _gather(a, a_t, w, w_t, first, stop, j, width):
    for k in range(first, stop):
        c0, c1, c2, c3 = w[j, k], w[j + 1, k], w[j + 2, k], w[j + 3, k]
        t0, t1, t2, t3 = w_t[j, k], w_t[j + 1, k], w_t[j + 2, k], w_t[j + 3, k]
        for i in range(width):
            a_t[k, i] += c0 * a_t[j, i] + c1 * a_t[j + 1, i] + c2 * a_t[j + 2, i] + c3 * a_t[j + 3, i]
        for i in range(width):
            a_t[k, i] += t0 * a[j, i] + t1 * a[j + 1, i] + t2 * a[j + 2, i] + t3 * a[j + 3, i]


@kernel
def _spread(a, a_t, w, w_t, first, stop, k):
    for j in range(first, stop):
        s0 = s1 = s2 = s3 = 0.0
        for i in range(k):
            s0 += a_t[j, i] * w[k, i] + a[j, i] * w_t[k, i]
            s1 += a_t[j, i] * w[k + 1, i] + a[j, i] * w_t[k + 1, i]
            s2 += a_t[j, i] * w[k + 2, i] + a[j, i] * w_t[k + 2, i]
            s3 += a_t[j, i] * w[k + 3, i] + a[j, i] * w_t[k + 3, i]
        a0, a1, a2 = a[j, k], a[j, k + 1], a[j, k + 2]
        s1 += s0 * w[k + 1, k] + a0 * w_t[k + 1, k]
        s2 += s0 * w[k + 2, k] + a0 * w_t[k + 2, k] + s1 * w[k + 2, k + 1] + a1 * w_t[k + 2, k + 1]
        s3 += s0 * w[k + 3, k] + a0 * w_t[k + 3, k] + s1 * w[k + 3, k + 1] + a1 * w_t[k + 3, k + 1]
        s3 += s2 * w[k + 3, k + 2] + a2 * w_t[k + 3, k + 2]
        a_t[j, k], a_t[j, k + 1], a_t[j, k + 2], a_t[j, k + 3] = s0, s1, s2, s3


@kernel
def _store(original, v, a, a_t, n, product):
    """Store products in ``[head, dependent]``; return whether all is finite."""
    total = 0.0
    for i in range(n + 1):
        product[i, 0] = 0.0
    for j in range(1, n + 1):
        for i in range(n + 1):
            product[i, j] = original[j, i] * (a_t[j, i] + a[j, i] * v[j, i])
            total += 0.0 * a_t[j, i] + 0.0 * a[j, i]
    return total == 0.0
