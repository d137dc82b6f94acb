"""Rows of float32 or float64 numbers that are copied into rows of float64 numbers, and back.

``rows`` has the notation. Nothing after a row of a user's array is read or written, because the array may end there.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils

from treeparse.kernels.rows import lanes_before
from treeparse.kernels.vectors import LANES, NUMBERS, by_llvm, largest, load, pointer_to, repeated, store

ALIGNMENT = ir.IntType(32)
LOWEST_TOP = -1e308


def _copy_short(typing: Any, target: Any, at: Any, source: Any, source_at: Any, count: Any) -> Any:
    del typing

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        for vector, place, inside in _vectors(context, builder, signature, values):
            store(builder, builder.select(inside, vector, load(builder, place)), place)
        return context.get_dummy_value()

    return types.void(target, at, source, source_at, count), generate


def _copy_short_plainly(target: Any, at: int, source: Any, source_at: int, count: int) -> None:
    target.reshape(-1)[at : at + count] = source.reshape(-1)[source_at : source_at + count]


copy_short = by_llvm(_copy_short, _copy_short_plainly)
"""``copy_short(target, at, source, source_at, count)``: copy a row to float64; what follows the copy stays."""


def _copy_below_max(typing: Any, target: Any, at: Any, source: Any, source_at: Any, count: Any) -> Any:
    del typing

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        lowest = ir.Constant(NUMBERS, [ir.Constant(ir.DoubleType(), -np.inf)] * LANES)
        top = cgutils.alloca_once_value(builder, lowest)
        count = values[4]
        is_one = builder.icmp_signed("<=", count, count.type(LANES))
        with builder.if_else(is_one) as (one, several):
            with one:  # in registers
                start = pointer_to(context, builder, signature.args[0], *values[:2])
                source_start = pointer_to(context, builder, signature.args[2], *values[2:4])
                inside = lanes_before(builder, count)
                vector = _load_inside(builder, source_start, inside, signature.args[2].dtype)
                builder.store(vector, top)
                store(builder, builder.fsub(vector, _repeated_top(builder, largest(builder, vector))), start)
            with several:
                for vector, place, _ in _vectors(context, builder, signature, values):
                    higher = builder.fcmp_ordered(">", vector, builder.load(top))
                    builder.store(builder.select(higher, vector, builder.load(top)), top)
                    store(builder, vector, place)
                tops = _repeated_top(builder, largest(builder, builder.load(top)))
                start = pointer_to(context, builder, signature.args[0], *values[:2])
                steps = count.type(0), count, count.type(LANES)
                with cgutils.for_range_slice(builder, *steps, count.type) as (index, _):
                    place = builder.gep(start, [index])
                    store(builder, builder.fsub(load(builder, place), tops), place)
        return largest(builder, builder.load(top))

    return types.float64(target, at, source, source_at, count), generate


def _vectors(context: Any, builder: Any, signature: Any, values: Any) -> Iterator[tuple[Any, Any, Any]]:
    """The code of a loop: the vector of the source, its place in the target, and the mask of what is inside."""
    start = pointer_to(context, builder, signature.args[0], *values[:2])
    source_start, count = pointer_to(context, builder, signature.args[2], *values[2:4]), values[4]
    steps = count.type(0), count, count.type(LANES)
    with cgutils.for_range_slice(builder, *steps, count.type) as (index, _):
        inside = lanes_before(builder, builder.sub(count, index))
        vector = _load_inside(builder, builder.gep(source_start, [index]), inside, signature.args[2].dtype)
        yield vector, builder.gep(start, [index]), inside


def _repeated_top(builder: Any, top: Any) -> Any:
    """Return the vector that repeats a maximum, which is finite: -inf less -inf would be no number."""
    lowest = ir.Constant(ir.DoubleType(), LOWEST_TOP)
    return repeated(builder, builder.select(builder.fcmp_ordered(">", top, lowest), top, lowest))


def _copy_below_max_plainly(target: Any, at: int, source: Any, source_at: int, count: int) -> Any:
    row = source.reshape(-1)[source_at : source_at + count].astype(np.float64)
    target.reshape(-1)[at : at + count] = row - max(row.max(), LOWEST_TOP)
    return row.max()


copy_below_max = by_llvm(_copy_below_max, _copy_below_max_plainly)
"""``copy_below_max(target, at, source, source_at, count)``: copy a row to float64, less its largest number.

Returns that number. What follows the copy is written too, up to a whole vector: to keep it would mean to read it, which
waits for what was written there last.
"""


def _copy_multiple(typing: Any, target: Any, at: Any, source: Any, source_at: Any, factor: Any, count: Any) -> Any:
    del typing

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        start = pointer_to(context, builder, signature.args[0], *values[:2])
        source_start = pointer_to(context, builder, signature.args[2], *values[2:4])
        factors, count = repeated(builder, values[4]), values[5]
        steps = count.type(0), count, count.type(LANES)
        with cgutils.for_range_slice(builder, *steps, count.type) as (index, _):
            inside = lanes_before(builder, builder.sub(count, index))
            vector = builder.fmul(load(builder, builder.gep(source_start, [index])), factors)
            _store_inside(builder, vector, builder.gep(start, [index]), inside, signature.args[0].dtype)
        return context.get_dummy_value()

    return types.void(target, at, source, source_at, factor, count), generate


def _copy_multiple_plainly(target: Any, at: int, source: Any, source_at: int, factor: float, count: int) -> None:
    target.reshape(-1)[at : at + count] = source.reshape(-1)[source_at : source_at + count] * factor


copy_multiple = by_llvm(_copy_multiple, _copy_multiple_plainly)
"""``copy_multiple(target, at, source, source_at, factor, count)``: copy a multiple of a float64 row to either type."""


def _load_inside(builder: Any, pointer: Any, inside: Any, number: Any) -> Any:
    """Return float64 numbers of a vector of either type, -inf outside."""
    kind, name = _vector(number)
    others = ir.Constant(kind, [ir.Constant(kind.element, -np.inf)] * LANES)
    arguments = builder.bitcast(pointer, kind.as_pointer()), ALIGNMENT(number.bitwidth // 8), inside, others
    types_of_arguments = [argument.type for argument in arguments]
    function = _function(builder, f"llvm.masked.load.{name}.p0{name}", kind, *types_of_arguments)
    vector = builder.call(function, arguments)
    return builder.fpext(vector, NUMBERS) if number is types.float32 else vector


def _store_inside(builder: Any, vector: Any, pointer: Any, inside: Any, number: Any) -> None:
    """Write float64 numbers to a vector of either type."""
    kind, name = _vector(number)
    vector = builder.fptrunc(vector, kind) if number is types.float32 else vector
    arguments = vector, builder.bitcast(pointer, kind.as_pointer()), ALIGNMENT(number.bitwidth // 8), inside
    types_of_arguments = [argument.type for argument in arguments]
    function = _function(builder, f"llvm.masked.store.{name}.p0{name}", ir.VoidType(), *types_of_arguments)
    builder.call(function, arguments)


def _vector(number: Any) -> tuple[Any, str]:
    """Return the type of vectors of a numba type, and its name in LLVM's functions."""
    if number is types.float32:
        return ir.VectorType(ir.FloatType(), LANES), f"v{LANES}f32"
    return NUMBERS, f"v{LANES}f64"


def _function(builder: Any, name: str, result: Any, *arguments: Any) -> Any:
    return cgutils.get_or_insert_function(builder.module, ir.FunctionType(result, arguments), name)
