"""Minimum risk: the expected number of wrong words over all trees."""

from typing import Literal, get_args

from torch import Tensor

from treeparse.batch import Batch
from treeparse.errors import TreeparseError
from treeparse.trees import LabeledCRF

from .likelihood import known_tree
from .objective import Objective

Cost = Literal["las", "uas"]


class MinimumRisk(Objective):
    """The expected number of wrong words, exactly: nothing is sampled ([Exp] §6.1).

    Args:
        cost: "las" counts words whose head or label is wrong, "uas" counts words whose head is wrong.
    """

    data = "labelled"

    def __init__(self, cost: Cost = "las") -> None:
        super().__init__()
        self.cost = check_cost(cost)

    def forward(self, distribution: LabeledCRF, batch: Batch) -> Tensor:
        """``(B,)`` words; a word of unknown head, or for "las" of unknown label, counts 0."""
        heads, labels = known_tree(batch)
        if self.cost == "uas":
            return (1 - distribution.expected_uas(heads)) * (heads >= 0).sum(-1)
        return distribution.risk(heads, labels) * ((heads >= 0) & (labels >= 0)).sum(-1)


def check_cost(cost: Cost) -> Cost:
    """Return the cost, or raise if its name is unknown."""
    if cost not in get_args(Cost):
        raise TreeparseError(f"cost must be 'las' or 'uas', got {cost!r}.")
    return cost
