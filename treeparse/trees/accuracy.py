"""Expected accuracies of heads."""

import torch
from torch import Tensor


def expected_accuracy(marginals: Tensor, lengths: Tensor, heads: Tensor, weights: Tensor | float = 1.0) -> Tensor:
    """Mean over the words of known head of its probability, times a weight of the word; 1 where none is known.

    Args:
        marginals: ``(*batch, n+1, n+1)``.
        lengths: ``(*batch,)``.
        heads: ``(*batch, n+1)``, -1 where unknown.
        weights: ``(*batch, n+1)``, or one number.
    """
    position = torch.arange(heads.shape[-1], device=heads.device)
    known = (heads >= 0) & (position > 0) & (position <= lengths.unsqueeze(-1))
    right = marginals.gather(-2, heads.clamp(0, heads.shape[-1] - 1).unsqueeze(-2)).squeeze(-2) * weights
    total = known.sum(-1)
    return torch.where(total > 0, torch.where(known, right, 0.0).sum(-1) / total.clamp_min(1), 1.0)
