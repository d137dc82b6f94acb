"""The settings that follow from the treebank and the machine, where a config leaves them to ``auto``."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar, cast

from treeparse.batch import pick_device
from treeparse.data.batches.mixing import PLAIN, EpochSampler, Mixture
from treeparse.errors import TreeparseError
from treeparse.names import TrainingPrecision
from treeparse.nn.precision import has_bfloat16
from treeparse.sentence import Sentence
from treeparse.training.settings.config import Auto, OptimizationConfig, TrainConfig

EPOCHS, STEPS = 14, 3500  # where a config sets neither: at least so many
LEAST_BATCH, MOST_BATCH = 200, 1000  # words
MEASUREMENTS = 20  # of the dev set in a whole run
LEAST_PATIENCE = 5  # measurements
WARMUP_SHARE, AVERAGE_SHARE, PATIENCE_SHARE = 0.03, 0.06, 1 / 3  # of all steps, and of all epochs
LONG_WARMUP, FEW_STEPS = 1 / 5, 500  # which a run is warned of: a share of all steps, and their number

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Sizes:
    """What sentences count for in the bounds of a batch."""

    train: Sequence[int]
    length: Callable[[Sentence], int] = len  # of any other sentence


@dataclass(frozen=True, slots=True)
class Workload:
    """What a run has to do: its size in numbers."""

    sentences: int
    words: int
    dev_words: int
    steps_per_epoch: int  # of the first: where an epoch draws its sentences, others may have a few more or less
    epochs: int
    measurements: int
    unlabelled_words: int = 0  # of an epoch

    @property
    def steps(self) -> int:
        """Of all epochs."""
        return self.steps_per_epoch * self.epochs


def settled(value: T | Auto) -> T:
    """The value of a setting that :func:`planned` has filled in; raises where it is still ``auto``."""
    if isinstance(value, str) and value == "auto":
        raise TreeparseError("A setting is still auto: it is filled in by the training sentences, see planned().")
    return cast(T, value)


def planned(
    config: TrainConfig,
    lengths: Sequence[int],
    earlier: Mapping[str, Any] | None = None,
    mixture: Mixture = PLAIN,
    sizes: Sizes | None = None,
) -> TrainConfig:
    """The config with a value in the place of every ``auto``, and with the epochs that its steps ask for.

    Args:
        config: the settings as they were given.
        lengths: numbers of words of the training sentences.
        earlier: the settings of a run to go on with, as plain data, which win over what would follow anew.
        mixture: what an epoch is made of.
        sizes: what sentences count for in a batch; their words by default.
    """
    if earlier is not None:
        config = _as_earlier(config, earlier)
    data = config.data
    if data.batch_words == "auto":
        data = replace(data, batch_words=batch_words(sum(lengths)))
    held_out = data.dev is not None or data.dev_share > 0
    first = first_epoch(replace(config, data=data), sizes or Sizes(lengths), mixture)
    optimization = _planned_optimization(config.optimization, len(first), held_out)
    trainer = config.trainer
    if trainer.precision == "auto":
        trainer = replace(trainer, precision=precision(trainer.device))
    return replace(config, data=data, optimization=optimization, trainer=trainer)


def plan_remarks(config: TrainConfig, plan: TrainConfig) -> list[str]:
    """Say what `planned` chose for a config, in a line each, and warn of few steps and of a long warmup."""
    steps, warmup = settled(plan.optimization.steps), settled(plan.optimization.warmup_steps)
    remarks = []
    if chosen := _chosen(config, plan):
        remarks.append(f"chosen for this treebank and machine: {chosen}")
    if config.optimization.epochs not in ("auto", plan.optimization.epochs):
        remarks.append(_epochs_remark(config.optimization, plan.optimization))
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


def _epochs_remark(given: OptimizationConfig, plan: OptimizationConfig) -> str:
    """Why there are more epochs than the config gives."""
    epochs = settled(plan.epochs)
    needed = _epochs(given, settled(plan.steps) // epochs)
    reasons = []
    if needed != given.epochs:
        reasons.append(f"optimization.steps asks for at least {given.steps:,} steps")
    if needed != epochs:
        reasons.append(f"the dev set is measured every {plan.dev_every} epochs (optimization.dev_every)")
    return f"optimization.epochs {given.epochs} becomes {epochs}: {', and '.join(reasons)}"


def _chosen(config: TrainConfig, plan: TrainConfig) -> str:
    """The values of the settings that a config leaves to ``auto``, but for the device and the number of steps."""
    sections = ("data", "optimization", "trainer")
    return ", ".join(
        f"{section}.{name} {getattr(getattr(plan, section), name)}"
        for section in sections
        for name, value in vars(getattr(config, section)).items()
        if value == "auto" and name not in ("device", "steps")
    )


def first_epoch(config: TrainConfig, sizes: Sizes, mixture: Mixture = PLAIN) -> EpochSampler:
    """The batches of the first epoch."""
    bounds = {"max_words": settled(config.data.batch_words), "max_squared": config.data.batch_squared}
    return EpochSampler(sizes.train, **bounds, seed=config.seed, mixture=mixture, length=sizes.length)


def workload(
    config: TrainConfig,
    lengths: Sequence[int],
    dev_lengths: Sequence[int],
    mixture: Mixture = PLAIN,
    sizes: Sizes | None = None,
) -> Workload:
    """The size of a run by its planned config; the arguments are those of `planned`."""
    epochs, first = settled(config.optimization.epochs), first_epoch(config, sizes or Sizes(lengths), mixture)
    return Workload(
        sentences=len(first.labelled),
        words=sum(lengths[place] for place in first.labelled),
        dev_words=sum(dev_lengths),
        steps_per_epoch=len(first),
        epochs=epochs,
        measurements=epochs // settled(config.optimization.dev_every),
        unlabelled_words=sum(len(sentence.words) for sentence in first.unlabelled),
    )


def _as_earlier(config: TrainConfig, earlier: Mapping[str, Any]) -> TrainConfig:
    """The config with the earlier values of what it leaves to ``auto``."""
    sections = {}
    for name in ("data", "optimization", "trainer"):
        section, before = getattr(config, name), earlier.get(name, {})
        known = {key: before[key] for key, value in vars(section).items() if value == "auto" and key in before}
        sections[name] = replace(section, **known)
    return replace(config, **sections)


def batch_words(words: int) -> int:
    """Small batches for small treebanks, which get the more steps for the same work, growing as the square root."""
    fitting = round(2.2 * math.sqrt(words) / 50) * 50
    return min(max(fitting, LEAST_BATCH), MOST_BATCH)


def _epochs(config: OptimizationConfig, steps_per_epoch: int) -> int:
    epochs, steps = config.epochs, config.steps
    if epochs == "auto" and steps == "auto":
        epochs, steps = EPOCHS, STEPS
    wanted = 1 if epochs == "auto" else epochs
    return wanted if steps == "auto" else max(wanted, -(-steps // steps_per_epoch))


def _planned_optimization(config: OptimizationConfig, steps_per_epoch: int, held_out: bool) -> OptimizationConfig:
    epochs = _epochs(config, steps_per_epoch)
    every = max(1, round(epochs / MEASUREMENTS)) if config.dev_every == "auto" else config.dev_every
    epochs = -(-epochs // every) * every
    steps = epochs * steps_per_epoch
    patience, warmup, decay = config.patience, config.warmup_steps, config.average_decay
    if patience == "auto":
        patience = max(math.ceil(PATIENCE_SHARE * epochs), LEAST_PATIENCE * every) if held_out else None
    return replace(
        config,
        epochs=epochs,
        steps=steps,
        dev_every=every,
        patience=patience,
        warmup_steps=round(WARMUP_SHARE * steps) if warmup == "auto" else warmup,
        average_decay=round(max(0.0, 1 - 1 / (AVERAGE_SHARE * steps)), 6) if decay == "auto" else decay,
    )


def precision(device: str) -> TrainingPrecision:
    """bfloat16 where the device has instructions for it: elsewhere it is slower than single precision."""
    return "bf16-mixed" if has_bfloat16(pick_device(device)) else "32-true"
