"""The optimiser, its learning rate as a function of progress, and the moving average of the weights."""

import math
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel

from treeparse.training.config import OptimizationConfig
from treeparse.training.plan import settled


def build_optimizer(parameters: Iterable[nn.Parameter], config: OptimizationConfig) -> torch.optim.AdamW:
    """AdamW over the parameters that learn; one fused kernel a step where the device has it."""
    learning = [parameter for parameter in parameters if parameter.requires_grad]
    return torch.optim.AdamW(
        learning,
        lr=config.learning_rate,
        betas=config.betas,
        eps=config.eps,
        weight_decay=config.weight_decay,
        fused=all(parameter.device.type in ("cpu", "cuda") for parameter in learning),
    )


def learning_rate(config: OptimizationConfig, *, step: int, progress: float) -> float:
    """The learning rate of step ``step`` (from 0) when the share ``progress`` of all epochs lies behind.

    A pure function, so a resumed run needs no state of a scheduler.
    """
    warmup_steps = settled(config.warmup_steps)
    warmup = min(1.0, (step + 1) / warmup_steps) if warmup_steps else 1.0
    decay = {"constant": 1.0, "linear": 1 - progress, "cosine": (1 + math.cos(math.pi * progress)) / 2}
    return config.learning_rate * warmup * decay[config.schedule]


def averaged_model(model: nn.Module, decay: float) -> AveragedModel:
    """A copy of the model that follows it by an exponential moving average, one ``update_parameters`` a step.

    The decay of the first steps is lower, (1 + t) / (10 + t), so that the first weights are soon forgotten.
    """

    def move(averaged: Sequence[Tensor], current: Sequence[Tensor], count: Tensor | int) -> None:
        steps = int(count)
        share = 1 - min(decay, (1 + steps) / (10 + steps))
        for target, source in zip(averaged, current, strict=True):
            target.lerp_(source, share)

    return AveragedModel(model, multi_avg_fn=move)
