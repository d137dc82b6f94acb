"""Parts of neural networks, in single precision and in eight bits, for which torch takes several passes."""

import math

import numpy as np

from treeparse.kernels.compile import exact_kernel, kernel

HALF = np.float32(0.5)
WITHOUT_SIGN = np.int32(0x7FFFFFFF)
LEAST_BITS = np.float32(1e-30).view(np.int32)  # of the greatest number of a row, by which the row is divided
LOG2_E = np.float32(1 / math.log(2))
LOG_2_HIGH = np.float32(0.693359375)  # so short that a product with a small whole number is exact
LOG_2_LOW = np.float32(math.log(2) - 0.693359375)
ROUND = np.float32(1.5 * 2**23)  # the low bits of x + ROUND are x rounded to a whole number
EXPONENT_BIAS, MANTISSA_BITS = np.int32(127), np.int32(23)  # of a float32
LOWEST, GREATEST = np.float32(-87), np.float32(87)  # exp of them is a normal number
ONE, TWO = np.float32(1), np.float32(2)
C2, C3, C4, C5, C6 = (np.float32(1 / math.factorial(i)) for i in range(2, 7))


@exact_kernel
def exp(x):
    """Return ``exp`` of a float32 from -87 to 87, right to two units in the last place, by Taylor's series."""
    x = LOWEST if x < LOWEST else x
    x = GREATEST if x > GREATEST else x
    shifted = x * LOG2_E + ROUND
    k = shifted - ROUND
    r = (x - k * LOG_2_HIGH) - k * LOG_2_LOW
    series = (((((C6 * r + C5) * r + C4) * r + C3) * r + C2) * r + ONE) * r + ONE
    power = (np.int32(k) + EXPONENT_BIAS) << MANTISSA_BITS
    return series * np.int32(power).view(np.float32)


@exact_kernel
def step(gates, cells, states):
    """Advance the cells (2, M, H) of both directions of an LSTM by one step, and fill the states (2, N, H).

    ``gates`` (2, N, 4H) are the products for input, forget, cell and output; they are overwritten. The first ``N``
    cells change. All arrays are float32 and contiguous. Each loop writes one array, because loops that write several
    are not vectorised.
    """
    size = states.shape[2]
    for direction in range(2):
        for i in range(states.shape[1]):
            gate, cell, state = gates[direction, i], cells[direction, i], states[direction, i]
            enter, keep, new, leave = gate[:size], gate[size : 2 * size], gate[2 * size : 3 * size], gate[3 * size :]
            for j in range(size):
                square = exp(TWO * new[j])
                new[j] = (square - ONE) / ((square + ONE) * (ONE + exp(-enter[j])))  # tanh times the logistic function
            for j in range(size):
                cell[j] = cell[j] / (ONE + exp(-keep[j])) + new[j]
            for j in range(size):
                square = exp(TWO * cell[j])
                state[j] = (square - ONE) / ((square + ONE) * (ONE + exp(-leave[j])))


@kernel
def add_pair_products(mixed, rows, vectors, columns, sums):
    """Add to ``sums`` (A, L) the products of ``mixed[rows[a]]``, L vectors end to end, with ``vectors[columns[a]]``.

    ``rows`` and ``columns`` (A,) are int64, all else float32; ``mixed`` is (R, L * D) and ``vectors`` (C, D). Rows are
    not copied: all pairs of a row read it from ``mixed``.
    """
    size = vectors.shape[1]
    for pair in range(len(rows)):
        row, vector, products = mixed[rows[pair]], vectors[columns[pair]], sums[pair]
        for label in range(len(products)):
            start = label * size
            total = np.float32(0)
            for i in range(size):
                total += row[start + i] * vector[i]
            products[label] += total


@kernel
def round_rows(values, levels, rounded, scales):
    """Round rows (N, D) to whole numbers of -levels to levels, times a scale of each row (N, 1); 0 is levels + 1."""
    zero = np.float32(levels + 1)
    bits = values.view(np.int32)  # without signs, they are in the order of the numbers, and their maximum is vectorised
    for i in range(len(values)):
        row, target = values[i], rounded[i]
        greatest = np.int32(_greatest(bits[i])).view(np.float32)
        scales[i, 0] = greatest / np.float32(levels)
        factor = np.float32(levels) / greatest
        for j in range(len(row)):
            target[j] = np.uint8(np.int32(row[j] * factor + zero + HALF))


@kernel
def _greatest(bits):
    """Return the greatest absolute value as bits, and at least one by which numbers can be divided."""
    greatest = LEAST_BITS
    for j in range(len(bits)):
        greatest = max(greatest, bits[j] & WITHOUT_SIGN)
    return greatest


@kernel
def round_within_one(values, levels, rounded):
    """Round values (N, D) from -1 to 1 as ``round_rows``, at the scale 1 / levels."""
    factor, zero = np.float32(levels), np.float32(levels + 1)
    for i in range(len(values)):
        row, target = values[i], rounded[i]
        for j in range(len(row)):
            target[j] = np.uint8(np.int32(row[j] * factor + zero + HALF))
