"""Trees in the order of the tie rule, by sorting, and graphs to try it on."""

import numpy as np
from helpers.oracles import Array, tree_scores
from numpy.typing import NDArray

from treeparse.kernels.ties import arc_keys

Trees = NDArray[np.int64]
KINDS = ("random", "tied", "equal", "ranked", "large", "rootward")


def tree_keys(trees: Trees) -> Trees:
    """Summed arc keys of head lists (trees, n)."""
    n = trees.shape[1]
    return arc_keys(n + 1)[trees, np.arange(1, n + 1)].sum(1)


def ranked_trees(scores: Array, trees: Trees) -> tuple[Trees, Array]:
    """Those of the head lists (trees, n) that have a finite score, and these, best first by score, then by key."""
    totals = tree_scores(scores, trees)
    trees, totals = trees[totals > -np.inf], totals[totals > -np.inf]
    order = np.lexsort((-tree_keys(trees), -totals))
    return trees[order], totals[order]


def random_graph(stream: np.random.Generator, n: int, kind: str, forbidden: float) -> Array:
    """Scores (n+1, n+1), NaN where nothing may look. Tied ones are small whole numbers."""
    scores = stream.normal(size=(n + 1, n + 1))
    if kind == "tied":
        scores = stream.integers(0, 4, size=scores.shape).astype(float)
    elif kind == "equal":
        scores[:] = 1.0
    elif kind == "ranked":  # no word has equal arcs, but contracted cycles do
        scores = stream.permuted(np.tile(np.arange(n + 1.0)[:, None], n + 1), axis=0)
    elif kind == "large":
        scores *= 1e4
    elif kind == "rootward":  # the best tree hangs most words from the root
        scores[0] += 3.0
    scores[stream.random(scores.shape) < forbidden] = -np.inf
    scores[:, 0] = np.nan
    np.fill_diagonal(scores, np.nan)
    return scores
