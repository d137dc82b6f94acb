"""Functions of rows in whole vectors against numpy, compiled and as plain Python."""

from typing import Any

import numpy as np
import pytest

from treeparse.kernels.compile import exact_kernel
from treeparse.kernels.rows import (
    add_row,
    add_rows,
    clamp_row,
    copy_row,
    divide_row,
    dot,
    dots,
    fill_row,
    lower_row,
    over_rows,
    raise_row,
    row_sum,
    scale_row,
    share_row,
    whole,
)
from treeparse.kernels.vectors import constant, multiply_add


@exact_kernel
def _use_rows(x, y, z, count):
    """Every function on a row of its own of ``x``; returns the sums."""
    add_row(x, 3, y, 1, 2.0, count)
    add_rows(x, 40, y, 2, z, 5, 2.0, -3.0, count)
    copy_row(x, 80, y, 4, count)
    divide_row(x, 120, z, 40, 4.0, count)
    share_row(x, 160, y, 7, 1.5, 2.0, count)
    raise_row(x, 200, count)
    clamp_row(x, 240, y, 80, 0.5, count)
    fill_row(x, 280, 7.0, count)
    lower_row(x, 320, 1.5, count)
    scale_row(x, 360, 3.0, count)
    return row_sum(y, 9, count), dot(y, 1, z, 2, count), dots(y, 1, z, 2, y, 3, z, 80, count)


@pytest.mark.nojit
@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 24, 30])
def test_rows(count: int) -> None:
    x, y, z = np.random.default_rng(1).normal(size=(3, 400))
    y[80:120] = np.abs(y[80:120])
    before, end = x.copy(), count + -count % 8

    def row(array: np.ndarray, at: int, length: int = count) -> np.ndarray:
        return array[at : at + length]

    sums = _use_rows(x, y, z, count)
    np.testing.assert_allclose(
        sums,
        (
            row(y, 9).sum(),
            row(y, 1, end) @ row(z, 2, end),
            row(y, 1, end) @ row(z, 2, end) + row(y, 3, end) @ row(z, 80, end),
        ),
        rtol=0,
        atol=1e-13,
    )
    behind = np.zeros(end - count)
    expected = {
        3: row(before, 3, end) + 2 * row(y, 1, end),
        40: row(before, 40, end) + 2 * row(y, 2, end) - 3 * row(z, 5, end),
        80: [*row(y, 4), *behind],
        120: [*row(before, 120) / 4, *before[120 + count : 120 + end]],
        160: [*(row(y, 7) + 1.5) / 2, *behind],
        200: np.maximum(row(before, 200, end), 0),
        240: np.clip(row(before, 240, end), -0.5 * row(y, 80, end), 0.5 * row(y, 80, end)),
        280: np.full(end, 7.0),
        320: [*(row(before, 320) - 1.5), *np.full(end - count, -np.inf)],
        360: row(before, 360, end) * 3,
    }
    for at, values in expected.items():
        np.testing.assert_allclose(row(x, at, end), values, rtol=0, atol=1e-14)
        np.testing.assert_array_equal(x[at + end : at + 32], before[at + end : at + 32])
    np.testing.assert_array_equal(row(z, 40, end), [*row(x, 120), *behind])
    assert whole(count) == end


@exact_kernel
def _bound(x, limits):
    raise_row(x, 0, 8)
    clamp_row(x, 8, limits, 0, 1.0, 8)


@pytest.mark.nojit
def test_rows_keep_what_is_no_number() -> None:
    x = np.full(16, np.nan)
    _bound(x, np.ones(8))
    assert np.isnan(x).all()


@over_rows(2, 1, sums=2)
def _dual_sums(builder: Any, first: Any, second: Any, x: Any, y: Any, factor: Any, inside: Any) -> Any:
    zeros = constant(x, 0.0)
    products = builder.select(inside, builder.fmul(builder.fmul(x, y), factor), zeros)
    fused = builder.select(inside, multiply_add(builder, x, factor, y), zeros)
    return builder.fadd(first, products), builder.fadd(second, fused), multiply_add(builder, x, y, factor)


@over_rows(1, maxima=1)
def _maximum(builder: Any, best: Any, x: Any, inside: Any) -> Any:
    x = builder.select(inside, x, constant(x, -np.inf))
    return (builder.select(builder.fcmp_ordered(">", x, best), x, best),)


@exact_kernel
def _use_dual_rows(x, y, factor, count):
    return _dual_sums(x, 2, y, 5, factor, count)


@exact_kernel
def _use_maximum(x, count):
    return _maximum(x, 3, count)


@pytest.mark.nojit
@pytest.mark.parametrize("count", [0, 1, 8, 13])
def test_rows_of_dual_numbers(count: int) -> None:
    """Complex numbers of imaginary parts so small that their squares are below rounding."""
    stream = np.random.default_rng(3)
    x, y = (stream.normal(size=40) + 1e-13j * stream.normal(size=40) for _ in range(2))
    factor = 1.7 + 2e-13j
    left, right, end = x[2:][:count].copy(), y[5:][:count].copy(), count + -count % 8
    expected_row = x[2:][:end] * y[5:][:end] + factor
    sums = _use_dual_rows(x, y, factor, count)
    for found, expected in zip(sums, ((left * right * factor).sum(), (left * factor + right).sum()), strict=True):
        np.testing.assert_allclose(found.real, expected.real, rtol=0, atol=1e-13)
        np.testing.assert_allclose(found.imag, expected.imag, rtol=0, atol=1e-25)
    np.testing.assert_allclose(x[2:][:end].real, expected_row.real, rtol=0, atol=1e-14)
    np.testing.assert_allclose(x[2:][:end].imag, expected_row.imag, rtol=0, atol=1e-26)


@pytest.mark.nojit
@pytest.mark.parametrize("count", [0, 1, 8, 13])
def test_maxima_of_rows(count: int) -> None:
    x = np.random.default_rng(4).normal(size=40)
    x[3 + count :] = np.nan
    assert _use_maximum(x, count) == x[3 : 3 + count].max(initial=-np.inf)
