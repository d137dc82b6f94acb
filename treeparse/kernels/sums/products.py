"""Products of small matrices that are added to a third, at the speed of the machine.

Compilers do not keep a tile of the sum in registers while its terms go by, and without that a product runs at the speed
of memory. So the innermost loops are written in vectors of eight numbers, which LLVM splits where the machine has
shorter ones. Arrays are contiguous, two-dimensional float64; the upper left corner says which part of an array is used.
"""

from typing import Any

from numba import types
from numba.core import cgutils

from treeparse.kernels.compile import exact_kernel
from treeparse.kernels.vectors import LANES, by_llvm, load, multiply_add, pointer_to, repeated, stay_apart, store

TILE_ROWS = 8  # enough sums to hide the latency of an addition


@exact_kernel
def add_product(total, corner, left, left_corner, right, right_corner, shape):
    """``total += left @ right``, where ``shape`` is (rows, inner, columns) and columns are a multiple of ``LANES``.

    ``total`` may share rows with neither of the others.
    """
    _add_tiles(total, corner, left, left_corner, left.shape[1], 1, right, right_corner, shape)


@exact_kernel
def add_transposed_product(total, corner, left, left_corner, right, right_corner, shape):
    """``total += left.T @ right``, otherwise as ``add_product``."""
    _add_tiles(total, corner, left, left_corner, 1, left.shape[1], right, right_corner, shape)


@exact_kernel
def _add_tiles(total, corner, left, left_corner, row_step, inner_step, right, right_corner, shape):
    """``left`` is read at ``row_step`` numbers from row to row of the product and ``inner_step`` from term to term."""
    stay_apart()
    rows, inner, columns = shape
    width, right_width = total.shape[1], right.shape[1]
    left_start = left_corner[0] * left.shape[1] + left_corner[1]
    for column in range(0, columns, LANES):
        right_start = right_corner[0] * right_width + right_corner[1] + column
        start = corner[0] * width + corner[1] + column
        row = 0
        while row + TILE_ROWS <= rows:
            at = start + row * width, left_start + row * row_step, right_start
            _add_tile(total, left, right, at, (width, row_step, inner_step, right_width), inner)
            row += TILE_ROWS
        while row < rows:
            at = start + row * width, left_start + row * row_step, right_start
            _add_row(total, left, right, at, (width, row_step, inner_step, right_width), inner)
            row += 1


def _added_plainly(rows: int) -> Any:
    """Return ``_tile`` as Python, for ``NUMBA_DISABLE_JIT=1``."""

    def add(total: Any, left: Any, right: Any, at: Any, steps: Any, inner: int) -> None:
        width, row_step, inner_step, right_width = steps
        for row in range(rows):
            for lane in range(LANES):
                index = at[0] + row * width + lane
                for term in range(inner):
                    factor = left.flat[at[1] + row * row_step + term * inner_step]
                    total.flat[index] += factor * right.flat[at[2] + term * right_width + lane]

    return add


def _tile(rows: int) -> Any:
    """Return the compiled function that adds ``inner`` terms to ``rows`` vectors, which stay in registers."""

    def typed(typing: Any, total: Any, left: Any, right: Any, at: Any, steps: Any, inner: Any) -> Any:
        del typing
        return types.void(total, left, right, at, steps, inner), generate

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        starts = cgutils.unpack_tuple(builder, values[3], 3)
        width, row_step, inner_step, right_width = cgutils.unpack_tuple(builder, values[4], 4)
        total, left, right = (
            pointer_to(context, builder, kind, value, start)
            for kind, value, start in zip(signature.args[:3], values[:3], starts, strict=True)
        )

        def after(pointer: Any, step: Any, count: Any) -> Any:
            return builder.gep(pointer, [builder.mul(step, count)])

        targets = [after(total, width, width.type(row)) for row in range(rows)]
        sums = [cgutils.alloca_once_value(builder, load(builder, pointer)) for pointer in targets]
        with cgutils.for_range(builder, values[5]) as loop:
            terms = load(builder, after(right, right_width, loop.index))
            begin = after(left, inner_step, loop.index)
            for row, summed in enumerate(sums):
                factors = repeated(builder, builder.load(after(begin, row_step, row_step.type(row))))
                builder.store(multiply_add(builder, factors, terms, builder.load(summed)), summed)
        for pointer, summed in zip(targets, sums, strict=True):
            store(builder, builder.load(summed), pointer)
        return context.get_dummy_value()

    return by_llvm(typed, _added_plainly(rows))


_add_tile, _add_row = _tile(TILE_ROWS), _tile(1)
