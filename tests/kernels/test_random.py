"""The random streams: uniform, independent of one another as far as simple statistics show, and the same each time."""

import numpy as np
import pytest

from treeparse.kernels.compile import exact_kernel
from treeparse.kernels.random import new_stream, uniform


@exact_kernel
def draws(seed, samples, count):
    values = np.empty((samples, count))
    for sample in range(samples):
        stream = new_stream(seed, sample)
        for draw in range(count):
            stream, values[sample, draw] = uniform(stream)
    return values


@pytest.mark.parametrize("seed", [0, 1, 2**63, 2**64 - 1])
def test_draws_are_uniform_along_and_across_streams(seed: int) -> None:
    values = draws(np.uint64(seed), 400, 400)
    assert values.min() > 0.0
    assert values.max() < 1.0
    counts, _ = np.histogram(values, 400, (0.0, 1.0))
    chi_square = ((counts - 400.0) ** 2 / 400.0).sum()
    assert abs(chi_square - 399) < 4 * np.sqrt(2 * 399)
    for first, second in ((values[:, :-1], values[:, 1:]), (values[:-1], values[1:])):
        correlation = np.corrcoef(first.ravel(), second.ravel())[0, 1]
        assert abs(correlation) < 4 / 400


def test_neighbouring_seeds_share_nothing() -> None:
    first, second = (draws(np.uint64(seed), 50, 50) for seed in (7, 8))
    assert not np.intersect1d(first, second).size


def test_a_sample_does_not_depend_on_how_many_there_are() -> None:
    np.testing.assert_array_equal(draws(np.uint64(3), 2, 5), draws(np.uint64(3), 20, 9)[:2, :5])


@pytest.mark.nojit
def test_splitmix64_as_published() -> None:
    """The first outputs of SplitMix64 from seed 1234567, as its reference implementation prints them."""
    stream, found = np.uint64(1234567), []
    with np.errstate(over="ignore"):
        for _ in range(3):
            stream, value = uniform(stream)
            stream = np.uint64(stream)
            found.append(value)
    published = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    np.testing.assert_allclose(found, [output / 2.0**64 for output in published], rtol=0, atol=2.0**-52)
