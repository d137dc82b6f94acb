"""Algorithms that [Lec] gives before it improves on them."""

import numpy as np
from scripts.support.compile import jit
from torch import Tensor


@jit
def best_by_chart(scores: np.ndarray, chart: np.ndarray) -> float:
    """The score of the best projective tree, any number of roots, in O(n^5): by spans, each with its ends and head."""
    nodes = len(scores)
    for s in range(nodes):
        chart[s, s, s] = 0.0
    for width in range(1, nodes):
        for s in range(nodes - width):
            t = s + width
            chart[s, t, s : t + 1] = -np.inf
            for q in range(s, t):
                for i in range(s, q + 1):
                    for j in range(q + 1, t + 1):
                        halves = chart[s, q, i] + chart[q + 1, t, j]
                        chart[s, t, i] = max(chart[s, t, i], halves + scores[i, j])
                        if i > 0:
                            chart[s, t, j] = max(chart[s, t, j], halves + scores[j, i])
    return chart[0, nodes - 1, 0]


def new_chart(nodes: int) -> np.ndarray:
    """Memory for `best_by_chart`."""
    return np.empty((nodes, nodes, nodes))


def laplacian(scores: np.ndarray) -> np.ndarray:
    """The Laplacian without the root's row and column, of weights ``exp(scores)``, for any number of roots."""
    weights = np.exp(scores)
    np.fill_diagonal(weights, 0)
    return np.diag(weights[:, 1:].sum(0)) - weights[1:, 1:]


def marginals_by_determinants(scores: np.ndarray) -> np.ndarray:
    """The probability of every arc in O(n^5): by a determinant each, of the weights without its competitors."""
    nodes = len(scores)
    marginals, whole = np.zeros_like(scores), np.linalg.slogdet(laplacian(scores))[1]
    for head in range(nodes):
        for dependent in range(1, nodes):
            if head != dependent:
                alone = scores.copy()
                alone[:, dependent] = -np.inf
                alone[head, dependent] = scores[head, dependent]
                sign, log = np.linalg.slogdet(laplacian(alone))
                marginals[head, dependent] = np.exp(log - whole) if sign > 0 else 0.0
    return marginals


def derivations(heads: Tensor) -> float:
    """The log of how many derivations the chart has of a projective tree ``(n+1,)``: by interleaved dependents."""
    total = 0.0
    for node in range(len(heads)):
        children = (heads[1:] == node).nonzero()[:, 0] + 1
        left = int((children < node).sum())
        total += float(np.log(_choose(len(children), left)))
    return total


def _choose(n: int, k: int) -> float:
    return float(np.prod([(n - i) / (i + 1) for i in range(k)]))
