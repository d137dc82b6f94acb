"""No sampler leaves out a tree that is not all but impossible: their conditional probabilities, by enumeration.

Expansion takes no difference, and ``test_expansion`` has its whole law; ``test_without_replacement`` finds every tree.
Here are the samplers that could lose trees to rounding: Colbourn's, by differences, and walks, by the thresholds of
their bins. An arc that a walk takes at a step with a probability below rounding, 1e-15, is taken in the C steps of its
limit with one below 1e-15 C. Where its trees are more probable, walks nearly always reach the limit, and the tree is
drawn by expansion.
"""

from collections.abc import Iterator

import numpy as np
import pytest
from helpers.oracles import Array, all_trees, tree_scores
from helpers.ranking import random_graph

from treeparse.kernels.samples.ancestral import MAX_VISITS, MIN_ESCAPE, _fix_head, _invert, _most_visits
from treeparse.kernels.samples.expansion import ORIGINAL, new_memory, set_up
from treeparse.kernels.samples.walks import fill_bins, new_bins

RARE = 1e-12


def graphs(count: int) -> Iterator[Array]:
    """Three to five words with pairs that prefer each other, so that trees of any probability are among them."""
    stream = np.random.default_rng(1)
    for _ in range(count):
        n = int(stream.integers(3, 6))
        scores = random_graph(stream, n, "random", 0.0) * stream.choice([1.0, 3.0, 5.0, 8.0])
        for _ in range(int(stream.integers(0, 3))):
            i, j = stream.choice(np.arange(1, n + 1), 2, replace=False)
            scores[[i, j], [j, i]] += stream.uniform(0, 14)
        scores[0] += stream.choice([0.0, -5.0, -10.0, 5.0])
        yield scores


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
    calm = [law for law in map(WordByWord, graphs(150)) if law.is_calm]
    assert len(calm) > 60
    rare = 0
    for law in calm:
        matters = law.exact > RARE
        rare += (law.exact[matters] < 1e-9).sum()
        np.testing.assert_allclose(law.found[matters], law.exact[matters], rtol=1e-3, atol=0)
        np.testing.assert_allclose(law.found, law.exact, rtol=0, atol=1e-11)
    assert rare > 100


@pytest.mark.parametrize("first", [0, 1], ids=["below-node-0", "below-a-word"])
def test_walks_come_to_every_tree(first: int) -> None:
    """Arcs lead to their heads as bins have it; where trees hang below one word, node 0 is no head."""
    for scores in graphs(60):
        n = len(scores) - 1
        bins = new_bins(n + 1)
        fill_bins(scores, n, first, 0.0, bins)
        keep, other = (part.reshape(n + 1, n + 1) for part in (bins.keep, bins.other))
        found = np.zeros((n + 1, n + 1))
        for j in range(1, n + 1):
            for i in range(first, n + 1):
                found[i, j] += min(keep[j, i], 1.0)
                found[other[j, i], j] += 1.0 - min(keep[j, i], 1.0)
        expected = scores.copy()
        expected[:first] = -np.inf
        np.fill_diagonal(expected, -np.inf)
        expected = expected[:, 1:]
        expected = np.exp(expected - np.logaddexp.reduce(expected, 0))
        matters = expected > 1e-14
        np.testing.assert_allclose(found[:, 1:][matters] / (n + 1 - first), expected[matters], rtol=1e-3, atol=0)
