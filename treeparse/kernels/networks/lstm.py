"""One step of an LSTM once its products are there."""

import math

import numpy as np

from treeparse.kernels.compile import fused_jit

LOG2_E = np.float32(1 / math.log(2))
LOG_2_HIGH = np.float32(0.693359375)  # so short that a product with a small whole number is exact
LOG_2_LOW = np.float32(math.log(2) - 0.693359375)
ROUND = np.float32(1.5 * 2**23)  # x + ROUND is a whole number, held in the low bits
EXPONENT_BIAS, MANTISSA_BITS = np.int32(127), np.int32(23)  # of a float32
LOWEST, GREATEST = np.float32(-87), np.float32(87)  # exp of them is a normal number
ONE, TWO = np.float32(1), np.float32(2)
C2, C3, C4, C5, C6 = (np.float32(1 / math.factorial(i)) for i in range(2, 7))


@fused_jit
def exp(x):
    """``exp`` of a float32, of -87 to 87, to two units in the last place; Taylor's series as in `weights`."""
    x = LOWEST if x < LOWEST else x
    x = GREATEST if x > GREATEST else x
    shifted = x * LOG2_E + ROUND
    k = shifted - ROUND
    rest = (x - k * LOG_2_HIGH) - k * LOG_2_LOW
    series = (((((C6 * rest + C5) * rest + C4) * rest + C3) * rest + C2) * rest + ONE) * rest + ONE
    power = (np.int32(k) + EXPONENT_BIAS) << MANTISSA_BITS
    return series * np.int32(power).view(np.float32)


@fused_jit
def step(gates, cells, states):
    """Cells go on by a step and give the states (2, N, H), by gates (2, N, 4H): input, forget, cell, output.

    Both directions do. Cells are the first ``N`` of (2, M, H). All are float32 and contiguous; the gates are worked in.
    Each loop writes one array: with more that could overlap, loops are not vectorised.
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
