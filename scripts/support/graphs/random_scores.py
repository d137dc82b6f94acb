"""Scores of batches without padding: random ones, ones like a trained parser's, and tied ones."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
BATCH = 32


def random_scores(stream: np.random.Generator, n: int, batch: int = BATCH) -> Array:
    """A batch of N(0, 1) scores."""
    return stream.normal(size=(batch, n + 1, n + 1))


def peaked_scores(stream: np.random.Generator, n: int, batch: int = BATCH) -> Array:
    """A batch as a trained parser scores it, with a cycle trap in every fifth sentence."""
    scores = random_scores(stream, n, batch)
    for item in range(batch):
        order = stream.permutation(np.arange(1, n + 1))
        for place, word in enumerate(order):
            head = 0 if place == 0 else order[stream.integers(place)]
            scores[item, head, word] += stream.uniform(10, 30)
        if item % 5 == 0:
            scores[item, order[-1], order[-2]] += 40
            scores[item, order[-2], order[-1]] += 40
    return scores


def tied_scores(stream: np.random.Generator, n: int, batch: int = BATCH) -> Array:
    """A batch of small integers."""
    return stream.integers(0, 4, size=(batch, n + 1, n + 1)).astype(np.float64)
