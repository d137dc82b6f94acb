"""Items of several lengths in one batch, and what holds of every function of a batch."""

from collections.abc import Callable, Sequence

import numpy as np
from helpers.oracles import Array
from helpers.ranking import Trees, random_graph
from numpy.typing import NDArray


def batch_of_lengths(lengths: NDArray[np.int64], seed: int) -> Array:
    """Scores of several scales, NaN at padding."""
    stream = np.random.default_rng(seed)
    size = lengths.max() + 1
    scores = np.full((len(lengths), size, size), np.nan)
    for item, n in enumerate(lengths):
        scores[item, : n + 1, : n + 1] = stream.normal(size=(n + 1, n + 1)) * 10.0 ** stream.integers(0, 4)
    return scores


def padded(values: Array, ignored: float = np.nan) -> Array:
    """A batch of one item with room for one word more; what must be ignored is NaN or, at the diagonal, ``ignored``."""
    size = len(values)
    item = np.full((1, size + 1, size + 1), np.nan)
    item[0, :-1, :-1] = values
    item[0, :, 0] = np.nan
    np.fill_diagonal(item[0], ignored)
    return item


def assert_same_alone(
    function: Callable[..., Sequence[Array]], fills: Sequence[float], lengths: NDArray[np.int64], *batches: Array
) -> Sequence[Array]:
    """What ``function(lengths, *batches)`` finds of an item is the same bits alone, and ``fills`` behind its words.

    Nothing is written to the batches. Returns what is found of the whole batch.
    """
    before = [batch.copy() for batch in batches]
    together = function(lengths, *batches)
    for batch, copy in zip(batches, before, strict=True):
        np.testing.assert_array_equal(batch, copy)
    for item, n in enumerate(lengths):
        own = (np.ascontiguousarray(batch[item : item + 1, : n + 1, : n + 1]) for batch in batches)
        for alone, found, fill in zip(function(lengths[item : item + 1], *own), together, fills, strict=True):
            expected = np.full_like(found[item], fill)
            expected[tuple(map(slice, alone.shape[1:]))] = alone[0]
            np.testing.assert_array_equal(found[item], expected)
    return together


def mixed_batch(seed: int, *kinds: str) -> tuple[Trees, Array]:
    """Lengths and graphs, of these kinds in turn, NaN at padding; the fourth item has no tree."""
    stream = np.random.default_rng(seed)
    lengths, scores = np.array([5, 8, 1, 8, 3]), np.full((5, 9, 9), np.nan)
    for item, n in enumerate(lengths):
        scores[item, : n + 1, : n + 1] = random_graph(stream, n, kinds[item % len(kinds)], 0.0)
    scores[3, :, 4] = -np.inf
    return lengths, scores
