"""Bounds of batches, lowered where measured steps need more memory than the settings allow."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from treeparse.batch import pick_device
from treeparse.data.batches.batching import counted_nodes
from treeparse.data.batches.mixing import ALL_LABELLED, TrainingMix
from treeparse.errors import TreeparseError
from treeparse.model import Parser
from treeparse.objectives import Objective
from treeparse.sentence import Sentence
from treeparse.training.settings.config import TrainConfig
from treeparse.training.settings.resolve import resolve_batch_words, resolve_precision
from treeparse.training.settings.step_memory import StepMemory, measure_step_memory

GIGABYTE = 10**9


class BatchBounds(NamedTuple):
    """The bounds of a batch, see `BucketBatchSampler`."""

    max_words: int
    max_squared: int | None


def fit_batches_in_memory(
    config: TrainConfig,
    parser: Parser,
    objective: Objective,
    sentences: Sequence[Sentence],
    say: Callable[[str], None],
    *,
    mix: TrainingMix = ALL_LABELLED,
    earlier: Mapping[str, Any] | None = None,
) -> TrainConfig:
    """Return the config with batches small enough for ``data.memory``.

    Args:
        config: the settings of the user.
        parser: the parser that will be trained.
        objective: the loss.
        sentences: the training sentences.
        say: called with a line that says what memory a step takes.
        mix: what an epoch consists of.
        earlier: the settings of the run to resume, as plain data; its bounds are taken without a measurement.

    Raises:
        TreeparseError: the longest sentence needs more memory.
    """
    data = config.data
    if data.memory is None:
        return config
    if earlier is not None and earlier["data"].get("memory") == data.memory:
        bounds = {name: earlier["data"][name] for name in ("batch_words", "batch_squared")}
        return replace(config, data=replace(data, **bounds))
    words = resolve_batch_words(data, [*map(len, sentences)])
    memory = measure_step_memory(
        parser,
        objective,
        sentences,
        max_words=words,
        device=pick_device(config.trainer.device),
        precision=resolve_precision(config.trainer),
        averaged=config.optimization.average_decay is not None,
    )
    [longest] = counted_nodes([max(map(parser.length, sentences))])
    bounds = lower_bounds(BatchBounds(words, data.batch_squared), data.memory, memory, longest, mix.batch_factor)
    most = _most_bytes(bounds, memory, longest, mix.batch_factor)
    say(
        f"a step takes up to {most / GIGABYTE:.3g} GB of memory: batch_words is {bounds.max_words:,}"
        f"{f', batch_squared {bounds.max_squared:,}' if bounds.max_squared is not None else ''}"
    )
    return replace(config, data=replace(data, batch_words=bounds.max_words, batch_squared=bounds.max_squared))


def lower_bounds(
    bounds: BatchBounds, budget: float, memory: StepMemory, longest: int, batch_factor: float = 1.0
) -> BatchBounds:
    """Lower both bounds by one factor, as far as the largest batch that they allow exceeds the budget.

    Args:
        bounds: the bounds of the settings.
        budget: gigabytes.
        memory: the memory of a step.
        longest: nodes of the longest sentence, which may exceed the bounds as a batch of its own.
        batch_factor: how many times the bounds a batch may hold.

    Raises:
        TreeparseError: the longest sentence needs more than the budget.
    """
    alone = memory.bytes(longest, longest**2)
    if alone > budget * GIGABYTE:
        raise TreeparseError(
            f"data.memory is {budget} GB, but a step takes about {alone / GIGABYTE:.3g} GB for the longest sentence "
            f"alone, {memory.fixed / GIGABYTE:.3g} GB of it for any batch: raise data.memory, leave out the longest "
            "sentences, or choose a smaller model."
        )
    needed = _most_bytes(bounds, memory, longest, batch_factor) - memory.fixed
    factor = (budget * GIGABYTE - memory.fixed) / max(needed, 1.0)
    if factor >= 1:
        return bounds
    squared = None if bounds.max_squared is None else max(1, int(factor * bounds.max_squared))
    return BatchBounds(max(1, int(factor * bounds.max_words)), squared)


def _most_bytes(bounds: BatchBounds, memory: StepMemory, longest: int, batch_factor: float) -> float:
    """Return the bytes of the largest batch that the bounds allow."""
    words = bounds.max_words * batch_factor
    cells = words * longest if bounds.max_squared is None else min(bounds.max_squared * batch_factor, words * longest)
    return max(memory.bytes(words, cells), memory.bytes(longest, longest**2))
