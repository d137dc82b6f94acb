"""Sums in logs against plain weights, where these are safe, and against 50 digits for scores up to 1e6."""

import numpy as np
import pytest
from helpers.oracles import enumerated_product, enumerated_sums, precise_log_partition, score_scale

from treeparse.kernels.sums.elimination import log_partition_and_marginals
from treeparse.kernels.sums.elimination_in_logs import sum_in_logs
from treeparse.kernels.sums.hessian import hessian_vector_product

ROOTS = pytest.mark.parametrize("single_root", [True, False], ids=["single-root", "multi-root"])
LENGTHS = np.array([1, 0, 5, 8, 23])
SIZE = 25


def random_scores(seed: int) -> np.ndarray:
    """A batch with NaN where it is to be ignored."""
    stream = np.random.default_rng(seed)
    scores = 3 * stream.normal(size=(len(LENGTHS), SIZE, SIZE))
    scores[stream.random(scores.shape) < 0.1] = -np.inf
    scores[:, np.arange(1, SIZE), np.arange(SIZE - 1)] = scores[:, 0] = 1.0  # each word may have the one after it
    scores[3, 0, [1, 2, 4, 5, 6, 7, 8]] = -np.inf  # the third word hangs from the root
    for item, n in zip(scores, LENGTHS, strict=True):
        item[:, 0] = item[n + 1 :] = item[:, n + 1 :] = np.nan
        np.fill_diagonal(item, np.nan)
    return scores


@ROOTS
@pytest.mark.nojit
def test_sums_and_products_are_those_of_plain_weights(single_root: bool) -> None:
    scores, vectors = random_scores(1), np.random.default_rng(2).normal(size=(len(LENGTHS), SIZE, SIZE))
    with np.errstate(all="ignore"):
        log_z, marginals = sum_in_logs(scores, LENGTHS, single_root=single_root)
        _, products = sum_in_logs(scores, LENGTHS, vectors, single_root=single_root)
    expected_log_z, expected = log_partition_and_marginals(scores, LENGTHS, single_root=single_root)
    assert (expected_log_z > -np.inf).all()
    np.testing.assert_allclose(log_z, expected_log_z, rtol=1e-13)
    np.testing.assert_allclose(marginals, expected, rtol=0, atol=1e-13)
    expected = hessian_vector_product(scores, LENGTHS, vectors, single_root=single_root)
    np.testing.assert_allclose(products, expected, rtol=0, atol=1e-12)


@ROOTS
@pytest.mark.parametrize("scale", [1e5, 1e6])
@pytest.mark.parametrize("noise", [0.0, 1.0], ids=["ties", "nearly ties"])
def test_large_scores_that_tie(single_root: bool, scale: float, noise: float) -> None:
    """Multiples of the scale leave much open however large the scores are."""
    stream = np.random.default_rng(3)
    for n in (3, 4, 5, 5):
        scores = stream.integers(-1, 2, size=(n + 1, n + 1)) * scale + noise * stream.normal(size=(n + 1, n + 1))
        vector, tolerance = stream.normal(size=scores.shape), 1e-14 * score_scale(scores)
        log_z, marginals = sum_in_logs(scores[None], np.array([n]), single_root=single_root)
        expected_log_z, expected = enumerated_sums(scores, single_root)
        assert abs(log_z[0] - expected_log_z) <= 1e-14 * score_scale(scores)
        np.testing.assert_allclose(marginals[0], expected, rtol=0, atol=tolerance)
        product = sum_in_logs(scores[None], np.array([n]), vector[None], single_root=single_root)[1][0]
        np.testing.assert_allclose(product, enumerated_product(scores, vector, single_root), rtol=0, atol=tolerance)


@ROOTS
@pytest.mark.parametrize("scale", [1e5, 1e6])
def test_log_partition_of_large_scores_at_50_digits(single_root: bool, scale: float) -> None:
    for n in (12, 40):
        scores = np.random.default_rng(n).uniform(-scale, scale, size=(n + 1, n + 1))
        log_z, marginals = sum_in_logs(scores[None], np.array([n]), single_root=single_root)
        assert abs(log_z[0] - precise_log_partition(scores, single_root)) <= 1e-14 * score_scale(scores)
        np.testing.assert_allclose(marginals[0].sum(0)[1:], 1.0, rtol=0, atol=1e-12)
