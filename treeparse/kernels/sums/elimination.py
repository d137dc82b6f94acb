"""Sums over non-projective trees by elimination without subtraction ([GTH]).

Words are eliminated one after the other: the weight of a path ``i -> k -> j`` through the eliminated word ``k`` moves
to the arc ``i -> j``. Nothing is subtracted, so nothing cancels however sure of itself the model is, where the
determinant of the Laplacian loses every digit. Marginals are the derivative of the log partition, by reverse mode
through the same loop; its one subtraction has an absolute error of about 1e-16 n.

With a single root, node 0 counts as a head of the last word only. Where no other word is left that reaches word ``k``,
the root's arcs to the words before ``k`` go: ``k`` is the *root word*, and elimination goes on as for many roots.

Matrices are dependent-major here: ``w[j, i]`` is the weight of the arc ``i -> j`` and node 0 the root, so that every
inner loop runs over contiguous heads. Entries ``w[j, j]`` collect what is never read.
"""

import numpy as np

from treeparse.kernels.arrays import FloatArray, IntArray
from treeparse.kernels.compile import jit, vector_jit
from treeparse.kernels.logspace import log_add, log_add_number, log_sum
from treeparse.kernels.threads import run_batch
from treeparse.kernels.weights import column_maxima, load_log_weights, load_weights, range_sum, square

LINEAR_LIMIT = -600.0  # of log Z' - sum of log column sums: below, underflow may have lost trees


def log_partition(scores: FloatArray, lengths: IntArray, *, single_root: bool, threads: int = 1) -> FloatArray:
    """Log of the summed weight of all trees, ``(B, n+1, n+1) -> (B,)``; -inf where there is none."""
    log_z = np.empty(len(lengths))
    unwanted = np.empty((1, 0, 0))
    run_batch(_sum_trees, lambda n: n**3 / 3, lengths, scores, single_root, False, log_z, unwanted, threads=threads)
    return log_z


def log_partition_and_marginals(
    scores: FloatArray, lengths: IntArray, *, single_root: bool, threads: int = 1
) -> tuple[FloatArray, FloatArray]:
    """The log partition ``(B,)`` and the probability of every arc ``(B, n+1, n+1)``; all 0 where there is no tree."""
    log_z = np.empty(len(lengths))
    marginals = np.zeros_like(scores)
    run_batch(_sum_trees, lambda n: n**3, lengths, scores, single_root, True, log_z, marginals, threads=threads)
    return log_z, marginals


@jit
def _sum_trees(start, stop, lengths, scores, single_root, with_marginals, log_z, marginals):
    size = scores.shape[1]
    buffers, vectors = np.empty((3, size * size)), (np.empty(size), np.empty(size), np.empty(size))
    for b in range(start, stop):
        n = lengths[b]
        matrices = square(buffers[0], n), square(buffers[1], n), square(buffers[2], n)
        shift = column_maxima(scores[b], n, vectors[0])
        weight = -np.inf
        if shift > -np.inf:
            weight, _ = linear_item(scores[b], n, single_root, with_marginals, matrices, vectors)
            linear = not np.isnan(weight)
            if not linear:
                weight, _ = log_item(scores[b], n, single_root, with_marginals, matrices, vectors)
            if with_marginals and linear:
                _store_marginals(n, matrices, marginals[b])
            elif with_marginals and weight != -np.inf:
                _store_log_marginals(n, matrices, marginals[b])
        log_z[b] = shift + weight


@jit
def linear_item(scores, n, single_root, with_adjoint, matrices, vectors):
    """One item with plain weights; returns log Z' (columns scaled to maximum 1), NaN if unsafe, and the root word.

    ``matrices`` take the eliminated weights, the original weights and the adjoint; ``vectors`` hold the column maxima
    and take the pivots.
    """
    w, original, adjoint = matrices
    top, pivots, gradient = vectors
    bound = load_weights(scores, n, top, w, original)
    weight, root_word = _eliminate(w, n, single_root, pivots)
    safe = weight - bound >= LINEAR_LIMIT and weight < np.inf
    if safe and with_adjoint:
        _differentiate(w, n, root_word, pivots, gradient, adjoint)
        safe = all_finite(adjoint, n)
    return weight if safe else np.nan, root_word


@jit
def log_item(scores, n, single_root, with_adjoint, matrices, vectors):
    """``linear_item`` in logs, slower and safe for any finite scores; log Z' is -inf if there is no tree."""
    w, original, adjoint = matrices
    top, pivots, gradient = vectors
    load_log_weights(scores, n, top, w, original)
    weight, root_word = _eliminate_log(w, n, single_root, pivots)
    if with_adjoint and weight != -np.inf:
        _differentiate_log(w, n, root_word, pivots, gradient, adjoint)
    return weight, root_word


@jit
def first_head(k, root_word):
    """The first head in the pivot of word ``k``: node 0 counts from the root word on."""
    return 0 if k <= root_word else 1


@jit
def fill_root(matrix, k, value):
    """Set the entries of the root's arcs to the words before ``k``."""
    for j in range(1, k):
        matrix[j, 0] = value


@vector_jit
def all_finite(matrix, n):
    """Whether the rows of all words are finite."""
    total = 0.0
    for j in range(1, n + 1):
        for i in range(n + 1):
            total += 0.0 * matrix[j, i]
    return total == 0.0


@vector_jit
def _eliminate(w, n, single_root, pivots):
    """Eliminate in place; returns log Z', or -inf, and the root word (past the end with many roots).

    Of every word ``k``, ``w[k, :k]`` is left divided by the pivot and ``w[:k, k]`` as it was when ``k`` went.
    """
    root_word = 1 if single_root else n + 1
    log_z = 0.0
    for k in range(n, 0, -1):
        pivot = range_sum(w[k], first_head(k, root_word), k)
        if pivot == 0.0 and root_word == 1:
            root_word = k
            pivot = w[k, 0]
            fill_root(w, k, 0.0)
        if pivot == 0.0:
            return -np.inf, root_word
        pivots[k] = pivot
        log_z += np.log(pivot)
        for i in range(k):
            w[k, i] /= pivot
        for j in range(1, k):
            through = w[j, k]
            for i in range(k):
                w[j, i] += through * w[k, i]
    return log_z, root_word


@vector_jit
def _differentiate(w, n, root_word, pivots, gradient, adjoint):
    """Fill ``adjoint`` with the derivative of log Z' in every weight: the reverse of ``_eliminate``."""
    for k in range(1, n + 1):
        row = w[k]
        for i in range(k):
            gradient[i] = 0.0
        dependents = 0.0
        for j in range(1, k):
            through = w[j, k]
            total = 0.0
            for i in range(k):
                total += adjoint[j, i] * row[i]
                gradient[i] += adjoint[j, i] * through
            adjoint[j, k] = total
            dependents += total * through
        first = first_head(k, root_word)
        for i in range(k):
            rest = 1.0 - dependents if i >= first else 0.0
            value = (gradient[i] + rest) / pivots[k]
            adjoint[k, i] = 0.0 if value < 0.0 else value  # NaN stays, to be found
        adjoint[k, k] = 0.0
        if k == root_word:
            fill_root(adjoint, k, 0.0)


@vector_jit
def _store_marginals(n, matrices, marginals):
    """Marginal = derivative times weight, back in head-major order."""
    _, original, adjoint = matrices
    for i in range(n + 1):
        for j in range(1, n + 1):
            marginals[i, j] = adjoint[j, i] * original[j, i]


@jit
def _eliminate_log(w, n, single_root, pivots):
    """``_eliminate`` on log weights."""
    root_word = 1 if single_root else n + 1
    log_z = 0.0
    for k in range(n, 0, -1):
        pivot = log_sum(w[k], first_head(k, root_word), k)
        if pivot == -np.inf and root_word == 1:
            root_word = k
            pivot = w[k, 0]
            fill_root(w, k, -np.inf)
        if pivot == -np.inf:
            return -np.inf, root_word
        pivots[k] = pivot
        log_z += pivot
        for i in range(k):
            w[k, i] -= pivot
        for j in range(1, k):
            through = w[j, k]
            if through > -np.inf:
                for i in range(k):
                    w[j, i] = log_add(w[j, i], through + w[k, i])
    return log_z, root_word


@jit
def _differentiate_log(w, n, root_word, pivots, gradient, adjoint):
    """``_differentiate`` on log weights; ``adjoint`` holds logs of derivatives, none of which is negative."""
    for k in range(1, n + 1):
        row = w[k]
        for i in range(k):
            gradient[i] = -np.inf
        dependents = 0.0
        for j in range(1, k):
            through = w[j, k]
            total = -np.inf
            for i in range(k):
                total = log_add(total, adjoint[j, i] + row[i])
                gradient[i] = log_add(gradient[i], adjoint[j, i] + through)
            adjoint[j, k] = total
            dependents += np.exp(total + through)
        first = first_head(k, root_word)
        for i in range(k):
            rest = 1.0 - dependents if i >= first else 0.0
            adjoint[k, i] = log_add_number(gradient[i], rest) - pivots[k]
        adjoint[k, k] = -np.inf
        if k == root_word:
            fill_root(adjoint, k, -np.inf)


@jit
def _store_log_marginals(n, matrices, marginals):
    """``_store_marginals`` from logs; columns are normalised, which takes the common part of the rounding out."""
    _, original, adjoint = matrices
    for j in range(1, n + 1):
        total = 0.0
        for i in range(n + 1):
            marginals[i, j] = np.exp(adjoint[j, i] + original[j, i])
            total += marginals[i, j]
        for i in range(n + 1):
            marginals[i, j] /= total
