"""Rounding to eight bits, against Python's own arithmetic."""

import numpy as np
import pytest

from treeparse.kernels.networks import round_rows, round_within_one


def rounded(values: np.ndarray, levels: int) -> tuple[np.ndarray, np.ndarray]:
    found, scales = np.empty(values.shape, np.uint8), np.empty((len(values), 1), np.float32)
    round_rows(values, levels, found, scales)
    return found.astype(np.float64) - levels - 1, scales.astype(np.float64)


@pytest.mark.nojit
@pytest.mark.parametrize("levels", [63, 127])
def test_rows_are_rounded_to_the_nearest_of_their_levels(levels: int) -> None:
    stream = np.random.default_rng(1)
    sizes = np.array([[1e-20], [1e-3], [1.0], [50.0], [1e20]])
    values = (stream.normal(size=(5, 37)) * sizes).astype(np.float32)
    whole, scales = rounded(values, levels)
    np.testing.assert_allclose(scales[:, 0], np.abs(values).max(1) / levels, rtol=1e-6)
    assert (np.abs(whole).max(1) == levels).all()
    assert (np.abs(whole * scales - values) <= 0.5001 * scales).all()


@pytest.mark.nojit
def test_rows_of_zeros_and_of_no_numbers() -> None:
    whole, scales = rounded(np.zeros((2, 3), np.float32), 127)
    assert not whole.any() and np.isfinite(scales).all()
    assert rounded(np.empty((0, 3), np.float32), 127)[0].shape == (0, 3)
    assert not rounded(np.empty((2, 0), np.float32), 127)[0].any()


def test_what_is_no_number_stays_none() -> None:
    _, scales = rounded(np.array([[1.0, np.nan], [np.inf, 1.0], [1.0, 2.0]], np.float32), 127)
    assert np.isfinite(scales[:, 0]).tolist() == [False, False, True]


@pytest.mark.nojit
@pytest.mark.parametrize("levels", [63, 127])
def test_values_within_one(levels: int) -> None:
    values = np.concatenate([np.linspace(-1, 1, 1001), [1e-9, -0.0]]).astype(np.float32)[np.newaxis]
    found = np.empty(values.shape, np.uint8)
    round_within_one(values, levels, found)
    whole = found.astype(np.float64) - levels - 1
    assert np.abs(whole - levels * values).max() <= 0.5001
    assert (whole[0, 0], whole[0, 1000], whole[0, 1002]) == (-levels, levels, 0)
