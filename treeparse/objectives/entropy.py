"""The entropy of the parser's trees, which needs no gold tree."""

from torch import Tensor

from treeparse.batch import Batch
from treeparse.errors import TreeparseError
from treeparse.trees import LabeledCRF

from .objective import Objective


class Entropy(Objective):
    """The entropy of the labelled trees, for sentences with and without gold trees ([Exp] §6.2).

    Added to a likelihood, it makes the parser more confident on unlabelled sentences (Grandvalet and Bengio 2004; Smith
    and Eisner 2007); a negative weight makes it less confident. Alone it has no gradient in a new parser, because all
    trees are equally probable there.

    Args:
        order: the order of the Renyi entropy; 1 is Shannon's entropy.
    """

    scores_all_labels = True

    def __init__(self, order: float = 1.0) -> None:
        super().__init__()
        if not order >= 0:
            raise TreeparseError(f"order must be a number that is at least 0, got {order}.")
        self.order = order

    def forward(self, distribution: LabeledCRF, batch: Batch) -> Tensor:
        """``(B,)`` nats."""
        return distribution.entropy() if self.order == 1 else distribution.renyi_entropy(self.order)
