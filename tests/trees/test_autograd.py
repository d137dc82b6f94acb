"""The rules for derivatives that the distributions' docstrings state."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from treeparse import LabeledCRF, NonProjectiveCRF, ProjectiveCRF, TreeparseError
from treeparse.trees.distribution import TreeDistribution

CASES = {
    "nonprojective": NonProjectiveCRF,
    "torch": lambda scores: NonProjectiveCRF(scores, backend="torch"),
    "projective": ProjectiveCRF,
    "labeled": lambda scores: LabeledCRF(NonProjectiveCRF(scores), scores.unsqueeze(-1) * torch.tensor([1.0, -0.5])),
}
Make = Callable[[Tensor], TreeDistribution]


@pytest.fixture(params=CASES)
def make(request: pytest.FixtureRequest) -> Make:
    return CASES[request.param]


def random_scores() -> Tensor:
    return torch.randn(2, 4, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1)).requires_grad_()


def test_terms_added_up_take_one_backward_and_a_second_one_fails(make: Make) -> None:
    scores = random_scores()
    p = make(scores)
    (p.entropy() - p.log_prob(p.mode)).sum().backward()
    together = scores.grad
    apart = random_scores()
    make(apart).entropy().sum().backward()
    (-(q := make(apart)).log_prob(q.mode)).sum().backward()  # another distribution, another graph
    torch.testing.assert_close(together, apart.grad)
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        p.entropy().sum().backward()


@pytest.mark.parametrize(
    "value",
    [
        lambda p: p.entropy(),
        lambda p: p.marginals.square(),
        lambda p: p.expectation(torch.ones_like(p.marginals).cumsum(1)),
        lambda p: torch.distributions.kl_divergence(p, type(p)(p.base, -p.label_scores) if hasattr(p, "base") else p),
    ],
    ids=["entropy", "marginals", "expectation", "divergence"],
)
def test_what_is_made_of_marginals_has_first_derivatives_only(make: Make, value: Callable[..., Tensor]) -> None:
    scores = random_scores()
    assert torch.autograd.gradcheck(lambda scores: value(make(scores)), (scores,))
    (gradient,) = torch.autograd.grad(value(make(scores)).sum(), scores, create_graph=True)
    with pytest.raises(TreeparseError, match="needs a third derivative"):
        torch.autograd.grad(gradient.square().sum(), scores)
