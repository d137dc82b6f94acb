"""The chart of [Lec] for projective trees, in O(n^5): every subtree by its ends and its head.

A subtree from node s to t headed by i is made of two neighbouring ones, of which the head of one hangs from that of the
other. A head may take its dependents on both sides in any order, so a tree has several derivations: maxima over them
are right, sums count trees more than once.
"""

import itertools
import math
from collections.abc import Callable

import numpy as np
from helpers.oracles import Array
from numpy.typing import NDArray

Join = Callable[[float, float], float]


def lecture_chart(scores: Array, join: Join) -> Array:
    """Values ``[s, t, i]`` of all subtrees under arc scores, where ``join`` joins those of two derivations."""
    nodes = len(scores)
    chart = np.full((nodes, nodes, nodes), -np.inf)
    for node in range(nodes):
        chart[node, node, node] = 0.0
    for width in range(1, nodes):
        for s in range(nodes - width):
            t = s + width
            for q, i, j in itertools.product(range(s, t), range(s, t + 1), range(s, t + 1)):
                if i <= q < j:
                    halves = chart[s, q, i] + chart[q + 1, t, j]
                    chart[s, t, i] = join(chart[s, t, i], halves + scores[i, j])
                    if i > 0:
                        chart[s, t, j] = join(chart[s, t, j], halves + scores[j, i])
    return chart


def best_score(scores: Array) -> float:
    """The score of the best projective tree with any number of roots."""
    return float(lecture_chart(scores, max)[0, -1, 0])


def log_sum(scores: Array) -> float:
    """The log of the summed weight of all derivations of trees with any number of roots."""
    return float(lecture_chart(scores, lambda x, y: float(np.logaddexp(x, y)))[0, -1, 0])


def derivations(heads: NDArray[np.int64]) -> int:
    """How many derivations a projective tree has: the ways to interleave the dependents on both sides of each head."""
    words = range(1, len(heads) + 1)
    return math.prod(math.comb(sum(heads == node), sum(heads[: max(node - 1, 0)] == node)) for node in (0, *words))
