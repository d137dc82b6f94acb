"""Trilinear scores of parts of three nodes, such as a head, a dependent and its sibling."""

import torch
from torch import Tensor, nn

from .biaffine import exact_product


class PartTrilinear(nn.Module):
    """Score parts: score(head, dependent, other) = sum_r head_r dependent_r (W other)_r, a trilinear form of low rank.

    For a dependent without a sibling the other node is the head itself.
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        self.weight: nn.Parameter = nn.Parameter(torch.zeros(size, size))

    def forward(self, heads: Tensor, dependents: Tensor, others: Tensor) -> Tensor:
        """Score vectors of nodes in three roles (B, T, size) as parts (B, T, T, T), head first, other node last."""
        nodes, dtype = heads.shape[1], self.weight.dtype
        with torch.autocast(heads.device.type, enabled=False):  # for arcs as for parts: bfloat16 has too few digits
            pairs = heads.to(dtype).unsqueeze(2) * dependents.to(dtype).unsqueeze(1)
        scores = exact_product(pairs.flatten(1, 2), exact_product(others, self.weight.T, dtype).transpose(1, 2), dtype)
        return scores.unflatten(1, (nodes, nodes))
