"""Colbourn, Myrvold and Neufeld's sampler: its law, also of rare trees, and the inverse Laplacian that it updates."""

import pytest
from helpers.chi_square import LIMIT
from helpers.tree_samples import ROOTS, deviation, flat_graphs, hostile_graphs
from scripts.support.sampling.methods import COLBOURN, sample_trees


@ROOTS
def test_the_law_over_the_support(single_root: bool) -> None:
    for scores in flat_graphs(1):
        assert deviation(scores, single_root, COLBOURN, 20_000, sample_trees) < LIMIT


@ROOTS
@pytest.mark.parametrize("seed", [2, 3])
def test_the_law_of_peaked_scores(single_root: bool, seed: int) -> None:
    """Where all trees, or what is left of some, are drawn by expansion."""
    for scores in hostile_graphs(seed):
        assert deviation(scores, single_root, COLBOURN, 20_000, sample_trees) < LIMIT
