"""Rows of float64 numbers that are added, multiplied and summed in whole vectors of eight.

Compilers take the numbers after the last whole vector of a row one at a time, which in short sentences is most of it.
So these loops are LLVM code (``vectors``). A row is an array and the index of its first number in the flattened array;
all rows of a call have ``count`` numbers. The numbers after them, up to a whole vector, are read and written too,
unless a function sets them to 0 or leaves them.
"""

from collections.abc import Callable
from inspect import Parameter, Signature
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils

from treeparse.kernels.compile import jit
from treeparse.kernels.vectors import (
    INDEX,
    LANES,
    NUMBERS,
    by_llvm,
    load,
    multiply_add,
    pointer_to,
    repeated,
    store,
)

WHOLE_NUMBERS = ir.VectorType(ir.IntType(64), LANES)
ZEROS = ir.Constant(NUMBERS, [0.0] * LANES)
NO_SUM = ir.Constant(ir.DoubleType(), -0.0)


@jit
def whole(count):
    """Return the length of ``count`` numbers in whole vectors."""
    return count + (-count) % LANES


def over_rows(rows: int, numbers: int, code: Callable[..., Any], plain: Callable[..., Any], *, sums: bool) -> Any:
    """Return a function of ``rows`` rows, ``numbers`` numbers and the rows' count.

    ``code`` makes the LLVM code of one step from a vector of each row, each number repeated, and a mask of the numbers
    inside the row. It returns the new vectors of the first rows; with ``sums`` it takes and returns the running sums
    first. ``plain`` is the function in Python, of views of the rows (whole vectors), the numbers and the count.
    """
    arity = 2 * rows + numbers + 1

    def typed(typing: Any, *arguments: Any) -> Any:
        del typing
        return (types.float64 if sums else types.void)(*arguments), generate

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        arrays = range(0, 2 * rows, 2)
        starts = [pointer_to(context, builder, signature.args[at], values[at], values[at + 1]) for at in arrays]
        repeats = [repeated(builder, number) for number in values[2 * rows : -1]]
        count, total = values[-1], cgutils.alloca_once_value(builder, ZEROS)
        steps = count.type(0), count, count.type(LANES)
        with cgutils.for_range_slice(builder, *steps, count.type) as (index, _):
            pointers = [builder.gep(start, [index]) for start in starts]
            vectors = [load(builder, pointer) for pointer in pointers]
            inside = _lanes_before(builder, builder.sub(count, index))
            results = code(builder, *([builder.load(total)] if sums else []), *vectors, *repeats, inside)
            if sums:
                builder.store(results[0], total)
            for pointer, vector in zip(pointers, results[1:] if sums else results, strict=False):
                store(builder, vector, pointer)
        return _sum(builder, builder.load(total)) if sums else context.get_dummy_value()

    def plainly(*arguments: Any) -> Any:
        count = arguments[-1]
        ends = [arguments[2 * row + 1] + int(whole(count)) for row in range(rows)]
        views = [arguments[2 * row].reshape(-1)[arguments[2 * row + 1] : end] for row, end in enumerate(ends)]
        return plain(*views, *arguments[2 * rows : -1], count)

    names = [Parameter(f"argument{i}", Parameter.POSITIONAL_OR_KEYWORD) for i in range(arity + 1)]
    typed.__signature__ = Signature(names)  # type: ignore[attr-defined]
    return by_llvm(typed, plainly)


def _lanes_before(builder: Any, stop: Any) -> Any:
    """Return a mask of the numbers of a vector with an index below ``stop``."""
    undefined = ir.Constant(WHOLE_NUMBERS, ir.Undefined)
    first = builder.insert_element(undefined, stop, ir.Constant(INDEX, 0))
    stops = builder.shuffle_vector(first, undefined, ir.Constant(ir.VectorType(INDEX, LANES), None))
    return builder.icmp_signed("<", ir.Constant(WHOLE_NUMBERS, list(range(LANES))), stops)


def _sum(builder: Any, vector: Any) -> Any:
    """Return the sum of a vector's numbers, by halves."""
    kind = ir.FunctionType(ir.DoubleType(), [ir.DoubleType(), NUMBERS])
    function = cgutils.get_or_insert_function(builder.module, kind, f"llvm.vector.reduce.fadd.v{LANES}f64")
    return builder.call(function, [NO_SUM, vector], fastmath=("reassoc",))


def _add_row(builder: Any, total: Any, terms: Any, factors: Any, inside: Any) -> tuple[Any, ...]:
    del inside
    return (multiply_add(builder, factors, terms, total),)


def _add_row_plainly(total: Any, terms: Any, factor: float, count: int) -> None:
    del count
    total += factor * terms


add_row = over_rows(2, 1, _add_row, _add_row_plainly, sums=False)
"""``add_row(total, at, terms, terms_at, factor, count)``: add a multiple of a row to another row."""


def _add_rows(
    builder: Any, total: Any, terms: Any, others: Any, factors: Any, other_factors: Any, inside: Any
) -> tuple[Any, ...]:
    del inside
    return (multiply_add(builder, factors, terms, multiply_add(builder, other_factors, others, total)),)


def _add_rows_plainly(total: Any, terms: Any, others: Any, factor: float, other_factor: float, count: int) -> None:
    del count
    total += factor * terms + other_factor * others


add_rows = over_rows(3, 2, _add_rows, _add_rows_plainly, sums=False)
"""``add_rows(total, at, terms, terms_at, others, others_at, factor, other_factor, count)``: add two rows' multiples."""


def _row_sum(builder: Any, total: Any, row: Any, inside: Any) -> tuple[Any, ...]:
    return (builder.fadd(total, builder.select(inside, row, ZEROS)),)


def _row_sum_plainly(row: Any, count: int) -> Any:
    return row[:count].sum()


row_sum = over_rows(1, 0, _row_sum, _row_sum_plainly, sums=True)
"""``row_sum(row, at, count)``: the sum of a row, without the numbers after it."""


def _dot(builder: Any, total: Any, row: Any, other: Any, inside: Any) -> tuple[Any, ...]:
    del inside
    return (multiply_add(builder, row, other, total),)


def _dot_plainly(row: Any, other: Any, count: int) -> Any:
    del count
    return row @ other


dot = over_rows(2, 0, _dot, _dot_plainly, sums=True)
"""``dot(row, at, other, other_at, count)``: the inner product of two rows."""


def _dots(builder: Any, total: Any, row: Any, other: Any, third: Any, fourth: Any, inside: Any) -> tuple[Any, ...]:
    del inside
    return (multiply_add(builder, row, other, multiply_add(builder, third, fourth, total)),)


def _dots_plainly(row: Any, other: Any, third: Any, fourth: Any, count: int) -> Any:
    del count
    return row @ other + third @ fourth


dots = over_rows(4, 0, _dots, _dots_plainly, sums=True)
"""``dots(row, at, other, other_at, third, third_at, fourth, fourth_at, count)``: the sum of two inner products."""


def _copy_row(builder: Any, target: Any, source: Any, inside: Any) -> tuple[Any, ...]:
    del target
    return (builder.select(inside, source, ZEROS),)


def _copy_row_plainly(target: Any, source: Any, count: int) -> None:
    target[:count], target[count:] = source[:count], 0.0


copy_row = over_rows(2, 0, _copy_row, _copy_row_plainly, sums=False)
"""``copy_row(target, at, source, source_at, count)``: copy a row, with 0 after it."""


def _divide_row(builder: Any, row: Any, copy: Any, divisors: Any, inside: Any) -> tuple[Any, ...]:
    del copy
    shares = builder.fdiv(row, divisors)
    return builder.select(inside, shares, row), builder.select(inside, shares, ZEROS)


def _divide_row_plainly(row: Any, copy: Any, divisor: float, count: int) -> None:
    row[:count] /= divisor
    _copy_row_plainly(copy, row, count)


divide_row = over_rows(2, 1, _divide_row, _divide_row_plainly, sums=False)
"""``divide_row(row, at, copy, copy_at, divisor, count)``: divide a row and copy it, with 0 after the copy."""


def _share_row(builder: Any, target: Any, source: Any, added: Any, divisors: Any, inside: Any) -> tuple[Any, ...]:
    del target
    return (builder.select(inside, builder.fdiv(builder.fadd(source, added), divisors), ZEROS),)


def _share_row_plainly(target: Any, source: Any, added: float, divisor: float, count: int) -> None:
    _copy_row_plainly(target, (source + added) / divisor, count)


share_row = over_rows(2, 2, _share_row, _share_row_plainly, sums=False)
"""``share_row(target, at, source, source_at, added, divisor, count)``: ``(source + added) / divisor``, then 0."""


def _raise_row(builder: Any, row: Any, inside: Any) -> tuple[Any, ...]:
    del inside
    return (builder.select(builder.fcmp_ordered("<", row, ZEROS), ZEROS, row),)


def _raise_row_plainly(row: Any, count: int) -> None:
    del count
    row[row < 0.0] = 0.0


raise_row = over_rows(1, 0, _raise_row, _raise_row_plainly, sums=False)
"""``raise_row(row, at, count)``: replace negative numbers by 0; NaN stays."""


def _clamp_row(builder: Any, row: Any, limits: Any, factors: Any, inside: Any) -> tuple[Any, ...]:
    del inside
    most = builder.fmul(factors, limits)
    least = builder.fneg(most)
    row = builder.select(builder.fcmp_ordered(">", row, most), most, row)
    return (builder.select(builder.fcmp_ordered("<", row, least), least, row),)


def _clamp_row_plainly(row: Any, limits: Any, factor: float, count: int) -> None:
    del count
    most = factor * limits
    row[:] = np.where(row > most, most, row)
    row[:] = np.where(row < -most, -most, row)


clamp_row = over_rows(2, 1, _clamp_row, _clamp_row_plainly, sums=False)
"""``clamp_row(row, at, limits, limits_at, factor, count)``: clamp to plus and minus ``factor * limits``; NaN stays."""


def _fill_row(builder: Any, row: Any, numbers: Any, inside: Any) -> tuple[Any, ...]:
    del builder, row, inside
    return (numbers,)


def _fill_row_plainly(row: Any, number: float, count: int) -> None:
    del count
    row[:] = number


fill_row = over_rows(1, 1, _fill_row, _fill_row_plainly, sums=False)
"""``fill_row(row, at, number, count)``: fill a row with a number."""
