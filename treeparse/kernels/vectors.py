"""Vectors of eight float64 numbers, for the few loops that compilers do not vectorise.

The loops are LLVM code; LLVM splits the vectors where a machine has shorter ones. Sums of products are rounded once, on
every machine. Arrays are contiguous.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

LANES = 8
NUMBERS = ir.VectorType(ir.DoubleType(), LANES)
NUMBER_PAIRS = ir.VectorType(ir.DoubleType(), 2 * LANES)
NO_SUM = ir.Constant(ir.DoubleType(), -0.0)
INDEX = ir.IntType(32)


class NumpyBuilder:
    """The part of an LLVM builder that rows need, on NumPy arrays, for NUMBA_DISABLE_JIT=1."""

    fadd, fsub, fmul, fdiv, fneg, select = np.add, np.subtract, np.multiply, np.divide, np.negative, np.where
    multiply_add = staticmethod(lambda x, y, z: x * y + z)

    @staticmethod
    def fcmp_ordered(comparison: str, x: Any, y: Any) -> Any:
        return {"<": np.less, ">": np.greater}[comparison](x, y)


@dataclass(frozen=True)
class DualVector:
    """A vector of dual numbers, which complex numbers store: its values, and its derivatives as imaginary parts."""

    values: Any
    tangents: Any

    @classmethod
    def interleaved(cls, builder: Any, vector: Any) -> Self:
        """Take the parts of complex numbers ``<16 x double>`` apart."""
        undefined = ir.Constant(vector.type, ir.Undefined)
        masks = [ir.Constant(ir.VectorType(INDEX, LANES), list(range(part, 2 * LANES, 2))) for part in (0, 1)]
        return cls(*(builder.shuffle_vector(vector, undefined, mask) for mask in masks))

    def interleave(self, builder: Any) -> Any:
        """Return the parts as complex numbers."""
        lanes = [lane + part * LANES for lane in range(LANES) for part in (0, 1)]
        mask = ir.Constant(ir.VectorType(INDEX, 2 * LANES), lanes)
        return builder.shuffle_vector(self.values, self.tangents, mask)


@dataclass(frozen=True)
class DualBuilder:
    """What rows of dual numbers need of an LLVM builder."""

    builder: Any

    def fadd(self, x: DualVector, y: DualVector) -> DualVector:
        return DualVector(self.builder.fadd(x.values, y.values), self.builder.fadd(x.tangents, y.tangents))

    def fmul(self, x: DualVector, y: DualVector) -> DualVector:
        tangents = multiply_add(self.builder, x.values, y.tangents, self.builder.fmul(x.tangents, y.values))
        return DualVector(self.builder.fmul(x.values, y.values), tangents)

    def multiply_add(self, x: DualVector, y: DualVector, z: DualVector) -> DualVector:
        tangents = multiply_add(self.builder, x.tangents, y.values, z.tangents)
        tangents = multiply_add(self.builder, x.values, y.tangents, tangents)
        return DualVector(multiply_add(self.builder, x.values, y.values, z.values), tangents)

    def select(self, mask: Any, x: DualVector, y: DualVector) -> DualVector:
        parts = zip((x.values, x.tangents), (y.values, y.tangents), strict=True)
        return DualVector(*(self.builder.select(mask, *part) for part in parts))


class RunningVector:
    """A vector that a loop changes, which may be of dual numbers, in memory that LLVM turns into registers."""

    def __init__(self, builder: Any, first: Any) -> None:
        self._builder, self._is_dual = builder, isinstance(first, DualVector)
        self._places = [cgutils.alloca_once_value(builder, part) for part in self._parts(first)]

    def _parts(self, vector: Any) -> list[Any]:
        return [vector.values, vector.tangents] if self._is_dual else [vector]

    def load(self) -> Any:
        parts = [self._builder.load(place) for place in self._places]
        return DualVector(*parts) if self._is_dual else parts[0]

    def store(self, vector: Any) -> None:
        for part, place in zip(self._parts(vector), self._places, strict=True):
            self._builder.store(part, place)

    def reduced(self, context: Any, reduce: Callable[[Any, Any], Any]) -> Any:
        """Return one number of all lanes, by ``total_of`` or ``largest``."""
        parts = [reduce(self._builder, self._builder.load(place)) for place in self._places]
        if not self._is_dual:
            return parts[0]
        result = context.make_complex(self._builder, types.complex128)
        result.real, result.imag = parts
        return result._getvalue()


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


def load_vector(builder: Any, pointer: Any, *, is_dual: bool) -> Any:
    """Return the vector that begins at a pointer, of dual numbers if so."""
    if not is_dual:
        return load(builder, pointer)
    return DualVector.interleaved(builder, load(builder, pointer, NUMBER_PAIRS))


def store_vector(builder: Any, vector: Any, pointer: Any) -> None:
    """Write a vector, which may be of dual numbers, to a pointer."""
    store(builder, vector.interleave(builder) if isinstance(vector, DualVector) else vector, pointer)


def repeated(builder: Any, number: Any) -> Any:
    """Return the vector that repeats one number, which may be complex."""
    if isinstance(number.type, ir.LiteralStructType):
        return DualVector(*(repeated(builder, builder.extract_value(number, part)) for part in (0, 1)))
    undefined = ir.Constant(NUMBERS, ir.Undefined)
    first = builder.insert_element(undefined, number, ir.Constant(INDEX, 0))
    return builder.shuffle_vector(first, undefined, ir.Constant(ir.VectorType(INDEX, LANES), None))


def constant(vector: Any, number: float) -> Any:
    """Return a vector of equal numbers; NumPy, which broadcasts, needs the number alone."""
    if isinstance(vector, DualVector):
        return DualVector(constant(vector.values, number), constant(vector.values, 0.0))
    return ir.Constant(vector.type, [number] * vector.type.count) if hasattr(vector, "type") else number


def constant_vector(number: float, *, is_dual: bool) -> Any:
    """Return the LLVM vector of equal numbers, of dual numbers if so."""
    vector = ir.Constant(NUMBERS, [number] * LANES)
    return DualVector(vector, constant(vector, 0.0)) if is_dual else vector


def total_of(builder: Any, vector: Any) -> Any:
    """Return the sum of a vector's numbers, by halves."""
    kind = ir.FunctionType(ir.DoubleType(), [ir.DoubleType(), NUMBERS])
    function = cgutils.get_or_insert_function(builder.module, kind, f"llvm.vector.reduce.fadd.v{LANES}f64")
    return builder.call(function, [NO_SUM, vector], fastmath=("reassoc",))


def largest(builder: Any, vector: Any) -> Any:
    """Return the largest of a vector's numbers."""
    kind = ir.FunctionType(ir.DoubleType(), [NUMBERS])
    function = cgutils.get_or_insert_function(builder.module, kind, f"llvm.vector.reduce.fmax.v{LANES}f64")
    return builder.call(function, [vector], fastmath=("nnan",))


def multiply_add(builder: Any, x: Any, y: Any, z: Any) -> Any:
    """Return ``x * y + z`` of vectors, rounded once by LLVM."""
    if hasattr(builder, "multiply_add"):
        return builder.multiply_add(x, y, z)
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
