"""Arithmetic on logarithms, for sums whose terms under- or overflow."""

import math

import numpy as np

from treeparse.kernels.compile import exact_kernel

LOWEST = -708.0  # exp of it is still a normal number
LOG2_E = 1 / math.log(2)
LOG_2_HIGH = float.fromhex("0x1.62e42fefap-1")  # so short that a product with a small whole number is exact
LOG_2_LOW = float.fromhex("0x1.cf79abc9e3b39p-40")
MANTISSA_BITS = 52  # of a float64
ROUND = 1.5 * 2.0**MANTISSA_BITS + 1023  # the low bits of k + ROUND are the exponent of 2^k, k rounded
# The polynomial closest to exp up to half a log 2 on either side of 0, where its error is 4e-18 (Remez's algorithm);
# its last coefficients are 1 and 1.
P0, P1 = float.fromhex("0x1.ad7f9ca254182p-26"), float.fromhex("0x1.28ad72a6b6dcep-22")
P2, P3 = float.fromhex("0x1.71df2535a4beap-19"), float.fromhex("0x1.a0199a0c944bdp-16")
P4, P5 = float.fromhex("0x1.a01a012a64523p-13"), float.fromhex("0x1.6c16c1842a00bp-10")
P6, P7 = float.fromhex("0x1.1111111127bc1p-7"), float.fromhex("0x1.555555555087dp-5")
P8, P9 = float.fromhex("0x1.55555555554fap-3"), float.fromhex("0x1.000000000000ap-1")


@exact_kernel
def exp(x):
    """Return ``np.exp(x)``, x up to 700, to a unit in the last place; 0 up to ``LOWEST``; NaN stays."""
    rounded = x * LOG2_E + ROUND
    k = rounded - ROUND
    r = x - k * LOG_2_HIGH - k * LOG_2_LOW
    series = ((((((((P0 * r + P1) * r + P2) * r + P3) * r + P4) * r + P5) * r + P6) * r + P7) * r + P8) * r + P9
    series = (series * r + 1.0) * r + 1.0
    power = np.int64(np.float64(rounded).view(np.int64) << MANTISSA_BITS).view(np.float64)
    return 0.0 if x <= LOWEST else series * power


NEGLIGIBLE = -40.0  # exp of it is below half a unit in the last place of 1


@exact_kernel
def log_add(x, y):
    """Return ``log(exp(x) + exp(y))``."""
    larger, smaller = (x, y) if x > y else (y, x)
    if larger == -np.inf or smaller - larger < NEGLIGIBLE:
        return larger
    return larger + np.log1p(np.exp(smaller - larger))


@exact_kernel
def log_sum(values, start, stop):
    """Return the log of the sum of a range of logs."""
    top = -np.inf
    for i in range(start, stop):
        top = max(top, values[i])
    if top == -np.inf:
        return top
    total = 0.0
    for i in range(start, stop):
        total += np.exp(values[i] - top)
    return top + np.log(total)
