"""Wilson's sampler and its kin: their law, with and without a limit of the steps, and how many steps they take."""

import numpy as np
import pytest
from helpers.chi_square import LIMIT
from helpers.oracles import Array
from helpers.ranking import KINDS, random_graph
from helpers.tree_samples import deviation, draw, expected_steps, flat_graphs, graphs_of_rare_trees, hostile_graphs

from treeparse.kernels.samples.nonprojective_samples import STEPS_A_PAIR, WILSON, WILSON_MARGINAL, fill_bins, new_bins

METHODS = pytest.mark.parametrize(
    ("method", "single_root"),
    [(WILSON, False), (WILSON_MARGINAL, True)],
    ids=["wilson", "wilson-marginal"],
)


@METHODS
@pytest.mark.parametrize("steps_a_pair", [0.5, 1.5, 16.0])
def test_the_law_over_the_support(method: int, single_root: bool, steps_a_pair: float) -> None:
    """With low limits too, past which a tree is drawn otherwise with the same root word."""
    for scores in flat_graphs(1):
        assert deviation(scores, single_root, method, 20_000, steps_a_pair=steps_a_pair) < LIMIT


@METHODS
@pytest.mark.parametrize("steps_a_pair", [0.5, 16.0])
def test_the_law_of_peaked_scores(method: int, single_root: bool, steps_a_pair: float) -> None:
    for scores in hostile_graphs(2):
        assert deviation(scores, single_root, method, 10_000, steps_a_pair=steps_a_pair) < LIMIT


@METHODS
def test_a_low_limit_is_met(method: int, single_root: bool) -> None:
    """Otherwise the law under low limits would say nothing."""
    scores = random_graph(np.random.default_rng(3), 5, "random", 0.0)
    _, steps = draw(scores, single_root, method, 4000, steps_a_pair=0.5)
    assert steps.max() == 12
    assert 0.1 < (steps == 12).mean() < 0.9


@METHODS
def test_no_walk_goes_past_its_limit(method: int, single_root: bool) -> None:
    """Two words that prefer each other by 100 nats hold a walk for ever, if neither is the root word."""
    scores = random_graph(np.random.default_rng(4), 8, "random", 0.0)
    scores[[3, 5, 2, 7], [5, 3, 7, 2]] += 100.0
    _, steps = draw(scores, single_root, method, 50)
    assert (steps == STEPS_A_PAIR * 64).all()


def assert_mean(steps: np.ndarray, expected: float) -> None:
    assert abs(steps.mean() - expected) < LIMIT * steps.std() / np.sqrt(len(steps)) + 1e-9


def test_the_expected_number_of_steps() -> None:
    """The sum over words of degree times the inverse Laplacian's diagonal (Wilson 1996)."""
    stream = np.random.default_rng(5)
    for n in (2, 5, 12):
        scores = random_graph(stream, n, "random", 0.0)
        _, steps = draw(scores, False, WILSON, 10_000, steps_a_pair=1000.0)
        assert_mean(steps, expected_steps(scores, 0))
        heads, steps = draw(scores, True, WILSON_MARGINAL, 10_000, steps_a_pair=1000.0)
        roots = (heads == 0).argmax(1)
        for top in range(1, n + 1):
            if (roots == top).sum() > 500:
                assert_mean(steps[roots == top], expected_steps(scores, top))


def probabilities_of_bins(scores: Array, first: int, root: float = 0.0) -> Array:
    """Of each head ``(n+1, n+1)`` as bins have it, if nodes from ``first`` on may be heads."""
    n = len(scores) - 1
    keep, other = new_bins(n + 1)
    with np.errstate(all="ignore"):
        fill_bins(scores, n, first, root, keep, other)
    found = np.zeros((n + 1, n + 1))
    for j in range(1, n + 1):
        for i in range(first, n + 1):
            found[i, j] += min(keep[j, i], 1.0)
            found[other[j, i], j] += 1.0 - min(keep[j, i], 1.0)
    return found / (n + 1 - first)


def expected_of_bins(scores: Array, first: int, root: float = 0.0) -> Array:
    weights = scores.copy()
    weights[0] += root
    weights[:first] = -np.inf
    np.fill_diagonal(weights, -np.inf)
    with np.errstate(invalid="ignore"):  # of no possible head
        return np.exp(weights - np.logaddexp.reduce(weights, 0))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("first", [0, 1], ids=["below-node-0", "below-a-word"])
@pytest.mark.nojit
def test_bins_hold_the_probabilities_of_heads(kind: str, first: int) -> None:
    stream = np.random.default_rng(7)
    for n in (1, 2, 5, 9):
        scores = random_graph(stream, n, kind, 0.2)
        found, expected = (each(scores, first, 0.5) for each in (probabilities_of_bins, expected_of_bins))
        for j in range(1, n + 1):
            if np.isnan(expected[:, j]).any():  # of no possible head
                assert found[j, j] == 1.0
            else:
                np.testing.assert_allclose(found[:, j], expected[:, j], rtol=0, atol=1e-15 * n)
                assert not found[expected[:, j] == 0.0, j].any()


@pytest.mark.parametrize("first", [0, 1], ids=["below-node-0", "below-a-word"])
def test_walks_come_to_every_tree(first: int) -> None:
    """Walks leave out no tree that is not all but impossible; the thresholds of their bins could lose some to rounding.

    An arc that a walk takes at a step with a probability below rounding, 1e-15, is taken in the C steps of its limit
    with one below 1e-15 C. Where its trees are more probable, walks nearly always reach the limit, and the tree is
    drawn by expansion, which takes no difference.
    """
    for scores in graphs_of_rare_trees(60):
        found, expected = (each(scores, first)[:, 1:] for each in (probabilities_of_bins, expected_of_bins))
        matters = expected > 1e-14
        np.testing.assert_allclose(found[matters], expected[matters], rtol=1e-3, atol=0)
