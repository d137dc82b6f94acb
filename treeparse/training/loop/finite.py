"""Detection of losses and gradients that are not finite, without a device sync in every step."""

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from treeparse.batch import Batch

EVERY = 50  # steps whose numbers are read together


class Step(NamedTuple):
    """A training step, as messages name it; ``batch`` is the CPU original if there is one."""

    epoch: int  # from 0
    batch: Batch
    batch_idx: int


class FiniteNumbers:
    """Raises for the first number that is not finite: at once on the CPU, elsewhere within ``every`` steps.

    ``error`` returns the error of a problem at a step.
    """

    def __init__(self, error: Callable[[str, Step], Exception], every: int = EVERY) -> None:
        self._error, self._every = error, every
        self._pending: list[tuple[str, Tensor, Step]] = []

    def add(self, name: str, value: Tensor, step: Step) -> None:
        """Add a number of a step."""
        self._pending.append((name, value.detach().double(), step))
        if value.device.type == "cpu" or len({each.batch_idx for _, _, each in self._pending}) > self._every:
            self.sync()

    def sync(self) -> None:
        """Read the numbers since the last sync on the host; raise for the first that is not finite."""
        pending, self._pending = self._pending, []
        if not pending:
            return
        values = torch.stack([value for _, value, _ in pending]).tolist()
        for (name, _, step), value in zip(pending, values, strict=True):
            if not math.isfinite(value):
                raise self._error(f"{name} is {value}", step)
