"""Distributions inside ``torch.func``: batches of vmap are batches, and derivatives are those of autograd."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.distributions import kl_divergence
from torch.func import grad, hessian, jacfwd, jacrev, jvp, vmap

from treeparse import (
    LabeledCRF,
    NonProjectiveCRF,
    NonProjectiveSiblingCRF,
    ProjectiveCRF,
    SecondOrderCRF,
    SiblingCRF,
    TreeparseError,
)
from treeparse.trees.distribution import TreeDistribution

# torch's forward mode scripts its decompositions
pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:DeprecationWarning")
WORDS, BATCH = 4, 3


def cube(scores: Tensor) -> Tensor:
    """Scores of siblings or of grandparents, made of those of arcs."""
    return finite(scores).unsqueeze(-1) * torch.linspace(-1, 1, scores.shape[-1], dtype=scores.dtype)


def labels(scores: Tensor) -> Tensor:
    return finite(scores).unsqueeze(-1) * torch.tensor([1.0, -0.5, 0.1], dtype=scores.dtype)


def finite(scores: Tensor) -> Tensor:
    return torch.where(scores > -torch.inf, scores, 0.0)


CASES: dict[str, Callable[..., TreeDistribution]] = {
    "nonprojective": NonProjectiveCRF,
    "torch": lambda scores, lengths=None: NonProjectiveCRF(scores, lengths, backend="torch"),
    "roots": lambda scores, lengths=None: NonProjectiveCRF(scores, lengths, single_root=False),
    "projective": ProjectiveCRF,
    "siblings": lambda scores, lengths=None: SiblingCRF(scores, cube(scores), lengths),
    "second order": lambda scores, lengths=None: SecondOrderCRF(scores, cube(scores), -cube(scores), lengths),
    "labeled": lambda scores, lengths=None: LabeledCRF(ProjectiveCRF(scores, lengths), labels(scores)),
}
Make = Callable[..., TreeDistribution]


@pytest.fixture(params=CASES)
def make(request: pytest.FixtureRequest) -> Make:
    return CASES[request.param]


def random_scores(seed: int = 1) -> Tensor:
    shape, generator = (BATCH, WORDS + 1, WORDS + 1), torch.Generator().manual_seed(seed)
    scores = 2 * torch.randn(shape, dtype=torch.float64, generator=generator)
    scores[0, 2, 3] = -torch.inf
    return scores


def near(found: Tensor | None, expected: Any) -> None:
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)


def trees_of(value: Tensor | tuple[Tensor, Tensor]) -> tuple[Tensor, ...]:
    """Heads, with labels if there are any."""
    return (value,) if isinstance(value, Tensor) else tuple(value)


VALUES: dict[str, Callable[[TreeDistribution], Tensor]] = {
    "log partition": lambda p: p.log_partition,
    "marginals": lambda p: p.marginals,
    "entropy": lambda p: p.entropy(),
    "Renyi entropy": lambda p: p.renyi_entropy(2.0),
    "log probability": lambda p: p.log_prob(p.mode),
    "expected gradient": lambda p: p.expected_gradient(),
}


@pytest.mark.parametrize("name", VALUES)
def test_vmap_is_a_batch(make: Make, name: str) -> None:
    value, scores, lengths = VALUES[name], random_scores(), torch.tensor([4, 2, 3])
    near(vmap(lambda scores: value(make(scores)))(scores), value(make(scores)))
    near(vmap(lambda scores, lengths: value(make(scores, lengths)))(scores, lengths), value(make(scores, lengths)))
    # Batches within and without vmap, whose dimension is not the first one
    twice = torch.stack([scores, random_scores(2)], 2)
    near(vmap(lambda scores: value(make(scores)), in_dims=2)(twice), value(make(twice.movedim(2, 0))))


def test_vmap_of_best_trees_samples_and_divergences(make: Make) -> None:
    scores, others = random_scores(), random_scores(2)
    found, expected = (vmap(lambda scores: make(scores).mode)(scores), make(scores).mode)
    for each, other in zip(
        *(((value,) if isinstance(value, Tensor) else value) for value in (found, expected)), strict=True
    ):
        assert torch.equal(each, other)
    near(
        vmap(lambda left, right: kl_divergence(make(left), make(right)))(others, scores),
        kl_divergence(make(others), make(scores)),
    )
    samples = vmap(lambda scores: trees_of(make(scores).sample((50,))), randomness="different")(scores)
    assert (make(scores).log_prob(*(each.movedim(0, 1) for each in samples)) > -torch.inf).all()
    assert samples[0].unique(dim=1).shape[1] > 1


LISTS: dict[str, Callable[[Any], Any]] = {
    "topk": lambda p: p.topk(2)[0],
    "best_first": lambda p: next(p.best_first())[0],
    "enumerate_support": lambda p: trees_of(p.enumerate_support())[0],
    "sample_without_replacement": lambda p: p.sample_without_replacement(2)[0],
    "beam": lambda p: p.sample_without_replacement(2, method="beam")[0],
}


@pytest.mark.parametrize("name", LISTS)
def test_lists_and_distinct_draws_of_transformed_scores_are_refused(make: Make, name: str) -> None:
    def heads(scores: Tensor) -> Tensor:
        return LISTS[name](make(scores))

    for transformed in (vmap(heads, randomness="different"), grad(lambda scores: heads(scores).double().sum())):
        with pytest.raises(TreeparseError, match=r"are not traced by torch\.func .* on the whole batch"):
            transformed(random_scores())


def test_a_search_with_a_bound_of_transformed_scores_is_refused() -> None:
    scores = random_scores()

    def heads(siblings: Tensor) -> Tensor:
        return NonProjectiveSiblingCRF(scores, siblings).mode_with_bound()[0]

    with pytest.raises(TreeparseError, match=r"are not traced by torch\.func"):
        vmap(heads)(torch.stack([cube(scores)] * 2))


@pytest.mark.parametrize("name", VALUES)
def test_derivatives_are_those_of_autograd(make: Make, name: str) -> None:
    def value(scores: Tensor) -> Tensor:
        return VALUES[name](make(scores))

    scores = random_scores()[1].requires_grad_()
    expected = torch.autograd.functional.jacobian(value, scores.detach())
    scores = scores.detach()
    near(jacrev(value)(scores), expected)
    near(jacfwd(value)(scores), expected)
    direction = random_scores(3)[1]
    along = (expected * direction).sum((-2, -1))
    near(jvp(value, (scores,), (direction,))[1], along)
    with forward_ad.dual_level():
        near(forward_ad.unpack_dual(value(forward_ad.make_dual(scores, direction))).tangent, along)
    batch = random_scores()[1:]
    near(vmap(jacrev(value))(batch), torch.stack([jacrev(value)(each) for each in batch]))


def test_second_derivatives_are_those_of_autograd(make: Make) -> None:
    def value(scores: Tensor) -> Tensor:
        return make(scores).log_partition

    scores = random_scores()[1]
    expected = torch.autograd.functional.hessian(lambda scores: value(scores), scores)
    for found in (hessian(value), jacrev(jacrev(value)), jacrev(jacfwd(value))):
        near(found(scores), expected)
    with pytest.raises(TreeparseError, match="forward derivative by forward mode"):
        jacfwd(jacfwd(value))(scores)


def test_a_third_derivative_raises(make: Make) -> None:
    scores = random_scores()[1]
    for second in (
        hessian(lambda scores: make(scores).entropy()),
        hessian(grad(lambda scores: make(scores).entropy())),
    ):
        with pytest.raises(TreeparseError, match="needs a third derivative"):
            second(scores)


def test_only_the_label_scores_may_be_transformed() -> None:
    scores = random_scores()
    base, several = ProjectiveCRF(scores[1]), torch.stack([labels(scores[1]), labels(scores[2])])
    found = vmap(lambda labels: LabeledCRF(base, labels).log_partition)(several)
    near(found, torch.stack([LabeledCRF(base, each).log_partition for each in several]))
