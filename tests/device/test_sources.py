"""Parts of the CUDA sources by themselves, against those of the compiled kernels."""

from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.emulator import run
from helpers.hostile_scores import hostile_scores

from treeparse.device.launcher import Shape
from treeparse.kernels.sums import elimination
from treeparse.kernels.weights import column_maxima, exponentiate

PROBES = Path(__file__).with_name("probes.cu")


def test_exponentials_are_those_of_the_kernels_to_the_bit() -> None:
    stream = np.random.default_rng(1)
    x = np.concatenate([-(10 ** stream.uniform(-18, 3.5, 2000)), stream.uniform(0, 700, 500), [0, -708, -np.inf, 700]])
    found = torch.empty(len(x), dtype=torch.float64)
    run(PROBES, "exponentials", Shape(1, 2, 0), torch.from_numpy(x), found, len(x))
    exponentiate(expected := x.copy())
    np.testing.assert_array_equal(found.numpy(), expected)
    np.testing.assert_allclose(found.numpy(), np.where(x > -708, np.exp(x), 0.0), rtol=3e-16)


@pytest.mark.parametrize("single_root", [True, False], ids=["single-root", "multi-root"])
def test_plain_weights_serve_the_items_that_they_serve_on_the_cpu(single_root: bool) -> None:
    stream = np.random.default_rng(2)
    items = [hostile_scores(stream, 5) for _ in range(200)] + [stream.normal(size=(6, 6)) for _ in range(5)]
    expected = np.full(len(items), np.nan)
    for place, item in enumerate(items):
        np.fill_diagonal(item, np.nan)
        matrices, vectors = np.empty((3, 6, 6)), np.empty((3, 6))
        if column_maxima(item, 5, vectors[0]) > -np.inf:
            expected[place], _ = elimination.linear_item(item, 5, single_root, True, tuple(matrices), tuple(vectors))
    scores = torch.from_numpy(np.stack(items))
    found = torch.empty(len(items), dtype=torch.float64)
    shape, lengths = Shape(len(items), 2, 8000), torch.full((len(items),), 5)
    run(PROBES, "plain_sums", shape, scores, lengths, 6, single_root, found)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12, atol=1e-12)
    assert 10 < np.isnan(expected).sum() < 190
