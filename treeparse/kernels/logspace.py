"""Arithmetic on logarithms, for sums whose terms under- or overflow."""

from typing import Any

import numpy as np

from treeparse.kernels.compile import exact_kernel
from treeparse.kernels.rows import over_rows
from treeparse.kernels.vectors import constant

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


@exact_kernel
def two_sum(x, y):
    """Return the rounded sum of two numbers, and what the rounding lost (Knuth)."""
    total = x + y
    if total == -np.inf:
        return total, 0.0
    part = total - x
    return total, (x - (total - part)) + (y - part)


@exact_kernel
def precise_sum(values, start, stop):
    """Return the sum of a range, rounded once or so: large terms may cancel."""
    total = lost = 0.0
    for i in range(start, stop):
        total, low = two_sum(total, values[i])
        lost += low
    return total + lost


@over_rows(6, maxima=1)
def add_log_rows(
    builder: Any, top: Any, logs: Any, remainders: Any, x: Any, x_low: Any, y: Any, y_low: Any, inside: Any
) -> Any:
    """``add_log_rows(logs, at, remainders, at, x, at, x_low, at, y, at, y_low, at, count)``: add logs of two numbers.

    What ``two_sum`` does. After the row, logs are -inf. Returns the largest one.
    """
    del logs, remainders
    total = builder.fadd(x, y)
    part = builder.fsub(total, x)
    lost = builder.fadd(builder.fsub(x, builder.fsub(total, part)), builder.fsub(y, part))
    lowest = constant(total, -np.inf)
    total = builder.select(inside, total, lowest)
    is_finite = builder.fcmp_ordered(">", total, lowest)
    low = builder.select(is_finite, builder.fadd(lost, builder.fadd(x_low, y_low)), constant(total, 0.0))
    return builder.select(builder.fcmp_ordered(">", total, top), total, top), total, low


@over_rows(3, 2)
def take_code_row(
    builder: Any, values: Any, logs: Any, remainders: Any, tops: Any, log_totals: Any, inside: Any
) -> Any:
    """``take_code_row(values, at, logs, at, remainders, at, top, log_total, count)``: add code lengths to values.

    A code length is minus the log of a term's share in a sum. A term of share 0 adds nothing.
    """
    log_shares = builder.fsub(builder.fadd(builder.fsub(logs, tops), remainders), log_totals)
    is_finite = builder.fcmp_ordered(">", logs, constant(logs, -np.inf))
    return (builder.select(is_finite, builder.fsub(values, log_shares), values),)
