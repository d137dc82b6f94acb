"""The weights of one item from its scores: dependent-major, every column scaled to maximum 1.

``w[j, i]`` is the weight of the arc ``i -> j`` and node 0 the root, so that inner loops run over contiguous heads.
Row 0 and entries ``w[j, j]`` are no arcs. Rows are padded to whole vectors, and strides depend on the length of an item
alone, so that an item has the same bits in a batch and alone.
"""

import numpy as np

from treeparse.kernels.compile import exact_kernel, kernel
from treeparse.kernels.logspace import exp

LANES = 8  # numbers of a vector, and of a line of cache
LARGE = 1e250  # a product whose log is taken before it grows further


@exact_kernel
def aligned(count):
    """Return numbers that begin with a line of cache: otherwise 160 words take 1.3 times as long."""
    numbers = np.empty(count + LANES)
    start = -(np.int64(numbers.ctypes.data) // numbers.itemsize) % LANES
    return numbers[start : start + count]


@exact_kernel
def padded(n):
    """Return the length of rows for n words: node 0, the words, and 0 up to a whole vector."""
    return (n + LANES) // LANES * LANES


@exact_kernel
def matrices(memory, count, n):
    """Return ``count`` padded matrices for n words, which are in ``memory``."""
    size = padded(n)
    return memory[: count * size * size].reshape(count, size, size)


@kernel
def exchange(matrix, k):
    """Exchange words 1 and ``k``."""
    for i in range(matrix.shape[1]):
        matrix[1, i], matrix[k, i] = matrix[k, i], matrix[1, i]
    for j in range(len(matrix)):
        matrix[j, 1], matrix[j, k] = matrix[j, k], matrix[j, 1]


@kernel
def copy(source, target):
    """Copy a matrix. To compile ``target[:] = source`` takes 2 s."""
    for j in range(len(source)):
        for i in range(source.shape[1]):
            target[j, i] = source[j, i]


@kernel
def range_sum(values, start, stop):
    """Return the sum of a range."""
    total = 0.0
    for i in range(start, stop):
        total += values[i]
    return total


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
    return range_sum(top, 1, n + 1)


@kernel
def load_logs(scores, n, top, logs):
    """Fill log weights whose columns have maximum 0, where ``top`` are the columns' maxima; what is no arc is -inf."""
    for i in range(n + 1):
        for j in range(1, n + 1):
            logs[j, i] = scores[i, j] - top[j]
    for j in range(1, n + 1):
        logs[j, j] = -np.inf
        for i in range(n + 1, logs.shape[1]):
            logs[j, i] = -np.inf
    logs[0] = -np.inf
    logs[n + 1 :] = -np.inf


@exact_kernel
def multiplied(product, log, factor):
    """Multiply a product by a factor; return it and a log, which takes the product's before that is too large."""
    product *= factor
    return (1.0, log + np.log(product)) if product > LARGE else (product, log)


@kernel
def load_weights(scores, n, top, w):
    """Fill weights whose columns have maximum 1; return the sum over words of the logs of their weights' sums."""
    load_logs(scores, n, top, w)
    log_sums, product = 0.0, 1.0
    for j in range(len(w)):
        total = 0.0
        for i in range(w.shape[1]):
            w[j, i] = exp(w[j, i])
            total += w[j, i]
        if 0 < j <= n:
            product, log_sums = multiplied(product, log_sums, total)
    return log_sums + np.log(product)


@kernel
def load_vector(vectors, n, root_word, weights, none, best, v):
    """Fill ``v[dependent, head]``, each column less the entry of its best arc; return the largest magnitude.

    A constant added to a column of a vector changes nothing, because every tree has one arc into each word; and where
    the model is confident, almost nothing is left to cancel. ``none`` and ``best`` are the weights of a forbidden arc
    and of a best arc. Forbidden arcs have 0. In ``v`` and ``weights``, words 1 and ``root_word`` are exchanged.
    """
    v[:] = 0.0
    largest = 0.0
    for i in range(n + 1):
        for j in range(1, n + 1):
            v[j, i] = vectors[i, j]
    if root_word > 1:
        exchange(v, root_word)
    for j in range(1, n + 1):
        centre = 0.0
        for i in range(n + 1):
            centre = v[j, i] if weights[j, i] == best else centre
        for i in range(n + 1):
            v[j, i] = v[j, i] - centre if weights[j, i] > none else 0.0
        for i in range(n + 1):
            largest = abs(v[j, i]) if abs(v[j, i]) > largest else largest
    return largest


@exact_kernel
def square(buffer, n):
    """Return a matrix without padding."""
    return buffer[: (n + 1) * (n + 1)].reshape(n + 1, n + 1)
