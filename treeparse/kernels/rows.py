"""Rows of float64 numbers that are added, multiplied and summed in whole vectors of eight.

Compilers take the numbers after the last whole vector of a row one at a time, which in short sentences is most of it.
So these loops are LLVM code (``vectors``). A row is an array and the index of its first number in the flattened array;
all rows of a call have ``count`` numbers. The numbers after them, up to a whole vector, are read and written too,
unless a function sets them to 0 or leaves them.

Each function is written once, as the code of one step (``over_rows``); its docstring begins with how it is called.
"""

from collections.abc import Callable
from inspect import Parameter, Signature
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils

from treeparse.kernels.compile import exact_kernel
from treeparse.kernels.vectors import (
    INDEX,
    LANES,
    DualBuilder,
    NumpyBuilder,
    RunningVector,
    by_llvm,
    constant,
    constant_vector,
    largest,
    load_vector,
    multiply_add,
    pointer_to,
    repeated,
    store_vector,
    total_of,
)

WHOLE_NUMBERS = ir.VectorType(ir.IntType(64), LANES)


@exact_kernel
def whole(count):
    """Return the length of ``count`` numbers in whole vectors."""
    return count + (-count) % LANES


def over_rows(rows: int, numbers: int = 0, *, sums: int = 0, maxima: int = 0) -> Callable[[Callable[..., Any]], Any]:
    """Make a function of ``rows`` rows, ``numbers`` numbers and the rows' count from the code of one step.

    That code takes an LLVM builder, a vector of each row, each number repeated, and a mask of the numbers inside the
    row. It returns the new vectors of the first rows; with ``sums`` or ``maxima`` it takes and returns so many running
    ones first. Rows of sums may be of complex numbers, too, with a ``DualBuilder``. Under NUMBA_DISABLE_JIT=1 the code
    takes the whole rows and ``NumpyBuilder`` instead.
    """
    totals, start = sums + maxima, -np.inf if maxima else 0.0

    def decorate(code: Callable[..., Any]) -> Any:
        def typed(typing: Any, *arguments: Any) -> Any:
            del typing
            number = arguments[0].dtype
            result = types.UniTuple(number, totals) if totals > 1 else number if totals else types.void
            return result(*arguments), generate

        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            arrays = range(0, 2 * rows, 2)
            starts = [pointer_to(context, builder, signature.args[at], values[at], values[at + 1]) for at in arrays]
            repeats = [repeated(builder, number) for number in values[2 * rows : -1]]
            is_dual, count = signature.args[0].dtype is types.complex128, values[-1]
            row_builder = DualBuilder(builder) if is_dual else builder
            first = constant_vector(start, is_dual=is_dual)
            running = [RunningVector(builder, first) for _ in range(totals)]
            reduce = largest if maxima else total_of
            steps = count.type(0), count, count.type(LANES)
            with cgutils.for_range_slice(builder, *steps, count.type) as (index, _):
                pointers = [builder.gep(start, [index]) for start in starts]
                vectors = [load_vector(builder, pointer, is_dual=is_dual) for pointer in pointers]
                inside = lanes_before(builder, builder.sub(count, index))
                results = code(row_builder, *(each.load() for each in running), *vectors, *repeats, inside)
                for each, vector in zip(running, results[:totals], strict=True):
                    each.store(vector)
                for pointer, vector in zip(pointers, results[totals:], strict=False):
                    store_vector(builder, vector, pointer)
            if totals < 2:
                return running[0].reduced(context, reduce) if totals else context.get_dummy_value()
            return context.make_tuple(
                builder, signature.return_type, [each.reduced(context, reduce) for each in running]
            )

        def plainly(*arguments: Any) -> Any:
            count, length = arguments[-1], int(whole(arguments[-1]))
            views = [arguments[at].reshape(-1)[arguments[at + 1] :][:length] for at in range(0, 2 * rows, 2)]
            length = min(map(len, views))
            views = [view[:length] for view in views]
            running = [np.full(length, start, views[0].dtype) for _ in range(totals)]
            inside = np.arange(length) < count
            results = code(NumpyBuilder, *running, *views, *arguments[2 * rows : -1], inside)
            for view, result in zip(views, results[totals:], strict=False):
                view[:] = result
            reduced = tuple(each.max(initial=start) if maxima else each.sum() for each in results[:totals])
            return reduced if totals > 1 else reduced[0] if totals else None

        names = [f"argument{i}" for i in range(2 * rows + numbers + 2)]
        parameters = [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in names]
        typed.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
        return by_llvm(typed, plainly)

    return decorate


def lanes_before(builder: Any, stop: Any) -> Any:
    """Return a mask of the numbers of a vector with an index below ``stop``."""
    undefined = ir.Constant(WHOLE_NUMBERS, ir.Undefined)
    first = builder.insert_element(undefined, stop, ir.Constant(INDEX, 0))
    stops = builder.shuffle_vector(first, undefined, ir.Constant(ir.VectorType(INDEX, LANES), None))
    return builder.icmp_signed("<", ir.Constant(WHOLE_NUMBERS, list(range(LANES))), stops)


@over_rows(2, 1)
def add_row(builder: Any, total: Any, terms: Any, factors: Any, inside: Any) -> Any:
    """``add_row(total, at, terms, terms_at, factor, count)``: add a multiple of a row to another row."""
    return (multiply_add(builder, factors, terms, total),)


@over_rows(3, 2)
def add_rows(builder: Any, total: Any, terms: Any, others: Any, factors: Any, other_factors: Any, inside: Any) -> Any:
    """``add_rows(total, at, terms, terms_at, others, others_at, factor, other_factor, count)``: add two multiples."""
    return (multiply_add(builder, factors, terms, multiply_add(builder, other_factors, others, total)),)


@over_rows(3)
def add_two_rows(builder: Any, target: Any, row: Any, other: Any, inside: Any) -> Any:
    """``add_two_rows(target, at, row, row_at, other, other_at, count)``: add two rows."""
    return (builder.fadd(row, other),)


@over_rows(2, sums=1)
def multiply_row(builder: Any, total: Any, row: Any, factors: Any, inside: Any) -> Any:
    """``multiply_row(row, at, factors, at, count)``: multiply by numbers, which are 0 after it; returns the sum."""
    product = builder.fmul(row, factors)
    return builder.fadd(total, product), product


@over_rows(1, sums=1)
def row_sum(builder: Any, total: Any, row: Any, inside: Any) -> Any:
    """``row_sum(row, at, count)``: the sum of a row, without the numbers after it."""
    return (builder.fadd(total, builder.select(inside, row, constant(row, 0.0))),)


@over_rows(1, maxima=1)
def largest_of_row(builder: Any, best: Any, row: Any, inside: Any) -> Any:
    """``largest_of_row(row, at, count)``: the largest number of a row, without those after it; -inf of none."""
    row = builder.select(inside, row, constant(row, -np.inf))
    return (builder.select(builder.fcmp_ordered(">", row, best), row, best),)


@over_rows(2, sums=1)
def dot(builder: Any, total: Any, row: Any, other: Any, inside: Any) -> Any:
    """``dot(row, at, other, other_at, count)``: the inner product of two rows."""
    return (multiply_add(builder, row, other, total),)


@over_rows(4, sums=1)
def dots(builder: Any, total: Any, row: Any, other: Any, third: Any, fourth: Any, inside: Any) -> Any:
    """``dots(row, at, other, other_at, third, third_at, fourth, fourth_at, count)``: the sum of two inner products."""
    return (multiply_add(builder, row, other, multiply_add(builder, third, fourth, total)),)


@over_rows(2)
def copy_row(builder: Any, target: Any, source: Any, inside: Any) -> Any:
    """``copy_row(target, at, source, source_at, count)``: copy a row, with 0 after it."""
    return (builder.select(inside, source, constant(source, 0.0)),)


@over_rows(1, 1)
def lower_row(builder: Any, row: Any, numbers: Any, inside: Any) -> Any:
    """``lower_row(row, at, number, count)``: subtract a number from a row, with -inf after it."""
    return (builder.select(inside, builder.fsub(row, numbers), constant(row, -np.inf)),)


@over_rows(1, 1)
def scale_row(builder: Any, row: Any, factors: Any, inside: Any) -> Any:
    """``scale_row(row, at, factor, count)``: multiply a row by a number."""
    return (builder.fmul(row, factors),)


@over_rows(2, 1)
def divide_row(builder: Any, row: Any, copy: Any, divisors: Any, inside: Any) -> Any:
    """``divide_row(row, at, copy, copy_at, divisor, count)``: divide a row and copy it, with 0 after the copy."""
    shares = builder.fdiv(row, divisors)
    return builder.select(inside, shares, row), builder.select(inside, shares, constant(row, 0.0))


@over_rows(2, 2)
def share_row(builder: Any, target: Any, source: Any, added: Any, divisors: Any, inside: Any) -> Any:
    """``share_row(target, at, source, source_at, added, divisor, count)``: ``(source + added) / divisor``, then 0."""
    shares = builder.fdiv(builder.fadd(source, added), divisors)
    return (builder.select(inside, shares, constant(source, 0.0)),)


@over_rows(1)
def raise_row(builder: Any, row: Any, inside: Any) -> Any:
    """``raise_row(row, at, count)``: replace negative numbers by 0; NaN stays."""
    zeros = constant(row, 0.0)
    return (builder.select(builder.fcmp_ordered("<", row, zeros), zeros, row),)


@over_rows(2, 1)
def clamp_row(builder: Any, row: Any, limits: Any, factors: Any, inside: Any) -> Any:
    """``clamp_row(row, at, limits, limits_at, factor, count)``: clamp to +- ``factor * limits``; NaN stays."""
    most = builder.fmul(factors, limits)
    least = builder.fneg(most)
    row = builder.select(builder.fcmp_ordered(">", row, most), most, row)
    return (builder.select(builder.fcmp_ordered("<", row, least), least, row),)


@over_rows(1, 1)
def fill_row(builder: Any, row: Any, numbers: Any, inside: Any) -> Any:
    """``fill_row(row, at, number, count)``: fill a row with a number."""
    return (numbers,)
