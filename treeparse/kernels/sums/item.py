"""Elimination of one sentence's words, one after the other, and its reverse; see ``elimination``.

In logs, for items that under- or overflow; and with plain weights in square matrices, for draws, where elimination is
little of the work. Sums with plain weights are in ``panels``.
"""

import numpy as np

from treeparse.kernels.compile import lent_jit, vector_jit
from treeparse.kernels.logspace import log_add, log_add_number, log_sum
from treeparse.kernels.weights import load_log_weights, load_weights, range_sum

LINEAR_LIMIT = -600.0  # of log Z' - sum of log column sums: below, underflow may have lost trees


@lent_jit
def linear_item(scores, n, single_root, with_adjoint, matrices, vectors):
    """Eliminate one item with plain weights; return log Z' (of columns with maximum 1; NaN if unsafe), the root word.

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


@lent_jit
def log_item(scores, n, single_root, with_adjoint, matrices, vectors):
    """Do ``linear_item`` in logs, slower and safe for any finite scores; log Z' is -inf if there is no tree."""
    w, original, adjoint = matrices
    top, pivots, gradient = vectors
    load_log_weights(scores, n, top, w, original)
    weight, root_word = _eliminate_log(w, n, single_root, pivots)
    if with_adjoint and weight != -np.inf:
        _differentiate_log(w, n, root_word, pivots, gradient, adjoint)
    return weight, root_word


@lent_jit
def first_head(k, root_word):
    """Return the first head in the pivot of word ``k``: node 0 counts from the root word on."""
    return 0 if k <= root_word else 1


@lent_jit
def fill_root(matrix, k, value):
    """Set the entries of the root's arcs to the words before ``k``."""
    for j in range(1, k):
        matrix[j, 0] = value


@lent_jit
def clamp(x, limit):
    """Return ``x`` if it is NaN or within the limit, otherwise the limit with its sign."""
    if x > limit:
        return limit
    return -limit if x < -limit else x


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
            remainder = 1.0 - dependents if i >= first else 0.0
            value = (gradient[i] + remainder) / pivots[k]
            adjoint[k, i] = 0.0 if value < 0.0 else value  # NaN stays, for all_finite
        adjoint[k, k] = 0.0
        if k == root_word:
            fill_root(adjoint, k, 0.0)


@lent_jit
def _eliminate_log(w, n, single_root, pivots):
    """Do ``_eliminate`` on log weights."""
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


@lent_jit
def _differentiate_log(w, n, root_word, pivots, gradient, adjoint):
    """Do ``_differentiate`` on log weights; ``adjoint`` holds logs of derivatives, none of which is negative."""
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
            remainder = 1.0 - dependents if i >= first else 0.0
            adjoint[k, i] = log_add_number(gradient[i], remainder) - pivots[k]
        adjoint[k, k] = -np.inf
        if k == root_word:
            fill_root(adjoint, k, -np.inf)
