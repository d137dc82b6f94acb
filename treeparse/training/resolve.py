"""Resolution of the settings that a config leaves to ``auto``: they follow from the treebank and the machine."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from treeparse.data.batches.mixing import EpochSampler
from treeparse.data.columns import TREEBANK
from treeparse.errors import TreeparseError
from treeparse.model.parser_config import LinearConfig
from treeparse.nn.precision import has_bfloat16
from treeparse.training.train_config import (
    SECTIONS,
    DataConfig,
    OptimizationConfig,
    ResolvedConfig,
    ResolvedData,
    ResolvedOptimization,
    TrainConfig,
)
from treeparse.training.trainer import TrainerSettings, training_device

EPOCHS, STEPS = 28, 3500  # at least, where a config sets neither
LEAST_BATCH, MOST_BATCH = 200, 1000  # words
EVALUATIONS = 20  # on the dev set in a whole run
LEAST_PATIENCE = 5  # evaluations
WARMUP_SHARE, AVERAGE_SHARE, PATIENCE_SHARE = 0.03, 0.06, 1 / 3  # of all steps, and of all epochs
Section = TypeVar("Section", DataConfig, OptimizationConfig)
LONG_WARMUP, FEW_STEPS = 1 / 5, 500  # bounds of warnings: a share of all steps, and their number


@dataclass(frozen=True, slots=True)
class Workload:
    """The size of a run in numbers."""

    sentences: int
    words: int
    dev_words: int
    steps: int  # by the first epoch: where epochs draw their sentences, others may have a few more or less
    epochs: int
    evaluations: int
    unlabelled_words: int = 0  # of an epoch


def resolve_data(config: TrainConfig, lengths: Sequence[int], earlier: Mapping[str, Any] | None = None) -> ResolvedData:
    """Replace every ``auto`` in the settings of the data.

    Args:
        config: the settings of the user.
        lengths: number of words of each training sentence.
        earlier: the resolved settings of the run to resume, as plain data; their values replace ``auto`` first.
    """
    data = _with_earlier_values(config.data, (earlier or {}).get("data", {}))
    words = data.batch_words
    if words == "auto":  # grows as the square root, so that small treebanks get more steps for the same work
        words = min(max(round(2.2 * math.sqrt(sum(lengths)) / 50) * 50, LEAST_BATCH), MOST_BATCH)
    return ResolvedData(**{**vars(data), "batch_words": words})


def resolve_settings(
    config: TrainConfig, data: ResolvedData, steps_per_epoch: int, earlier: Mapping[str, Any] | None = None
) -> ResolvedConfig:
    """Replace every ``auto`` by a value, and the epochs by the number that the steps need.

    Args:
        config: the settings of the user, `with_trainers_epochs`.
        data: the resolved settings of the data.
        steps_per_epoch: number of steps of the first epoch.
        earlier: the resolved settings of the run to resume, as plain data; their values replace ``auto`` first.
    """
    earlier = earlier or {}
    optimization = _with_earlier_values(config.optimization, earlier.get("optimization", {}))
    has_dev = data.has_dev_files or data.dev_share > 0
    optimization = _resolve_optimization(optimization, steps_per_epoch, has_dev, config.trainer.get("max_epochs"))
    precision = config.trainer.get("precision") or earlier.get("trainer", {}).get("precision")
    if precision is None:  # without instructions for it, bfloat16 is slow
        precision = "bf16-mixed" if has_bfloat16(training_device(config.trainer)) else "32-true"
    trainer = {**config.trainer, "precision": precision}
    return ResolvedConfig(**{**vars(config), "data": data, "optimization": optimization, "trainer": trainer})


def with_trainers_epochs(config: TrainConfig) -> TrainConfig:
    """Return the settings with the epochs by ``trainer.max_epochs`` and ``check_val_every_n_epoch``, if given."""
    epochs, every = config.trainer.get("max_epochs"), config.trainer.get("check_val_every_n_epoch")
    lengths = {} if epochs is None else {"epochs": epochs, "steps": "auto"}
    lengths |= {} if every is None else {"dev_every": every}
    return replace(config, optimization=replace(config.optimization, **lengths))


def with_treebank_column(config: TrainConfig) -> TrainConfig:
    """Return the settings of a model that reads the treebank of a sentence, if the data names treebanks."""
    model, encoder = config.model, config.model.encoder
    if not config.data.treebanks:
        return config
    if isinstance(model.scorer, LinearConfig):
        return replace(config, model=replace(model, scorer=model.scorer.with_treebank()))
    if (tags := getattr(encoder, "tags", None)) is None:
        raise TreeparseError(f"data.treebanks needs an encoder with the setting tags, which {encoder.name} is not.")
    encoder = encoder if TREEBANK in tags else replace(encoder, **{"tags": (*tags, TREEBANK)})
    return replace(config, model=replace(model, encoder=encoder))


def batches_per_step(trainer: TrainerSettings, processes: int) -> int:
    """Return the number of batches of all devices in a step."""
    return trainer.get("accumulate_grad_batches", 1) * processes


def resolution_remarks(config: TrainConfig, resolved: ResolvedConfig) -> list[str]:
    """Say what `resolve_settings` chose for a config, in a line each, and warn of few steps and of a long warmup."""
    steps, warmup = resolved.optimization.steps, resolved.optimization.warmup_steps
    remarks = []
    if chosen := _chosen_values(config, resolved):
        remarks.append(f"chosen for this treebank and machine: {chosen}")
    for name, replaced in (("max_epochs", "epochs"), ("check_val_every_n_epoch", "dev_every")):
        if config.trainer.get(name) is not None:
            remarks.append(f"trainer.{name} {config.trainer[name]} wins over optimization.{replaced}")
    if config.optimization.epochs not in ("auto", resolved.optimization.epochs):
        remarks.append(_epochs_remark(config.optimization, resolved.optimization))
    if warmup > LONG_WARMUP * steps:
        remarks.append(
            f"warning: the learning rate rises over {warmup:,} of {steps:,} steps (optimization.warmup_steps; auto is "
            f"{WARMUP_SHARE:.0%} of them)"
        )
    if steps < FEW_STEPS:
        remarks.append(
            f"warning: {steps:,} steps are few to learn from: raise optimization.steps, or lower data.batch_words"
        )
    return remarks


def _epochs_remark(config: OptimizationConfig, resolved: ResolvedOptimization) -> str:
    """Say why there are more epochs than in the config."""
    needed = _epochs(config, resolved.steps // resolved.epochs)
    reasons = []
    if needed != config.epochs:
        reasons.append(f"optimization.steps asks for at least {config.steps:,} steps")
    if needed != resolved.epochs:
        reasons.append(f"the dev set is measured every {resolved.dev_every} epochs (optimization.dev_every)")
    return f"optimization.epochs {config.epochs} becomes {resolved.epochs}: {', and '.join(reasons)}"


def _chosen_values(config: TrainConfig, resolved: ResolvedConfig) -> str:
    """List the values of the settings that a config leaves to ``auto``, without the number of steps."""
    chosen = [
        f"{section}.{name} {getattr(getattr(resolved, section), name)}"
        for section in SECTIONS
        for name, value in vars(getattr(config, section)).items()
        if value == "auto" and name != "steps"
    ]
    if config.trainer.get("precision") is None:
        chosen.append(f"trainer.precision {resolved.trainer['precision']}")
    return ", ".join(chosen)


def workload(config: ResolvedConfig, sampler: EpochSampler, lengths: Sequence[int], *, dev_words: int = 0) -> Workload:
    """Return the size of a run, from the batches of its first epoch and the words of its training sentences."""
    optimization = config.optimization
    return Workload(
        sentences=len(sampler.labelled),
        words=sum(lengths[index] for index in sampler.labelled),
        dev_words=dev_words,
        steps=optimization.steps,
        epochs=optimization.epochs,
        evaluations=optimization.epochs // optimization.dev_every,
        unlabelled_words=sum(len(sentence.words) for sentence in sampler.unlabelled),
    )


def _with_earlier_values(section: Section, earlier: Mapping[str, Any]) -> Section:
    """Replace ``auto`` by the values of an earlier run."""
    known = {name: earlier[name] for name, value in vars(section).items() if value == "auto" and name in earlier}
    return replace(section, **known)


def _epochs(config: OptimizationConfig, steps_per_epoch: int) -> int:
    """Return the number of epochs that a config's epochs and steps need."""
    epochs, steps = config.epochs, config.steps
    if epochs == "auto" and steps == "auto":
        epochs, steps = EPOCHS, STEPS
    least = 1 if epochs == "auto" else epochs
    return least if steps == "auto" else max(least, -(-steps // steps_per_epoch))


def _resolve_optimization(
    config: OptimizationConfig, steps_per_epoch: int, has_dev: bool, most: int | None
) -> ResolvedOptimization:
    """Resolve the length of training, at most ``most`` epochs, and what depends on it."""
    epochs = _epochs(config, steps_per_epoch)
    every = max(1, round(epochs / EVALUATIONS)) if config.dev_every == "auto" else config.dev_every
    epochs = -(-epochs // every) * every if most is None else max(most // every, 1) * every
    steps = epochs * steps_per_epoch
    patience, warmup, decay = config.patience, config.warmup_steps, config.average_decay
    if patience == "auto":
        patience = max(math.ceil(PATIENCE_SHARE * epochs), LEAST_PATIENCE * every) if has_dev else None
    values = {
        "epochs": epochs,
        "steps": steps,
        "dev_every": every,
        "patience": patience,
        "warmup_steps": round(WARMUP_SHARE * steps) if warmup == "auto" else warmup,
        "average_decay": round(max(0.0, 1 - 1 / (AVERAGE_SHARE * steps)), 6) if decay == "auto" else decay,
    }
    return ResolvedOptimization(**{**vars(config), **values})
