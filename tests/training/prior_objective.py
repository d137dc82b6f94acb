"""An objective that needs no tree: a prior for heads that follow their dependents at once."""

from torch import Tensor

from treeparse.batch import Batch
from treeparse.objectives import Objective
from treeparse.trees import LabeledCRF


class NextWord(Objective):
    """Minus the expected number of words whose head is the next word; a constant is added, so that it is positive."""

    def forward(self, distribution: LabeledCRF, batch: Batch) -> Tensor:
        return batch.lengths - distribution.marginals.sum(-1).diagonal(-1, -2, -1).sum(-1)
