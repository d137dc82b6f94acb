"""Scores of words' tags: a softmax over the tags of each column."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn


class TagScorer(nn.Module):
    """A linear layer over vectors of ``input_size`` for each column of tags; ``sizes`` counts the tags by column.

    Without columns it has no weights.
    """

    def __init__(self, input_size: int, sizes: Mapping[str, int]) -> None:
        super().__init__()
        self.columns = nn.ModuleDict({column: nn.Linear(input_size, count) for column, count in sizes.items()})

    def forward(self, nodes: Tensor) -> dict[str, Tensor]:
        """Map vectors (B, n+1, input_size) to log probabilities (B, n+1, tags) by column, in the weights' dtype."""
        if not self.columns:
            return {}
        with torch.autocast(nodes.device.type, enabled=False):
            exact = nodes.to(next(self.parameters()).dtype)
            return {column: layer(exact).log_softmax(-1) for column, layer in self.columns.items()}
