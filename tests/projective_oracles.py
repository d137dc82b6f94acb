"""Projective trees by enumeration, in the order of the tie rule."""

from functools import cache

import numpy as np
from numpy.typing import NDArray
from oracles import Array, all_trees, tree_scores

from treeparse.core import nonprojective_words
from treeparse.kernels.ties import arc_key


@cache
def projective_trees(n: int, single_root: bool) -> NDArray[np.int64]:
    """Head lists (trees, n) of all projective trees over n words."""
    return np.array([heads for heads in all_trees(n, single_root).tolist() if not nonprojective_words(heads)])


def tree_keys(trees: NDArray[np.int64]) -> NDArray[np.int64]:
    """Summed arc keys of head lists (trees, n)."""
    n = trees.shape[1]
    keys = np.array([[arc_key(i, j) for j in range(n + 1)] for i in range(n + 1)])
    return keys[trees, np.arange(1, n + 1)].sum(1)


@cache
def projective_keys(n: int, single_root: bool) -> NDArray[np.int64]:
    """The keys of ``projective_trees``."""
    return tree_keys(projective_trees(n, single_root))


def ranked_projective_trees(scores: Array, single_root: bool) -> tuple[NDArray[np.int64], Array]:
    """All projective trees (trees, n) of finite score and their scores, best first by score, then by key."""
    n = len(scores) - 1
    trees = projective_trees(n, single_root)
    totals = tree_scores(scores, trees)
    order = np.lexsort((-projective_keys(n, single_root), -totals))
    order = order[totals[order] > -np.inf]
    return trees[order], totals[order]


def random_graph(stream: np.random.Generator, n: int, kind: str, forbidden: float) -> Array:
    """Scores (n+1, n+1) with NaN where nothing may look: ``tied`` ones are small whole numbers."""
    shape = (n + 1, n + 1)
    scores = stream.integers(0, 3, size=shape).astype(float) if kind == "tied" else stream.normal(size=shape)
    scores *= 1e4 if kind == "large" else 1.0
    scores[stream.random(shape) < forbidden] = -np.inf
    scores[:, 0] = np.nan
    np.fill_diagonal(scores, np.nan)
    return scores
