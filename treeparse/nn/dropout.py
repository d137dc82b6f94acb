"""Dropout whose mask is shared by all nodes of a sentence."""

import torch
from torch import Tensor, nn


class SharedDropout(nn.Module):
    """Drops the same dimensions at every node of a sentence (Gal and Ghahramani 2016). Input (B, T, D)."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    def forward(self, inputs: Tensor) -> Tensor:
        if not self.training or self.rate == 0:
            return inputs
        keep = 1 - self.rate
        mask = torch.empty_like(inputs[:, :1]).bernoulli_(keep).div_(keep)
        return inputs * mask

    def extra_repr(self) -> str:
        return f"rate={self.rate}"


class WordDropout(nn.Module):
    """Replaces ids by that of the unknown at the given rate, so that its embedding is trained. Specials stay."""

    def __init__(self, rate: float, *, unknown: int, specials: int) -> None:
        super().__init__()
        self.rate, self.unknown, self.specials = rate, unknown, specials

    def forward(self, ids: Tensor) -> Tensor:
        if not self.training or self.rate == 0:
            return ids
        drop = torch.rand(ids.shape, device=ids.device) < self.rate
        return ids.masked_fill(drop & (ids >= self.specials), self.unknown)

    def extra_repr(self) -> str:
        return f"rate={self.rate}"
