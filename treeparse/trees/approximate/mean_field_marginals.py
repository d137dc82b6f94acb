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
        siblings: ``(B, n+1, n+1, n+1)``, float64 or float32, in which what they add is then computed.
        lengths: ``(B,)``.
        single_root: whether exactly one word hangs from the root.
        rounds: the number of damped rounds.
        validate_args: as for the result.
    """
    is_part = SIBLINGS.mask(lengths, scores.shape[-1])
    if single_root:  # node 0 has one dependent, whose sibling is node 0
        is_part = is_part.clone()
        is_part[:, 0, :, 1:] = False
    parts = torch.where(siblings == -torch.inf, FORBIDDEN, siblings)
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
    """Return the derivative ``(B, n+1, n+1)`` of the expected score of siblings in the marginals of arcs.

    A part is expected with the probability that a head has the dependent and the sibling, and no word between them.
    """
    nodes, marginals = marginals.shape[-1], marginals.to(parts.dtype)
    node = torch.arange(nodes, device=marginals.device)
    is_after = node > node.unsqueeze(-1)  # [dependent, sibling]
    is_itself = node == node.unsqueeze(-1)  # [head, word], [head, sibling] or [dependent, sibling]
    absence = (1 - marginals).clamp_min(LEAST_ABSENCE)
    before = torch.where((node > 0) & ~is_itself, absence.log(), 0.0).cumsum(-1)
    before = torch.nn.functional.pad(before, (1, 0))  # [head, word]: the sum of the words before
    rising = before[..., :-1].unsqueeze(-2) - before[..., 1:].unsqueeze(-1)  # where the sibling follows the dependent
    between = torch.where(is_after, rising, rising.mT)  # [head, dependent, sibling]
    if single_root:
        between = torch.where(node[:, None, None] == 0, 0.0, between)
    weighted = parts * between.exp()
    sibling = torch.where(is_itself, 1.0, marginals)  # without a sibling, the head is in its place
    of_siblings = torch.einsum("bhdx,bhd->bhx", weighted, marginals)
    added = torch.einsum("bhdx,bhx->bhd", weighted, sibling) + torch.where(is_itself, 0.0, of_siblings)
    expected = weighted * marginals.unsqueeze(-1) * sibling.unsqueeze(-2)
    pairs = expected + expected.mT
    begin, end = (torch.where(mask, pairs, 0.0).sum(-1).cumsum(-1) for mask in (is_after, is_after.mT))
    prevented = torch.nn.functional.pad(begin, (1, -1)) - end  # of the parts that a word between would prevent
    if single_root:
        prevented = torch.where(node.unsqueeze(-1) == 0, 0.0, prevented)
    return torch.where(is_itself, 0.0, added - prevented / absence)
