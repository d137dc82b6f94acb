"""Stacks of rows of float64 numbers, combined down their columns, eight columns at a time.

A total of many rows is kept in registers while the rows go by, where the functions of ``rows`` would load and store it
for each of them. A stack is an array, the index of a vector of its first row in the flattened array, and the distance
between rows, which may be negative; beside it go arrays with one number for each row. Some functions take rows by
their indices. Arrays may be of complex numbers, too, which are dual numbers (``DualVector``).
"""

from collections.abc import Callable
from inspect import Parameter, Signature
from typing import Any

from numba import types
from numba.core import cgutils

from treeparse.kernels.vectors import (
    LANES,
    DualBuilder,
    NumpyBuilder,
    RunningVector,
    by_llvm,
    load_vector,
    pointer_to,
    repeated,
    store_vector,
)


def over_stacks(
    totals: int, stacks: int, numbers: int = 0, *, picked: bool = False
) -> Callable[[Callable[..., Any]], Any]:
    """Make a function of ``totals`` vectors, which it changes, from the code of one row.

    That code takes an LLVM builder, the totals so far, a vector of each stack, and each number of the row repeated, and
    returns the new totals. The function takes ``(total, at)`` for each total, ``(stack, at, step)`` for each stack, if
    ``picked`` the ``(indices, at)`` of the rows, ``(numbers, at)`` for each array of numbers, and the number of rows.
    Under NUMBA_DISABLE_JIT=1 the code takes NumPy arrays and ``NumpyBuilder``.
    """
    stacks_at, indices_at = 2 * totals, 2 * totals + 3 * stacks
    numbers_at = indices_at + 2 * picked

    def decorate(code: Callable[..., Any]) -> Any:
        def typed(typing: Any, *arguments: Any) -> Any:
            del typing
            return types.void(*arguments), generate

        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            def pointer(array: int) -> Any:
                return pointer_to(context, builder, signature.args[array], values[array], values[array + 1])

            is_dual, count = signature.args[0].dtype is types.complex128, values[-1]
            row_builder = DualBuilder(builder) if is_dual else builder
            places = [pointer(2 * i) for i in range(totals)]
            running = [RunningVector(builder, load_vector(builder, place, is_dual=is_dual)) for place in places]
            tops = [(pointer(at), values[at + 2]) for at in range(stacks_at, indices_at, 3)]
            indices = pointer(indices_at) if picked else None
            firsts = [pointer(at) for at in range(numbers_at, len(values) - 1, 2)]
            with cgutils.for_range(builder, count, intp=count.type) as loop:
                row = builder.load(builder.gep(indices, [loop.index])) if picked else loop.index
                pointers = [builder.gep(top, [builder.mul(step, row)]) for top, step in tops]
                vectors = [load_vector(builder, each, is_dual=is_dual) for each in pointers]
                of_row = [repeated(builder, builder.load(builder.gep(first, [loop.index]))) for first in firsts]
                results = code(row_builder, *(each.load() for each in running), *vectors, *of_row)
                for each, vector in zip(running, results, strict=True):
                    each.store(vector)
            for each, place in zip(running, places, strict=True):
                store_vector(builder, each.load(), place)
            return context.get_dummy_value()

        def plainly(*arguments: Any) -> None:
            views = [arguments[2 * i].reshape(-1)[arguments[2 * i + 1] :][:LANES] for i in range(totals)]
            for row in range(arguments[-1]):
                vectors, index = [], row
                if picked:
                    indices, at = arguments[indices_at:numbers_at]
                    index = indices[at + row]
                for at in range(stacks_at, indices_at, 3):
                    array, first, step = arguments[at : at + 3]
                    vectors.append(array.reshape(-1)[first + index * step :][:LANES])
                of_row = [
                    arguments[at].reshape(-1)[arguments[at + 1] + row]
                    for at in range(numbers_at, len(arguments) - 1, 2)
                ]
                for view, result in zip(views, code(NumpyBuilder, *views, *vectors, *of_row), strict=True):
                    view[:] = result

        names = [f"argument{i}" for i in range(numbers_at + 2 * numbers + 2)]
        parameters = [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in names]
        typed.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
        return by_llvm(typed, plainly)

    return decorate
