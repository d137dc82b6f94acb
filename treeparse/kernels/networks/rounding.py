"""Numbers in eight bits."""

import numpy as np

from treeparse.kernels.compile import vector_jit

HALF = np.float32(0.5)
WITHOUT_SIGN = np.int32(0x7FFFFFFF)
LEAST_BITS = np.float32(1e-30).view(np.int32)  # of the greatest of a row, which divides


@vector_jit
def round_rows(values, levels, rounded, scales):
    """Rows (N, D) in whole numbers of -levels to levels, times a scale of each row (N, 1); 0 becomes levels + 1."""
    zero = np.float32(levels + 1)
    bits = values.view(np.int32)  # of numbers without a sign in their order, whose maximum is vectorised
    for i in range(len(values)):
        row, target = values[i], rounded[i]
        greatest = np.int32(_greatest(bits[i])).view(np.float32)
        scales[i, 0] = greatest / np.float32(levels)
        factor = np.float32(levels) / greatest
        for j in range(len(row)):
            target[j] = np.uint8(np.int32(row[j] * factor + zero + HALF))


@vector_jit
def _greatest(bits):
    """The greatest of numbers without their signs, and at least one by which others can be divided, as bits."""
    greatest = LEAST_BITS
    for j in range(len(bits)):
        greatest = max(greatest, bits[j] & WITHOUT_SIGN)
    return greatest


@vector_jit
def round_within_one(values, levels, rounded):
    """The same of values (N, D) from -1 to 1, at the scale 1 / levels."""
    factor, zero = np.float32(levels), np.float32(levels + 1)
    for i in range(len(values)):
        row, target = values[i], rounded[i]
        for j in range(len(row)):
            target[j] = np.uint8(np.int32(row[j] * factor + zero + HALF))
