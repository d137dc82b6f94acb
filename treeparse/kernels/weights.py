"""From scores to the weights of one item: dependent-major, every column scaled to maximum 1.

``w[j, i]`` is the weight of the arc ``i -> j`` and node 0 the root, so that inner loops run over contiguous heads.
Entries ``w[j, j]`` stand for no arc.
"""

import math

import numpy as np

from treeparse.kernels.compile import jit, vector_jit

BLOCK = 512  # numbers, 4 kB
LOWEST = -708.0  # exp of it is still a normal number
LOG2_E = 1 / math.log(2)
LOG_2_HIGH = float.fromhex("0x1.62e42fefap-1")  # so short that a product with a small whole number is exact
LOG_2_LOW = float.fromhex("0x1.cf79abc9e3b39p-40")
MANTISSA_BITS, EXPONENT_BIAS = 52, 1023  # of a float64
ROUND = 1.5 * 2.0**MANTISSA_BITS  # x + ROUND is a whole number, held in the low bits
TAYLOR = np.array([1 / math.factorial(i) for i in range(13, -1, -1)])


@jit
def square(buffer, n):
    """A matrix whose strides depend on n alone: an item's results are the same bits in a batch and alone."""
    return buffer[: (n + 1) * (n + 1)].reshape(n + 1, n + 1)


@vector_jit
def column_maxima(scores, n, top):
    """The best arc into every word; returns the sum, which is -inf if some word has no arc at all."""
    for j in range(1, n + 1):
        top[j] = -np.inf
    for i in range(n + 1):
        for j in range(1, i):
            top[j] = scores[i, j] if scores[i, j] > top[j] else top[j]
        for j in range(i + 1, n + 1):
            top[j] = scores[i, j] if scores[i, j] > top[j] else top[j]
    return range_sum(top, 1, n + 1)


@vector_jit
def range_sum(values, start, stop):
    """The sum of a range."""
    total = 0.0
    for i in range(start, stop):
        total += values[i]
    return total


@jit
def load_weights(scores, n, top, w, original):
    """Fill ``w`` and its copy with weights whose columns have maximum 1; returns the sum of the log column sums."""
    load_log_weights(scores, n, top, w, w)
    words = w.reshape((n + 1) * (n + 1))[n + 1 :]
    exponentiate(words)
    copy = original.reshape((n + 1) * (n + 1))[n + 1 :]
    for entry in range(len(words)):
        copy[entry] = words[entry]
    bound = 0.0
    for j in range(1, n + 1):
        bound += np.log(range_sum(w[j], 0, n + 1))
    return bound


@jit
def load_log_weights(scores, n, top, w, original):
    """Fill ``w`` and its copy with log weights whose columns have maximum 0, where ``top`` are the columns' maxima."""
    for i in range(n + 1):
        for j in range(1, n + 1):
            w[j, i] = original[j, i] = scores[i, j] - top[j] if i != j else -np.inf


@jit
def exponentiate(values):
    """``np.exp`` in place of numbers that are at most 700, to a unit in the last place; 0 below ``LOWEST``.

    It is ``2^k exp(x - k log 2)``, the second factor by Taylor's series. A loop that calls ``np.exp`` is not
    vectorised: up to 40 words, weights then take longer than elimination.
    """
    powers = np.empty(BLOCK)
    bits = powers.view(np.int64)
    for start in range(0, len(values), BLOCK):
        x = values[start : start + BLOCK]
        for i in range(len(x)):
            x[i] = LOWEST if x[i] < LOWEST else x[i]  # NaN stays
            powers[i] = x[i] * LOG2_E + ROUND
        for i in range(len(x)):
            k = powers[i] - ROUND
            rest = (x[i] - k * LOG_2_HIGH) - k * LOG_2_LOW
            series = 0.0
            for term in range(len(TAYLOR)):
                series = series * rest + TAYLOR[term]
            bits[i] = (bits[i] + EXPONENT_BIAS) << MANTISSA_BITS  # now powers[i] is 2^k
            x[i] = 0.0 if x[i] == LOWEST else series * powers[i]
