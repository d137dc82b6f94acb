"""Estimates and their gradients: their exact expectations over all samples, by enumeration and quadrature."""

import itertools
from collections.abc import Callable, Sequence

import numpy as np
import pytest
import torch
from helpers.drawn_orders import sequence_probabilities
from torch import Tensor

from treeparse import TreeparseError
from treeparse.trees import estimators
from treeparse.trees.estimators import horvitz_thompson, sample_mean, unordered_set

SIZE = 6
SCALES = (0.0, 1.0, 3.0, 10.0)


class Problem:
    """A distribution over a few elements and a function of them, both with parameters."""

    def __init__(self, scale: float, size: int = SIZE) -> None:
        generator = torch.Generator().manual_seed(int(10 * scale))
        self.logits, self.parameters = (torch.randn(size, generator=generator, dtype=torch.float64) for _ in range(2))
        self.logits = (scale * self.logits).requires_grad_()
        self.parameters.requires_grad_()

    @property
    def log_probs(self) -> Tensor:
        return self.logits.log_softmax(0)

    @property
    def values(self) -> Tensor:
        return 5.0 + self.parameters**2 + self.parameters.roll(1)

    def mean(self) -> Tensor:
        return self.log_probs.exp() @ self.values

    def chosen(self, sequences: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
        places = torch.tensor(sequences)
        return self.log_probs[places], self.values[places]

    def assert_unbiased(self, expectation: Tensor, tolerance: float = 1e-11) -> None:
        """An expected estimate equals the mean, and so do the derivatives."""
        inputs = self.logits, self.parameters
        torch.testing.assert_close(expectation, self.mean(), rtol=tolerance, atol=tolerance)
        for found, expected in zip(
            torch.autograd.grad(expectation, inputs), torch.autograd.grad(self.mean(), inputs), strict=True
        ):
            torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("baseline", [True, False])
def test_the_mean_of_samples_is_unbiased(scale: float, count: int, baseline: bool) -> None:
    problem = Problem(scale)
    log_probs, values = problem.chosen(list(zip(*itertools.product(range(SIZE), repeat=count), strict=True)))
    weights = log_probs.detach().sum(0).exp()
    problem.assert_unbiased(weights @ sample_mean(log_probs, values, baseline=baseline))


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize("baseline", [True, False])
def test_the_estimate_from_a_set_is_unbiased(scale: float, count: int, baseline: bool) -> None:
    problem = Problem(scale)
    sequences, probabilities = sequence_probabilities(problem.log_probs.detach().exp().numpy(), count)
    log_probs, values = problem.chosen(sequences.T.tolist())
    weights = torch.from_numpy(probabilities)
    problem.assert_unbiased(weights @ unordered_set(log_probs, values, baseline=baseline))


def race(probs: Tensor, log_times: Tensor, count: int) -> tuple[list[tuple[int, ...]], Tensor]:
    """All sets of ``count`` elements, and for each the probability that it comes first and the next element at a time.

    The second result ``(sets, times)`` is the density in the logarithm of that time, exp(-threshold).
    """
    rates = probs.unsqueeze(-1) * log_times.exp()
    arrived, waiting = -(-rates).expm1(), (-rates).exp()
    sets = list(itertools.combinations(range(len(probs)), count))
    densities = []
    for chosen in sets:
        others = [element for element in range(len(probs)) if element not in chosen]
        density = rates[others].sum(0) * waiting[others].prod(0)
        densities.append(density * arrived[list(chosen)].prod(0))
    return sets, torch.stack(densities)


@pytest.mark.parametrize("scale", [0.0, 1.0, 3.0])
@pytest.mark.parametrize("count", [1, 2, 3, 5])
@pytest.mark.parametrize("baseline", [0.0, 4.0])
def test_the_estimate_by_inclusion_probabilities_is_unbiased(scale: float, count: int, baseline: float) -> None:
    problem = Problem(scale)
    step = 1 / 64
    log_times = torch.arange(-60.0, 20.0, step, dtype=torch.float64)
    sets, densities = race(problem.log_probs.detach().exp(), log_times, count)
    torch.testing.assert_close(densities.sum().item() * step, 1.0, rtol=0, atol=1e-12)
    log_probs, values = (part.T.unsqueeze(-1).expand(-1, -1, len(log_times)) for part in problem.chosen(sets))
    thresholds = -log_times.expand(len(sets), -1)
    estimates = horvitz_thompson(log_probs, values, thresholds, baseline=baseline)
    problem.assert_unbiased((densities * step * estimates).sum(), 1e-10)


def test_an_exhausted_support_gives_the_mean_itself() -> None:
    for scale in (1.0, 100.0, 1000.0):
        problem = Problem(scale)
        for estimate in (unordered_set, lambda p, f: horvitz_thompson(p, f, torch.tensor(-torch.inf))):
            padding = torch.full((3,), -torch.inf, dtype=torch.float64)
            log_probs = torch.cat([problem.log_probs, padding])
            problem.assert_unbiased(estimate(log_probs, torch.cat([problem.values, padding * torch.nan])))


def probability_of_set(probs: np.ndarray, elements: Sequence[int], rest: float) -> float:
    """That of being drawn first, in any order, by the sum over all orders; ``rest`` is the mass outside."""
    total = 0.0
    for order in itertools.permutations(elements):
        product, left = 1.0, rest + probs[list(elements)].sum()
        for place, element in enumerate(order):
            left = rest + probs[list(order[place:])].sum()
            product *= probs[element] / left
        total += product
    return total


@pytest.mark.parametrize("scale", [0.0, 1.0, 10.0, 40.0])
def test_leave_one_out_ratios_equal_the_sums_over_orders(scale: float) -> None:
    for count in (1, 2, 3, 4, 5):
        log_probs = Problem(scale, count + 1).log_probs.detach().sort().values[:count]
        probs = log_probs.exp().numpy()
        rest, elements = 1 - probs.sum(), range(count)
        first, second = estimators._leave_one_out_weights(log_probs)
        without = {
            gone: probability_of_set(probs, [element for element in elements if element not in gone], rest)
            for gone in itertools.chain.from_iterable(itertools.combinations(elements, size) for size in range(3))
        }
        for s in elements:
            np.testing.assert_allclose(first[s], probs[s] * without[(s,)] / without[()], rtol=1e-12)
            for other in elements:
                ratio = without[(min(s, other), max(s, other))] / without[(s,)] if other != s else 1.0
                np.testing.assert_allclose(second[s, other], probs[other] * ratio, rtol=1e-12)


@pytest.mark.parametrize("count", [20, 100, 400])
def test_ratios_of_large_sets_of_equals(count: int) -> None:
    """Of N equally probable elements, every one counts 1 / K: the estimate is the plain mean."""
    log_probs = torch.full((count,), -np.log(3 * count), dtype=torch.float64)
    first, second = estimators._leave_one_out_weights(log_probs)
    torch.testing.assert_close(first, torch.full_like(first, 1 / count), rtol=1e-12, atol=0)
    others = (1 - 1 / (3 * count)) / (count - 1)  # of the others a share in what is not s
    expected = torch.full_like(second, others).fill_diagonal_(1 / (3 * count))
    torch.testing.assert_close(second, expected, rtol=1e-12, atol=0)


def test_improbable_samples_keep_everything_finite() -> None:
    log_probs = torch.tensor([[-1e-9, -800.0, -1000.0], [-700.0, -800.0, -5000.0]], dtype=torch.float64)
    log_probs.requires_grad_()
    values = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64).expand(2, 3)
    for estimate in (
        unordered_set(log_probs.T, values.T),
        horvitz_thompson(log_probs.T, values.T, torch.tensor([-1001.0, -5001.0])),
    ):
        assert estimate.isfinite().all()
        (gradient,) = torch.autograd.grad(estimate.sum(), log_probs)
        assert gradient.isfinite().all()
        torch.testing.assert_close(estimate[0].item(), 1.0, rtol=0, atol=1e-8)


@pytest.mark.parametrize("batch", [(), (2,), (2, 3)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_batches_and_dtypes(batch: tuple[int, ...], dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(3)
    log_probs = torch.randn(7, *batch, generator=generator, dtype=torch.float64).log_softmax(0)[:4].to(dtype)
    values = torch.randn(4, *batch, generator=generator, dtype=torch.float64).to(dtype)
    threshold = torch.full(batch, -3.0, dtype=dtype)
    tolerance = 1e-4 if dtype == torch.float32 else 1e-13
    estimates: dict[str, Callable[[Tensor, Tensor, Tensor], Tensor]] = {
        "mean": lambda p, f, _: sample_mean(p, f),
        "set": lambda p, f, _: unordered_set(p, f),
        "inclusion": horvitz_thompson,
    }
    for estimate in estimates.values():
        found = estimate(log_probs, values, threshold)
        assert found.shape == batch
        assert found.dtype == dtype
        items = zip(log_probs.reshape(4, -1).T, values.reshape(4, -1).T, threshold.reshape(-1), strict=True)
        expected = torch.stack([estimate(*(part.double() for part in item)) for item in items])
        torch.testing.assert_close(found.reshape(-1).double(), expected, rtol=tolerance, atol=tolerance)


def test_shapes_that_do_not_fit() -> None:
    with pytest.raises(TreeparseError, match="one shape"):
        sample_mean(torch.zeros(3), torch.zeros(2))
    with pytest.raises(TreeparseError, match="K >= 1"):
        unordered_set(torch.zeros(0, 2), torch.zeros(0, 2))
