"""What approximates trees and distributions where exact algorithms are lacking or take long."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from treeparse.errors import TreeparseError
from treeparse.trees.arc_conflicts import descendants
from treeparse.trees.arc_crfs import NonProjectiveCRF
from treeparse.trees.families.second_order import SIBLINGS

TreeScore = Callable[[Tensor], Tensor]
"""Scores ``(T,)`` of trees of one sentence ``(T, n+1)``, heads with -1 at node 0."""
FORBIDDEN = -50.0  # the score of a forbidden part, whose expectation would otherwise be -inf
LEAST_ABSENCE = 1e-9  # of the probability that a head lacks a dependent


class ClimbedTrees(NamedTuple):
    """Trees that no single change improves, one for each start."""

    heads: Tensor  # (S, n+1)
    scores: Tensor  # (S,)

    @property
    def best(self) -> Tensor:
        """Heads ``(n+1,)`` of the first tree of the highest score."""
        return self.heads[self.scores.argmax()]


def climb(score: TreeScore, starts: Tensor, *, single_root: bool = True) -> ClimbedTrees:
    """Climb from every start: make the best change of a tree, as long as one raises its score.

    A change gives a word another head or, with a single root, makes another word the root word, below which the old one
    then hangs. All results are trees; a score never falls.

    Args:
        score: the score of trees; it is called once a step with all changes of a tree.
        starts: trees of one sentence ``(S, n+1)`` int64, -1 at node 0.
        single_root: whether exactly one word hangs from the root.

    Raises:
        TreeparseError: for starts of another shape, without words, or that are no trees, and for scores of another
            shape or NaN.
    """
    is_list = starts.dtype == torch.int64 and starts.dim() == 2 and starts.shape[1] > 1
    if not is_list or bool((starts[:, 1:] < 0).any() | (starts >= starts.shape[1]).any()):
        raise TreeparseError(
            f"Starts must be heads (S, n+1) of trees of n words without padding, got a tensor of {tuple(starts.shape)}."
        )
    roots = (starts[:, 1:] == 0).sum(-1)
    if bool((~descendants(starts)[:, 0].all(-1)).any() | (roots < 1).any() | (single_root & (roots > 1)).any()):
        raise TreeparseError(
            "Starts must be trees: every word descends from the root, which has one dependent or more."
        )
    trees, scores = starts.clone(), _scores(score, starts)
    for index in range(len(trees)):
        while len(changed := changes(trees[index], single_root=single_root)):
            offers = _scores(score, changed)
            best = int(offers.argmax())
            if not bool(offers[best] > scores[index]):
                break
            trees[index], scores[index] = changed[best], offers[best]
    return ClimbedTrees(trees, scores)


def changes(heads: Tensor, *, single_root: bool = True) -> Tensor:
    """Return all trees ``(T, n+1)`` that a change of one makes from a tree ``(n+1,)``."""
    nodes = len(heads)
    below = descendants(heads.unsqueeze(0))[0]  # [node, word]
    node = torch.arange(nodes, device=heads.device)
    allowed = ~below.mT & (node.unsqueeze(-1) != heads) & (node > 0)  # [new head, word]
    root = int((heads == 0).nonzero()[0])
    if single_root:
        allowed[0], allowed[:, root] = False, False
    head, word = allowed.nonzero(as_tuple=True)
    moved = heads.repeat(len(head), 1)
    moved[torch.arange(len(head)), word] = head
    if not single_root:
        return moved
    is_swap = below.clone()
    is_swap[0], is_swap[root] = False, False
    new_root, head = is_swap.nonzero(as_tuple=True)  # the old root hangs from a node below the new one
    swapped = heads.repeat(len(head), 1)
    swapped[:, root] = head
    swapped[torch.arange(len(head)), new_root] = 0
    return torch.cat([moved, swapped])


def _scores(score: TreeScore, trees: Tensor) -> Tensor:
    values = score(trees)
    if values.shape != trees.shape[:1] or bool(values.isnan().any()):
        raise TreeparseError(
            f"A score of {len(trees)} trees must be a tensor of {len(trees)} numbers, got {tuple(values.shape)} of "
            f"which {int(values.isnan().sum())} are NaN."
        )
    return values


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
        is_part[:, 0, :, 1:] = False
    parts = torch.where(is_part, torch.where(siblings == -torch.inf, FORBIDDEN, siblings), 0.0)

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
