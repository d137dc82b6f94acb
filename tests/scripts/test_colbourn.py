"""Colbourn, Myrvold and Neufeld's sampler: its law, also of rare trees, and the inverse Laplacian that it updates."""

import numpy as np
import pytest
from helpers.chi_square import LIMIT
from helpers.oracles import Array, all_trees, tree_scores
from helpers.ranking import random_graph
from helpers.tree_samples import ROOTS, deviation, flat_graphs, graphs_of_rare_trees, hostile_graphs
from support.sampling.colbourn import MAX_VISITS, MIN_ESCAPE, _fix_head, _invert, _most_visits
from support.sampling.methods import COLBOURN, sample_trees

from treeparse.kernels.samples.expansion import ORIGINAL, new_memory, set_up
from treeparse.kernels.sums.conditionals import log_marginals

RARE = 1e-12


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


def law_of(scores: Array, trees: np.ndarray) -> Array:
    totals = tree_scores(scores, trees)
    return np.exp(totals - np.logaddexp.reduce(totals))


class WordByWord:
    """The law of trees that Colbourn's sampler makes up, all of its choices taken."""

    def __init__(self, scores: Array) -> None:
        n = len(scores) - 1
        self.trees = all_trees(n, False)
        self.exact, self.found = law_of(scores, self.trees), np.zeros(len(self.trees))
        with np.errstate(all="ignore"):
            stages = set_up(scores, n, False, new_memory(n + 1))
        self.original, inverse = stages.tables[ORIGINAL], np.zeros((n + 1, n + 1))
        if not stages.in_logs:
            _invert(stages.tables, np.empty((n + 1, n + 1)), inverse)
        self.is_calm = not stages.in_logs and _most_visits(self.original, inverse) <= MAX_VISITS
        if self.is_calm:
            self.branch(1, inverse, np.ones(len(self.trees), bool), 1.0)

    def branch(self, j: int, left: Array, chosen: np.ndarray, probability: float) -> None:
        """From word ``j`` on, where ``chosen`` are the trees with the heads of the words before it."""
        if j == len(left):
            self.found[chosen] += probability
            return
        if self.original[j].sum() * left[j, j] > MAX_VISITS:
            self.by_expansion(chosen, probability)
            return
        escapes = left[j, j] - left[j]
        shares = self.original[j] * np.maximum(escapes, 0.0)
        shares /= shares.sum()
        is_small = escapes < MIN_ESCAPE * left[j, j]
        self.by_expansion(chosen & is_small[self.trees[:, j - 1]], probability * shares[is_small].sum())
        for head in (~is_small & (shares > 0.0)).nonzero()[0]:
            following = left.copy()
            _fix_head(following, j, head)
            self.branch(j + 1, following, chosen & (self.trees[:, j - 1] == head), probability * shares[head])

    def by_expansion(self, chosen: np.ndarray, probability: float) -> None:
        mass = self.exact[chosen].sum()
        if mass > 0.0:
            self.found[chosen] += probability * self.exact[chosen] / mass


def test_word_by_word_comes_to_every_tree() -> None:
    calm = [law for law in map(WordByWord, graphs_of_rare_trees(150)) if law.is_calm]
    assert len(calm) > 60
    rare = 0
    for law in calm:
        matters = law.exact > RARE
        rare += (law.exact[matters] < 1e-9).sum()
        np.testing.assert_allclose(law.found[matters], law.exact[matters], rtol=1e-3, atol=0)
        np.testing.assert_allclose(law.found, law.exact, rtol=0, atol=1e-11)
    assert rare > 100
