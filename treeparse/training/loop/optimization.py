"""The optimiser, its learning rate as a function of progress, and the moving average of the weights."""

import math
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import LambdaLR
from torch.optim.swa_utils import AveragedModel

from treeparse.training.settings.config import OptimizationConfig, ResolvedOptimization

NO_RATES: Mapping[nn.Parameter, float] = MappingProxyType({})


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
        {"params": shares[rate], "lr": rate * config.learning_rate} for rate in sorted(shares, reverse=True)
    ]
    return torch.optim.AdamW(
        [{"params": learning}] if shares.keys() <= {1.0} else groups,
        lr=config.learning_rate,
        betas=config.betas,
        eps=config.eps,
        weight_decay=config.weight_decay,
        fused=all(parameter.device.type in ("cpu", "cuda") for parameter in learning),
    )


def build_schedule(optimizer: torch.optim.Optimizer, config: ResolvedOptimization) -> LambdaLR:
    """Return the schedule of the config: each group of parameters has its share of the rate of a step."""
    return LambdaLR(optimizer, lambda step: rate_share(config, step))


def rate_share(config: ResolvedOptimization, step: int) -> float:
    """Return the learning rate of a step, counted from 0, as a share of the highest."""
    progress = min(step / config.steps, 1.0)  # epochs that draw their sentences may have a few steps more
    warmup = min(1.0, (step + 1) / config.warmup_steps) if config.warmup_steps else 1.0
    decay = {"constant": 1.0, "linear": 1 - progress, "cosine": (1 + math.cos(math.pi * progress)) / 2}
    return warmup * decay[config.schedule]


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
