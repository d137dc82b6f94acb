"""Hessian-vector products against enumerated covariances and 60-digit arithmetic, alone and in batches."""

import decimal
from decimal import Decimal
from functools import partial

import numpy as np
import pytest
from helpers.batches import assert_same_alone, batch_of_lengths
from helpers.hessian_products import checked_product
from helpers.hostile_scores import forbidden_arcs, hostile_scores, prefer_each_other
from helpers.oracles import PRECISE, enumerated_product, score_scale

from treeparse.kernels.sums.elimination import log_partition_and_marginals
from treeparse.kernels.sums.hessian import hessian_vector_product

product_of = partial(checked_product, hessian_vector_product)

SCALES = (1e-3, pytest.param(1.0, marks=pytest.mark.nojit), 10.0, 1e2, 1e3, pytest.param(1e4, marks=pytest.mark.nojit))
ROOTS = pytest.mark.parametrize("single_root", [True, False], ids=["single-root", "multi-root"])


def assert_covariance(scores: np.ndarray, stream: np.random.Generator, single_root: bool) -> None:
    vector = stream.normal(size=scores.shape)
    expected = enumerated_product(scores, vector, single_root)
    product = product_of(scores, vector, single_root)
    np.testing.assert_allclose(product, expected, rtol=0, atol=1e-14 * score_scale(scores))


def precise_product(scores: np.ndarray, vector: np.ndarray, single_root: bool) -> np.ndarray:
    """A central difference of marginals in 60-digit arithmetic; every arc must be allowed."""
    with decimal.localcontext(PRECISE, prec=60):
        step = Decimal(10) ** -18
        precise = np.vectorize(Decimal, otypes=[object])
        scores, vector = precise(scores), step * precise(vector)
        difference = precise_marginals(scores + vector, single_root) - precise_marginals(scores - vector, single_root)
        return (difference / (2 * step)).astype(float)


def precise_marginals(scores: np.ndarray, single_root: bool) -> np.ndarray:
    """Elimination and its reverse over matrices of Decimals, ``weights[head, dependent]``."""
    n = len(scores) - 1
    original = np.vectorize(Decimal.exp, otypes=[object])(scores)
    original[np.diag_indices(n + 1)] = original[:, 0] = Decimal(0)
    weights, adjoint = original.copy(), 0 * original
    pivots = {}
    for k in range(n, 0, -1):
        first = 1 if single_root and k > 1 else 0
        pivots[k] = weights[first:k, k].sum()
        weights[:k, :k] += np.outer(weights[:k, k] / pivots[k], weights[k, :k])
        weights[np.diag_indices(k)] = Decimal(0)
    for k in range(1, n + 1):
        first = 1 if single_root and k > 1 else 0
        adjoint[k, :k] = weights[:k, k] @ adjoint[:k, :k] / pivots[k]
        adjoint[:k, k] = adjoint[:k, :k] @ weights[k, :k] / pivots[k]
        adjoint[first:k, k] += (1 - adjoint[k, :k] @ weights[k, :k]) / pivots[k]
    return adjoint * original


@ROOTS
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("forbidden", [0.0, 0.3, 0.6])
def test_products_equal_enumeration(single_root: bool, scale: float, forbidden: float) -> None:
    stream = np.random.default_rng(1)
    for n in (1, 2, 3, 4, 4, 5):
        scores = stream.normal(size=(n + 1, n + 1)) * scale
        scores[stream.random(scores.shape) < forbidden] = -np.inf
        assert_covariance(scores, stream, single_root)


@ROOTS
def test_underflow_is_never_silent(single_root: bool) -> None:
    stream = np.random.default_rng(4)
    for _ in range(900):
        assert_covariance(hostile_scores(stream, int(stream.integers(2, 5))), stream, single_root)


@ROOTS
@pytest.mark.parametrize("n", [8, 12])
def test_rounding_is_not_magnified(single_root: bool, n: int) -> None:
    """An adjoint may be all rounding, be divided by a tiny pivot and multiplied by a huge weight of the root."""
    stream, count = np.random.default_rng(14), 8192
    scores, vectors = stream.normal(size=(2, count, n + 1, n + 1))
    scores *= 10 ** stream.uniform(2, 3.3, size=(count, 1, 1))
    scores[stream.random(scores.shape) < 0.5] = -np.inf
    products = hessian_vector_product(scores, np.full(count, n), vectors, single_root=single_root)
    assert (np.abs(products) <= 2 * n * np.abs(vectors).max()).all()
    np.testing.assert_allclose(products.sum(1), 0.0, atol=1e-12)


def test_tangents_overflow_where_weights_do_not() -> None:
    """Only by an arc of weight e^-580 is the second word reached but from the root, whose weight is divided by it."""
    off = -np.inf
    scores = [[off, 763.4, off, 846.7], [off, off, -567.6, off], [off, -89.0, off, 268.9], [off, 380.3, -435.9, off]]
    stream = np.random.default_rng(15)
    for _ in range(10):
        assert_covariance(np.array(scores), stream, single_root=True)


@pytest.mark.parametrize("root", [pytest.param(0.0, marks=pytest.mark.nojit), -1000.0], ids=["linear", "logs"])
def test_every_pattern_of_forbidden_arcs_over_three_words(root: float) -> None:
    stream = np.random.default_rng(5)
    for pattern in forbidden_arcs():
        scores = pattern + stream.normal(size=(4, 4))
        scores[0] += root
        assert_covariance(scores, stream, single_root=True)


def assert_precise(scores: np.ndarray, vector: np.ndarray, single_root: bool, scale: float) -> None:
    """Scores of a scale are given to that scale times 1e-16, and products cannot be better."""
    expected = precise_product(scores, vector, single_root)
    product = product_of(scores, vector, single_root)
    np.testing.assert_allclose(product, expected, rtol=0, atol=max(1e-14, 3e-16 * scale) * np.abs(vector).max())


@ROOTS
@pytest.mark.parametrize("scale", [1, 10, 50, 100, 300, 1000, 10000])
def test_products_at_60_digits(single_root: bool, scale: float) -> None:
    stream = np.random.default_rng(6)
    for n in (10, 10, 20) if scale > 1 else (40,):
        scores, vector = stream.normal(size=(2, n + 1, n + 1))
        assert_precise(scores * scale, vector, single_root, scale)


@ROOTS
@pytest.mark.parametrize("gap", [30, 100, 300, 1000])
def test_words_that_prefer_each_other(single_root: bool, gap: float) -> None:
    scores, vector = np.random.default_rng(7).normal(size=(2, 21, 21))
    prefer_each_other(scores, [(3, 4), (8, 15), (1, 20)], gap)
    assert_precise(scores, vector, single_root, gap)


@ROOTS
@pytest.mark.parametrize("scale", [1e3, 1e4])
def test_probable_trees_far_apart_in_score(single_root: bool, scale: float) -> None:
    """Multiples of the scale tie, so that much is left open however large the scores."""
    stream = np.random.default_rng(8)
    for _ in range(5):
        noise, vector = stream.normal(size=(2, 11, 11))
        assert_precise(stream.integers(-1, 2, size=(11, 11)) * scale + noise, vector, single_root, scale)


@ROOTS
@pytest.mark.parametrize("forbidden", [0.0, 0.5, 0.8])
def test_sums_and_products_do_not_depend_on_the_order_of_words(single_root: bool, forbidden: float) -> None:
    """Where enumeration cannot go, with the only child of the root at every index, and every number of words left."""
    stream = np.random.default_rng(16)
    for n in (*range(7, 18), 26):
        (scores, vectors), lengths = stream.normal(size=(2, 30, n + 1, n + 1)), np.full(30, n)
        scores *= 3
        scores[stream.random(scores.shape) < forbidden] = -np.inf
        for item, word in zip(scores[::2], stream.integers(1, n + 1, size=15), strict=True):
            item[:, word] = -np.inf
            item[0, word] = 1.0
        order = np.concatenate([[0], 1 + stream.permutation(n)])
        permuted = [np.ascontiguousarray(array[:, order][:, :, order]) for array in (scores, vectors)]
        results = []
        for arcs, along in ((scores, vectors), permuted):
            log_z, marginals = log_partition_and_marginals(arcs, lengths, single_root=single_root)
            results.append([log_z, marginals, hessian_vector_product(arcs, lengths, along, single_root=single_root)])
        (log_z, *found), (expected_log_z, *expected) = results
        np.testing.assert_allclose(log_z, expected_log_z, rtol=0, atol=1e-12)
        for own, other, digits in zip(found, expected, (1e-13, 1e-12), strict=True):
            np.testing.assert_allclose(own[:, order][:, :, order], other, rtol=0, atol=digits)


@ROOTS
@pytest.mark.nojit
def test_an_item_is_the_same_bits_alone_and_in_a_batch(single_root: bool) -> None:
    def products(lengths: np.ndarray, scores: np.ndarray, vectors: np.ndarray) -> tuple[np.ndarray]:
        return (hessian_vector_product(scores, lengths, vectors, single_root=single_root),)

    lengths = np.array([7, 12, 1, 12, 3, 9])
    assert_same_alone(products, (0.0,), lengths, *(batch_of_lengths(lengths, seed) for seed in (13, 14)))
