"""Custom objectives for tests: one with a parameter that is learned, and one that needs no tree."""

import torch
from torch import Tensor

from treeparse.batch import Batch
from treeparse.objectives import Objective, TreeLikelihood
from treeparse.trees import LabeledCRF


class WeightedByUncertainty(Objective):
    """The likelihood at a learned scale (Kendall et al. 2018): exp(-s) times the loss, plus s times the words."""

    def __init__(self, start: float = 0.0) -> None:
        super().__init__()
        self.likelihood = TreeLikelihood()
        self.log_scale = torch.nn.Parameter(torch.tensor(start))

    def forward(self, distribution: LabeledCRF, batch: Batch) -> Tensor:
        loss = self.likelihood(distribution, batch)
        return loss * (-self.log_scale).exp() + self.log_scale * batch.lengths


class NextWord(Objective):
    """Minus the expected number of words whose head is the next word; a constant is added, so that it is positive."""

    def forward(self, distribution: LabeledCRF, batch: Batch) -> Tensor:
        return batch.lengths - distribution.marginals.sum(-1).diagonal(-1, -2, -1).sum(-1)
