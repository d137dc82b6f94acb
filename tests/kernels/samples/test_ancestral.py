"""Colbourn, Myrvold and Neufeld's sampler: its law, and the inverse Laplacian that it updates."""

import numpy as np
import pytest
from helpers.chi_square import LIMIT
from helpers.oracles import Array
from helpers.ranking import random_graph
from helpers.tree_samples import ROOTS, deviation, flat_graphs, hostile_graphs

from treeparse.kernels.samples.ancestral import MAX_VISITS, MIN_ESCAPE, _fix_head, _invert
from treeparse.kernels.samples.expansion import new_memory, set_up
from treeparse.kernels.samples.nonprojective import COLBOURN
from treeparse.kernels.sums.conditionals import log_marginals


@ROOTS
def test_the_law_over_the_support(single_root: bool) -> None:
    for scores in flat_graphs(1):
        assert deviation(scores, single_root, COLBOURN, 20_000) < LIMIT


@ROOTS
@pytest.mark.parametrize("seed", [2, 3])
def test_the_law_of_peaked_scores(single_root: bool, seed: int) -> None:
    """Where all trees, or what is left of some, are drawn by expansion."""
    for scores in hostile_graphs(seed):
        assert deviation(scores, single_root, COLBOURN, 20_000) < LIMIT


def inverse_of(scores: Array) -> tuple[Array, Array]:
    """The sampler's inverse, and the scaled weights (dependent-major) that it belongs to."""
    n = len(scores) - 1
    with np.errstate(all="ignore"):
        stages = set_up(scores, n, False, new_memory(n + 1))
    inverse = np.zeros((n + 1, n + 1))
    _invert(stages.tables, np.empty((n + 1, n + 1)), inverse)
    return inverse, stages.tables[1].copy()


@pytest.mark.parametrize("gap", [0.0, 5.0, 11.0])
@pytest.mark.nojit
def test_conditionals_of_every_word(gap: float) -> None:
    """They follow from the inverse as it was updated, to 1e-10 as long as its differences are what they must be."""
    stream = np.random.default_rng(4)
    n = 12
    for _ in range(4):
        scores = random_graph(stream, n, "random", 0.1)
        for j in range(1, n - 2, 4):
            scores[j, j + 2] += gap
            scores[j + 2, j] += gap
        left, weights = inverse_of(scores)
        for j in range(1, n + 1):
            if weights[j, np.arange(n + 1) != j].sum() * left[j, j] > MAX_VISITS:
                break
            expected = np.exp(log_marginals(scores[None], np.array([n]), single_root=False)[0, :, j])
            found = weights[j] * (left[j, j] - left[j])
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10)
            head = stream.choice(n + 1, p=expected / expected.sum())
            if left[j, j] - left[j, head] < MIN_ESCAPE * left[j, j]:
                break
            _fix_head(left, j, head)
            kept = scores[head, j]
            scores[:, j] = -np.inf
            scores[head, j] = kept
