"""Draws with replacement without their repeats: the law of draws without replacement, and the switch to the trie."""

import itertools
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from helpers.drawn_orders import (
    EVERY_FAMILY,
    Options,
    assert_gumbel,
    assert_keys_law,
    assert_sequence_law,
    places_in,
    random_scores,
    repeated,
    support,
)
from helpers.oracles import Array, score_scale
from helpers.ranking import random_graph

from treeparse.kernels.random import uniforms
from treeparse.kernels.samples import nonprojective_samples, projective_samples, without_replacement
from treeparse.kernels.sums import elimination, inside_outside
from treeparse.trees.families.distinct import DrawKernels, DrawnArrays, Sampler, sample_distinct
from treeparse.trees.labels.batched_labels import BatchedLabels
from treeparse.trees.labels.sources import LabelTensor

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


def kernels_of(sampler: Sampler, *, single_root: bool, projective: bool = False, threads: int = 1) -> DrawKernels:
    """A sampler of the family's trees, with the other kernels of the family."""
    options: dict[str, Any] = {"single_root": single_root, "threads": threads}
    log_partition = inside_outside.log_partition if projective else elimination.log_partition
    return DrawKernels(
        sampler,
        partial(log_partition, **options),
        partial(without_replacement.sample_distinct_trees, projective=projective, **options),
    )


def drawn(scores: Array, count: int, repetitions: int, family: Options) -> DrawnArrays:
    sampler = Enumerating(scores, family)
    return sample_distinct(kernels_of(sampler, **family), *repeated(scores, repetitions, 1), count)


@EVERY_FAMILY
@pytest.mark.parametrize("scale", SCALES)
def test_the_first_trees_come_in_the_order_of_the_law(family: Options, scale: float) -> None:
    for n, count in ((2, 2), (3, 2), (3, 3)):
        scores = random_scores(n, scale, n)
        trees, log_probs = support(scores, **family)
        found = drawn(scores, min(count, len(trees)), 8000, family)
        assert_sequence_law(places_in(trees, found.rows[:, :, 1:]), log_probs)
        assert_gumbel(found.keys[:, 0])


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


@EVERY_FAMILY
def test_fewer_trees_are_the_first_of_more_in_any_batch(family: Options) -> None:
    stream = np.random.default_rng(6)
    lengths, seeds = np.array([5, 8, 1, 8, 3]), np.arange(5, dtype=np.uint64)
    scores = np.full((5, 9, 9), np.nan)
    for item, n in enumerate(lengths):
        scores[item, : n + 1, : n + 1] = random_graph(stream, n, "random", 0.0) * (1.0, 3.0, 10.0)[item % 3]
    scores[3, :, 4] = -np.inf

    def sampler(scores: Array, lengths: np.ndarray, seeds: np.ndarray, count: int) -> np.ndarray:
        single_root = family["single_root"]
        if family.get("projective"):
            return projective_samples.sample_trees(scores, lengths, seeds, count, single_root=single_root)
        return nonprojective_samples.sample_trees(scores, lengths, seeds, count, single_root=single_root)[0]

    before = scores.copy()
    found = sample_distinct(kernels_of(sampler, **family, threads=2), scores, lengths, seeds, 30)
    np.testing.assert_array_equal(scores, before)
    assert (found.rows[3] == -1).all()
    assert (found.keys[3] == -np.inf).all()
    for item, n in enumerate(lengths):
        own = np.ascontiguousarray(scores[item : item + 1, : n + 1, : n + 1])
        arguments = own, lengths[item : item + 1], seeds[item : item + 1]
        for count in (1, 4, 13):
            few = sample_distinct(kernels_of(sampler, **family), *arguments, count)
            np.testing.assert_array_equal(few.rows[0], found.rows[item, :count, : n + 1])
            np.testing.assert_allclose(few.log_probs[0], found.log_probs[item, :count], rtol=0, atol=1e-12)
            np.testing.assert_allclose(few.keys[0], found.keys[item, :count], rtol=0, atol=1e-12)
        assert (found.rows[item, :, n + 1 :] == -1).all()
        exists = found.rows[item, :, 1] >= 0
        assert len(np.unique(found.rows[item, exists], axis=0)) == exists.sum()


def test_labelled_trees() -> None:
    n, labels = 2, 2
    scores = random_scores(n, 1.0, 7)
    label_logs = np.log(np.random.default_rng(8).dirichlet(np.ones(labels), size=(n + 1, n + 1)))
    heads, log_probs = support(scores, True)
    trees = np.array([[*tree, *given] for tree in heads for given in itertools.product(range(labels), repeat=n)])
    words = np.arange(1, n + 1)
    log_probs = np.repeat(log_probs, labels**n) + label_logs[trees[:, :n], words, trees[:, n:]].sum(1)
    family: Options = {"single_root": True}
    is_arc = torch.ones(6000, n + 1, n + 1, dtype=torch.bool)
    labels_of_all = BatchedLabels(LabelTensor(torch.from_numpy(np.repeat(label_logs[None], 6000, 0))), is_arc)

    def draw(count: int) -> DrawnArrays:
        batch = repeated(scores, 6000, 9)
        return sample_distinct(kernels_of(Enumerating(scores, family), **family), *batch, count, labels_of_all)

    found = draw(2)
    assert_sequence_law(places_in(trees, found.rows[:, :, [1, 2, 4, 5]]), log_probs)
    found = draw(len(trees))
    places = places_in(trees, found.rows[:, :, [1, 2, 4, 5]])
    np.testing.assert_allclose(found.log_probs, log_probs[places], rtol=0, atol=1e-12)
    assert_keys_law(places, found.keys, log_probs)
