"""Wilson's walks with rejection: their law, with and without a limit of the steps, and how many steps they take."""

import pytest
from helpers.chi_square import LIMIT
from helpers.tree_samples import deviation, flat_graphs, hostile_graphs
from scripts.support.sampling.methods import WILSON_REJECT, sample_trees

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
