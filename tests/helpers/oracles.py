"""Independent slow answers that tests compare with: enumeration, and 50-digit arithmetic."""

import decimal
import itertools
from collections.abc import Callable
from decimal import Decimal
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
PRECISE = decimal.Context(prec=50, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)
LogPartition = Callable[[Array, bool], float]


@cache
def all_trees(n: int, single_root: bool, projective: bool = False) -> NDArray[np.int64]:
    """Head lists (trees, n) of all dependency trees over n words, or of the projective ones."""
    trees = [
        heads
        for heads in itertools.product(range(n + 1), repeat=n)
        if all(_reaches_root(heads, word) for word in range(1, n + 1)) and (not single_root or heads.count(0) <= 1)
    ]
    return np.array([heads for heads in trees if not projective or _is_projective(heads)], np.int64)


def _reaches_root(heads: tuple[int, ...], word: int) -> bool:
    for _ in heads:
        word = heads[word - 1]
        if word == 0:
            return True
    return False


def _is_projective(heads: tuple[int, ...]) -> bool:
    """Whether every word between the two ends of an arc descends from its head."""
    for word, head in enumerate(heads, 1):
        for between in range(min(word, head) + 1, max(word, head)):
            while between not in (0, head):
                between = heads[between - 1]
            if between != head:
                return False
    return True


def tree_scores(scores: Array, trees: NDArray[np.int64]) -> Array:
    """Summed arc scores of head lists (trees, n) under scores (n+1, n+1)."""
    return scores[trees, np.arange(1, trees.shape[1] + 1)].sum(1)


def score_scale(scores: Array) -> float:
    """The scale c by which errors are judged: the summed largest finite magnitudes of the words' arcs, at least 1."""
    arcs = np.where(np.eye(len(scores)) == 1, 0.0, scores)[:, 1:]
    return max(1.0, float(np.where(np.isfinite(arcs), np.abs(arcs), 0.0).max(0).sum()))


def enumerated_sums(scores: Array, single_root: bool, projective: bool = False) -> tuple[float, Array]:
    """Log partition and marginals (n+1, n+1) by summing over all trees."""
    n = len(scores) - 1
    trees = all_trees(n, single_root, projective)
    totals = tree_scores(scores, trees)
    marginals = np.zeros_like(scores)
    top = totals.max()
    if top == -np.inf:
        return -np.inf, marginals
    log_z = top + np.log(np.exp(totals - top).sum())
    for word in range(1, n + 1):
        np.add.at(marginals[:, word], trees[:, word - 1], np.exp(totals - log_z))
    return float(log_z), marginals


def enumerated_log_marginals(scores: Array, single_root: bool, projective: bool = False) -> Array:
    """Logs of the marginals (n+1, n+1) by summing over all trees; -inf exactly where no tree has the arc."""
    n = len(scores) - 1
    trees = all_trees(n, single_root, projective)
    totals = tree_scores(scores, trees)
    logs = np.full_like(scores, -np.inf)
    if totals.max() == -np.inf:
        return logs
    for head, word in itertools.product(range(n + 1), range(1, n + 1)):
        logs[head, word] = np.logaddexp.reduce(totals[trees[:, word - 1] == head], initial=-np.inf)
    return logs - np.logaddexp.reduce(totals)


def enumerated_product(scores: Array, vector: Array, single_root: bool, projective: bool = False) -> Array:
    """The Hessian of the log partition times a vector: every arc's covariance with the trees' summed vector."""
    trees = all_trees(len(scores) - 1, single_root, projective)
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
    return _precise_log_partition(tuple(map(tuple, scores.tolist())), single_root)


@cache  # an arc is in many sentences that differ by others
def precise_weight(score: float) -> Decimal:
    return Decimal(score).exp(PRECISE)


@cache  # several backends are compared with it
def _precise_log_partition(scores: tuple[tuple[float, ...], ...], single_root: bool) -> float:
    with decimal.localcontext(PRECISE):
        n = len(scores) - 1
        weights = [[precise_weight(score) for score in row] for row in scores]
        log_z = Decimal(0)
        root_word = 0  # a word that only the root reaches
        for k in range(n, 0, -1):
            words = [i for i in range(1, k) if i != root_word] + ([root_word] if root_word else [])
            if root_word == k:
                continue
            pivot = sum((weights[i][k] for i in words), Decimal(0))
            if not single_root:
                pivot += weights[0][k]
            elif pivot == 0 and root_word == 0 and k > 1:
                root_word = k
                continue
            elif k == 1 and root_word == 0:
                pivot = weights[0][k]
            if pivot == 0:
                return -np.inf
            log_z += pivot.ln()
            for i in [0, *words]:
                share = weights[i][k] / pivot
                for j in words:
                    weights[i][j] += share * weights[k][j]
        if root_word:
            if weights[0][root_word] == 0:
                return -np.inf
            log_z += weights[0][root_word].ln()
        return float(log_z)


def precise_projective_log_partition(scores: Array, single_root: bool) -> float:
    """Log partition over projective trees in 50-digit arithmetic."""
    with decimal.localcontext(PRECISE):
        weights = np.array([[precise_weight(float(score)) for score in row] for row in scores])
        total = projective_partition(weights, single_root)
        return float(total.ln()) if total else -np.inf


def projective_partition(weights: NDArray[Any], single_root: bool) -> Any:
    """Summed weight of all projective trees by Eisner's chart, from weights (n+1, n+1) that are any kind of numbers.

    ``right[i, j]`` and ``left[i, j]`` are the trees over the words from i to j whose head is i or j. Node 0 is apart:
    ``first[j]`` are the forests over the first j words.
    """
    n = len(weights) - 1
    right, left = ({(i, i): 1 for i in range(1, n + 1)} for _ in range(2))
    right_arc, left_arc = {}, {}
    for width in range(1, n):
        for i, j in zip(range(1, n + 1), range(1 + width, n + 1), strict=False):
            between = sum(right[i, k] * left[k + 1, j] for k in range(i, j))
            right_arc[i, j], left_arc[i, j] = weights[i, j] * between, weights[j, i] * between
            right[i, j] = sum(right_arc[i, k] * right[k, j] for k in range(i + 1, j + 1))
            left[i, j] = sum(left[i, k] * left_arc[k, j] for k in range(i, j))
    if single_root:
        return sum(weights[0, top] * left[1, top] * right[top, n] for top in range(1, n + 1))
    first, arcs_of_root = [1], []
    for j in range(1, n + 1):
        arcs_of_root.append(weights[0, j] * sum(first[i - 1] * left[i, j] for i in range(1, j + 1)))
        first.append(sum(arcs_of_root[k - 1] * right[k, j] for k in range(1, j + 1)))
    return first[n]


def precise_log_marginals(
    scores: Array, arcs: NDArray[np.int64], single_root: bool, log_partition: LogPartition = precise_log_partition
) -> Array:
    """Log marginals of ``arcs`` (A, 2), head and word, however improbable: no other head for the word, against all.

    The log partitions are from 50-digit arithmetic; only their difference is in float64.
    """
    logs = []
    for head, word in arcs:
        restricted = scores.copy()
        restricted[:, word] = -np.inf
        restricted[head, word] = scores[head, word]
        logs.append(log_partition(restricted, single_root))
    return np.array(logs) - log_partition(scores, single_root)
