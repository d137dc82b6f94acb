"""The optimiser, its learning rate as a function of progress, and the moving average of the weights."""

import math
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel

from treeparse.training.settings.config import OptimizationConfig, ResolvedOptimization

NO_RATES: Mapping[nn.Parameter, float] = MappingProxyType({})
RATE = "rate"  # key of a group of parameters: its learning rate as a share of the run's, 1 by default


def build_optimizer(
    parameters: Iterable[nn.Parameter], config: OptimizationConfig, rates: Mapping[nn.Parameter, float] = NO_RATES
) -> torch.optim.AdamW:
    """Build AdamW over the parameters that require gradients, with one fused kernel a step if the device has it.

    ``rates`` maps parameters to their learning rates, as shares of the config's rate. Each rate makes a group, the
    highest first.
    """
    learning = [parameter for parameter in parameters if parameter.requires_grad]
    shares: dict[float, list[nn.Parameter]] = {}
    for parameter in learning:
        shares.setdefault(rates.get(parameter, 1.0), []).append(parameter)
    groups: list[dict[str, Any]] = [
        {"params": shares[rate], "lr": rate * config.learning_rate, RATE: rate} for rate in sorted(shares, reverse=True)
    ]
    return torch.optim.AdamW(
        [{"params": learning}] if shares.keys() <= {1.0} else groups,
        lr=config.learning_rate,
        betas=config.betas,
        eps=config.eps,
        weight_decay=config.weight_decay,
        fused=all(parameter.device.type in ("cpu", "cuda") for parameter in learning),
    )


def set_learning_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Set the learning rate of every group of parameters to its share of a rate."""
    for group in optimizer.param_groups:
        group["lr"] = rate * group.get(RATE, 1.0)


def learning_rate(config: ResolvedOptimization, *, step: int, progress: float) -> float:
    """Return the learning rate of a step, counted from 0, after the share ``progress`` of all epochs.

    The function is pure, so that a resumed run needs no state of a scheduler.
    """
    warmup = min(1.0, (step + 1) / config.warmup_steps) if config.warmup_steps else 1.0
    decay = {"constant": 1.0, "linear": 1 - progress, "cosine": (1 + math.cos(math.pi * progress)) / 2}
    return config.learning_rate * warmup * decay[config.schedule]


class MovingAverage(AveragedModel):
    """A copy of a model that holds the exponential moving average of its weights.

    Call ``update_parameters`` once a step. The decay of the first steps is lower, (1 + t) / (10 + t), because otherwise
    the first weights count for long. The copy shares frozen weights with the model, which saves memory and time. The
    count of steps stays on the CPU, so that no step is a device sync.
    """

    n_averaged: Tensor

    def __init__(self, model: nn.Module, decay: float) -> None:
        super().__init__(model)
        self.decay = decay
        for target, source in zip(self.module.parameters(), model.parameters(), strict=True):
            target.requires_grad = False  # so that several devices send no gradients of the copy
            if not source.requires_grad:
                target.data = source.data

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
