"""Dropout whose mask is shared by all nodes of a sentence."""

import torch
from torch import Tensor, nn


class SharedDropout(nn.Module):
    """Drop the same dimensions of (B, T, D) at all nodes of a sentence (Gal and Ghahramani 2016)."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    def forward(self, inputs: Tensor) -> Tensor:
        if not self.training or self.rate == 0:
            return inputs
        share = 1 - self.rate
        mask = torch.empty_like(inputs[:, :1]).bernoulli_(share).div_(share)
        return inputs * mask

    def extra_repr(self) -> str:
        return f"rate={self.rate}"


class WordDropout(nn.Module):
    """Replace ids by ``unknown`` at the given rate, to train its embedding; ids below ``specials`` stay."""

    rate: float
    unknown: int
    specials: int

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
