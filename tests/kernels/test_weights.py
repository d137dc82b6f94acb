"""The exponentials that weights are made of, against 40-digit arithmetic."""

import mpmath
import numpy as np
import pytest

from treeparse.kernels.logspace import exp


@pytest.mark.nojit
def test_exponentials_are_right_to_a_unit_in_the_last_place() -> None:
    stream = np.random.default_rng(1)
    for count in (0, 1, 7, 8, 512, 1541):
        x = stream.uniform(-1, 1, size=count) * stream.choice([1e-9, 1.0, 30.0, 700.0], size=count)
        result = [exp(number) for number in x]
        with mpmath.workdps(40):
            for number, value in zip(x, result, strict=True):
                assert abs(mpmath.exp(mpmath.mpf(number)) - mpmath.mpf(value)) <= np.spacing(value)


@pytest.mark.nojit
def test_exponentials_at_the_edges() -> None:
    x = np.array([0.0, -0.0, -np.inf, -1e300, -708.0, np.nan])
    with np.errstate(all="ignore"):
        found = [exp(number) for number in x]
    np.testing.assert_array_equal(found, [1.0, 1.0, 0.0, 0.0, 0.0, np.nan])
