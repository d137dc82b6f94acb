"""The optimiser, its learning rate as a function of progress, and the moving average of the weights."""

import math
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel

from treeparse.training.settings.config import OptimizationConfig
from treeparse.training.settings.resolve import settled

NO_RATES: Mapping[nn.Parameter, float] = MappingProxyType({})
RATE = "rate"  # of a group of parameters: its learning rate as a share of the run's; 1 where there is none


def build_optimizer(
    parameters: Iterable[nn.Parameter], config: OptimizationConfig, rates: Mapping[nn.Parameter, float] = NO_RATES
) -> torch.optim.AdamW:
    """AdamW over the parameters that learn; one fused kernel a step where the device has it.

    ``rates`` are the learning rates of parameters that have another than the config's, as shares of it. Each makes a
    group, the highest first.
    """
    learning = [parameter for parameter in parameters if parameter.requires_grad]
    return torch.optim.AdamW(
        _groups(learning, config.learning_rate, rates),
        lr=config.learning_rate,
        betas=config.betas,
        eps=config.eps,
        weight_decay=config.weight_decay,
        fused=all(parameter.device.type in ("cpu", "cuda") for parameter in learning),
    )


def _groups(learning: list[nn.Parameter], highest: float, rates: Mapping[nn.Parameter, float]) -> list[dict[str, Any]]:
    groups: dict[float, list[nn.Parameter]] = {}
    for parameter in learning:
        groups.setdefault(rates.get(parameter, 1.0), []).append(parameter)
    if groups.keys() <= {1.0}:
        return [{"params": learning}]
    return [{"params": groups[rate], "lr": rate * highest, RATE: rate} for rate in sorted(groups, reverse=True)]


def set_learning_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Give every group of parameters its share of a learning rate."""
    for group in optimizer.param_groups:
        group["lr"] = rate * group.get(RATE, 1.0)


def learning_rate(config: OptimizationConfig, *, step: int, progress: float) -> float:
    """The learning rate of step ``step`` (from 0) when the share ``progress`` of all epochs lies behind.

    A pure function, so a resumed run needs no state of a scheduler.
    """
    warmup_steps = settled(config.warmup_steps)
    warmup = min(1.0, (step + 1) / warmup_steps) if warmup_steps else 1.0
    decay = {"constant": 1.0, "linear": 1 - progress, "cosine": (1 + math.cos(math.pi * progress)) / 2}
    return config.learning_rate * warmup * decay[config.schedule]


def averaged_model(model: nn.Module, decay: float) -> "MovingAverage":
    """A copy of the model that follows it by an exponential moving average, one ``update_parameters`` a step.

    The decay of the first steps is lower, (1 + t) / (10 + t), so that the first weights are soon forgotten. Frozen
    weights are those of the model itself, which takes neither memory nor time.
    """
    average = MovingAverage(model, decay)
    for target, source in zip(average.module.parameters(), model.parameters(), strict=True):
        if not source.requires_grad:
            target.data = source.data
    return average


class MovingAverage(AveragedModel):
    """An ``AveragedModel`` whose count of steps stays in CPU memory: no step waits for a device to tell it."""

    n_averaged: Tensor

    def __init__(self, model: nn.Module, decay: float) -> None:
        super().__init__(model)
        self.decay = decay

    def _apply(self, fn: Any, recurse: bool = True) -> Self:
        count = self.n_averaged
        super()._apply(fn, recurse)
        self.n_averaged = count
        return self

    @torch.no_grad()
    def update_parameters(self, model: nn.Module) -> None:
        count = int(self.n_averaged)
        share = 1 - min(self.decay, (1 + count) / (10 + count))
        for target, source in zip(self.module.parameters(), model.parameters(), strict=True):
            if not count:
                target.copy_(source)
            elif target.data_ptr() != source.data_ptr():
                target.lerp_(source, share)
        for target, source in zip(self.module.buffers(), model.buffers(), strict=True):
            target.copy_(source)
        self.n_averaged += 1
