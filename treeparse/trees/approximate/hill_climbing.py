"""Hill-climbing for any score of a tree (Zhang et al. 2014, *Greed is good if randomized*).

For scores that no exact algorithm maximises: a reranker's, a metric's, a program's. Starts at random make the search
randomised: draw them from a distribution over trees, ``p.sample((count,))``, whose arcs are likely to be right.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from treeparse.errors import TreeparseError
from treeparse.trees.arc_conflicts import descendants

TreeScore = Callable[[Tensor], Tensor]
"""Scores ``(T,)`` of trees of one sentence ``(T, n+1)``, heads with -1 at node 0."""


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
    if (
        starts.dtype != torch.int64
        or starts.dim() != 2
        or starts.shape[1] < 2
        or bool((starts[:, 1:] < 0).any() | (starts >= starts.shape[1]).any())
    ):
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
        while True:
            changed = changes(trees[index], single_root=single_root)
            if not len(changed):
                break
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
