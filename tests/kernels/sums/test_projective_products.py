"""Hessian-vector products over projective trees against 50-digit arithmetic."""

import decimal
from decimal import Decimal

import numpy as np
import pytest
from helpers.hostile_scores import prefer_each_other
from helpers.oracles import PRECISE, Array, projective_partition
from helpers.projective_sums import product_of, random_arcs

from treeparse.kernels.sums import inside_outside

ROOTS = pytest.mark.parametrize("single_root", [True, False], ids=["single-root", "multi-root"])


def assert_precise_product(
    scores: Array, vector: Array, arcs: list[tuple[int, int]], single_root: bool, scale: float
) -> None:
    """Scores of a scale are given to that scale times 1e-16, and products cannot be better."""
    product = product_of(scores, vector, single_root)
    heads, words = np.array(arcs).T
    expected = precise_products(scores, vector, arcs, single_root)
    tolerance = max(1e-14, 3e-16 * scale) * np.abs(vector).max()
    np.testing.assert_allclose(product[heads, words], expected, rtol=0, atol=tolerance)


def precise_products(scores: Array, vector: Array, arcs: list[tuple[int, int]], single_root: bool) -> Array:
    """Central differences of marginals in 50-digit arithmetic."""
    step = Decimal("1e-15")

    def marginals(sign: int) -> list[Decimal]:
        exponents = zip(scores.ravel().tolist(), vector.ravel().tolist(), strict=True)
        weights = [(Decimal(score) + sign * step * Decimal(v)).exp() for score, v in exponents]
        weights = np.array(weights).reshape(scores.shape)
        total = projective_partition(weights, single_root)
        found = []
        for head, word in arcs:
            restricted = weights.copy()
            restricted[:, word] = Decimal(0)
            restricted[head, word] = weights[head, word]
            found.append(projective_partition(restricted, single_root) / total)
        return found

    with decimal.localcontext(PRECISE):
        pairs = zip(marginals(1), marginals(-1), strict=True)
        return np.array([float((ahead - behind) / (2 * step)) for ahead, behind in pairs])


@ROOTS
@pytest.mark.parametrize("scale", [1.0, 10.0, 50.0, 100.0, 300.0, 1e3, 1e4])
def test_products_at_50_digits(single_root: bool, scale: float) -> None:
    stream = np.random.default_rng(9)
    for n in (8, 20):
        scores, vector = stream.normal(size=(2, n + 1, n + 1))
        assert_precise_product(scores * scale, vector, random_arcs(stream, n, 4), single_root, scale)


@ROOTS
@pytest.mark.parametrize("gap", [30.0, 100.0, 300.0, 1000.0])
def test_words_that_prefer_each_other(single_root: bool, gap: float) -> None:
    stream = np.random.default_rng(8)
    scores, vector = stream.normal(size=(2, 16, 16))
    prefer_each_other(scores, [(3, 4), (8, 15), (1, 12)], gap)
    assert_precise_product(scores, vector, random_arcs(stream, 15, 4), single_root, gap)


@ROOTS
@pytest.mark.parametrize("scale", [1e3, 1e4])
def test_probable_trees_far_apart_in_score(single_root: bool, scale: float) -> None:
    """Multiples of the scale tie, so that much is left open however large the scores."""
    stream = np.random.default_rng(10)
    for _ in range(5):
        noise, vector = stream.normal(size=(2, 11, 11))
        scores = stream.integers(-1, 2, size=(11, 11)) * scale + noise
        assert_precise_product(scores, vector, random_arcs(stream, 10, 5), single_root, scale)


@pytest.mark.parametrize("kinds", [1, 2, 3])
def test_vectors_of_forbidden_parts_touch_no_other_item(kinds: int) -> None:
    """Working memory is used again for the next item; what was NaN there once made its product NaN."""
    stream = np.random.default_rng(5)
    lengths = stream.integers(1, 7, size=20)
    scales = 10.0 ** stream.integers(-1, 5, size=20)
    parts = [(stream.normal(size=(20, *[7] * (3 if kind else 2))).T * scales).T.copy() for kind in range(kinds)]
    for part in parts:
        part[stream.random(part.shape) < 0.2] = -np.inf
    vectors = [np.where(part > -np.inf, stream.normal(size=part.shape), np.nan) for part in parts]

    def product(items: slice) -> tuple[np.ndarray, ...]:
        arguments = [part[items] for part in (*parts, lengths, *vectors)]
        found = inside_outside.hessian_vector_product(*arguments, single_root=True)
        return found if kinds > 1 else (found,)

    together = product(slice(None))
    for item in range(20):
        for own, alone in zip(together, product(slice(item, item + 1)), strict=True):
            np.testing.assert_array_equal(own[item], alone[0])
            assert not np.isnan(alone).any()
