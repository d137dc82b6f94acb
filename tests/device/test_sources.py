"""Parts of the CUDA sources by themselves, against those of the compiled kernels."""

from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.emulator import run
from helpers.hostile_scores import hostile_scores

from treeparse.device.launcher import Shape
from treeparse.kernels.logspace import exp
from treeparse.kernels.sums import elimination

PROBES = Path(__file__).with_name("probes.cu")


def test_exponentials_are_those_of_the_kernels_to_the_bit() -> None:
    stream = np.random.default_rng(1)
    x = np.concatenate([-(10 ** stream.uniform(-18, 3.5, 2000)), stream.uniform(0, 700, 500), [0, -708, -np.inf, 700]])
    found = torch.empty(len(x), dtype=torch.float64)
    run(PROBES, "exponentials", Shape(1, 2, 0), torch.from_numpy(x), found, len(x))
    expected = np.array([exp(number) for number in x])
    np.testing.assert_array_equal(found.numpy(), expected)
    np.testing.assert_allclose(found.numpy(), np.where(x > -708, np.exp(x), 0.0), rtol=3e-16)


@pytest.mark.parametrize("single_root", [True, False], ids=["single-root", "multi-root"])
def test_plain_weights_serve_where_nothing_may_underflow(single_root: bool) -> None:
    """What the rule says of the log partition that is right; where it says no, there may be no tree."""
    stream = np.random.default_rng(2)
    items = [hostile_scores(stream, 5) for _ in range(200)] + [stream.normal(size=(6, 6)) for _ in range(5)]
    scores, lengths = np.stack(items), np.full(len(items), 5)
    scores[:, np.arange(6), np.arange(6)] = -np.inf
    log_z = elimination.log_partition(scores, lengths, single_root=single_root)
    columns = scores[:, :, 1:]
    top = columns.max(1, keepdims=True)
    with np.errstate(invalid="ignore"):
        expected = log_z - top.sum((1, 2))
        served = expected - np.log(np.exp(columns - top).sum(1)).sum(1) >= elimination.LINEAR_LIMIT
    found = torch.empty(len(items), dtype=torch.float64)
    arguments = torch.from_numpy(scores), torch.from_numpy(lengths), 6, single_root
    run(PROBES, "plain_sums", Shape(len(items), 2, 8000), *arguments, found)
    np.testing.assert_allclose(found.numpy(), np.where(served, expected, np.nan), rtol=1e-12, atol=1e-9)
    assert 150 < served.sum() < 195
