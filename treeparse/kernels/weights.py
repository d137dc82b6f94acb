"""The weights of one item from its scores: dependent-major, every column scaled to maximum 1.

``w[j, i]`` is the weight of the arc ``i -> j`` and node 0 the root, so that inner loops run over contiguous heads.
Entries ``w[j, j]`` are no arcs.
"""

import numpy as np

from treeparse.kernels.compile import exact_kernel, kernel
from treeparse.kernels.exponential import exponentiate
from treeparse.kernels.logspace import precise_sum
from treeparse.kernels.rows import fill_row, largest_of_row, lower_row, row_sum, scale_row
from treeparse.kernels.rows import whole as whole_vectors

LARGE = 1e250  # a product whose log is taken before it grows further
LARGE_SUM = 1e4  # of magnitudes: a smaller sum is right to 1e-12
LARGE_SCORE = 1e5  # of a sum of parts, which is right to 1e-11 below


@exact_kernel
def square(buffer, n):
    """Return a matrix whose strides depend on n alone, so an item has the same bits in a batch and alone."""
    return buffer[: (n + 1) * (n + 1)].reshape(n + 1, n + 1)


@kernel
def column_maxima(scores, n, top):
    """Fill the score of the best arc into every word; return the sum, which is -inf if some word has no arc."""
    for j in range(1, n + 1):
        top[j] = -np.inf
    for i in range(n + 1):
        for j in range(1, i):
            top[j] = scores[i, j] if scores[i, j] > top[j] else top[j]
        for j in range(i + 1, n + 1):
            top[j] = scores[i, j] if scores[i, j] > top[j] else top[j]
    size = 0.0
    for j in range(1, n + 1):
        size += abs(top[j])
    return range_sum(top, 1, n + 1) if size < LARGE_SUM else precise_sum(top, 1, n + 1)


@kernel
def range_sum(values, start, stop):
    """Return the sum of a range."""
    total = 0.0
    for i in range(start, stop):
        total += values[i]
    return total


@exact_kernel
def load_weights(scores, n, top, w, original):
    """Fill ``w`` and its copy with weights whose columns have maximum 1; returns the sum of the log column sums.

    Other entries of the rows are exponentiated too.
    """
    load_log_weights(scores, n, top, w, w)
    width = w.shape[1]
    words = w.reshape(w.size)[width : (n + 1) * width]
    exponentiate(words)
    copy = original.reshape(w.size)[width : (n + 1) * width]
    for entry in range(len(words)):
        copy[entry] = words[entry]
    bound = 0.0
    for j in range(1, n + 1):
        bound += np.log(range_sum(w[j], 0, n + 1))
    return bound


@exact_kernel
def load_log_weights(scores, n, top, w, original):
    """Fill ``w`` and its copy with log weights whose columns have maximum 0, where ``top`` are the columns' maxima."""
    for i in range(n + 1):
        for j in range(1, n + 1):
            w[j, i] = original[j, i] = scores[i, j] - top[j] if i != j else -np.inf


@exact_kernel
def word_rows(buffer, n):
    """Return ``square`` with every row in whole vectors."""
    width = whole_vectors(n + 1)
    return buffer[: (n + 1) * width].reshape(n + 1, width)


@kernel
def has_large(scores, n):
    """Return whether there is a large finite score of an arc."""
    count = 0
    for i in range(n + 1):
        row = scores[i]
        for j in range(1, n + 1):
            count += (abs(row[j]) > LARGE_SCORE) & (row[j] > -np.inf)
    return count > 0


@exact_kernel
def arcs_cancel(scores, sums, n):
    """Return whether some large score of an arc is halved by the other parts in ``sums[dependent, head]``."""
    for i in range(n + 1):
        for j in range(1, n + 1):
            if i != j and LARGE_SCORE < abs(scores[i, j]) < np.inf and abs(sums[j, i]) < 0.5 * abs(scores[i, j]):
                return True
    return False


@exact_kernel
def add_tops(score, top):
    """Return the sum of a score and other parts' largest one; NaN if large numbers cancel."""
    total = score + top
    return np.nan if LARGE_SCORE < abs(top) < np.inf and abs(total) < abs(top) else total


@exact_kernel
def weigh_sums(arcs, w, n):
    """Do ``weigh_words`` for sums of scores of arcs and of other parts; NaN if large scores of arcs cancel in them."""
    return np.nan if has_large(arcs, n) and arcs_cancel(arcs, w, n) else weigh_words(w, n)


@exact_kernel
def weigh_words(w, n):
    """Turn the log weights of ``word_rows`` into weights that sum to 1 for every word; node 0 has no head.

    Returns the log of the product of what they were divided by, -inf if some word has no arc, and NaN if a best arc's
    score has lost digits (``add_tops``). All words take a step before any takes the next, so that the processor does
    not wait, and are multiplied: to divide them takes as long as all else.
    """
    width, log_scale, product = w.shape[1], 0.0, 1.0
    size = (n + 1) * width
    fill_row(w, 0, 0.0, width)
    for at in range(width, size, width):
        top = largest_of_row(w, at, n + 1)
        if top == -np.inf:
            return row_sum(w, at, n + 1)
        if abs(top) > LARGE_SCORE:
            return np.nan
        lower_row(w, at, top, n + 1)
        log_scale += top
    exponentiate(w.reshape(w.size)[width:size])
    for at in range(width, size, width):
        total = row_sum(w, at, n + 1)
        scale_row(w, at, 1.0 / total, n + 1)
        product *= total
        if product > LARGE:
            log_scale += np.log(product)
            product = 1.0
    return log_scale + np.log(product)
