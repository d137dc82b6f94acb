"""The exponential function of whole arrays, the same bits on every machine.

It is ``2^k exp(x - k log 2)``, the second factor by a polynomial. A loop that calls ``np.exp`` takes one number at a
time, and up to 40 words weights then take longer than elimination.
"""

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types

from treeparse.kernels.compile import exact_kernel
from treeparse.kernels.rows import over_rows
from treeparse.kernels.vectors import (
    LANES,
    NumpyBuilder,
    by_llvm,
    constant,
    load,
    multiply_add,
    pointer_to,
    stay_apart,
    store,
)

LOWEST = -708.0  # exp of it is still a normal number
LOG2_E = 1 / math.log(2)
LOG_2_HIGH = float.fromhex("0x1.62e42fefap-1")  # so short that a product with a small whole number is exact
LOG_2_LOW = float.fromhex("0x1.cf79abc9e3b39p-40")
MANTISSA_BITS, EXPONENT_BIAS = 52, 1023  # of a float64
ROUND = 1.5 * 2.0**MANTISSA_BITS + EXPONENT_BIAS  # the low bits of k + ROUND are the exponent of 2^k, k rounded
# The polynomial closest to exp up to half a log 2 on either side of 0, where its error is 4e-18 (Remez's algorithm).
COEFFICIENTS = [
    float.fromhex("0x1.ad7f9ca254182p-26"),
    float.fromhex("0x1.28ad72a6b6dcep-22"),
    float.fromhex("0x1.71df2535a4beap-19"),
    float.fromhex("0x1.a0199a0c944bdp-16"),
    float.fromhex("0x1.a01a012a64523p-13"),
    float.fromhex("0x1.6c16c1842a00bp-10"),
    float.fromhex("0x1.1111111127bc1p-7"),
    float.fromhex("0x1.555555555087dp-5"),
    float.fromhex("0x1.55555555554fap-3"),
    float.fromhex("0x1.000000000000ap-1"),
    1.0,
    1.0,
]


P0, P1, P2, P3, P4, P5, P6, P7, P8, P9 = COEFFICIENTS[:10]


@exact_kernel
def exp(x):
    """Return ``exp(x)`` to a unit in the last place, x up to 700; 0 below -708. Loops with it are vectorised."""
    rounded = x * LOG2_E + ROUND
    k = rounded - ROUND
    r = x - k * LOG_2_HIGH - k * LOG_2_LOW
    series = ((((((((P0 * r + P1) * r + P2) * r + P3) * r + P4) * r + P5) * r + P6) * r + P7) * r + P8) * r + P9
    series = (series * r + 1.0) * r + 1.0
    power = np.int64(np.float64(rounded).view(np.int64) << 52).view(np.float64)
    return series * power if x > -708.0 else 0.0


@exact_kernel
def exponentiate(values):
    """Replace numbers up to 700 by ``np.exp`` of them, to a unit in the last place; 0 up to ``LOWEST``; NaN stays."""
    stay_apart()
    whole = len(values) - len(values) % LANES
    for start in range(0, whole, LANES):
        _exponentiate_lanes(values, start)
    for start in range(whole, len(values)):
        _exponentiate_one(values, start)


def _exponential(builder: Any, x: Any) -> Any:
    """Return the LLVM code for a vector of numbers."""
    if builder is NumpyBuilder:
        return np.where(x <= LOWEST, 0.0, np.exp(x))
    whole = ir.VectorType(ir.IntType(64), x.type.count)
    too_low = builder.fcmp_ordered("<=", x, constant(x, LOWEST))
    rounded = multiply_add(builder, x, constant(x, LOG2_E), constant(x, ROUND))
    k = builder.fsub(rounded, constant(x, ROUND))
    remainder = multiply_add(builder, k, constant(x, -LOG_2_HIGH), x)
    remainder = multiply_add(builder, k, constant(x, -LOG_2_LOW), remainder)
    series = constant(x, COEFFICIENTS[0])
    for coefficient in COEFFICIENTS[1:]:
        series = multiply_add(builder, series, remainder, constant(x, coefficient))
    power = builder.shl(builder.bitcast(rounded, whole), ir.Constant(whole, [MANTISSA_BITS] * x.type.count))
    result = builder.fmul(series, builder.bitcast(power, x.type))
    return builder.select(too_low, constant(x, 0.0), result)


def _exponentiation(lanes: int) -> Any:
    """Return the compiled function for ``lanes`` numbers from an index on."""

    def typed(typing: Any, values: Any, start: Any) -> Any:
        del typing
        return types.void(values, start), generate

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = pointer_to(context, builder, signature.args[0], *arguments)
        numbers = load(builder, pointer, ir.VectorType(ir.DoubleType(), lanes))
        store(builder, _exponential(builder, numbers), pointer)
        return context.get_dummy_value()

    def plain(values: Any, start: int) -> None:
        values[start : start + lanes] = _exponential(NumpyBuilder, values[start : start + lanes])

    return by_llvm(typed, plain)


_exponentiate_lanes, _exponentiate_one = _exponentiation(LANES), _exponentiation(1)


@over_rows(2, 1, sums=True)
def weigh_row(builder: Any, total: Any, scores: Any, copy: Any, tops: Any, inside: Any) -> Any:
    """``weigh_row(scores, at, copy, copy_at, top, count)``: ``exp(scores - top)`` twice, then 0; returns their sum."""
    weights = _exponential(builder, builder.fsub(scores, tops))
    weights = builder.select(inside, weights, constant(scores, 0.0))
    return builder.fadd(total, weights), weights, weights


@over_rows(1, 1)
def exponentiate_row(builder: Any, row: Any, tops: Any, inside: Any) -> Any:
    """``exponentiate_row(row, at, top, count)``: replace numbers by ``exp(number - top)``; what follows stays."""
    return (builder.select(inside, _exponential(builder, builder.fsub(row, tops)), row),)


@over_rows(3, 1, sums=1)
def weigh_log_row(builder: Any, total: Any, weights: Any, logs: Any, remainders: Any, tops: Any, inside: Any) -> Any:
    """``weigh_log_row(weights, at, logs, at, remainders, at, top, count)``: ``exp(log - top)``, then 0.

    A log is two numbers, which may be -inf and 0. Returns the sum of the weights.
    """
    exponents = builder.fadd(builder.fsub(logs, tops), remainders)
    weights = builder.select(inside, _exponential(builder, exponents), constant(logs, 0.0))
    return builder.fadd(total, weights), weights
