"""Entropy: how unsure the parser is, with no tree at all."""

from torch import Tensor

from treeparse.batch import Batch
from treeparse.errors import TreeparseError
from treeparse.trees import LabeledCRF

from .objective import Objective


class Entropy(Objective):
    """The entropy of the labelled trees, for sentences with and without gold trees ([Exp] §6.2).

    To minimise it beside a likelihood makes the parser surer where nothing is annotated (Grandvalet and Bengio 2004;
    Smith and Eisner 2007); a negative weight makes it less sure. Alone it has no gradient in a new parser, all of whose
    trees are equally probable.

    Args:
        order: of the Renyi entropy; 1 is Shannon's.
    """

    scores_all_labels = True

    def __init__(self, order: float = 1.0) -> None:
        super().__init__()
        if not order >= 0:
            raise TreeparseError(f"The order of an entropy must be at least 0, not {order}.")
        self.order = order

    def forward(self, distribution: LabeledCRF, batch: Batch) -> Tensor:
        """``(B,)`` nats."""
        return distribution.entropy() if self.order == 1 else distribution.renyi_entropy(self.order)
