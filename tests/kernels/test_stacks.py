"""Functions of stacks of rows against NumPy, compiled and as plain Python."""

from typing import Any

import numpy as np
import pytest

from treeparse.kernels.compile import exact_kernel
from treeparse.kernels.stacks import over_stacks
from treeparse.kernels.vectors import multiply_add


@over_stacks(2, 2, 1)
def _totals(builder: Any, products: Any, sums: Any, x: Any, y: Any, factors: Any) -> Any:
    return multiply_add(builder, x, y, products), multiply_add(builder, y, factors, sums)


@over_stacks(1, 1)
def _raise(builder: Any, best: Any, x: Any) -> Any:
    return (builder.select(builder.fcmp_ordered(">", x, best), x, best),)


@over_stacks(1, 1, 1, picked=True)
def _picked(builder: Any, total: Any, x: Any, factors: Any) -> Any:
    return (multiply_add(builder, x, factors, total),)


@exact_kernel
def _use_picked(target, x, rows, factors, count):
    _picked(target, 2, x, 3, 10, rows, 1, factors, 2, count)


@exact_kernel
def _use_totals(targets, x, y, factors, count):
    _totals(targets, 3, targets, 12, x, 2, 11, y, 100, -9, factors, 4, count)


@exact_kernel
def _use_raise(target, x, count):
    _raise(target, 1, x, 5, 9, count)


@pytest.mark.nojit
@pytest.mark.parametrize("is_dual", [False, True], ids=["", "dual"])
@pytest.mark.parametrize("count", [0, 1, 2, 9])
def test_totals_of_stacks(count: int, is_dual: bool) -> None:
    """Dual numbers are complex ones of imaginary parts so small that their squares are below rounding."""
    stream = np.random.default_rng(1)
    targets, x, y, factors = (
        stream.normal(size=size) + (1e-13j * stream.normal(size=size) if is_dual else 0.0)
        for size in (24, 120, 120, 20)
    )
    expected = targets.copy()
    for row in range(count):
        above, below = x[2 + 11 * row :][:8], y[100 - 9 * row :][:8]
        expected[3:11] += above * below
        expected[12:20] += below * factors[4 + row]
    _use_totals(targets, x, y, factors, count)
    np.testing.assert_allclose(targets.real, expected.real, rtol=0, atol=1e-14)
    np.testing.assert_allclose(targets.imag, expected.imag, rtol=0, atol=1e-26)


@pytest.mark.nojit
@pytest.mark.parametrize("count", [0, 1, 6])
def test_maxima_of_stacks(count: int) -> None:
    target, x = np.random.default_rng(2).normal(size=(2, 64))
    expected = target.copy()
    for row in range(count):
        expected[1:9] = np.maximum(expected[1:9], x[5 + 9 * row :][:8])
    _use_raise(target, x, count)
    np.testing.assert_array_equal(target, expected)


@pytest.mark.nojit
@pytest.mark.parametrize("count", [0, 1, 4])
def test_totals_of_picked_rows(count: int) -> None:
    stream = np.random.default_rng(3)
    target, x, factors = stream.normal(size=16), stream.normal(size=128), stream.normal(size=8)
    rows = np.array([9, 0, 5, 6, 11])
    expected = target.copy()
    for place in range(count):
        expected[2:10] += x[3 + 10 * rows[1 + place] :][:8] * factors[2 + place]
    _use_picked(target, x, rows, factors, count)
    np.testing.assert_allclose(target, expected, rtol=0, atol=1e-14)
