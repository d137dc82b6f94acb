"""Vectors of eight float64 numbers, for the few loops that compilers do not vectorise.

The loops are LLVM code; LLVM splits the vectors where a machine has shorter ones. Sums of products are rounded once, on
every machine. Arrays are contiguous.
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


def by_llvm(typed: Callable[..., Any], plain: Callable[..., Any]) -> Any:
    """Return a function of kernels by its LLVM code, for ``intrinsic``; ``plain`` is for NUMBA_DISABLE_JIT=1."""
    is_off = numba.njit(plain) is plain
    return plain if is_off else intrinsic(typed)


def pointer_to(context: Any, builder: Any, array: Any, value: Any, index: Any) -> Any:
    """Return the pointer to an index of the flattened array."""
    return builder.gep(context.make_array(array)(context, builder, value).data, [index])


def load(builder: Any, pointer: Any, kind: Any = NUMBERS) -> Any:
    """Return the vector that begins at a pointer."""
    loaded = builder.load(builder.bitcast(pointer, kind.as_pointer()))
    loaded.align = 8
    return loaded


def store(builder: Any, vector: Any, pointer: Any) -> None:
    """Write a vector to a pointer."""
    builder.store(vector, builder.bitcast(pointer, vector.type.as_pointer())).align = 8


def repeated(builder: Any, number: Any) -> Any:
    """Return the vector that repeats one number."""
    undefined = ir.Constant(NUMBERS, ir.Undefined)
    first = builder.insert_element(undefined, number, ir.Constant(INDEX, 0))
    return builder.shuffle_vector(first, undefined, ir.Constant(ir.VectorType(INDEX, LANES), None))


def multiply_add(builder: Any, x: Any, y: Any, z: Any) -> Any:
    """Return ``x * y + z`` of vectors, rounded once."""
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


stay_apart = by_llvm(_stay_apart, lambda: None)
"""``stay_apart()`` in a function: it is not inlined, so its loops are compiled once for all calls."""


def _add_multiple(typing: Any, total: Any, at: Any, factor: Any, terms: Any, terms_at: Any) -> Any:
    del typing

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        target = pointer_to(context, builder, signature.args[0], values[0], values[1])
        added = load(builder, pointer_to(context, builder, signature.args[3], values[3], values[4]))
        result = multiply_add(builder, repeated(builder, values[2]), added, load(builder, target))
        store(builder, result, target)
        return context.get_dummy_value()

    return types.void(total, at, factor, terms, terms_at), generate


def _add_multiple_plainly(total: Any, at: int, factor: float, terms: Any, terms_at: int) -> None:
    total.reshape(-1)[at : at + LANES] += factor * terms.reshape(-1)[terms_at : terms_at + LANES]


add_multiple = by_llvm(_add_multiple, _add_multiple_plainly)
"""``add_multiple(total, at, factor, terms, terms_at)``: add a multiple of one vector to another."""


def _copy_vector(typing: Any, target: Any, at: Any, source: Any, source_at: Any) -> Any:
    del typing

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        vector = load(builder, pointer_to(context, builder, signature.args[2], values[2], values[3]))
        store(builder, vector, pointer_to(context, builder, signature.args[0], values[0], values[1]))
        return context.get_dummy_value()

    return types.void(target, at, source, source_at), generate


def _copy_vector_plainly(target: Any, at: int, source: Any, source_at: int) -> None:
    target.reshape(-1)[at : at + LANES] = source.reshape(-1)[source_at : source_at + LANES]


copy_vector = by_llvm(_copy_vector, _copy_vector_plainly)
"""``copy_vector(target, at, source, source_at)``: copy one vector."""


def _fill_vector(typing: Any, target: Any, at: Any, number: Any) -> Any:
    del typing

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        target = pointer_to(context, builder, signature.args[0], values[0], values[1])
        store(builder, repeated(builder, values[2]), target)
        return context.get_dummy_value()

    return types.void(target, at, number), generate


def _fill_vector_plainly(target: Any, at: int, number: float) -> None:
    target.reshape(-1)[at : at + LANES] = number


fill_vector = by_llvm(_fill_vector, _fill_vector_plainly)
"""``fill_vector(target, at, number)``: fill one vector with a number."""


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
    """Return the columns of eight vectors, by exchanging halves, quarters and neighbours."""
    distance = LANES // 2
    while distance:
        low = [i + (LANES - distance if i & distance else 0) for i in range(LANES)]
        masks = [ir.Constant(ir.VectorType(INDEX, LANES), [lane + shift for lane in low]) for shift in (0, distance)]
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


copy_transposed = by_llvm(_copy_transposed, _copy_transposed_plainly)
"""``copy_transposed(target, at, step, source, source_at, source_step)``: eight vectors, as columns.

``step`` and ``source_step`` are the distances between the starts of consecutive vectors.
"""
