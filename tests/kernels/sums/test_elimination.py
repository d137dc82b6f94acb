"""Sums over trees against enumeration and 50-digit arithmetic, alone and in batches."""

import numpy as np
import pytest
from helpers.batches import assert_same_alone, batch_of_lengths
from helpers.hostile_scores import forbidden_arcs, hostile_scores
from helpers.oracles import enumerated_sums, precise_log_partition, score_scale

from treeparse.kernels.sums.elimination import log_partition, log_partition_and_marginals

SCALES = (1e-3, pytest.param(1.0, marks=pytest.mark.nojit), 10.0, 1e2, 1e3, pytest.param(1e4, marks=pytest.mark.nojit))
ROOTS = pytest.mark.parametrize("single_root", [True, False], ids=["single-root", "multi-root"])


def sums(scores: np.ndarray, single_root: bool) -> tuple[float, np.ndarray]:
    """Log partition and marginals of one item, whose ignored entries hold NaN."""
    item = scores.copy()
    item[:, 0] = np.nan
    np.fill_diagonal(item, np.nan)
    lengths = np.array([len(item) - 1])
    log_z, marginals = log_partition_and_marginals(item[None], lengths, single_root=single_root)
    assert log_partition(item[None], lengths, single_root=single_root)[0] == log_z[0]
    return log_z[0], marginals[0]


def assert_enumerated(scores: np.ndarray, single_root: bool) -> None:
    expected, expected_marginals = enumerated_sums(scores, single_root)
    scale = score_scale(scores)
    log_z, marginals = sums(scores, single_root)
    if expected == -np.inf:
        assert log_z == -np.inf
    else:
        assert abs(log_z - expected) <= 1e-12 * scale
    assert (marginals >= 0).all()
    np.testing.assert_allclose(marginals, expected_marginals, rtol=0, atol=1e-14 * scale)


@ROOTS
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("forbidden", [0.0, 0.3, 0.6])
def test_sums_equal_enumeration(single_root: bool, scale: float, forbidden: float) -> None:
    stream = np.random.default_rng(1)
    for n in (1, 2, 3, 4, 4, 5):
        scores = stream.normal(size=(n + 1, n + 1)) * scale
        scores[stream.random(scores.shape) < forbidden] = -np.inf
        assert_enumerated(scores, single_root)


@ROOTS
def test_underflow_is_never_silent(single_root: bool) -> None:
    stream = np.random.default_rng(4)
    for _ in range(1000):
        assert_enumerated(hostile_scores(stream, int(stream.integers(2, 5))), single_root)


@pytest.mark.nojit
def test_every_pattern_of_forbidden_arcs_over_three_words() -> None:
    for scores in forbidden_arcs():
        expected, expected_marginals = enumerated_sums(scores, single_root=True)
        log_z, marginals = sums(scores, True)
        assert log_z == expected or abs(log_z - expected) < 1e-14
        np.testing.assert_allclose(marginals, expected_marginals, rtol=0, atol=1e-14)


@pytest.mark.parametrize("scale", [1.0, 30.0, 1e3])
def test_marginals_are_the_slope_of_the_precise_log_partition(scale: float) -> None:
    """A finite difference in 50-digit arithmetic, where elimination in log space is too long to enumerate."""
    stream = np.random.default_rng(6)
    scores = stream.normal(size=(13, 13)) * scale
    direction, step = stream.normal(size=(13, 13)), 2.0**-20
    ahead, behind = (precise_log_partition(scores + sign * step * direction, True) for sign in (1, -1))
    _, marginals = sums(scores, True)
    assert abs((ahead - behind) / (2 * step) - (marginals * direction).sum()) <= 1e-8 * max(1.0, scale)


@ROOTS
@pytest.mark.nojit
def test_an_item_is_the_same_bits_alone_and_in_a_batch(single_root: bool) -> None:
    def sums(lengths: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return log_partition_and_marginals(scores, lengths, single_root=single_root)

    lengths = np.array([7, 12, 1, 12, 3, 9])
    assert_same_alone(sums, (np.nan, 0.0), lengths, batch_of_lengths(lengths, seed=7))
