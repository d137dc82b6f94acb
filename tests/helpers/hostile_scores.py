"""Scores that are hard to sum over: weights underflow, words prefer each other, words have few heads or none."""

from collections.abc import Sequence

import numpy as np
from helpers.oracles import Array


def prefer_each_other(scores: Array, pairs: Sequence[tuple[int, int]], gap: float) -> Array:
    """The same scores, raised by ``gap`` between the words of each pair."""
    for first, second in pairs:
        scores[first, second] += gap
        scores[second, first] += gap
    return scores


def hostile_scores(stream: np.random.Generator, n: int) -> Array:
    """Few distinct values far apart, large scores, far-off arcs, or words that prefer each other and a far-off root."""
    shape, gap, kind = (n + 1, n + 1), 10 ** stream.uniform(1, 3.5), stream.integers(4)
    if kind == 0:
        return stream.choice([0, gap, -gap, -2 * gap, -np.inf], size=shape)
    if kind == 1:
        return np.where(stream.random(shape) < stream.choice([0.0, 0.3]), -np.inf, stream.normal(size=shape) * gap)
    if kind == 2:
        return np.where(stream.random(shape) < 0.5, stream.normal(size=shape), -gap * stream.random(shape))
    pairs = stream.permuted(np.tile(np.arange(1, n + 1), (2, 1)), axis=1)[: stream.integers(1, 3), :2]
    scores = prefer_each_other(stream.normal(size=shape), pairs.tolist(), gap)
    scores[0] += stream.choice([0, gap, -gap])
    scores[stream.random(shape) < 0.2] = -np.inf
    return scores


def forbidden_arcs() -> Array:
    """Every pattern of forbidden arcs over three words ``(512, 4, 4)``, -inf where an arc is forbidden and else 0.

    A word that only the root reaches may show itself at any stage of an elimination, and only through fill-in.
    """
    arcs = [(head, word) for word in (1, 2, 3) for head in range(4) if head != word]
    patterns = np.full((2 ** len(arcs), 4, 4), -np.inf)
    for bit, (head, word) in enumerate(arcs):
        patterns[np.arange(len(patterns)) >> bit & 1 == 1, head, word] = 0.0
    return patterns
