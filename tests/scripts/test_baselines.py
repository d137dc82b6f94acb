"""The algorithms that treeparse is timed against are right: each agrees with all trees."""

from functools import partial

import numpy as np
import pytest
import torch
from helpers.oracles import all_trees, enumerated_sums, tree_scores
from helpers.precise import Precise
from helpers.tree_cases import CASES
from scripts.experiments.measure_accuracy import precise_sums
from scripts.support.expectations import baselines
from scripts.support.kbest import camerini

LENGTHS = np.array([1, 2, 3, 4, 5, 5, 5])
SIZE = LENGTHS.max() + 2  # one node of padding at least
PRODUCTS = {
    "t2": baselines.t2_products,
    "t2h": baselines.t2h_products,
    "t2h in given memory": partial(baselines.t2h_products, room=np.full(2 * baselines.hessian_size(5), np.nan)),
    "druck and smith": baselines.druck_smith_products,
}


@pytest.fixture
def scores() -> baselines.Array:
    """Small sentences, the last two with forbidden arcs: a word with one head, a word that heads nothing."""
    result = np.random.default_rng(1).normal(scale=2, size=(len(LENGTHS), SIZE, SIZE))
    result[5, [0, 1, 2, 4, 5], 3] = [-np.inf, -np.inf, -np.inf, 1.0, -np.inf]
    result[6, 2, :] = -np.inf
    return result


def sums_of_trees(scores: baselines.Array, values: baselines.Array) -> tuple[baselines.Array, baselines.Array]:
    """Probabilities (trees,) of a sentence's trees and their sums of arc values (V, n+1, n+1), as (trees, V)."""
    trees = all_trees(len(scores) - 1, True)
    log_z, _ = enumerated_sums(scores, True)
    return np.exp(tree_scores(scores, trees) - log_z), np.stack([tree_scores(value, trees) for value in values], 1)


def enumerated_covariance(
    scores: baselines.Array, r: baselines.Array, s: baselines.Array
) -> tuple[baselines.Array, baselines.Array]:
    """E[r] (R,) and Cov(r, s) (R, S) of one sentence."""
    probabilities, first = sums_of_trees(scores, r)
    _, second = sums_of_trees(scores, s)
    expected = probabilities @ first
    return expected, ((first - expected) * probabilities[:, None]).T @ second


@pytest.mark.parametrize("technology", ["compiled", "torch"])
@pytest.mark.parametrize("algorithm", ["t1", "smith_eisner"])
def test_entropy(algorithm: str, technology: str, scores: baselines.Array) -> None:
    if technology == "torch":
        entropy = getattr(baselines, f"{algorithm}_entropy_of_tensors")
        found = entropy(torch.from_numpy(scores), torch.from_numpy(LENGTHS)).numpy()
    else:
        found = getattr(baselines, f"{algorithm}_entropy")(scores, LENGTHS)
    for item, n in enumerate(LENGTHS):
        probabilities, _ = sums_of_trees(scores[item, : n + 1, : n + 1], np.zeros((1, n + 1, n + 1)))
        possible = probabilities[probabilities > 0]
        assert found[item] == pytest.approx(-(possible * np.log(possible)).sum(), abs=1e-12)


def test_marginals_and_log_partition(scores: baselines.Array) -> None:
    found = baselines.first_order(scores, LENGTHS)
    for item, n in enumerate(LENGTHS):
        log_z, marginals = enumerated_sums(scores[item, : n + 1, : n + 1], True)
        best = np.where(np.eye(n + 1) == 1, -np.inf, scores[item, : n + 1, : n + 1])[:, 1:].max(0).sum()
        assert found.log_z[item] == pytest.approx(log_z - best, abs=1e-12)
        np.testing.assert_allclose(found.marginals[item, : n + 1, : n + 1], marginals, atol=1e-13)
        assert not found.marginals[item, n + 1 :].any() and not found.marginals[item, :, n + 1 :].any()


@pytest.mark.parametrize("name", PRODUCTS)
def test_covariance(name: str, scores: baselines.Array) -> None:
    stream = np.random.default_rng(2)
    r, s = stream.normal(size=(len(LENGTHS), 2, SIZE, SIZE)), stream.normal(size=(len(LENGTHS), 3, SIZE, SIZE))
    found = baselines.covariance(PRODUCTS[name], scores, LENGTHS, r, s)
    for item, n in enumerate(LENGTHS):
        words = np.s_[..., : n + 1, : n + 1]
        _, expected = enumerated_covariance(scores[item][words], r[item][words], s[item][words])
        np.testing.assert_allclose(found[item], expected, atol=1e-12)


@pytest.mark.parametrize("gradient", [baselines.ge_gradient, baselines.ge_gradient_by_feature])
@pytest.mark.parametrize("name", PRODUCTS)
def test_gradient_of_generalised_expectation(name: str, gradient, scores: baselines.Array) -> None:
    stream = np.random.default_rng(3)
    features = stream.normal(size=(len(LENGTHS), 4, SIZE, SIZE))
    targets = stream.normal(size=(len(LENGTHS), 4))
    found = gradient(PRODUCTS[name], scores, LENGTHS, features, targets)
    for item, n in enumerate(LENGTHS):
        words = np.s_[..., : n + 1, : n + 1]
        # The gradient is the covariance of f (E[f] - target) with the indicator of every arc.
        arcs = np.eye((n + 1) ** 2).reshape(-1, n + 1, n + 1)
        expected, covariance = enumerated_covariance(scores[item][words], features[item][words], arcs)
        np.testing.assert_allclose(
            found[item][words].ravel(), (expected - targets[item]) @ covariance, atol=1e-11, rtol=0
        )
        assert not found[item, n + 1 :].any() and not found[item, :, n + 1 :].any()


@pytest.mark.parametrize("original", [True, False], ids=["Camerini", "KBest"])
def test_lists_by_camerini_and_by_kbest_equal_enumeration(original: bool) -> None:
    stream = np.random.default_rng(1)
    for trial in range(150):
        n = int(stream.integers(1, 6))
        scores = stream.normal(size=(n + 1, n + 1))
        scores[stream.random(scores.shape) < 0.3 * (trial % 3 == 0)] = -np.inf
        expected = np.sort(tree_scores(scores, all_trees(n, False)))[::-1]
        if expected[0] == -np.inf:
            continue
        for k in (1, 2, 30, 1300):
            heads, totals = camerini.k_best(scores[None], np.array([n]), k, original=original)
            count = min(k, int((expected > -np.inf).sum()))
            np.testing.assert_allclose(totals[0, :count], expected[:count], rtol=1e-12, atol=1e-12)
            np.testing.assert_allclose(tree_scores(scores, heads[0, :count, 1:]), totals[0, :count], atol=1e-12)
            assert len(np.unique(heads[0, :count], axis=0)) == count
            assert (heads[0, count:] == -1).all() and (totals[0, count:] == -np.inf).all()


@pytest.mark.parametrize("original", [True, False], ids=["Camerini", "KBest"])
def test_padding_does_not_count(original: bool) -> None:
    stream = np.random.default_rng(2)
    lengths = np.array([4, 7, 2])
    scores = stream.normal(size=(3, 8, 8))
    heads, totals = camerini.k_best(scores, lengths, 10, original=original)
    for item, n in enumerate(lengths):
        own = np.ascontiguousarray(scores[item : item + 1, : n + 1, : n + 1])
        own_heads, own_totals = camerini.k_best(own, lengths[item : item + 1], 10, original=original)
        np.testing.assert_array_equal(own_heads[0], heads[item, :, : n + 1])
        np.testing.assert_array_equal(own_totals[0], totals[item])
        assert (heads[item, :, n + 1 :] == -1).all()


def test_elimination_agrees_with_the_sum_over_all_trees() -> None:
    case = next(each for each in CASES if each.kind.name == "numba" and each.single_root and not each.labels)
    parameters = case.parameters(4, seed=3, scale=5.0)
    exact = Precise(case, parameters)
    log_z, marginals = precise_sums(parameters[0])
    assert log_z == pytest.approx(float(exact.log_partition), rel=1e-15)
    assert marginals.numpy() == pytest.approx(exact.marginals[0].numpy(), abs=1e-16)
