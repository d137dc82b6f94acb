"""Minimum risk: what the parser is judged by, in expectation over all trees."""

from typing import Literal, get_args

from torch import Tensor

from treeparse.batch import Batch
from treeparse.errors import TreeparseError
from treeparse.trees import LabeledCRF

from .likelihood import known_tree
from .objective import Objective

Cost = Literal["las", "uas"]


class MinimumRisk(Objective):
    """The expected number of words that are wrong, exactly: nothing is sampled ([Exp] §6.1).

    Args:
        cost: "las" counts words whose head or label is wrong, "uas" those whose head is.
    """

    data = "labelled"

    def __init__(self, cost: Cost = "las") -> None:
        super().__init__()
        self.cost = check_cost(cost)

    def forward(self, distribution: LabeledCRF, batch: Batch) -> Tensor:
        """``(B,)`` words; those whose head, or for "las" whose label, is unknown count nothing."""
        heads, labels = known_tree(batch)
        if self.cost == "uas":
            return (1 - distribution.expected_uas(heads)) * (heads >= 0).sum(-1)
        return distribution.risk(heads, labels) * ((heads >= 0) & (labels >= 0)).sum(-1)


def check_cost(cost: Cost) -> Cost:
    """The cost, or an error if there is none of that name."""
    if cost not in get_args(Cost):
        raise TreeparseError(f"The cost of a tree is 'las' or 'uas', not {cost!r}.")
    return cost
