"""Sums at every score scale and length, where a determinant has long lost its digits."""

import numpy as np
import pytest
import torch
from fuzz.scores import KINDS, Item, errors, tolerance
from helpers.hostile_scores import prefer_each_other
from helpers.oracles import precise_log_partition, precise_projective_log_partition, score_scale
from helpers.tree_cases import CASES, EMULATED_CASES, NUMBA, PROJECTIVE, SECOND_ORDER, TORCH, Case, Kind

SCALES = (1.0, 10.0, 100.0, 300.0, 10000.0)
ROOTS = pytest.mark.parametrize("single_root", [True, False], ids=["single-root", "multi-root"])
KINDS_OF_TREES = pytest.mark.parametrize("kind", [NUMBA, TORCH, PROJECTIVE], ids=lambda kind: kind.name)


def check(scores: np.ndarray, kind: Kind, single_root: bool, *, precise: bool) -> None:
    """No NaN anywhere, columns of marginals that sum to 1, derivatives that keep these sums; log Z at 50 digits."""
    tensor, words = torch.from_numpy(scores).requires_grad_(), len(scores) - 1
    p = kind.distribution(tensor, single_root=single_root)
    columns = p.marginals.sum(-2)[1:]
    torch.testing.assert_close(columns, torch.ones_like(columns), rtol=0, atol=1e-12 if kind.crossing else 1e-13)
    digits = 1e-12 if kind.crossing else 1e-16 * score_scale(scores)
    torch.testing.assert_close(p.log_marginals.exp(), p.marginals, rtol=0, atol=digits)
    assert (p.marginals >= 0).all()
    entropy = p.entropy()
    most = words * np.log(words + 1) if kind.crossing else 3 * words * np.log(2)  # logs of numbers of trees
    assert -1e-9 * score_scale(scores) < entropy <= most
    (gradient,) = torch.autograd.grad(entropy + p.log_partition + p.renyi_entropy(2.0), tensor)
    assert gradient.isfinite().all()
    assert -torch.inf < p.log_prob(p.mode) <= 1e-12 * score_scale(scores)
    assert not p.covariance(tensor.detach(), tensor.detach()).isnan()
    if precise:
        log_partition = precise_log_partition if kind.crossing else precise_projective_log_partition
        error = abs(p.log_partition.item() - log_partition(scores, single_root))
        assert error <= (1e-12 if kind.crossing else 1e-14) * score_scale(scores)


@ROOTS
@KINDS_OF_TREES
@pytest.mark.parametrize("scale", SCALES)
def test_random_scores(scale: float, kind: Kind, single_root: bool) -> None:
    stream = np.random.default_rng(int(scale))
    for n in (10, 25, 60, 160) if kind.crossing else (10, 25, 60):
        check(stream.normal(size=(n + 1, n + 1)) * scale, kind, single_root, precise=n <= 25)


@ROOTS
@KINDS_OF_TREES
@pytest.mark.parametrize("gap", [10.0, 30.0, 100.0, 300.0, 1000.0])
def test_words_that_prefer_each_other(gap: float, kind: Kind, single_root: bool) -> None:
    """The determinant of the Laplacian loses gap / ln 10 digits here."""
    stream = np.random.default_rng(int(gap))
    for n, pairs in ((10, [(3, 7)]), (20, [(3, 4), (8, 15), (1, 20)])):
        scores = prefer_each_other(stream.normal(size=(n + 1, n + 1)), pairs, gap)
        check(scores, kind, single_root, precise=True)


@pytest.mark.parametrize("case", CASES + SECOND_ORDER + EMULATED_CASES, ids=lambda case: case.name)
@pytest.mark.parametrize("magnitude", [-3, 3, 6])
def test_every_quantity_has_its_digits_at_every_scale(case: Case, magnitude: int) -> None:
    """Against 60 digits: ties, near ties, and words that prefer each other among them; half of them forbid arcs."""
    found = 0
    for seed, kind in enumerate(KINDS):
        forbidden = 0.3 * ((seed + magnitude // 2) % 2)
        parameters = Item(kind, 3, magnitude, forbidden, seed).parameters(case, torch.float64)
        if not case.enumerated(parameters).exists:
            continue
        found += 1
        for quantity, error in errors(case, parameters, seed=seed).items():
            assert error <= tolerance(quantity, parameters), f"{quantity} of {kind} scores is off by {error:.1e}"
    assert found > len(KINDS) // 2
