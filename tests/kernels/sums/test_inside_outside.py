"""Sums over projective trees against enumeration, closed forms and 50-digit arithmetic, alone and in batches."""

import math

import numpy as np
import pytest
from helpers.batches import assert_same_alone, batch_of_lengths
from helpers.hostile_scores import forbidden_arcs, hostile_scores
from helpers.oracles import (
    Array,
    enumerated_log_marginals,
    enumerated_product,
    enumerated_sums,
    precise_log_marginals,
    precise_projective_log_partition,
    score_scale,
)
from helpers.projective_sums import product_of, random_arcs, sums

from treeparse.kernels.sums.inside_outside import (
    hessian_vector_product,
    log_marginals,
    log_partition_and_marginals,
)

SCALES = (1e-3, pytest.param(1.0, marks=pytest.mark.nojit), 10.0, 1e2, 1e3, pytest.param(1e4, marks=pytest.mark.nojit))
LARGE_SCALES = (1.0, 10.0, 50.0, 100.0, 300.0, 1e3, 1e4)
ROOTS = pytest.mark.parametrize("single_root", [True, False], ids=["single-root", "multi-root"])


def assert_enumerated(scores: Array, stream: np.random.Generator, single_root: bool) -> None:
    scale = score_scale(scores)
    log_z, marginals, logs = sums(scores, single_root)
    expected, expected_marginals = enumerated_sums(scores, single_root, projective=True)
    assert log_z == expected or abs(log_z - expected) <= 1e-12 * scale
    np.testing.assert_allclose(marginals, expected_marginals, rtol=0, atol=1e-14 * scale)
    expected_logs = enumerated_log_marginals(scores, single_root, projective=True)
    np.testing.assert_array_equal(logs == -np.inf, expected_logs == -np.inf)
    np.testing.assert_allclose(logs, expected_logs, rtol=0, atol=1e-12 * scale)
    vector = stream.normal(size=scores.shape)
    product = product_of(scores, vector, single_root)
    expected_product = enumerated_product(scores, vector, single_root, projective=True)
    np.testing.assert_allclose(product, expected_product, rtol=0, atol=1e-14 * scale)


@ROOTS
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("forbidden", [0.0, 0.3, 0.6])
def test_sums_equal_enumeration(single_root: bool, scale: float, forbidden: float) -> None:
    stream = np.random.default_rng(1)
    for n in (1, 2, 3, 4, 4, 5):
        scores = stream.normal(size=(n + 1, n + 1)) * scale
        scores[stream.random(scores.shape) < forbidden] = -np.inf
        assert_enumerated(scores, stream, single_root)


@ROOTS
def test_underflow_is_never_silent(single_root: bool) -> None:
    stream = np.random.default_rng(4)
    for _ in range(600):
        assert_enumerated(hostile_scores(stream, int(stream.integers(2, 5))), stream, single_root)


@ROOTS
def test_rounding_is_not_magnified(single_root: bool) -> None:
    """Plain weights and logs agree on marginals, and no product is larger than the vector lets it be."""
    stream = np.random.default_rng(20)
    count, n = 2048, 8
    scores, vectors = stream.normal(size=(2, count, n + 1, n + 1))
    scores *= 10 ** stream.uniform(0, 3.3, size=(count, 1, 1))
    scores[stream.random(scores.shape) < 0.4] = -np.inf
    log_z, marginals, logs, products = every_sum(scores, np.full(count, n), vectors, single_root)
    np.testing.assert_allclose(marginals, np.exp(logs), rtol=0, atol=1e-12)
    np.testing.assert_allclose(marginals.sum(1)[log_z > -np.inf, 1:], 1.0, rtol=0, atol=1e-13)
    assert (np.abs(products) <= 2 * n * np.abs(vectors).max()).all()
    np.testing.assert_allclose(products.sum(1), 0.0, atol=1e-12)


@ROOTS
@pytest.mark.parametrize("root", [0.0, -1000.0], ids=["linear", "logs"])
def test_every_pattern_of_forbidden_arcs_over_three_words(single_root: bool, root: float) -> None:
    stream = np.random.default_rng(5)
    for pattern in forbidden_arcs():
        scores = pattern + stream.normal(size=(4, 4))
        scores[0] += root
        assert_enumerated(scores, stream, single_root)


@pytest.mark.parametrize("n", [1, 2, 10, 60, 210])
def test_equal_scores_count_the_trees(n: int) -> None:
    """Plain weights reach to about 190 words: of independently chosen heads, hardly any are a projective tree."""
    counts = math.comb(3 * n - 2, n - 1) // n, math.comb(3 * n, n) // (2 * n + 1)
    for single_root, count in zip((True, False), counts, strict=True):
        log_z, marginals, logs = sums(np.zeros((n + 1, n + 1)), single_root)
        assert log_z == pytest.approx(math.log(count), rel=1e-13)
        words = marginals[1:, 1:]
        np.testing.assert_allclose(words, words[::-1, ::-1], rtol=1e-11)
        np.testing.assert_allclose(np.exp(logs), marginals, rtol=1e-11)


@ROOTS
@pytest.mark.parametrize("scale", LARGE_SCALES)
def test_sums_at_50_digits(single_root: bool, scale: float) -> None:
    """The most improbable arcs too."""
    stream = np.random.default_rng(6)
    for n in (10, 25):
        scores = stream.normal(size=(n + 1, n + 1)) * scale
        log_z, marginals, logs = sums(scores, single_root)
        assert abs(log_z - precise_projective_log_partition(scores, single_root)) <= 1e-14 * score_scale(scores)
        np.testing.assert_allclose(marginals.sum(0)[1:], 1.0, rtol=0, atol=1e-13)
        least_probable = np.unravel_index(np.where(logs > -np.inf, logs, 0.0).argmin(), logs.shape)
        arcs = np.array([least_probable, *random_arcs(stream, n, 3)])
        expected = precise_log_marginals(scores, arcs, single_root, precise_projective_log_partition)
        heads, words = arcs.T
        np.testing.assert_allclose(logs[heads, words], expected, rtol=0, atol=1e-14 * score_scale(scores))
        np.testing.assert_allclose(marginals[heads, words], np.exp(expected), rtol=0, atol=1e-16 * score_scale(scores))


@ROOTS
def test_improbable_arcs_of_plain_weights_keep_relative_accuracy(single_root: bool) -> None:
    """Marginals down to 1e-130, none of which is a difference."""
    stream = np.random.default_rng(19)
    scores = stream.normal(size=(13, 13))
    scores[0, 1] += 150.0
    scores[np.arange(1, 12), np.arange(2, 13)] += 150.0
    _, marginals, logs = sums(scores, single_root)
    possible = logs > -np.inf
    assert marginals[possible].min() < 1e-100
    np.testing.assert_allclose(marginals[possible], np.exp(logs[possible]), rtol=1e-12)


@ROOTS
@pytest.mark.nojit
def test_an_item_is_the_same_bits_alone_and_in_a_batch(single_root: bool) -> None:
    def sums(lengths: np.ndarray, scores: Array, vectors: Array) -> tuple[Array, Array, Array, Array]:
        return every_sum(scores, lengths, vectors, single_root)

    lengths = np.array([7, 12, 1, 12, 3, 9])
    scores, vectors = (batch_of_lengths(lengths, seed) for seed in (15, 16))
    scores[1, :, 4] = -np.inf  # no tree
    assert_same_alone(sums, (np.nan, 0.0, -np.inf, 0.0), lengths, scores, vectors)


def every_sum(
    scores: Array, lengths: np.ndarray, vectors: Array, single_root: bool, threads: int = 1
) -> tuple[Array, Array, Array, Array]:
    log_z, marginals = log_partition_and_marginals(scores, lengths, single_root=single_root, threads=threads)
    logs = log_marginals(scores, lengths, single_root=single_root, threads=threads)
    product = hessian_vector_product(scores, lengths, vectors, single_root=single_root, threads=threads)
    return log_z, marginals, logs, product
