"""Batches within a budget of memory: their bounds are lowered as far as measured steps ask for it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from treeparse.batch import pick_device
from treeparse.data.batches.batching import counted_nodes
from treeparse.data.batches.mixing import PLAIN, Mixture
from treeparse.errors import TreeparseError
from treeparse.model import Parser
from treeparse.objectives import Objective
from treeparse.sentence import Sentence
from treeparse.training.settings.config import TrainConfig
from treeparse.training.settings.resolve import batch_words, precision
from treeparse.training.settings.step_memory import StepMemory, measured

GIGABYTE = 10**9


class Bounds(NamedTuple):
    """Those of a batch, as of `BucketBatchSampler`."""

    max_words: int
    max_squared: int | None


def within_budget(
    config: TrainConfig,
    parser: Parser,
    objective: Objective,
    sentences: Sequence[Sentence],
    say: Callable[[str], None],
    *,
    mixture: Mixture = PLAIN,
    earlier: Mapping[str, Any] | None = None,
) -> TrainConfig:
    """The config with bounds of batches for which ``data.memory`` is enough.

    Args:
        config: the settings as they were given.
        parser: what is trained.
        objective: by what.
        sentences: the training sentences.
        say: is told what a step takes.
        mixture: what an epoch is made of.
        earlier: the settings of a run to go on with, as plain data, whose bounds are kept.

    Raises:
        TreeparseError: the budget is too small for the longest sentence.
    """
    data = config.data
    if data.memory is None:
        return config
    if earlier is not None and earlier["data"].get("memory") == data.memory:
        kept = {name: earlier["data"][name] for name in ("batch_words", "batch_squared")}
        return replace(config, data=replace(data, **kept))
    words = batch_words(sum(map(len, sentences))) if data.batch_words == "auto" else data.batch_words
    trainer = config.trainer
    memory = measured(
        parser,
        objective,
        sentences,
        max_words=words,
        device=pick_device(trainer.device),
        precision=precision(trainer.device) if trainer.precision == "auto" else trainer.precision,
        averaged=config.optimization.average_decay is not None,
    )
    room = 1 + mixture.ratio if mixture.unlabelled is not None and mixture.mixing == "together" else 1.0
    [longest] = counted_nodes([max(map(parser.length, sentences))])
    found = lowered(Bounds(words, data.batch_squared), data.memory, memory, longest, room)
    say(
        f"a step takes up to {_largest(found, memory, longest, room) / GIGABYTE:.3g} GB of memory: batch_words is "
        f"{found.max_words:,}{f', batch_squared {found.max_squared:,}' if found.max_squared is not None else ''}"
    )
    return replace(config, data=replace(data, batch_words=found.max_words, batch_squared=found.max_squared))


def lowered(bounds: Bounds, budget: float, memory: StepMemory, longest: int, room: float = 1.0) -> Bounds:
    """The bounds, lowered by one factor as far as the largest batch that they allow asks for it.

    Args:
        bounds: those that are wished.
        budget: gigabytes.
        memory: what a step takes.
        longest: nodes of the longest sentence, which may make a batch of its own beyond all bounds.
        room: how many times the bounds a batch may hold.

    Raises:
        TreeparseError: the longest sentence takes more.
    """
    alone = memory.bytes(longest, longest**2)
    if alone > budget * GIGABYTE:
        raise TreeparseError(
            f"data.memory is {budget} GB, but a step takes about {alone / GIGABYTE:.3g} GB for the longest sentence "
            f"alone, of which {memory.fixed / GIGABYTE:.3g} GB for any: allow more, leave out the longest sentences, "
            "or take a smaller model."
        )
    wanted = _largest(bounds, memory, longest, room) - memory.fixed
    factor = (budget * GIGABYTE - memory.fixed) / max(wanted, 1.0)
    if factor >= 1:
        return bounds
    squared = None if bounds.max_squared is None else max(1, int(factor * bounds.max_squared))
    return Bounds(max(1, int(factor * bounds.max_words)), squared)


def _largest(bounds: Bounds, memory: StepMemory, longest: int, room: float) -> float:
    """The bytes of the largest batch that the bounds allow."""
    words = bounds.max_words * room
    cells = words * longest if bounds.max_squared is None else min(bounds.max_squared * room, words * longest)
    return max(memory.bytes(words, cells), memory.bytes(longest, longest**2))
