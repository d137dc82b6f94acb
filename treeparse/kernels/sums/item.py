"""Elimination of a sentence's words, one after the other, in square matrices; see ``elimination``.

For draws and ``conditionals``; in logs for items that under- or overflow. Sums are in ``panels`` and
``in_logs.elimination``.
"""

import math

import numpy as np

from treeparse.kernels.compile import exact_kernel, kernel
from treeparse.kernels.logspace import log_add, log_sum
from treeparse.kernels.weights import load_log_weights, load_weights, range_sum

NO_TREE = -1  # as a root word
LINEAR_LIMIT = -600.0  # of log Z' - sum of log column sums: below, underflow may have lost trees


@exact_kernel
def linear_item(scores, n, single_root, matrices, vectors):
    """Eliminate one item with plain weights; return log Z' (of columns with maximum 1; NaN if unsafe), the root word.

    ``matrices`` take the eliminated and the original weights; ``vectors`` hold the column maxima and take the pivots.
    """
    w, original, _ = matrices
    top, pivots, row = vectors
    bound = load_weights(scores, n, top, w, original)
    root_word = eliminate(w, n, 0, 1 if single_root else n + 1, pivots, row)
    product, power = 1.0, 0  # one log of the product of all pivots is quicker than the log of each
    for k in range(1, n + 1):
        product, exponent = math.frexp(product * pivots[k])
        power += exponent
    weight = np.log(product) + power * math.log(2)
    safe = root_word != NO_TREE and weight - bound >= LINEAR_LIMIT and weight < np.inf
    return weight if safe else np.nan, root_word


@exact_kernel
def log_item(scores, n, single_root, matrices, vectors):
    """Do ``linear_item`` in logs, slower and safe for any finite scores; log Z' is -inf if there is no tree."""
    w, original, _ = matrices
    top, pivots, row = vectors
    load_log_weights(scores, n, top, w, original)
    root_word = eliminate_log(w, n, 0, 1 if single_root else n + 1, pivots, row)
    if root_word == NO_TREE:
        return -np.inf, root_word
    weight = 0.0
    for k in range(n, 0, -1):
        weight += pivots[k]
    return weight, root_word


@exact_kernel
def first_head(k, root_word):
    """Return the first head in the pivot of word ``k``: node 0 counts from the root word on."""
    return 0 if k <= root_word else 1


@exact_kernel
def fill_root(matrix, k, value):
    """Set the entries of the root's arcs to the words before ``k``."""
    for j in range(1, k):
        matrix[j, 0] = value


@kernel
def all_finite(matrix, n):
    """Whether the rows of all words are finite."""
    total = 0.0
    for j in range(1, n + 1):
        for i in range(n + 1):
            total += 0.0 * matrix[j, i]
    return total == 0.0


@kernel
def eliminate(w, n, remaining, root_word, pivots, row):
    """Eliminate the words after the first ``remaining`` in place; return the root word, or ``NO_TREE``.

    The root word is 1 before it is met, and after the last word with any number of roots. Of every eliminated word
    ``k``, ``w[k, :k]`` is left divided by the pivot and ``w[:k, k]`` as it was when ``k`` went; ``w[k, k]`` is 1, or 0
    for the root word. ``row`` is working memory.
    """
    for k in range(n, remaining, -1):
        pivot = range_sum(w[k], first_head(k, root_word), k)
        w[k, k] = 1.0
        if pivot == 0.0 and root_word == 1:  # the arcs from k take the place of those from node 0
            root_word = k
            pivot = w[k, 0]
            w[k, k] = 0.0
            fill_root(w, k, 0.0)
        if pivot == 0.0:
            return NO_TREE
        pivots[k] = pivot
        for i in range(k):
            row[i] = w[k, i] = w[k, i] / pivot
        for j in range(1, k):
            through = w[j, k]
            for i in range(k):
                w[j, i] += through * row[i]
    for j in range(1, remaining + 1):
        w[j, j] = 0.0
    return root_word


@exact_kernel
def eliminate_log(w, n, remaining, root_word, pivots, row):
    """Do ``eliminate`` on log weights, where ``w[k, k]`` becomes 1 or 0 all the same."""
    for k in range(n, remaining, -1):
        pivot = log_sum(w[k], first_head(k, root_word), k)
        w[k, k] = 1.0
        if pivot == -np.inf and root_word == 1:
            root_word = k
            pivot = w[k, 0]
            w[k, k] = 0.0
            fill_root(w, k, -np.inf)
        if pivot == -np.inf:
            return NO_TREE
        pivots[k] = pivot
        for i in range(k):
            row[i] = w[k, i] = w[k, i] - pivot
        for j in range(1, k):
            through = w[j, k]
            if through > -np.inf:
                for i in range(k):
                    w[j, i] = log_add(w[j, i], through + row[i])
    return root_word
