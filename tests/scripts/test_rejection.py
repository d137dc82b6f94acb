"""Wilson's walks with rejection: their law, with and without a limit of the steps, and how many steps they take."""

import numpy as np
import pytest
from helpers.chi_square import LIMIT
from helpers.oracles import Array
from helpers.ranking import random_graph
from helpers.tree_samples import deviation, draw, expected_steps, flat_graphs, hostile_graphs, laplacian
from support.sampling.methods import WILSON_REJECT, sample_trees

from treeparse.kernels.samples.walks import STEPS_A_PAIR

REJECTION = True, WILSON_REJECT  # it draws trees with a single root


@pytest.mark.parametrize("steps_a_pair", [0.5, 1.5, 16.0])
def test_the_law_over_the_support(steps_a_pair: float) -> None:
    """With low limits too, past which a tree is drawn otherwise with the same root word."""
    for scores in flat_graphs(1):
        assert deviation(scores, *REJECTION, 20_000, sample_trees, steps_a_pair=steps_a_pair) < LIMIT


@pytest.mark.parametrize("steps_a_pair", [0.5, 16.0])
def test_the_law_of_peaked_scores(steps_a_pair: float) -> None:
    for scores in hostile_graphs(2):
        assert deviation(scores, *REJECTION, 10_000, sample_trees, steps_a_pair=steps_a_pair) < LIMIT


def test_a_low_limit_is_met() -> None:
    """Otherwise the law under low limits would say nothing."""
    scores = random_graph(np.random.default_rng(3), 5, "random", 0.0)
    _, steps = draw(scores, *REJECTION, 4000, sample_trees, steps_a_pair=0.5)
    assert steps.max() == 12
    assert 0.1 < (steps == 12).mean() < 0.9


def test_no_walk_goes_past_its_limit() -> None:
    """Two words that prefer each other by 100 nats hold a walk for ever, if neither is the root word."""
    scores = random_graph(np.random.default_rng(4), 8, "random", 0.0)
    scores[[3, 5, 2, 7], [5, 3, 7, 2]] += 100.0
    _, steps = draw(scores, *REJECTION, 50, sample_trees)
    assert (steps == STEPS_A_PAIR * 64).all()


def log_tree_sum(scores: Array, top: int) -> float:
    matrix = laplacian(scores, top)
    return np.linalg.slogdet(matrix[1:, 1:] if top else matrix)[1]


def expected_costs(scores: Array, shifts: Array) -> Array:
    """Expected tries times expected steps of one try, by constants added to the root's scores."""
    n = len(scores) - 1
    log_single = np.logaddexp.reduce([scores[0, top] + log_tree_sum(scores, top) for top in range(1, n + 1)])
    costs = []
    for shift in shifts:
        shifted = scores.copy()
        shifted[0] += shift
        tries = np.exp(log_tree_sum(shifted, 0) - shift - log_single)
        costs.append(tries * expected_steps(shifted, 0))
    return np.array(costs)


@pytest.mark.parametrize("shift", [-40.0, 0.0, 40.0])
def test_rejection_takes_hardly_more_steps_than_it_must(shift: float) -> None:
    """The best constant is found, to half a step of the search, whatever constant the root's scores came with.

    A try ends when its second word hangs from node 0, which only saves steps.
    """
    stream = np.random.default_rng(6)
    for n, scale in ((3, 1.0), (10, 1.0), (10, 2.0), (25, 0.5)):
        scores = scale * random_graph(stream, n, "random", 0.0)
        least = expected_costs(scores, np.arange(-12.0, 8.0, 0.1)).min()
        scores[0] += shift
        _, steps = draw(scores, *REJECTION, 3000, sample_trees, steps_a_pair=1000.0)
        assert steps.mean() < 1.15 * least
