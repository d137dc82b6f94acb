"""Several objectives at once."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from treeparse.core import Batch, TreeparseError
from treeparse.trees import LabeledCRF

from .objective import Objective


class WeightedSum(Objective):
    """The sum of objectives, each times a weight.

    Args:
        objectives: what is added up.
        weights: one each; all 1 if None.
    """

    def __init__(self, objectives: list[Objective], weights: list[float] | None = None) -> None:
        super().__init__()
        if not objectives:
            raise TreeparseError("A weighted sum of objectives needs at least one.")
        if weights is not None and len(weights) != len(objectives):
            raise TreeparseError(f"{len(objectives)} objectives came with {len(weights)} weights: give one each.")
        self.objectives: Sequence[Objective] = nn.ModuleList(objectives)  # pyright: ignore[reportAttributeAccessIssue]
        self.weights = [1.0] * len(objectives) if weights is None else list(weights)

    def forward(self, distribution: LabeledCRF, batch: Batch) -> Tensor:
        """``(B,)``."""
        terms = zip(self.objectives, self.weights, strict=True)
        return torch.stack([weight * objective(distribution, batch) for objective, weight in terms]).sum(0)
