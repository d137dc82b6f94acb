"""Resolution of the settings that a config leaves to ``auto``: they follow from the treebank and the machine."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from treeparse.data.batches.mixing import ALL_LABELLED, EpochSampler, TrainingMix
from treeparse.data.batches.steps import steps_of
from treeparse.nn.precision import has_bfloat16
from treeparse.sentence import Sentence
from treeparse.training.settings.config import (
    SECTIONS,
    DataConfig,
    OptimizationConfig,
    ResolvedConfig,
    ResolvedData,
    ResolvedOptimization,
    TrainConfig,
)
from treeparse.training.settings.trainer import TrainerSettings, training_device

EPOCHS, STEPS = 14, 3500  # at least, where a config sets neither
LEAST_BATCH, MOST_BATCH = 200, 1000  # words
EVALUATIONS = 20  # on the dev set in a whole run
LEAST_PATIENCE = 5  # evaluations
WARMUP_SHARE, AVERAGE_SHARE, PATIENCE_SHARE = 0.03, 0.06, 1 / 3  # of all steps, and of all epochs
LONG_WARMUP, FEW_STEPS = 1 / 5, 500  # bounds of warnings: a share of all steps, and their number


@dataclass(frozen=True, slots=True)
class TreebankFacts:
    """The facts about a run's sentences that its settings and its workload depend on.

    Attributes:
        lengths: number of words of each training sentence.
        dev_words: number of words of the dev set.
        sizes: what each training sentence counts for in the bounds of a batch; by default its words.
        size_of: returns what any other sentence counts for.
        mix: what an epoch consists of.
    """

    lengths: Sequence[int]
    dev_words: int = 0
    sizes: Sequence[int] | None = None
    size_of: Callable[[Sentence], int] = len
    mix: TrainingMix = ALL_LABELLED


@dataclass(frozen=True, slots=True)
class Workload:
    """The size of a run in numbers."""

    sentences: int
    words: int
    dev_words: int
    steps_per_epoch: int  # of the first epoch: where epochs draw their sentences, others may have a few more or less
    epochs: int
    evaluations: int
    unlabelled_words: int = 0  # of an epoch
    processes: int = 1

    @property
    def steps(self) -> int:
        """The number of steps of all epochs."""
        return self.steps_per_epoch * self.epochs


def resolve_settings(
    config: TrainConfig, facts: TreebankFacts, earlier: Mapping[str, Any] | None = None, *, processes: int = 1
) -> ResolvedConfig:
    """Replace every ``auto`` by a value, and the epochs by the number that the steps need.

    ``trainer.max_epochs`` and ``trainer.check_val_every_n_epoch`` win over the settings of optimization.

    Args:
        config: the settings of the user.
        facts: facts about the run's sentences.
        earlier: the resolved settings of the run to resume, as plain data; their values replace ``auto`` first.
        processes: number of processes that train together.
    """
    if earlier is not None:
        config = _with_earlier_values(config, earlier)
    data = ResolvedData(**{**vars(config.data), "batch_words": resolve_batch_words(config.data, facts.lengths)})
    has_dev = data.dev is not None or data.dev_share > 0
    steps_per_epoch = steps_of(len(_first_epoch(data, config.seed, facts)), batches_per_step(config.trainer, processes))
    optimization = with_trainers_epochs(config)
    sections = {
        "data": data,
        "optimization": _resolve_optimization(optimization, steps_per_epoch, has_dev, config.trainer.get("max_epochs")),
        "trainer": {**config.trainer, "precision": resolve_precision(config.trainer)},
    }
    return ResolvedConfig(**{**vars(config), **sections})


def with_trainers_epochs(config: TrainConfig) -> OptimizationConfig:
    """Return the settings of the optimisation, with the epochs that the Trainer's arguments name, if they do."""
    epochs, every = config.trainer.get("max_epochs"), config.trainer.get("check_val_every_n_epoch")
    optimization = config.optimization if epochs is None else replace(config.optimization, epochs=epochs, steps="auto")
    return optimization if every is None else replace(optimization, dev_every=every)


def batches_per_step(trainer: TrainerSettings, processes: int) -> int:
    """Return the number of batches of all devices in a step."""
    return trainer.get("accumulate_grad_batches", 1) * processes


def resolution_remarks(config: TrainConfig, resolved: ResolvedConfig) -> list[str]:
    """Say what `resolve_settings` chose for a config, in a line each, and warn of few steps and of a long warmup."""
    steps, warmup = resolved.optimization.steps, resolved.optimization.warmup_steps
    remarks = []
    if chosen := _chosen_values(config, resolved):
        remarks.append(f"chosen for this treebank and machine: {chosen}")
    optimization = with_trainers_epochs(config)
    for name, replaced in (("max_epochs", "epochs"), ("check_val_every_n_epoch", "dev_every")):
        if config.trainer.get(name) is not None:
            remarks.append(f"trainer.{name} {config.trainer[name]} wins over optimization.{replaced}")
    if optimization.epochs not in ("auto", resolved.optimization.epochs):
        remarks.append(_epochs_remark(optimization, resolved.optimization))
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


def workload(config: ResolvedConfig, facts: TreebankFacts, processes: int = 1) -> Workload:
    """Return the size of a run."""
    epochs, first = config.optimization.epochs, _first_epoch(config.data, config.seed, facts)
    return Workload(
        sentences=len(first.labelled),
        words=sum(facts.lengths[index] for index in first.labelled),
        dev_words=facts.dev_words,
        steps_per_epoch=steps_of(len(first), batches_per_step(config.trainer, processes)),
        epochs=epochs,
        evaluations=epochs // config.optimization.dev_every,
        unlabelled_words=sum(len(sentence.words) for sentence in first.unlabelled),
        processes=processes,
    )


def _first_epoch(data: ResolvedData, seed: int, facts: TreebankFacts) -> EpochSampler:
    bounds = {"max_words": data.batch_words, "max_squared": data.batch_squared}
    sizes = facts.lengths if facts.sizes is None else facts.sizes
    return EpochSampler(sizes, **bounds, seed=seed, mix=facts.mix, length=facts.size_of)


def _with_earlier_values(config: TrainConfig, earlier: Mapping[str, Any]) -> TrainConfig:
    """Replace ``auto`` by the values of an earlier run."""
    sections = {}
    for name in SECTIONS:
        section, values = getattr(config, name), earlier.get(name, {})
        known = {key: values[key] for key, value in vars(section).items() if value == "auto" and key in values}
        sections[name] = replace(section, **known)
    trainer = dict(config.trainer)
    if trainer.get("precision") is None:
        trainer["precision"] = earlier.get("trainer", {}).get("precision")
    return replace(config, **sections, trainer=trainer)


def resolve_batch_words(data: DataConfig, lengths: Sequence[int]) -> int:
    """Return the most words of a batch.

    ``auto`` grows as the square root of the treebank's words, so that small treebanks get more steps for the same work.
    """
    if data.batch_words != "auto":
        return data.batch_words
    fitting = round(2.2 * math.sqrt(sum(lengths)) / 50) * 50
    return min(max(fitting, LEAST_BATCH), MOST_BATCH)


def resolve_precision(trainer: TrainerSettings) -> Any:
    """Return the precision; null becomes bfloat16 if the device has instructions for it, because else it is slow."""
    if trainer.get("precision") is not None:
        return trainer["precision"]
    return "bf16-mixed" if has_bfloat16(training_device(trainer)) else "32-true"


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
