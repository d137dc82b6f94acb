"""What the tests of all samplers of non-projective trees share: graphs, draws, and how far draws are from the law."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from helpers.chi_square import chi_square_z, tree_counts
from helpers.oracles import Array, all_trees, tree_scores
from helpers.ranking import random_graph

from treeparse.kernels.samples.nonprojective_samples import sample_trees

ROOTS = pytest.mark.parametrize("single_root", [True, False], ids=["single-root", "multi-root"])
Samples = tuple[np.ndarray, np.ndarray]
Sampler = Callable[..., Samples]  # as ``sample_trees``


def draw(
    scores: Array,
    single_root: bool,
    method: int,
    count: int,
    sampler: Sampler = sample_trees,
    *,
    seed: int = 1,
    **options: Any,
) -> Samples:
    """Head lists (count, n+1) of one item, and their steps (count,)."""
    seeds = np.array([seed], np.uint64)
    options |= {"single_root": single_root, "method": method}
    heads, steps = sampler(scores[None], np.array([len(scores) - 1]), seeds, count, **options)
    assert (heads[..., 0] == -1).all()
    return heads[0], steps[0]


def deviation(
    scores: Array,
    single_root: bool,
    method: int,
    count: int,
    sampler: Sampler = sample_trees,
    *,
    law_of: Array | None = None,
    **options: Any,
) -> float:
    """How far draws are from the law of their scores, or of others, in standard deviations; 0 without a tree."""
    trees = all_trees(len(scores) - 1, single_root)
    totals = tree_scores(scores if law_of is None else law_of, trees)
    heads, steps = draw(scores, single_root, method, count, sampler, **options)
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


def graphs_of_rare_trees(count: int) -> Iterator[Array]:
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


def laplacian(scores: Array, top: int) -> Array:
    """That of walks which end at the node ``top``, without it."""
    weights = np.exp(scores)
    weights[:, 0] = 0.0
    np.fill_diagonal(weights, 0.0)
    if top:
        weights[0] = 0.0
    return np.delete(np.delete(np.diag(weights.sum(0)) - weights, top, 0), top, 1)


def expected_steps(scores: Array, top: int) -> float:
    matrix = laplacian(scores, top)
    if top:
        matrix = np.delete(np.delete(matrix, 0, 0), 0, 1)
    return float((np.diag(matrix) * np.diag(np.linalg.inv(matrix))).sum())
