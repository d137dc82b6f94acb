"""Arithmetic on logarithms, for sums whose terms under- or overflow."""

import numpy as np

from treeparse.kernels.compile import lent_jit

NEGLIGIBLE = -40.0  # exp of it is below half a unit in the last place of 1


@lent_jit
def log_add(x, y):
    """Return ``log(exp(x) + exp(y))``."""
    larger, smaller = (x, y) if x > y else (y, x)
    if larger == -np.inf or smaller - larger < NEGLIGIBLE:
        return larger
    return larger + np.log1p(np.exp(smaller - larger))


@lent_jit
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


@lent_jit
def log_add_number(x, number):
    """Return ``log(exp(x) + number)`` clamped at -inf; ``number`` may be negative, ``x`` large."""
    if number == 0.0:
        return x
    if x > 0.0:
        ratio = number * np.exp(-x)
        return x + np.log1p(ratio) if ratio > -1.0 else -np.inf
    total = np.exp(x) + number
    return np.log(total) if total > 0.0 else -np.inf


@lent_jit
def two_sum(x, y):
    """Return the rounded sum of two numbers, and what the rounding lost (Knuth)."""
    total = x + y
    if total == -np.inf:
        return total, 0.0
    part = total - x
    return total, (x - (total - part)) + (y - part)
