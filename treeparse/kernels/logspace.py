"""Arithmetic on logarithms, for sums whose terms under- or overflow."""

import numpy as np

from treeparse.kernels.compile import exact_kernel

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
