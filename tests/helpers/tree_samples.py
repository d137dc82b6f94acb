"""What the tests of all samplers of non-projective trees share: graphs, draws, and how far draws are from the law."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from helpers.chi_square import chi_square_z, tree_counts
from helpers.oracles import Array, all_trees, tree_scores
from helpers.ranking import random_graph

from treeparse.kernels.samples.nonprojective import sample_trees

ROOTS = pytest.mark.parametrize("single_root", [True, False], ids=["single-root", "multi-root"])
Samples = tuple[np.ndarray, np.ndarray]


def draw(scores: Array, single_root: bool, method: int, count: int, seed: int = 1, **options: Any) -> Samples:
    """Head lists (count, n+1) of one item, and their steps (count,)."""
    seeds = np.array([seed], np.uint64)
    options |= {"single_root": single_root, "method": method}
    heads, steps = sample_trees(scores[None], np.array([len(scores) - 1]), seeds, count, **options)
    assert (heads[..., 0] == -1).all()
    return heads[0], steps[0]


def deviation(
    scores: Array, single_root: bool, method: int, count: int, law_of: Array | None = None, **options: Any
) -> float:
    """How far draws are from the law of their scores, or of others, in standard deviations; 0 without a tree."""
    trees = all_trees(len(scores) - 1, single_root)
    totals = tree_scores(scores if law_of is None else law_of, trees)
    heads, steps = draw(scores, single_root, method, count, **options)
    if totals.max() == -np.inf:
        assert (heads == -1).all()
        assert not steps.any()
        return 0.0
    assert (steps >= len(scores) - 2).all()  # a walk that ends at a word need not start there
    weights = np.exp(totals - totals.max())
    return chi_square_z(tree_counts(heads[:, 1:], trees), weights / weights.sum())


def flat_graphs(seed: int) -> Iterator[Array]:
    """Up to five words: equal scores, tied ones, random ones, a strong root, and a weak one; with arcs forbidden."""
    stream = np.random.default_rng(seed)
    for kind in ("equal", "tied", "random", "rootward"):
        for n in (1, 2, 3, 4, 5):
            for forbidden in (0.0, 0.3, 0.5):
                scores = random_graph(stream, n, kind, forbidden)
                scores[0] -= 6.0 if n == 4 else 0.0
                yield scores


def hostile_graphs(seed: int) -> Iterator[Array]:
    """Peaked scores with many trees of similar probability, some of them beyond plain weights, with arcs forbidden."""
    stream = np.random.default_rng(seed)
    for gap in (5.0, 10.0, 12.0, 14.0, 20.0, 900.0):
        for n, forbidden in [(3, 0.0), (4, 0.0), (4, 0.3), (5, 0.2)]:
            scores = random_graph(stream, n, "random", 0.0)
            scores[1, 2] += gap
            scores[2, 1] += gap
            if n > 3:
                scores[3, 4] += gap / 2
                scores[4, 3] += gap / 2
            scores[stream.random(scores.shape) < forbidden] = -np.inf
            scores[0] += stream.choice([-50, 0, 50])
            yield scores
