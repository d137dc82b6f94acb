"""Draws without replacement through the trie against enumeration: their order, their keys, and all trees once."""

import itertools
import sys
from typing import Any

import numpy as np
import pytest
from helpers.drawn_orders import (
    EVERY_FAMILY,
    FAMILIES,
    Drawn,
    Options,
    assert_gumbel,
    assert_keys_law,
    assert_sequence_law,
    batch_of_scales,
    labels_of_arcs,
    places_in,
    random_scores,
    repeated,
    support,
)
from helpers.oracles import Array, all_trees, score_scale
from numba.core import runtime

from treeparse.kernels.best.arborescence import are_trees
from treeparse.kernels.best.eisner import are_projective_trees
from treeparse.kernels.samples.without_replacement import sample_distinct_trees
from treeparse.kernels.sums import conditionals, inside_outside

SCALES = (0.0, 1.0, 4.0)


def are_of_family(heads: np.ndarray, family: Options) -> bool:
    """Whether heads (K, n+1) are trees of a family."""
    check = are_projective_trees if family.get("projective") else are_trees
    return bool(check(heads, np.full(len(heads), heads.shape[1] - 1), single_root=family["single_root"]).all())


def drawn(scores: Array, count: int, repetitions: int, family: Options, seed: int = 1) -> Drawn:
    batch = repeated(scores, repetitions, seed)
    return sample_distinct_trees(*batch, count, **family)


@EVERY_FAMILY
@pytest.mark.parametrize("scale", SCALES)
def test_keys_are_perturbed_log_probabilities(family: Options, scale: float) -> None:
    scores = random_scores(3, scale, 5)
    trees, log_probs = support(scores, **family)
    heads, found, keys = drawn(scores, len(trees), 3000, family)
    places = places_in(trees, heads[:, :, 1:])
    np.testing.assert_allclose(found, log_probs[places], rtol=0, atol=1e-13 * score_scale(scores))
    assert_keys_law(places, keys, log_probs)


@EVERY_FAMILY
def test_the_first_key_is_gumbel_where_there_are_many_trees(family: Options) -> None:
    _, _, keys = drawn(random_scores(12, 1.0, 6), 3, 3000, family)
    assert_gumbel(keys[:, 0])
    # exp(-key) grows by independent exponential variables of rate 1, as hardly any mass is gone.
    assert_gumbel(-np.log(np.diff(np.exp(-keys))).ravel())


def assert_exhausted(scores: Array, family: Options, seed: int) -> None:
    """Each tree comes once with its log probability, and nothing behind the last one."""
    trees, log_probs = support(scores, **family)
    heads, found, keys = (part[0] for part in drawn(scores, len(trees) + 3, 1, family, seed))
    places = places_in(trees, heads[: len(trees), 1:])
    assert sorted(places) == list(range(len(trees)))
    np.testing.assert_allclose(found[: len(trees)], log_probs[places], rtol=0, atol=1e-13 * score_scale(scores))
    assert (found <= 0.0).all()
    assert np.isfinite(keys[: len(trees)]).all()
    assert (np.diff(keys[: len(trees)]) <= 0).all()
    assert (heads[:, 0] == -1).all()
    assert (heads[len(trees) :] == -1).all()
    assert (found[len(trees) :] == -np.inf).all()
    assert (keys[len(trees) :] == -np.inf).all()


@EVERY_FAMILY
@pytest.mark.parametrize("scale", [0.0, 1.0, 10.0, 100.0, 1e3, 1e4])
@pytest.mark.parametrize("forbidden", [0.0, 0.3, 0.6])
def test_every_tree_comes_once(family: Options, scale: float, forbidden: float) -> None:
    for seed in range(5):
        for n in range(1, 5):
            assert_exhausted(random_scores(n, scale, 10 * seed + n, forbidden), family, seed)


@EVERY_FAMILY
@pytest.mark.nojit
def test_small_graphs(family: Options) -> None:
    for n, scale in itertools.product((1, 2, 3), (1.0, 500.0)):
        assert_exhausted(random_scores(n, scale, n, forbidden=0.2), family, n)


@EVERY_FAMILY
def test_root_scores_may_be_shifted(family: Options) -> None:
    for shift in (-800.0, -50.0, 50.0, 800.0):
        scores = random_scores(4, 1.0, 7)
        scores[0] += shift
        assert_exhausted(scores, family, 1)


@EVERY_FAMILY
def test_pairs_of_words_that_prefer_each_other(family: Options) -> None:
    """What remains beside the best trees has no correct digit in 1 - sum p, nor even one that is not 0."""
    scores = np.zeros((6, 6))
    scores[1, 2] = scores[2, 1] = scores[3, 4] = scores[4, 3] = 300.0
    assert_exhausted(scores, family, 1)
    trees, log_probs = support(scores, **family)
    heads, _, _ = drawn(scores, 3, 3000, family)
    first = np.sort(log_probs)[::-1]
    assert first[2] > -10
    top = log_probs > -100
    assert top[places_in(trees, heads[:, :, 1:])].all()
    peaked = scores.copy()
    peaked[0, 1] += 60.0
    trees, log_probs = support(peaked, **family)
    heads, _, keys = drawn(peaked, 4, 3000, family)
    # The best trees lie close together, far above the others, which are drawn once those are out.
    best = log_probs > -20
    places = places_in(trees, heads[:, :, 1:])
    assert best[places[:, : min(4, best.sum())]].all()
    assert (np.diff(keys) <= 0).all()


@EVERY_FAMILY
def test_the_second_tree_where_the_first_is_all_but_certain(family: Options) -> None:
    """The law of the second tree among those of summed probability 1e-13 and less."""
    scores = random_scores(4, 1.0, 8)
    trees, _ = support(scores, **family)
    scores[trees[3], np.arange(1, 5)] += 40.0
    trees, log_probs = support(scores, **family)
    assert log_probs.max() > -1e-13
    heads, _, _ = drawn(scores, 2, 10000, family)
    places = places_in(trees, heads[:, :, 1:])
    assert (places[:, 0] == log_probs.argmax()).all()
    others = np.delete(log_probs, log_probs.argmax())
    second = places[:, 1] - (places[:, 1] > log_probs.argmax())
    assert_sequence_law(second[:, None], others - np.logaddexp.reduce(others))


@EVERY_FAMILY
@pytest.mark.parametrize("scale", [1.0, 5.0])
def test_arcs_are_drawn_by_their_marginals(family: Options, scale: float) -> None:
    """The first trees of 15 words, whose marginals come from other algorithms."""
    n, repetitions = 15, 5000
    scores = random_scores(n, scale, 9)
    heads, _, _ = drawn(scores, 1, repetitions, family)
    kernel = inside_outside if family.get("projective") else conditionals
    logs = kernel.log_marginals(scores[None], np.array([n]), single_root=family["single_root"])
    expected = np.exp(logs[0])
    for word in range(1, n + 1):
        found = np.bincount(heads[:, 0, word], minlength=n + 1) / repetitions
        deviation = np.sqrt(expected[:, word] * (1 - expected[:, word]) / repetitions)
        assert (np.abs(found - expected[:, word]) <= 5 * deviation + 1e-3).all()


@EVERY_FAMILY
@pytest.mark.nojit
def test_an_item_is_the_same_alone_in_a_batch_and_in_a_longer_list(family: Options) -> None:
    scores, lengths, seeds = batch_of_scales()
    before = scores.copy()
    heads, log_probs, keys = sample_distinct_trees(scores, lengths, seeds, 12, **family, threads=2)
    np.testing.assert_array_equal(scores, before)
    assert (heads[3] == -1).all()
    assert (keys[3] == -np.inf).all()
    for item, n in enumerate(lengths):
        own = np.ascontiguousarray(scores[item : item + 1, : n + 1, : n + 1])
        few = sample_distinct_trees(own, lengths[item : item + 1], seeds[item : item + 1], 5, **family)
        np.testing.assert_array_equal(few[0][0], heads[item, :5, : n + 1])
        np.testing.assert_array_equal(few[1][0], log_probs[item, :5])
        np.testing.assert_array_equal(few[2][0], keys[item, :5])
        assert (heads[item, :, n + 1 :] == -1).all()


def test_seeds_make_a_difference() -> None:
    scores = random_scores(6, 1.0, 11)
    heads, _, keys = drawn(scores, 4, 50, FAMILIES["single-root"])
    assert len(np.unique(keys)) == 200
    assert len(np.unique(heads.reshape(50, -1), axis=0)) > 45


@EVERY_FAMILY
@pytest.mark.parametrize("scale", SCALES)
def test_going_on_from_trees_drawn_before_keeps_the_law(family: Options, scale: float) -> None:
    scores = random_scores(3, scale, 12)
    trees, log_probs = support(scores, **family)
    scores, lengths, seeds = repeated(scores, 8000, 3)
    known, _, _ = sample_distinct_trees(scores, lengths, seeds, 2, **family)
    known[::3, 1] = -1  # for some items one tree is known, for others two
    count = min(4, len(trees))
    heads, found, keys = sample_distinct_trees(scores, lengths, ~seeds, count, **family, known=known)
    places = places_in(trees, heads[:, :, 1:])
    np.testing.assert_array_equal(heads[:, 0], known[:, 0])
    np.testing.assert_allclose(found, log_probs[places], rtol=0, atol=1e-12)
    assert_sequence_law(places[:, :3], log_probs)
    assert_gumbel(keys[:, 0])
    assert (np.diff(keys) <= 0).all()


@EVERY_FAMILY
def test_all_memory_is_given_back(family: Options) -> None:
    """Arrays are passed without counting references to them, and grow on the way."""
    batch, labels = repeated(random_scores(4, 1.0, 17), 20, 6), np.repeat(labels_of_arcs(4, 1.0, 18)[None], 20, 0)
    references = [sys.getrefcount(array) for array in (*batch, labels)]
    numbas: Any = runtime
    numbas._nrt_python.memsys_enable_stats()
    try:
        before = numbas.rtsys.get_allocation_stats()
        sample_distinct_trees(*batch, 50, **family, label_logs=labels)
        after = numbas.rtsys.get_allocation_stats()
    finally:
        numbas._nrt_python.memsys_disable_stats()
    assert after.alloc - before.alloc == after.free - before.free > 0
    assert after.mi_alloc - before.mi_alloc == after.mi_free - before.mi_free > 0
    assert references == [sys.getrefcount(array) for array in (*batch, labels)]


@EVERY_FAMILY
def test_longer_labelled_sentences(family: Options) -> None:
    n, count = 12, 200
    for scale in (0.3, 3.0, 30.0):
        scores, label_logs = random_scores(n, scale, 15), labels_of_arcs(n, scale, 16)
        batch = repeated(scores, 1, 5)
        rows, log_probs, keys = sample_distinct_trees(*batch, count, **family, label_logs=label_logs[None])
        assert len(np.unique(rows[0], axis=0)) == count
        assert np.isfinite(log_probs).all()
        assert (np.diff(keys) <= 0).all()
        assert rows[0, :, n + 2 :].min() >= 0
        assert are_of_family(np.ascontiguousarray(rows[0, :, : n + 1]), family)


@pytest.mark.timeout(300, method="thread")  # a signal does not end a kernel
@pytest.mark.parametrize("single_root", [True, False])
@pytest.mark.parametrize("projective", [True, False])
def test_rounding_leaves_no_mass_to_draw_from_for_ever(single_root: bool, projective: bool) -> None:
    """Sums of such scores are off by many nats, so that all trees together seem to have little mass."""
    for n, value in itertools.product((1, 2, 3), (1e16, -1e16, 1e17 / 3)):
        scores = np.full((6, n + 1, n + 1), value)
        arguments = scores, np.full(6, n), np.arange(6, dtype=np.uint64), 20
        rows, log_probs, keys = sample_distinct_trees(*arguments, single_root=single_root, projective=projective)
        expected = len(all_trees(n, single_root, projective))
        for item in range(6):
            assert len(np.unique(rows[item, :expected], axis=0)) == expected
            assert (rows[item, :expected, 1] >= 0).all()
            assert (rows[item, expected:] == -1).all()
        assert np.isfinite(log_probs[:, :expected]).all()
        assert (log_probs[:, expected:] == -np.inf).all()
        assert (keys[:, expected:] == -np.inf).all()
