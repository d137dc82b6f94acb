"""Sums over non-projective trees by elimination without subtraction ([GTH]).

Words are eliminated one after the other, the last one first: the weight of a path ``i -> k -> j`` through the
eliminated word ``k`` moves to the arc ``i -> j``. Nothing is subtracted, so nothing cancels however confident the model
is; the determinant of the Laplacian loses every digit there. Marginals are the derivative of the log partition, by
reverse mode through the same loop; its one subtraction has an absolute error of about 1e-16 n.

With a single root, node 0 counts as a head of word 1 alone. Where no word that is left reaches word ``k``, every tree
has ``k`` above those words: ``k`` and word 1 are exchanged, and the item is computed again.

Matrices are ``w[dependent, head]`` with node 0 the root; row 0 is 0. Four words are eliminated together, because a loop
that adds multiples of four rows to another one loads five numbers and stores one for four products; by single rows it
is two and one for one product. Each row pulls from all later words and is final then, so every loop is over contiguous
heads. Afterwards ``w[k, :k]`` are the shares of the heads of ``k``, and ``w[j, k]`` for ``j < k`` is the weight of
``k -> j`` when ``k`` was eliminated.

Items whose plain weights under- or overflow are computed by ``elimination_in_logs``.
"""

import numpy as np

from treeparse.kernels import FloatArray, IntArray
from treeparse.kernels.compile import kernel
from treeparse.kernels.sums.elimination_in_logs import sum_in_logs
from treeparse.kernels.threads import run_batch
from treeparse.kernels.tree_weights import LANES, aligned, column_maxima, copy, exchange, load_weights, matrices, padded

PANEL = 4  # words that are eliminated together; eight are no faster
LINEAR_LIMIT = -600.0  # of log Z' - sum of log column sums: below, underflow may have lost trees
ORIGINAL, WEIGHTS, ADJOINTS = range(3)  # matrices of an item: weights, eliminated weights, and derivatives
PIVOTS, TOP = range(2)  # vectors of an item
NO_MARGINALS = np.empty((0, 0, 0))


def log_partition(scores: FloatArray, lengths: IntArray, *, single_root: bool, threads: int = 1) -> FloatArray:
    """Return the log of the summed weight of all trees, ``(B, n+1, n+1) -> (B,)``; -inf where there is none."""
    return _fill(scores, lengths, NO_MARGINALS, single_root, threads)


def log_partition_and_marginals(
    scores: FloatArray, lengths: IntArray, *, single_root: bool, threads: int = 1
) -> tuple[FloatArray, FloatArray]:
    """Return the log partition ``(B,)`` and the probability of every arc ``(B, n+1, n+1)``, 0 without a tree."""
    marginals = np.empty_like(scores)
    return _fill(scores, lengths, marginals, single_root, threads), marginals


def _fill(scores: FloatArray, lengths: IntArray, marginals: FloatArray, single_root: bool, threads: int) -> FloatArray:
    """Store marginals, unless they are ``NO_MARGINALS``; return log partitions."""
    log_z = np.empty(len(lengths))
    arguments = lengths, scores, single_root, log_z, marginals
    run_batch(_sum_trees, lambda n: n**3 if len(marginals) else n**3 / 3, *arguments, threads=threads)
    items = np.isnan(log_z).nonzero()[0]
    if len(items):
        log_z[items], in_logs = sum_in_logs(scores[items], lengths[items], single_root=single_root, threads=threads)
        if len(marginals):
            marginals[items] = in_logs
    return log_z


@kernel
def _sum_trees(start, stop, lengths, scores, single_root, log_z, marginals):
    memory, vectors = aligned(3 * padded(scores.shape[1] - 1) ** 2), np.empty((2, scores.shape[1]))
    for b in range(start, stop):
        n = lengths[b]
        cut = matrices(memory, 3, n)
        log_z[b], root_word = eliminate_item(scores[b], n, single_root, vectors, cut)
        if len(marginals) == 0:
            continue
        if n + 1 < scores.shape[1] or not log_z[b] > -np.inf:
            marginals[b] = 0.0
        if log_z[b] > -np.inf:
            differentiate(cut[WEIGHTS], n, single_root, vectors[PIVOTS], cut[ADJOINTS])
            log_z[b] += _store(cut[ADJOINTS], cut[ORIGINAL], n, marginals[b])
            if root_word > 1:
                exchange(marginals[b], root_word)


@kernel
def eliminate_item(scores, n, single_root, vectors, cut):
    """Eliminate one item; return log Z, NaN if plain weights are not safe, and the word exchanged with word 1."""
    shift = column_maxima(scores, n, vectors[TOP])
    if shift == -np.inf:
        return shift, 1
    original, w, pivots = cut[ORIGINAL], cut[WEIGHTS], vectors[PIVOTS]
    bound, log_z, root_word = load_weights(scores, n, vectors[TOP], original), -np.inf, 1
    for _ in range(2):
        copy(original, w)
        log_z, k = eliminate(w, n, single_root, pivots)
        if k < 2 or not single_root or root_word > 1:
            break
        exchange(original, k)
        root_word = k
    safe = log_z - bound >= LINEAR_LIMIT and log_z < np.inf
    return shift + log_z if safe else np.nan, root_word


@kernel
def eliminate(w, n, single_root, pivots):
    """Eliminate all words; return log Z' and 0, or -inf and the first word that is left without a head."""
    log_z, last = 0.0, n // PANEL * PANEL
    for first in range(last, -1, -PANEL):
        for k in range(last, first, -PANEL):
            count = (k + LANES - 1) // LANES * LANES  # whole vectors: columns from k on are written again below
            for j in range(first, first + PANEL):
                c3 = w[j, k + 3]
                c2 = w[j, k + 2] + c3 * w[k + 3, k + 2]
                c1 = w[j, k + 1] + c3 * w[k + 3, k + 1] + c2 * w[k + 2, k + 1]
                c0 = w[j, k] + c3 * w[k + 3, k] + c2 * w[k + 2, k] + c1 * w[k + 1, k]
                for i in range(count):
                    w[j, i] += c0 * w[k, i] + c1 * w[k + 1, i] + c2 * w[k + 2, i] + c3 * w[k + 3, i]
                w[j, k], w[j, k + 1], w[j, k + 2], w[j, k + 3] = c0, c1, c2, c3
        for k in range(min(first + PANEL - 1, n), max(first, 1) - 1, -1):
            pivot = 0.0
            for i in range(1 if single_root and k > 1 else 0, k):
                pivot += w[k, i]
            if pivot == 0.0:
                return -np.inf, k
            pivots[k] = pivot
            log_z += np.log(pivot)
            for i in range(k):
                w[k, i] /= pivot
            for j in range(first, k):
                through = w[j, k]
                for i in range(k):
                    w[j, i] += through * w[k, i]
    return log_z, 0


@kernel
def differentiate(w, n, single_root, pivots, a):
    """Fill ``a`` with the derivatives of log Z' in all weights: ``eliminate`` in reverse."""
    last = n // PANEL * PANEL
    for first in range(0, last + 1, PANEL):
        stop = first + PANEL
        width = (stop + LANES - 1) // LANES * LANES
        for k in range(first, stop):
            for i in range(width):
                a[k, i] = 0.0
        for j in range(0, first, PANEL):
            for k in range(first, stop):
                c0, c1, c2, c3 = w[j, k], w[j + 1, k], w[j + 2, k], w[j + 3, k]
                for i in range(width):
                    a[k, i] += c0 * a[j, i] + c1 * a[j + 1, i] + c2 * a[j + 2, i] + c3 * a[j + 3, i]
        for k in range(max(first, 1), min(stop, n + 1)):
            for j in range(first, k):
                through, total = w[j, k], 0.0
                for i in range(k):
                    total += a[j, i] * w[k, i]
                    a[k, i] += through * a[j, i]
                a[j, k] = total
            rest = 1.0  # less the expected number of dependents
            for i in range(k):
                rest -= a[k, i] * w[k, i]
            root = a[k, 0]
            for i in range(k):
                derivative = (a[k, i] + rest) / pivots[k]
                a[k, i] = 0.0 if derivative < 0.0 else derivative
            if single_root and k > 1:
                a[k, 0] = root / pivots[k]
            for i in range(k, width):
                a[k, i] = 0.0
        for k in range(stop, last + 1, PANEL):
            for j in range(first, stop):
                s0 = s1 = s2 = s3 = 0.0
                for i in range(k):
                    s0 += a[j, i] * w[k, i]
                    s1 += a[j, i] * w[k + 1, i]
                    s2 += a[j, i] * w[k + 2, i]
                    s3 += a[j, i] * w[k + 3, i]
                s1 += s0 * w[k + 1, k]
                s2 += s0 * w[k + 2, k] + s1 * w[k + 2, k + 1]
                s3 += s0 * w[k + 3, k] + s1 * w[k + 3, k + 1] + s2 * w[k + 3, k + 2]
                a[j, k], a[j, k + 1], a[j, k + 2], a[j, k + 3] = s0, s1, s2, s3


@kernel
def _store(a, original, n, marginals):
    """Store derivatives times weights in ``[head, dependent]``; return 0, or NaN if some are not finite.

    To multiply while storing takes twice as long, because it is not vectorised.
    """
    total = 0.0
    for j in range(1, n + 1):
        for i in range(n + 1):
            total += 0.0 * a[j, i]
            a[j, i] *= original[j, i]
    for i in range(n + 1):
        marginals[i, 0] = 0.0
        for j in range(1, n + 1):
            marginals[i, j] = a[j, i]
    return total
