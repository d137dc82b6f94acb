"""Likelihoods of the gold tree: exact over trees, or word by word."""

import torch
from torch import Tensor

from treeparse.trees import NonProjectiveCRF

from .objective import Objective


class TreeLikelihood(Objective):
    """Negative log probability of the gold tree among all trees ([MTT] §3): the matrix-tree loss."""

    def forward(self, distribution: NonProjectiveCRF, heads: Tensor) -> Tensor:
        """(B,) nats; infinite where the heads are no tree, an unknown head among them."""
        return -distribution.log_prob(heads)


class HeadSelection(Objective):
    """Negative log probability of each word's gold head among all heads, trees or not ([DM] §3; Zhang et al. 2017)."""

    def forward(self, distribution: NonProjectiveCRF, heads: Tensor) -> Tensor:
        """(B,) nats, summed over the words whose head is known; infinite where a known head is forbidden."""
        nodes = distribution.scores.shape[-1]
        position = torch.arange(nodes, device=distribution.scores.device)
        padding = position > distribution.lengths.unsqueeze(-1)
        no_head = padding.unsqueeze(-1) | torch.eye(nodes, dtype=torch.bool, device=padding.device)
        scores = distribution.scores.masked_fill(no_head, -torch.inf)
        headless = (scores == -torch.inf).all(-2)
        # Columns of no word may hold NaN, and a word without any allowed head would make one.
        ignored = padding | (position == 0) | headless
        log_probs = scores.masked_fill(ignored.unsqueeze(-2), 0.0).log_softmax(-2)
        gold = log_probs.gather(-2, heads.clamp_min(0).unsqueeze(-2)).squeeze(-2)
        return -gold.masked_fill(headless, -torch.inf).masked_fill(heads < 0, 0.0).sum(-1)
