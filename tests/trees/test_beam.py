"""The stochastic beam against enumeration: the order of the trees, their keys, and all trees once."""

import numpy as np
import pytest
import torch
from helpers.drawn_orders import (
    Drawn,
    assert_gumbel,
    assert_keys_law,
    assert_sequence_law,
    batch_of_scales,
    labelled_support,
    labels_of_arcs,
    places_in,
    random_scores,
    repeated,
    support,
)
from helpers.oracles import Array, score_scale, tree_scores

from treeparse.kernels.best.arborescence import are_trees
from treeparse.kernels.compile import exact_kernel
from treeparse.kernels.random import new_stream, uniform
from treeparse.kernels.sums.elimination import log_partition
from treeparse.trees.families import beam

ROOTS = pytest.mark.parametrize("single_root", [True, False], ids=["single-root", "multi-root"])
SCALES = (0.0, 1.0, 4.0)


def sample(
    scores: Array, lengths: np.ndarray, seeds: np.ndarray, count: int, single_root: bool, device: str = "cpu"
) -> Drawn:
    tensors = torch.from_numpy(scores).to(device), torch.from_numpy(lengths).to(device)
    own_seeds = torch.from_numpy(seeds.view(np.int64))
    found = beam.sample_by_beam(*tensors, own_seeds, count, single_root=single_root)
    assert all(part.device.type == device for part in found)
    heads, log_probs, keys = (part.cpu().numpy() for part in found)
    return heads, log_probs, keys


@ROOTS
@pytest.mark.parametrize("scale", SCALES)
def test_the_first_trees_come_in_the_order_of_the_law(single_root: bool, scale: float) -> None:
    for n, count in ((2, 2), (3, 2), (3, 3), (4, 2)):
        scores = random_scores(n, scale, n)
        trees, log_probs = support(scores, single_root)
        heads, _, keys = sample(*repeated(scores, 10000, 1), min(count, len(trees)), single_root)
        assert_sequence_law(places_in(trees, heads[:, :, 1:]), log_probs)
        assert_gumbel(keys[:, 0])


@ROOTS
@pytest.mark.parametrize("scale", SCALES)
def test_keys_are_perturbed_log_probabilities(single_root: bool, scale: float) -> None:
    scores = random_scores(3, scale, 5)
    trees, log_probs = support(scores, single_root)
    heads, found, keys = sample(*repeated(scores, 5000, 2), len(trees), single_root)
    places = places_in(trees, heads[:, :, 1:])
    np.testing.assert_allclose(found, log_probs[places], rtol=0, atol=1e-13 * score_scale(scores))
    assert_keys_law(places, keys, log_probs)


@ROOTS
@pytest.mark.parametrize("scale", [0.0, 1.0, 10.0, 100.0, 1e3, 1e4])
@pytest.mark.parametrize("forbidden", [0.0, 0.3, 0.6])
def test_every_tree_comes_once(single_root: bool, scale: float, forbidden: float) -> None:
    for n in (1, 2, 3, 4, 4, 4):
        scores = random_scores(n, scale, 7 * n, forbidden)
        trees, log_probs = support(scores, single_root)
        heads, found, keys = (part[0] for part in sample(*repeated(scores, 1, 3), len(trees) + 3, single_root))
        places = places_in(trees, heads[: len(trees), 1:])
        assert sorted(places) == list(range(len(trees)))
        np.testing.assert_allclose(found[: len(trees)], log_probs[places], rtol=0, atol=1e-13 * score_scale(scores))
        assert np.isfinite(keys[: len(trees)]).all()
        assert (np.diff(keys[: len(trees)]) <= 0).all()
        assert (heads[len(trees) :] == -1).all()
        assert (found[len(trees) :] == -np.inf).all()
        assert (keys[len(trees) :] == -np.inf).all()


@ROOTS
@pytest.mark.parametrize("scale", [0.1, 10.0, 1e3])
def test_longer_sentences(single_root: bool, scale: float) -> None:
    n, count = 20, 30
    scores = random_scores(n, scale, n)
    heads, log_probs, keys = (part[0] for part in sample(*repeated(scores, 1, 4), count, single_root))
    assert are_trees(heads, np.full(count, n), single_root=single_root).all()
    assert len(np.unique(heads, axis=0)) == count
    log_z = log_partition(scores[None], np.array([n]), single_root=single_root)[0]
    tolerance = 1e-13 * score_scale(scores)
    np.testing.assert_allclose(log_probs, tree_scores(scores, heads[:, 1:]) - log_z, rtol=0, atol=tolerance)
    assert (np.diff(keys) <= 0).all()


@ROOTS
def test_an_item_is_the_same_alone_in_a_batch_and_in_a_longer_list(
    single_root: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    scores, lengths, seeds = batch_of_scales()
    before = scores.copy()
    heads, log_probs, keys = sample(scores, lengths, seeds, 12, single_root)
    np.testing.assert_array_equal(scores, before)
    assert (heads[3] == -1).all()
    assert (keys[3] == -np.inf).all()
    for item, n in enumerate(lengths):
        own = np.ascontiguousarray(scores[item : item + 1, : n + 1, : n + 1])
        few = sample(own, lengths[item : item + 1], seeds[item : item + 1], 5, single_root)
        np.testing.assert_array_equal(few[0][0], heads[item, :5, : n + 1])
        np.testing.assert_allclose(few[1][0], log_probs[item, :5], rtol=0, atol=1e-11)
        np.testing.assert_allclose(few[2][0], keys[item, :5], rtol=0, atol=1e-11)
        assert (heads[item, :, n + 1 :] == -1).all()
    monkeypatch.setattr(beam, "MAX_WEIGHTS", 1)
    np.testing.assert_array_equal(sample(scores, lengths, seeds, 12, single_root)[0], heads)


@ROOTS
def test_labelled_trees(single_root: bool) -> None:
    scores, label_logs = random_scores(2, 1.0, 13), labels_of_arcs(2, 1.0, 14)
    trees, log_probs = labelled_support(scores, label_logs, {"single_root": single_root})
    scores, lengths, seeds = repeated(scores, 5000, 4)
    # a word of padding, as in a batch
    scores = np.pad(scores, ((0, 0), (0, 1), (0, 1)), constant_values=np.nan)
    label_logs = np.pad(label_logs, ((0, 1), (0, 1), (0, 0)), constant_values=np.nan)
    tensors = torch.from_numpy(scores), torch.from_numpy(lengths), torch.from_numpy(seeds.view(np.int64))
    labels = torch.from_numpy(label_logs).expand(5000, -1, -1, -1)
    found = beam.sample_by_beam(*tensors, len(trees) + 1, single_root=single_root, label_logs=labels)
    rows, found, keys = (part.numpy() for part in found)
    assert (rows[:, :, [0, 3, 4, 7]] == -1).all()
    assert (rows[:, -1] == -1).all()
    places = places_in(trees, rows[:, :-1, [1, 2, 5, 6]])
    np.testing.assert_allclose(found[:, :-1], log_probs[places], rtol=0, atol=1e-12)
    assert_sequence_law(places[:, :2], log_probs)
    assert_keys_law(places, keys, log_probs)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@ROOTS
def test_a_gpu_gives_the_same(single_root: bool) -> None:
    scores, lengths, seeds = batch_of_scales()
    heads, log_probs, keys = sample(scores, lengths, seeds, 12, single_root)
    found = sample(scores, lengths, seeds, 12, single_root, "cuda")
    np.testing.assert_array_equal(found[0], heads)
    np.testing.assert_allclose(found[1], log_probs, rtol=0, atol=1e-10)
    np.testing.assert_allclose(found[2], keys, rtol=0, atol=1e-10)


@exact_kernel
def draws_of_kernel(seeds, step, places, count):
    values = np.empty((len(seeds), places, count))
    for item in range(len(seeds)):
        for place in range(places):
            stream = new_stream(seeds[item], place + (step << 32))
            for draw in range(count):
                stream, values[item, place, draw] = uniform(stream)
    return values


def test_noise_comes_from_the_streams_of_the_kernels() -> None:
    seeds = np.array([0, 1, 2**63, 2**64 - 1], np.uint64)
    noise = beam._gumbel(torch.from_numpy(seeds.view(np.int64)), 3, 5, 7).numpy()
    expected = -np.log(-np.log(draws_of_kernel(seeds, 3, 5, 7)))
    np.testing.assert_allclose(noise, expected, rtol=1e-14, atol=1e-14)
