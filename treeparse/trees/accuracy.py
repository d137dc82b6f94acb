"""Expected accuracies of heads."""

import torch
from torch import Tensor


def expected_accuracy(marginals: Tensor, heads: Tensor, weights: Tensor | float = 1.0) -> Tensor:
    """Mean over the words of known head of its probability, times a weight of the word; 1 where none is known.

    Args:
        marginals: ``(*batch, n+1, n+1)``.
        heads: ``(*batch, n+1)``, negative where unknown, at node 0 and at padding; one that is no node is never right.
        weights: ``(*batch, n+1)``, or one number.
    """
    last = heads.shape[-1] - 1
    right = marginals.gather(-2, heads.clamp(0, last).unsqueeze(-2)).squeeze(-2) * weights
    total = (heads >= 0).sum(-1)
    right = torch.where((heads >= 0) & (heads <= last), right, 0.0)
    return torch.where(total > 0, right.sum(-1) / total.clamp_min(1), 1.0)
