"""Tags of words: a softmax over those of each column, from the encoder's vectors."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn


class TagScorer(nn.Module):
    """A linear layer for each column of tags. Without columns it has no weights.

    Args:
        input_size: size of the vectors.
        sizes: the number of tags of each column.
    """

    def __init__(self, input_size: int, sizes: Mapping[str, int]) -> None:
        super().__init__()
        self.columns = nn.ModuleDict({column: nn.Linear(input_size, count) for column, count in sizes.items()})

    def forward(self, nodes: Tensor) -> dict[str, Tensor]:
        """Vectors (B, n+1, input_size) -> log probabilities (B, n+1, tags) by column; in the weights' precision."""
        if not self.columns:
            return {}
        with torch.autocast(nodes.device.type, enabled=False):
            exact = nodes.to(next(self.parameters()).dtype)
            return {column: layer(exact).log_softmax(-1) for column, layer in self.columns.items()}
