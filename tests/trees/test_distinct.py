"""Draws with replacement without their repeats: their keys, and the switch to the trie.

The order of the trees, batches and labelled trees are in ``test_without_replacement``.
"""

from functools import partial

import numpy as np
import pytest
from helpers.drawn_orders import (
    EVERY_FAMILY,
    Options,
    assert_keys_law,
    places_in,
    random_scores,
    repeated,
    support,
)
from helpers.oracles import Array, score_scale

from treeparse.kernels.random import uniforms
from treeparse.kernels.samples import without_replacement
from treeparse.kernels.sums import elimination, inside_outside
from treeparse.trees.families.distinct import DrawKernels, DrawnArrays, Sampler, sample_distinct

SCALES = (0.0, 1.0, 4.0)


class Enumerating:
    """Draws with replacement from the support of one item, by the inverse of the distribution function."""

    def __init__(self, scores: Array, family: Options) -> None:
        self.trees, self.log_probs = support(scores, **family)
        self.bounds = np.cumsum(np.exp(self.log_probs))
        self.largest = 0

    def __call__(self, scores: Array, lengths: np.ndarray, seeds: np.ndarray, count: int) -> np.ndarray:
        self.largest = max(self.largest, count)
        chosen = np.searchsorted(self.bounds[:-1], uniforms(seeds, count, 1, salt=0)[..., 0])
        return np.pad(self.trees[chosen], ((0, 0), (0, 0), (1, 0)), constant_values=-1)


def kernels_of(sampler: Sampler, *, single_root: bool, projective: bool = False) -> DrawKernels:
    """A sampler of the family's trees, with the other kernels of the family."""
    log_partition = inside_outside.log_partition if projective else elimination.log_partition
    return DrawKernels(
        sampler,
        partial(log_partition, single_root=single_root),
        partial(without_replacement.sample_distinct_trees, projective=projective, single_root=single_root),
    )


def drawn(scores: Array, count: int, repetitions: int, family: Options) -> DrawnArrays:
    sampler = Enumerating(scores, family)
    return sample_distinct(kernels_of(sampler, **family), *repeated(scores, repetitions, 1), count)


@EVERY_FAMILY
@pytest.mark.parametrize("scale", SCALES)
def test_keys_are_perturbed_log_probabilities_and_every_tree_comes_once(family: Options, scale: float) -> None:
    scores = random_scores(3, scale, 5)
    trees, log_probs = support(scores, **family)
    found = drawn(scores, len(trees) + 2, 3000, family)
    places = places_in(trees, found.rows[:, :, 1:])
    assert (np.sort(places[:, :-2], 1) == np.arange(len(trees))).all()
    np.testing.assert_allclose(found.log_probs[:, :-2], log_probs[places[:, :-2]], rtol=0, atol=1e-12)
    assert_keys_law(places, found.keys, log_probs)
    assert (found.rows[:, -2:] == -1).all()
    assert (found.log_probs[:, -2:] == -np.inf).all()
    assert (found.keys[:, -2:] == -np.inf).all()


@EVERY_FAMILY
@pytest.mark.parametrize("scale", [1.0, 10.0, 100.0, 1e3])
def test_repeats_that_dominate_do_no_harm(family: Options, scale: float) -> None:
    """From scale 10 on, the tree that comes last is too improbable ever to be drawn with replacement."""
    for seed in range(5):
        scores = random_scores(4, scale, seed)
        trees, log_probs = support(scores, **family)
        sampler = Enumerating(scores, family)
        found = sample_distinct(kernels_of(sampler, **family), *repeated(scores, 1, 1), len(trees))
        places = places_in(trees, found.rows[0, :, 1:])
        assert sorted(places) == list(range(len(trees)))
        np.testing.assert_allclose(found.log_probs[0], log_probs[places], rtol=0, atol=1e-13 * score_scale(scores))
        assert (np.diff(found.keys[0]) <= 0).all()
        assert sampler.largest <= 8 * len(trees)


def test_half_of_all_mass() -> None:
    """After half of 36 equal trees, whether more or less than half of the mass is left is a matter of rounding."""
    scores = np.zeros((5, 5))
    scores[[0, 1, 3, 4], [3, 3, 4, 1]] = -np.inf
    for repetitions in (1, 50):
        rows, log_probs, _ = drawn(scores, 40, repetitions, {"single_root": False})
        assert all(len(np.unique(trees[:36], axis=0)) == 36 for trees in rows)
        np.testing.assert_allclose(log_probs[:, :36], -np.log(36), rtol=0, atol=1e-12)
        assert (log_probs[:, 36:] == -np.inf).all()
