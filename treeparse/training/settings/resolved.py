"""The settings that training works with: those of `TrainConfig`, with a value for every ``auto``."""

from dataclasses import dataclass, field

from treeparse.errors import TreeparseError
from treeparse.names import TrainingPrecision
from treeparse.training.settings.config import DataConfig, OptimizationConfig, TrainConfig, TrainerConfig


class ResolvedSection:
    """A base of dataclasses that refuses ``auto`` for anything but the device, because a run may resume on another."""

    def __post_init__(self) -> None:
        super().__post_init__()  # pyright: ignore[reportAttributeAccessIssue]
        if unresolved := [name for name, value in vars(self).items() if value == "auto" and name != "device"]:
            raise TreeparseError(f"Resolved settings must hold no 'auto', got it for {', '.join(unresolved)}.")


@dataclass(frozen=True, kw_only=True)
class ResolvedData(ResolvedSection, DataConfig):
    """`DataConfig` without ``auto``."""

    batch_words: int = field()


@dataclass(frozen=True, kw_only=True)
class ResolvedOptimization(ResolvedSection, OptimizationConfig):
    """`OptimizationConfig` without ``auto``."""

    epochs: int = field()
    steps: int = field()
    dev_every: int = field()
    warmup_steps: int = field()
    patience: int | None = field()
    average_decay: float | None = field()


@dataclass(frozen=True, kw_only=True)
class ResolvedTrainer(ResolvedSection, TrainerConfig):
    """`TrainerConfig` without ``auto`` for the precision."""

    precision: TrainingPrecision = field()


@dataclass(frozen=True, kw_only=True)
class ResolvedConfig(TrainConfig):
    """`TrainConfig` without ``auto``: `resolve_settings` makes it, and the files of a run hold it."""

    data: ResolvedData = field()
    optimization: ResolvedOptimization = field()
    trainer: ResolvedTrainer = field()
