"""Arithmetic on numbers of two float64, a value and what its rounding lost: 32 digits (Dekker 1971).

A number is a tuple ``(high, low)``, where ``high`` is the sum of both, rounded.
"""

import numpy as np

from treeparse.kernels.compile import exact_kernel
from treeparse.kernels.logspace import two_sum

HALF_BITS = 2.0**27 + 1  # splits a float64 into two numbers of half its digits
LOG_2 = float.fromhex("0x1.62e42fefa39efp-1"), float.fromhex("0x1.abc9e3b39803fp-56")
LOWEST = -80.0  # exp of it is so small that 16 digits do
HALVINGS = 8  # of an exponent, before the series
TERMS = 9


@exact_kernel
def add(x, y):
    """Return ``x + y``."""
    high, low = two_sum(x[0], y[0])
    return two_sum(high, low + (x[1] + y[1]))


@exact_kernel
def subtract(x, y):
    """Return ``x - y``."""
    return add(x, (-y[0], -y[1]))


@exact_kernel
def multiply(x, y):
    """Return ``x * y``."""
    high = x[0] * y[0]
    a, b = _halves(x[0])
    c, d = _halves(y[0])
    lost = ((a * c - high) + a * d + b * c) + b * d
    return two_sum(high, lost + (x[0] * y[1] + x[1] * y[0]))


@exact_kernel
def _halves(x):
    """Return a number's first digits, and the others."""
    scaled = HALF_BITS * x
    first = scaled - (scaled - x)
    return first, x - first


@exact_kernel
def divide(x, y):
    """Return ``x / y``."""
    first = x[0] / y[0]
    rest = subtract(x, multiply((first, 0.0), y))
    second = rest[0] / y[0]
    rest = subtract(rest, multiply((second, 0.0), y))
    high, low = two_sum(first, second)
    return two_sum(high, low + rest[0] / y[0])


@exact_kernel
def exp(x):
    """Return the exponential of a number up to 0."""
    if x[0] < LOWEST:
        return np.exp(x[0]), 0.0
    k = np.round(x[0] / LOG_2[0])
    rest = subtract(x, multiply((k, 0.0), LOG_2))
    rest = rest[0] / 2.0**HALVINGS, rest[1] / 2.0**HALVINGS
    series = (0.0, 0.0)  # of exp - 1, by Horner's scheme
    for term in range(TERMS, 1, -1):
        series = divide(multiply(rest, add(series, (1.0, 0.0))), (float(term), 0.0))
    series = multiply(rest, add(series, (1.0, 0.0)))
    for _ in range(HALVINGS):
        series = add((2 * series[0], 2 * series[1]), multiply(series, series))
    high, low = add(series, (1.0, 0.0))
    power = 2.0**k
    return high * power, low * power


@exact_kernel
def log(x):
    """Return the logarithm of a number from 1 on."""
    first = np.log(x[0])
    ratio = subtract(multiply(x, exp((-first, 0.0))), (1.0, 0.0))
    return add((first, 0.0), subtract(ratio, multiply((0.5 * ratio[0], 0.5 * ratio[1]), ratio)))
