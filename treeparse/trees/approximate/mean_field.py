"""Tree-structured mean field: the arc-factored distribution over trees that is near one that scores siblings, too.

The marginals q of the approximation decide its scores, and these its marginals: the score of an arc is its own plus the
derivative, in its marginal, of the expected score of all siblings, as if the arcs of a head were independent. A few
damped rounds begin with the distribution of arcs alone. Words by themselves (Wang and Tu 2020, *Second-order neural
dependency parsing with message passing and end-to-end training*) approximate worse, because they do not form trees.
"""

import torch
from torch import Tensor

from treeparse.trees.arc_crfs import NonProjectiveCRF
from treeparse.trees.families.part_kinds import SIBLINGS

FORBIDDEN = -50.0  # the score of a forbidden part, whose expectation would otherwise be -inf
LEAST_ABSENCE = 1e-9  # of the probability that a head lacks a dependent


class MeanFieldCRF(NonProjectiveCRF):
    """A distribution over all trees that scores arcs alone and approximates another one; arguments as for its base.

    Its values are exact for itself, and approximations of the other distribution's: its log partition is no bound.
    """


def mean_field(
    scores: Tensor, siblings: Tensor, lengths: Tensor, *, single_root: bool, rounds: int, validate_args: bool | None
) -> MeanFieldCRF:
    """Return the approximation of the distribution over all trees that scores arcs and adjacent siblings.

    Differentiable once in both kinds of scores.

    Args:
        scores: ``(B, n+1, n+1)`` of arcs, float64.
        siblings: ``(B, n+1, n+1, n+1)``.
        lengths: ``(B,)``.
        single_root: whether exactly one word hangs from the root.
        rounds: the number of damped rounds.
        validate_args: as for the result.
    """
    is_part = SIBLINGS.mask(lengths, scores.shape[-1])
    if single_root:  # node 0 has one dependent, whose sibling is node 0
        is_part = is_part.clone()
        is_part[:, 0, :, 1:] = False
    parts = torch.where(siblings == -torch.inf, FORBIDDEN, siblings.double())
    parts = torch.where(is_part, parts, 0.0)

    def under(added: Tensor | float) -> MeanFieldCRF:
        return MeanFieldCRF(scores + added, lengths, single_root=single_root, validate_args=validate_args)

    p = under(0.0)
    marginals = p.marginals
    for turn in range(rounds):
        p = under(_derivative(parts, marginals, single_root))
        if turn + 1 < rounds:
            marginals = (marginals + p.marginals) / 2
    return p


def _derivative(parts: Tensor, marginals: Tensor, single_root: bool) -> Tensor:
    """Return the derivative ``(B, n+1, n+1)`` of the expected score of siblings in the marginals of arcs."""
    needs_graph = torch.is_grad_enabled() and (parts.requires_grad or marginals.requires_grad)
    with torch.enable_grad():
        marginals = marginals if marginals.requires_grad else marginals.detach().requires_grad_()
        expected = _expected_score(parts, marginals, single_root)
        (result,) = torch.autograd.grad(expected, marginals, create_graph=needs_graph)
    return result


def _expected_score(parts: Tensor, marginals: Tensor, single_root: bool) -> Tensor:
    """Return the summed expected score of the parts of all items, where a head's arcs are independent."""
    nodes = marginals.shape[-1]
    node = torch.arange(nodes, device=marginals.device)
    head, dependent, sibling = node[:, None, None], node[:, None], node
    absent = (1 - marginals).clamp_min(LEAST_ABSENCE).log()
    absent = torch.where((node > 0) & (node != node.unsqueeze(-1)), absent, 0.0)  # [head, word]
    before = torch.nn.functional.pad(absent.cumsum(-1), (1, 0))  # the sum of the words before, for n+2 words
    first, last = torch.minimum(dependent, sibling), torch.maximum(dependent, sibling)
    between = before[..., last] - before[..., (first + 1).clamp_max(nodes)]  # [head, dependent, sibling]
    if single_root:
        between = torch.where(head == 0, 0.0, between)
    is_first = sibling == head
    present = torch.where(is_first, 1.0, marginals.unsqueeze(-2))
    return (parts * marginals.unsqueeze(-1) * present * torch.where(parts == 0, 0.0, between).exp()).sum()
