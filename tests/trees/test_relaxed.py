"""Relaxed samples: the marginals of perturbed scores by enumeration, their noise, their gradient, their limit."""

import math

import pytest
import torch
from helpers.derivatives import assert_derivatives
from helpers.tree_cases import Case, Enumerated, every_case, generator
from torch import Size, Tensor

from treeparse import TreeparseError
from treeparse.trees.randomness import gumbel_noise, item_seeds

LENGTHS, CPU = torch.tensor([4, 2, 3]), torch.device("cpu")


def noise_of(case: Case, parameters: list[Tensor], seed: int) -> Tensor:
    """The noise that a relaxed sample with a generator of this seed adds to the last parameter."""
    return gumbel_noise(item_seeds(generator(seed), len(parameters[0])), parameters[-1].shape, 1, CPU)


@every_case
@pytest.mark.parametrize(("temperature", "forbidden"), [(0.3, 0.0), (1.0, 0.2), (5.0, 0.0)])
def test_marginals_of_perturbed_scores_by_enumeration(case: Case, temperature: float, forbidden: float) -> None:
    parameters = case.parameters(4, seed=1, batch=(3,), forbidden=forbidden)
    p = case.make(parameters, LENGTHS, validate_args=False)
    found = p.relaxed_sample(temperature, generator=generator(2))
    hard = p.relaxed_sample(temperature, hard=True, generator=generator(2))
    perturbed = [*parameters[:-1], parameters[-1] + noise_of(case, parameters, 2)]
    assert found.shape == hard.shape == p.marginals.shape
    for item, words in enumerate(LENGTHS.tolist()):
        size = words + 1
        oracle = Enumerated(case, [part[item, :size, :size] / temperature for part in perturbed])
        if not oracle.exists:
            assert not found[item].any() and not hard[item].any()
            continue
        inside = found[item, :size, :size]
        torch.testing.assert_close(inside, oracle.marginals, rtol=0, atol=1e-11)
        assert found[item].sum() == pytest.approx(words) and hard[item].sum() == words
        best = torch.zeros_like(oracle.part_scores).flatten()
        best[oracle.parts[oracle.totals.argmax()]] = 1.0
        assert torch.equal(hard[item, :size, :size].flatten(), best)


@every_case
def test_an_items_noise_is_its_generators_however_it_is_padded(case: Case) -> None:
    parameters = case.parameters(4, seed=3, batch=(3,))
    own = [generator(seed) for seed in range(3)]
    together = case.make(parameters, LENGTHS).relaxed_sample(0.7, generator=own)
    for item, words in enumerate(LENGTHS.tolist()):
        size = words + 1
        alone = case.make([part[item, :size, :size] for part in parameters])
        found = alone.relaxed_sample(0.7, generator=generator(item))
        torch.testing.assert_close(found, together[item, :size, :size], rtol=0, atol=1e-12)
    again = case.make(parameters, LENGTHS).relaxed_sample(0.7, generator=[generator(seed) for seed in range(3)])
    other = case.make(parameters, LENGTHS).relaxed_sample(0.7, generator=generator(9))
    assert torch.equal(again, together) and not torch.equal(other, together)


@every_case
def test_derivatives_soft_and_straight_through(case: Case) -> None:
    lengths = torch.tensor([3, 2])
    inputs = [part.nan_to_num(0.0).requires_grad_() for part in case.parameters(3, seed=4, batch=(2,))]

    def relaxed(*x: Tensor, hard: bool = False) -> Tensor:
        return case.make(x, lengths).relaxed_sample(0.8, hard, generator=generator(5))

    def of_copies(*x: Tensor) -> tuple[Tensor]:
        every_item = [generator(5 + item) for _ in x[0] for item in range(2)]
        return (case.make(x, lengths.expand(len(x[0]), 2)).relaxed_sample(0.8, generator=every_item),)

    assert_derivatives(of_copies, inputs)
    weights = torch.randn(relaxed(*inputs).shape, generator=generator(6), dtype=torch.float64)
    soft = torch.autograd.grad((weights * relaxed(*inputs)).sum(), inputs)
    hard = torch.autograd.grad((weights * relaxed(*inputs, hard=True)).sum(), inputs)
    assert all(torch.equal(*pair) for pair in zip(soft, hard, strict=True))
    assert any(gradient.any() for gradient in soft)


@every_case
@pytest.mark.parametrize("scale", [1.0, 1e3])
@pytest.mark.parametrize("temperature", [1e-4, 1e4])
def test_never_nan(case: Case, scale: float, temperature: float) -> None:
    parameters = case.parameters(4, seed=7, batch=(3,), scale=scale, forbidden=0.2)
    inputs = [part.nan_to_num(0.0, neginf=-torch.inf).requires_grad_() for part in parameters]
    p = case.make(inputs, LENGTHS, validate_args=False)
    found = p.relaxed_sample(temperature, generator=generator(8))
    gradients = torch.autograd.grad((found * torch.arange(found.numel()).view_as(found)).sum(), inputs)
    assert found.isfinite().all() and all(gradient.isfinite().all() for gradient in gradients)


def test_the_law_of_the_noise() -> None:
    """The distribution function at its quantiles, within six standard errors; arcs, items and labels independent."""
    count, shape = 4000, Size((4000, 3, 3, 2))
    noise = gumbel_noise(item_seeds(generator(12), count), shape, 1, CPU).reshape(count, -1)
    assert noise.isfinite().all()
    for share in (0.001, 0.1, 0.5, 0.9, 0.999):
        below = (noise < -math.log(-math.log(share))).double().mean(0)
        assert ((below - share).abs() < 6 * math.sqrt(share * (1 - share) / count)).all()
    correlations = torch.corrcoef(noise.T) - torch.eye(noise.shape[1])
    assert correlations.abs().max() < 6 / math.sqrt(count)
    assert torch.corrcoef(torch.stack([noise[:-1].flatten(), noise[1:].flatten()]))[0, 1].abs() < 6 / math.sqrt(
        noise[1:].numel()
    )


@every_case
def test_faults(case: Case) -> None:
    p = case.make(case.parameters(3, seed=13))
    for temperature in (0.0, -1.0, 1e-300, math.nan):
        with pytest.raises(TreeparseError, match="A temperature must be above 0"):
            p.relaxed_sample(temperature)
    assert p.relaxed_sample(1e-12).isfinite().all()
