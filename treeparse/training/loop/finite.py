"""Losses and gradients that are no numbers are found, though no step waits for a device to tell its own."""

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from treeparse.batch import Batch

EVERY = 50  # steps, whose numbers a device is asked for together


class Step(NamedTuple):
    """A step of training, as messages name it; the batch is in CPU memory where it can be."""

    epoch: int  # from 0
    batch: Batch
    batch_idx: int


class FiniteNumbers:
    """Raises for the first number that is not finite: at once on the CPU, elsewhere within so many steps.

    ``error`` makes the error of a problem at a step.
    """

    def __init__(self, error: Callable[[str, Step], Exception], every: int = EVERY) -> None:
        self._error, self._every = error, every
        self._kept: list[tuple[str, Tensor, Step]] = []

    def add(self, name: str, value: Tensor, step: Step) -> None:
        """One number of a step."""
        self._kept.append((name, value.detach().double(), step))
        if value.device.type == "cpu" or len({kept.batch_idx for _, _, kept in self._kept}) > self._every:
            self.look()

    def look(self) -> None:
        """Raise for the first of the numbers since the last look that is not finite."""
        kept, self._kept = self._kept, []
        if not kept:
            return
        for (name, _, step), value in zip(kept, torch.stack([value for _, value, _ in kept]).tolist(), strict=True):
            if not math.isfinite(value):
                raise self._error(f"{name} is {value}", step)
