"""The expected squared length of gradients, against the gradients themselves, tree by tree."""

import pytest
import torch
from helpers.tree_cases import Case, every_case
from torch import Tensor

WORDS = 3


def squared_lengths(case: Case, parameters: list[Tensor], trees: list[Tensor]) -> Tensor:
    """Of each tree ``(trees, n+1)`` the squared length of the gradient of its log probability, by autograd."""
    parts = parameters[-1].clone().requires_grad_()  # a labelled arc's own score is that of its label
    p = case.make([*parameters[:-1], parts])
    log_probs = p.log_prob(*trees)
    gradients = [torch.autograd.grad(each, parts, retain_graph=True)[0] for each in log_probs]
    return torch.stack([each.square().sum() for each in gradients])


@every_case
@pytest.mark.parametrize(("scale", "forbidden"), [(1.0, 0.0), (6.0, 0.15)])
def test_of_all_trees(case: Case, scale: float, forbidden: float) -> None:
    parameters = case.parameters(WORDS, seed=14, scale=scale, forbidden=forbidden)
    p = case.make(parameters)
    probs = p.log_prob(*(trees := case.trees(WORDS))).exp()
    trees, probs = [part[probs > 0] for part in trees], probs[probs > 0]
    assert probs.sum().item() == pytest.approx(1)
    torch.testing.assert_close(p.expected_gradient(), probs @ squared_lengths(case, parameters, trees))
