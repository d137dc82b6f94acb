"""Independent slow answers that tests compare with: enumeration, and elimination in 50-digit arithmetic."""

import itertools
from functools import cache

import mpmath
import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@cache
def all_trees(n: int, single_root: bool) -> NDArray[np.int64]:
    """Head lists (trees, n) of all dependency trees over n words."""
    trees = [
        heads
        for heads in itertools.product(range(n + 1), repeat=n)
        if all(_reaches_root(heads, word) for word in range(1, n + 1)) and (not single_root or heads.count(0) == 1)
    ]
    return np.array(trees)


def _reaches_root(heads: tuple[int, ...], word: int) -> bool:
    for _ in heads:
        word = heads[word - 1]
        if word == 0:
            return True
    return False


def tree_scores(scores: Array, trees: NDArray[np.int64]) -> Array:
    """Summed arc scores of head lists (trees, n) under scores (n+1, n+1)."""
    return scores[trees, np.arange(1, trees.shape[1] + 1)].sum(1)


def score_scale(scores: Array) -> float:
    """The scale c by which errors are judged: the summed largest finite magnitudes of the words' arcs, at least 1."""
    arcs = np.where(np.eye(len(scores)) == 1, 0.0, scores)[:, 1:]
    return max(1.0, float(np.where(np.isfinite(arcs), np.abs(arcs), 0.0).max(0).sum()))


def enumerated_sums(scores: Array, single_root: bool) -> tuple[float, Array]:
    """Log partition and marginals (n+1, n+1) by summing over all trees."""
    n = len(scores) - 1
    trees = all_trees(n, single_root)
    totals = tree_scores(scores, trees)
    marginals = np.zeros_like(scores)
    top = totals.max()
    if top == -np.inf:
        return -np.inf, marginals
    log_z = top + np.log(np.exp(totals - top).sum())
    for word in range(1, n + 1):
        np.add.at(marginals[:, word], trees[:, word - 1], np.exp(totals - log_z))
    return float(log_z), marginals


def enumerated_log_marginals(scores: Array, single_root: bool) -> Array:
    """Logs of the marginals (n+1, n+1) by summing over all trees; -inf exactly where no tree has the arc."""
    n = len(scores) - 1
    trees = all_trees(n, single_root)
    totals = tree_scores(scores, trees)
    logs = np.full_like(scores, -np.inf)
    if totals.max() == -np.inf:
        return logs
    for head, word in itertools.product(range(n + 1), range(1, n + 1)):
        logs[head, word] = np.logaddexp.reduce(totals[trees[:, word - 1] == head], initial=-np.inf)
    return logs - np.logaddexp.reduce(totals)


def enumerated_product(scores: Array, vector: Array, single_root: bool) -> Array:
    """The Hessian of the log partition times a vector: every arc's covariance with the trees' summed vector."""
    trees = all_trees(len(scores) - 1, single_root)
    totals = tree_scores(scores, trees)
    product = np.zeros_like(scores)
    if totals.max() == -np.inf:
        return product
    probabilities = np.exp(totals - totals.max())
    probabilities /= probabilities.sum()
    values = tree_scores(vector, trees)
    terms = probabilities * (values - probabilities @ values)
    for word in range(1, len(scores)):
        np.add.at(product[:, word], trees[:, word - 1], terms)
    return product


def precise_log_partition(scores: Array, single_root: bool) -> float:
    """Log partition by elimination in 50-digit arithmetic, whose exponents never under- or overflow."""
    with mpmath.workdps(50):
        n = len(scores) - 1
        weights = [[mpmath.exp(mpmath.mpf(float(score))) for score in row] for row in scores]
        log_z = mpmath.mpf(0)
        root_word = 0  # a word that only the root reaches
        for k in range(n, 0, -1):
            words = [i for i in range(1, k) if i != root_word] + ([root_word] if root_word else [])
            if root_word == k:
                continue
            pivot = sum((weights[i][k] for i in words), mpmath.mpf(0))
            if not single_root:
                pivot += weights[0][k]
            elif pivot == 0 and root_word == 0 and k > 1:
                root_word = k
                continue
            elif k == 1 and root_word == 0:
                pivot = weights[0][k]
            if pivot == 0:
                return -np.inf
            log_z += mpmath.log(pivot)
            for i in [0, *words]:
                for j in words:
                    weights[i][j] += weights[i][k] / pivot * weights[k][j]
        if root_word:
            if weights[0][root_word] == 0:
                return -np.inf
            log_z += mpmath.log(weights[0][root_word])
        return float(log_z)


def precise_log_marginals(scores: Array, arcs: NDArray[np.int64], single_root: bool) -> Array:
    """Log marginals of ``arcs`` (A, 2), head and word, however improbable: no other head for the word, against all.

    The log partitions are from 50-digit arithmetic; only their difference is in float64.
    """
    logs = []
    for head, word in arcs:
        restricted = scores.copy()
        restricted[:, word] = -np.inf
        restricted[head, word] = scores[head, word]
        logs.append(precise_log_partition(restricted, single_root))
    return np.array(logs) - precise_log_partition(scores, single_root)


def batch_of_lengths(lengths: NDArray[np.int64], seed: int) -> Array:
    """Scores of several scales, NaN at padding."""
    stream = np.random.default_rng(seed)
    size = lengths.max() + 1
    scores = np.full((len(lengths), size, size), np.nan)
    for item, n in enumerate(lengths):
        scores[item, : n + 1, : n + 1] = stream.normal(size=(n + 1, n + 1)) * 10.0 ** stream.integers(0, 4)
    return scores
