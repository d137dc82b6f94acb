"""The law of draws without replacement, against which samplers are tested: the order of the trees, and their keys."""

import itertools
from typing import NotRequired, TypedDict

import numpy as np
import pytest
from helpers.batches import mixed_batch
from helpers.chi_square import chi_square_z
from helpers.oracles import Array, all_trees, tree_scores
from helpers.ranking import Trees, random_graph
from numpy.typing import NDArray


class Options(TypedDict):
    """Of a family of trees."""

    single_root: bool
    projective: NotRequired[bool]


FAMILIES: dict[str, Options] = {
    "single-root": {"single_root": True},
    "multi-root": {"single_root": False},
    "projective-single-root": {"single_root": True, "projective": True},
    "projective-multi-root": {"single_root": False, "projective": True},
}
EVERY_FAMILY = pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
Drawn = tuple[Trees, Array, Array]  # heads (R, k, n+1), log probabilities (R, k) and keys (R, k) of R repetitions


def random_scores(n: int, scale: float, seed: int, forbidden: float = 0.0) -> Array:
    scores = random_graph(np.random.default_rng(seed), n, "random", forbidden)
    return np.multiply(scores, scale, out=scores, where=np.isfinite(scores))


def support(scores: Array, single_root: bool, projective: bool = False) -> tuple[Trees, Array]:
    """All trees (trees, n) of one item, and their log probabilities; those with a forbidden arc are left out."""
    trees = all_trees(len(scores) - 1, single_root, projective)
    totals = tree_scores(scores, trees)
    trees, totals = trees[totals > -np.inf], totals[totals > -np.inf]
    return trees, totals - np.logaddexp.reduce(totals)


def labels_of_arcs(n: int, scale: float, seed: int) -> Array:
    label_scores = scale * np.random.default_rng(seed).normal(size=(n + 1, n + 1, 3))
    label_scores[..., 2] -= 1.0
    label_scores[1:, 2, 1] = -np.inf
    return label_scores - np.logaddexp.reduce(label_scores, 2)[..., None]


def repeated(scores: Array, count: int, seed: int) -> tuple[Array, Trees, NDArray[np.uint64]]:
    """A batch of one item over and over: scores, lengths and seeds."""
    seeds = np.random.default_rng(seed).integers(0, 2**64, count, dtype=np.uint64)
    return np.repeat(scores[None], count, 0), np.full(count, len(scores) - 1), seeds


def batch_of_scales() -> tuple[Array, Trees, NDArray[np.uint64]]:
    """Scores of several lengths and scales, of which one has no tree, their lengths and seeds."""
    lengths, scores = mixed_batch(10, "random")
    return scores * 10.0 ** (np.arange(5) % 3)[:, None, None], lengths, np.arange(5, dtype=np.uint64)


def places_in(trees: Trees, heads: Trees) -> Trees:
    """Which of the trees (T, W) every drawn one (R, k, W) is, -1 where there is none."""
    base = 1 + max(trees.max(initial=0), heads.max(initial=0)) - min(trees.min(initial=0), heads.min(initial=0))
    codes, drawn = (rows @ base ** np.arange(rows.shape[-1]) for rows in (trees, heads))
    if not len(trees):
        return np.full(drawn.shape, -1)
    order = codes.argsort()
    places = order[np.searchsorted(codes[order], drawn).clip(max=len(trees) - 1)]
    return np.where(codes[places] == drawn, places, -1)


def sequence_probabilities(probs: Array, count: int) -> tuple[Trees, Array]:
    """All ordered draws (S, k) of different elements, and their probabilities: each is drawn from those left."""
    sequences = np.array(list(itertools.permutations(range(len(probs)), count)))
    result, is_left = np.ones(len(sequences)), np.ones((len(sequences), len(probs)))
    for column in sequences.T:
        result *= probs[column] / (is_left @ probs)
        is_left[np.arange(len(sequences)), column] = 0.0
    return sequences, result


def assert_sequence_law(drawn: Trees, log_probs: Array) -> None:
    """Draws (R, k) of elements come in the order of sequential sampling without replacement, at 4 sigma."""
    sequences, probabilities = sequence_probabilities(np.exp(log_probs), drawn.shape[1])
    found = places_in(sequences, drawn)
    assert (found >= 0).all()
    assert abs(chi_square_z(np.bincount(found, minlength=len(sequences)), probabilities)) < 4.0


def assert_gumbel(values: Array) -> None:
    """Independent values are standard Gumbel, by Kolmogorov and Smirnov's test at a level of 1e-4."""
    levels = np.exp(-np.exp(-np.sort(values)))
    count = len(levels)
    distance = max((np.arange(1, count + 1) / count - levels).max(), (levels - np.arange(count) / count).max())
    assert np.sqrt(count) * distance < 2.23


def assert_keys_law(drawn: Trees, keys: Array, log_probs: Array) -> None:
    """Keys (R, k) of exhaustive draws are log probabilities plus independent standard Gumbel noise, descending."""
    repetitions, count = len(drawn), len(log_probs)
    assert (np.diff(keys[:, :count]) <= 0).all()
    noise = np.empty((repetitions, count))
    np.put_along_axis(noise, drawn[:, :count], keys[:, :count], 1)
    noise -= log_probs
    for element in range(count):
        assert_gumbel(noise[:, element])
    # Uniform numbers of independent elements do not correlate.
    correlations = np.corrcoef(np.exp(-np.exp(-noise)), rowvar=False)
    np.fill_diagonal(correlations, 0.0)
    assert np.abs(correlations).max() < 4.5 / np.sqrt(repetitions)
