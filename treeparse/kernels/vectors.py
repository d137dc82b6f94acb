"""Vectors of eight float64 numbers, for the few loops that compilers do not make of their own accord.

They are written in LLVM's language, which splits them where a machine has shorter ones. Sums of products are rounded
once, on every machine. Arrays are contiguous.
"""

from collections.abc import Callable
from typing import Any

import numba
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

LANES = 8
NUMBERS = ir.VectorType(ir.DoubleType(), LANES)
INDEX = ir.IntType(32)


def spelled_out(typed: Callable[..., Any], plain: Callable[..., Any]) -> Any:
    """A function of kernels by its LLVM code, as ``intrinsic`` takes it; ``plain`` is it under NUMBA_DISABLE_JIT=1."""
    is_off = numba.njit(plain) is plain
    return plain if is_off else intrinsic(typed)


def pointer_to(context: Any, builder: Any, array: Any, value: Any, index: Any) -> Any:
    """Where the number of an index stands, counted through the whole array."""
    return builder.gep(context.make_array(array)(context, builder, value).data, [index])


def load(builder: Any, pointer: Any, kind: Any = NUMBERS) -> Any:
    """The vector of what stands from a pointer on."""
    loaded = builder.load(builder.bitcast(pointer, kind.as_pointer()))
    loaded.align = 8
    return loaded


def store(builder: Any, vector: Any, pointer: Any) -> None:
    """Write a vector from a pointer on."""
    builder.store(vector, builder.bitcast(pointer, vector.type.as_pointer())).align = 8


def repeated(builder: Any, number: Any) -> Any:
    """The vector of one number."""
    undefined = ir.Constant(NUMBERS, ir.Undefined)
    first = builder.insert_element(undefined, number, ir.Constant(INDEX, 0))
    return builder.shuffle_vector(first, undefined, ir.Constant(ir.VectorType(INDEX, LANES), None))


def multiply_add(builder: Any, x: Any, y: Any, z: Any) -> Any:
    """``x * y + z`` of vectors, rounded once."""
    name = f"llvm.fma.v{x.type.count}f64"
    function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(x.type, [x.type] * 3), name)
    return builder.call(function, [x, y, z])


def _stay_apart(typing: Any) -> Any:
    del typing

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        del signature, values
        builder.function.attributes.add("noinline")
        return context.get_dummy_value()

    return types.void(), generate


stay_apart = spelled_out(_stay_apart, lambda: None)
"""``stay_apart()`` in a function: it is compiled once for all of its calls, which long loops are not by themselves."""


def _add_multiple(typing: Any, total: Any, at: Any, factor: Any, terms: Any, terms_at: Any) -> Any:
    del typing

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        place = pointer_to(context, builder, signature.args[0], values[0], values[1])
        added = load(builder, pointer_to(context, builder, signature.args[3], values[3], values[4]))
        result = multiply_add(builder, repeated(builder, values[2]), added, load(builder, place))
        store(builder, result, place)
        return context.get_dummy_value()

    return types.void(total, at, factor, terms, terms_at), generate


def _add_multiple_plainly(total: Any, at: int, factor: float, terms: Any, terms_at: int) -> None:
    total.reshape(-1)[at : at + LANES] += factor * terms.reshape(-1)[terms_at : terms_at + LANES]


add_multiple = spelled_out(_add_multiple, _add_multiple_plainly)
"""``add_multiple(total, at, factor, terms, terms_at)``: a vector of ``total`` plus a multiple of one of ``terms``."""


def _copy_vector(typing: Any, target: Any, at: Any, source: Any, source_at: Any) -> Any:
    del typing

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        vector = load(builder, pointer_to(context, builder, signature.args[2], values[2], values[3]))
        store(builder, vector, pointer_to(context, builder, signature.args[0], values[0], values[1]))
        return context.get_dummy_value()

    return types.void(target, at, source, source_at), generate


def _copy_vector_plainly(target: Any, at: int, source: Any, source_at: int) -> None:
    target.reshape(-1)[at : at + LANES] = source.reshape(-1)[source_at : source_at + LANES]


copy_vector = spelled_out(_copy_vector, _copy_vector_plainly)
"""``copy_vector(target, at, source, source_at)``: one vector."""


def _fill_vector(typing: Any, target: Any, at: Any, number: Any) -> Any:
    del typing

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        place = pointer_to(context, builder, signature.args[0], values[0], values[1])
        store(builder, repeated(builder, values[2]), place)
        return context.get_dummy_value()

    return types.void(target, at, number), generate


def _fill_vector_plainly(target: Any, at: int, number: float) -> None:
    target.reshape(-1)[at : at + LANES] = number


fill_vector = spelled_out(_fill_vector, _fill_vector_plainly)
"""``fill_vector(target, at, number)``: one vector of a number."""


def _copy_transposed(
    typing: Any, target: Any, at: Any, step: Any, source: Any, source_at: Any, source_step: Any
) -> Any:
    del typing

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        def row(array: int, count: int) -> Any:
            value, start, distance = values[array : array + 3]
            index = builder.add(start, builder.mul(distance, distance.type(count)))
            return pointer_to(context, builder, signature.args[array], value, index)

        rows = [load(builder, row(3, count)) for count in range(LANES)]
        for column, vector in enumerate(_transposed(builder, rows)):
            store(builder, vector, row(0, column))
        return context.get_dummy_value()

    return types.void(target, at, step, source, source_at, source_step), generate


def _transposed(builder: Any, rows: list[Any]) -> list[Any]:
    """The columns of eight vectors, by exchanging halves, quarters and neighbours."""
    distance = LANES // 2
    while distance:
        low = [i + (LANES - distance if i & distance else 0) for i in range(LANES)]
        masks = [ir.Constant(ir.VectorType(INDEX, LANES), [place + shift for place in low]) for shift in (0, distance)]
        exchanged = list(rows)
        for i in range(LANES):
            if not i & distance:
                pair = rows[i], rows[i + distance]
                exchanged[i], exchanged[i + distance] = (builder.shuffle_vector(*pair, mask) for mask in masks)
        rows = exchanged
        distance //= 2
    return rows


def _copy_transposed_plainly(target: Any, at: int, step: int, source: Any, source_at: int, source_step: int) -> None:
    target, source = target.reshape(-1), source.reshape(-1)
    block = [source[source_at + i * source_step :][:LANES].copy() for i in range(LANES)]
    for column in range(LANES):
        target[at + column * step : at + column * step + LANES] = [row[column] for row in block]


copy_transposed = spelled_out(_copy_transposed, _copy_transposed_plainly)
"""``copy_transposed(target, at, step, source, source_at, source_step)``: eight vectors, as columns.

Vectors of the target and of the source begin at so many numbers from one another.
"""
