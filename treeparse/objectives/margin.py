"""Max-margin training: the gold tree must outscore every other tree by that tree's number of wrong words."""

from typing import ClassVar

import torch
from torch import Tensor

from treeparse.batch import Batch
from treeparse.errors import TreeparseError
from treeparse.objectives.objective import Data
from treeparse.trees import LabeledCRF, LabeledTree
from treeparse.trees.parts import arcs_of

from .likelihood import known_trees
from .objective import Objective


class MaxMargin(Objective):
    """The structured hinge loss (Taskar et al. 2005): the greatest score plus cost of a tree, less the gold score.

    A tree costs its number of words with a wrong head or label. A partial gold tree counts as its best completion;
    unknown heads and labels cost nothing. If the distribution has projective trees alone, words with a non-projective
    arc count as words of unknown head.

    Args:
        cost: the cost of a wrong word; 0 gives the loss of the structured perceptron (Collins 2002).
    """

    data: ClassVar[Data] = "labelled"
    needs_sums = False

    def __init__(self, cost: float = 1.0) -> None:
        super().__init__()
        if not 0 <= cost < torch.inf:
            raise TreeparseError(f"cost must be a finite number that is at least 0, got {cost}.")
        self.cost = cost

    def forward(self, distribution: LabeledCRF, batch: Batch) -> Tensor:
        """``(B,)``, 0 or more, in the unit of scores. Raises if the known heads and labels fit no tree."""
        heads, labels, _ = known_trees(distribution, batch)
        gold = distribution.given(heads, labels).mode
        other = costliest(distribution, heads, labels, self.cost)
        wrong = (heads >= 0) & ((heads != other.heads) | ((labels >= 0) & (labels != other.labels)))
        return distribution.score(other) + self.cost * wrong.sum(-1) - distribution.score(gold)


@torch.no_grad()
def costliest(distribution: LabeledCRF, heads: Tensor, labels: Tensor, cost: float) -> LabeledTree:
    """Return the trees ``(B, n+1)`` with the greatest score plus ``cost`` for each wrong word.

    A word is wrong if its head differs from a known head, or its label under that head from a known label; -1 is
    unknown.
    """
    flat, scores = distribution.base.flat, distribution.labels
    is_known, is_gold = heads.unsqueeze(-2) >= 0, arcs_of(heads)
    own = scores.of_trees(heads)  # (B, n+1, L) of the gold arcs
    ids = torch.arange(scores.count, device=heads.device)
    own = own + cost * ((labels.unsqueeze(-1) >= 0) & (labels.unsqueeze(-1) != ids))
    augmented = torch.where(is_gold, own.amax(-1).unsqueeze(-2), scores.best() + cost * is_known)
    best = flat.with_arcs(flat.arcs + augmented).heads
    label_scores = torch.where((best == heads).unsqueeze(-1), own, scores.of_trees(best))
    return LabeledTree(best, torch.where(best >= 0, label_scores.argmax(-1), -1))
