"""The stochastic beam: its keys against enumeration, batches, and its noise.

The order of its trees, all trees once, labelled and longer ones are in ``test_without_replacement``.
"""

import numpy as np
import pytest
import torch
from helpers.drawn_orders import (
    Drawn,
    assert_keys_law,
    batch_of_scales,
    places_in,
    random_scores,
    repeated,
    support,
)
from helpers.oracles import Array, score_scale

from treeparse.kernels.compile import exact_kernel
from treeparse.kernels.random import new_stream, uniform
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
def test_keys_are_perturbed_log_probabilities(single_root: bool, scale: float) -> None:
    scores = random_scores(3, scale, 5)
    trees, log_probs = support(scores, single_root)
    heads, found, keys = sample(*repeated(scores, 5000, 2), len(trees), single_root)
    places = places_in(trees, heads[:, :, 1:])
    np.testing.assert_allclose(found, log_probs[places], rtol=0, atol=1e-13 * score_scale(scores))
    assert_keys_law(places, keys, log_probs)


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
