"""Sums at every score scale and length, where a determinant has long lost its digits."""

from itertools import product

import numpy as np
import pytest
import torch
from fuzz.scores import KINDS, Item, errors, tolerance
from helpers.oracles import precise_log_partition, score_scale
from helpers.tree_cases import CASES, EMULATED_CASES, SECOND_ORDER, Case

from treeparse import NonProjectiveCRF
from treeparse.trees.families import Backend

SCALES = (1.0, 10.0, 50.0, 100.0, 300.0, 1000.0, 10000.0)
ROOTS = pytest.mark.parametrize("single_root", [True, False], ids=["single-root", "multi-root"])
BACKENDS = pytest.mark.parametrize("backend", ["numba", "torch"])


def check(scores: np.ndarray, single_root: bool, backend: Backend) -> NonProjectiveCRF:
    """No NaN anywhere, columns of marginals that sum to 1, derivatives that keep these sums."""
    tensor = torch.from_numpy(scores).requires_grad_()
    p = NonProjectiveCRF(tensor, single_root=single_root, backend=backend)
    columns = p.marginals.sum(-2)[..., 1:]
    torch.testing.assert_close(columns, torch.ones_like(columns), rtol=0, atol=1e-12)
    assert (p.marginals >= 0).all()
    entropy = p.entropy()
    largest = sum(np.log(size) for size in [scores.shape[-1]] * (scores.shape[-1] - 1))
    assert ((entropy > -1e-9 * score_scale(scores)) & (entropy <= largest)).all()
    (gradient,) = torch.autograd.grad(entropy.sum() + p.log_partition.sum() + p.renyi_entropy(2.0).sum(), tensor)
    assert gradient.isfinite().all()
    assert p.log_prob(p.mode) > -torch.inf
    assert not p.covariance(tensor.detach(), tensor.detach()).isnan().any()
    return p


@ROOTS
@BACKENDS
@pytest.mark.parametrize("scale", SCALES)
def test_random_scores(scale: float, backend: Backend, single_root: bool) -> None:
    stream = np.random.default_rng(int(scale))
    for n in (10, 25, 60, 160):
        scores = stream.normal(size=(n + 1, n + 1)) * scale
        p = check(scores, single_root, backend)
        if n <= 25:
            expected = precise_log_partition(scores, single_root)
            assert abs(p.log_partition.item() - expected) <= 1e-12 * score_scale(scores)


@ROOTS
@BACKENDS
@pytest.mark.parametrize("gap", [10.0, 100.0, 300.0, 1000.0])
def test_two_words_that_prefer_each_other(gap: float, backend: Backend, single_root: bool) -> None:
    stream = np.random.default_rng(int(gap))
    for n in (10, 20):
        scores = stream.normal(size=(n + 1, n + 1))
        scores[3, 7] += gap
        scores[7, 3] += gap
        p = check(scores, single_root, backend)
        expected = precise_log_partition(scores, single_root)
        assert abs(p.log_partition.item() - expected) <= 1e-12 * score_scale(scores)


@pytest.mark.parametrize("case", CASES + SECOND_ORDER + EMULATED_CASES, ids=lambda case: case.name)
@pytest.mark.parametrize("magnitude", [-3, 3, 4, 5, 6])
def test_every_quantity_has_its_digits_at_every_scale(case: Case, magnitude: int) -> None:
    """Against 60 digits: ties, near ties, and words that prefer each other among them."""
    found = 0
    for seed, (kind, forbidden) in enumerate(product(KINDS, (0.0, 0.3))):
        parameters = Item(kind, 3, magnitude, forbidden, seed).parameters(case, torch.float64)
        if not case.enumerated(parameters).exists:
            continue
        found += 1
        for quantity, error in errors(case, parameters, seed=seed).items():
            assert error <= tolerance(quantity, parameters), f"{quantity} of {kind} scores is off by {error:.1e}"
    assert found >= len(KINDS)
