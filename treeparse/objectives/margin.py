"""Max-margin training: the gold tree above every other by as many words as that has wrong."""

import torch
from torch import Tensor

from treeparse.batch import Batch
from treeparse.errors import TreeparseError
from treeparse.trees import LabeledCRF
from treeparse.trees.relaxed import arcs_of

from .likelihood import known_tree
from .objective import Objective


class MaxMargin(Objective):
    """The structured hinge loss (Taskar et al. 2005): the best of all trees' scores plus costs, less the gold score.

    A tree costs the number of its words whose head or label is wrong. Of a gold tree that is partly unknown, the best
    completion counts, and what is unknown costs nothing.

    Args:
        cost: of a wrong word; 0 is the loss of the structured perceptron (Collins 2002).
    """

    data = "labelled"

    def __init__(self, cost: float = 1.0) -> None:
        super().__init__()
        if not 0 <= cost < torch.inf:
            raise TreeparseError(f"The cost of a wrong word must be a number from 0, not {cost}.")
        self.cost = cost

    def forward(self, distribution: LabeledCRF, batch: Batch) -> Tensor:
        """``(B,)``, 0 or more, in the unit of scores. Raises where what is known fits no tree."""
        heads, labels = known_tree(batch)
        gold = distribution.given(heads, labels).mode
        found = costliest(distribution, heads, labels, self.cost)
        wrong_head, wrong_label = (known != own for known, own in zip((heads, labels), found, strict=True))
        wrong = (heads >= 0) & (wrong_head | ((labels >= 0) & wrong_label))
        return distribution.score(*found) + self.cost * wrong.sum(-1) - distribution.score(*gold)


@torch.no_grad()
def costliest(distribution: LabeledCRF, heads: Tensor, labels: Tensor, cost: float) -> tuple[Tensor, Tensor]:
    """Heads and labels ``(B, n+1)`` of the tree of the highest score plus cost: ``cost`` for every word that is wrong.

    A word is wrong if it differs from the known head, or under it from the known label; -1 is unknown.
    """
    flat, scores = distribution.base.flat, distribution.labels
    is_known, is_gold = heads.unsqueeze(-2) >= 0, arcs_of(heads)
    own = scores.of_trees(heads)  # (B, n+1, L) of the gold arcs
    names = torch.arange(scores.count, device=heads.device)
    own = own + cost * ((labels.unsqueeze(-1) >= 0) & (labels.unsqueeze(-1) != names))
    worth = torch.where(is_gold, own.amax(-1).unsqueeze(-2), scores.best() + cost * is_known)
    found = flat.with_arcs(flat.arcs + worth).heads
    given_arcs = torch.where((found == heads).unsqueeze(-1), own, scores.of_trees(found))
    return found, torch.where(found >= 0, given_arcs.argmax(-1), -1)
