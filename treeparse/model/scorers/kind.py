"""The interface that a parser needs from a scorer, by its settings: its module, its size and the memory it needs."""

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self

from treeparse.data.features.indexer import Indexer
from treeparse.data.vectors.files import WordVectors
from treeparse.errors import TreeparseError
from treeparse.model.config import ParserConfig, ScorerConfig
from treeparse.model.encoders import encoder_kind
from treeparse.model.encoders.kind import EncoderKind
from treeparse.model.scorers.scorer import Scorer

BYTES = 4  # of a weight, in float32
TRAINING_COPIES = 4  # the weights, their gradient, and Adam's two averages
CONTAINER_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


@dataclass(frozen=True)
class ScorerKind(ABC):
    """A scorer as the settings of a parser describe it; one subclass for each kind, listed in ``model.scorers``.

    ``encoder`` is the kind of ``config.encoder``. It decides the features that the scorer reads. A new parser comes
    from `completed`, the encoder's `features`, `module` and the encoder's `initialise`, in this order; a saved one from
    the encoder's `restored` and `module` alone.
    """

    settings: ClassVar[type[ScorerConfig]]  # the class of ``config.scorer``
    config: ParserConfig
    encoder: EncoderKind[Any]

    @classmethod
    def of(cls, config: ParserConfig) -> Self:
        """Return the scorer that the settings describe."""
        return cls(config, encoder_kind(config.encoder))

    @property
    @abstractmethod
    def name(self) -> str:
        """The name by which a config chooses the scorer."""

    @property
    @abstractmethod
    def description(self) -> str:
        """The parts of the parser, for a model card: "an encoder (bilstm) under biaffine scores"."""

    def completed(self, vectors: WordVectors | None) -> Self:
        """Return the kind with the settings that follow from the data; raise if it does not read the vectors."""
        encoder = self.encoder.completed(vectors)
        return replace(self, config=replace(self.config, encoder=encoder.config), encoder=encoder)

    @abstractmethod
    def module(self, indexer: Indexer) -> Scorer:
        """Return the scorer with random weights."""

    @abstractmethod
    def size(self, indexer: Indexer | None) -> int:
        """Return the number of weights, frozen ones included; without an indexer a lower bound, for any data."""

    def smaller(self) -> Iterator[tuple[str, Self]]:
        """Yield each setting that makes the scorer larger, as text with its value, and the kind with it lowered."""
        for setting, encoder in self.encoder.smaller():
            yield setting, self.of(replace(self.config, encoder=encoder))

    def shaping(self) -> Mapping[str, Any]:
        """Return the settings that decide the shapes or the meaning of weights, by the names of their options."""
        return {f"encoder.{name}": value for name, value in self.encoder.shaping().items()}


def check_memory(kind: ScorerKind, indexer: Indexer | None, *, copies: int) -> None:
    """Raise if this machine cannot hold ``copies`` copies of a scorer's weights."""
    memory, weights = machine_memory(), kind.size(indexer)
    needed = weights * BYTES * copies
    if memory is not None and needed > memory:
        raise TreeparseError(
            f"The model would have at least {_amount(weights)} weights and need {_amount(needed / 1e9)} GB of memory, "
            f"but this machine has {_amount(memory / 1e9)} GB: "
            f"lower {excess(kind, indexer, memory // (BYTES * copies))}."
        )


def excess(kind: ScorerKind, indexer: Indexer | None, most: int) -> str:
    """Return the settings that make a scorer larger than ``most`` weights, with values, the largest effect first."""
    settings: list[str] = []
    weights = kind.size(indexer)
    while weights > most:
        setting, smaller = min(kind.smaller(), key=lambda choice: choice[1].size(indexer))
        if smaller.size(indexer) == weights:
            break
        settings.append(setting)
        kind, weights = smaller, smaller.size(indexer)
    return " and ".join(settings)


def machine_memory() -> int | None:
    """Return the bytes of memory of this machine or container; None if the system does not say."""
    try:
        limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    except (AttributeError, ValueError, OSError):  # no POSIX
        return None
    for path in map(Path, CONTAINER_LIMITS):
        with suppress(OSError, ValueError):  # no such file, or "max"
            limits.append(int(path.read_text()))
    return min(limits)


def _amount(number: float) -> str:
    return f"{number:,.1f}" if number < 1000 else f"{number:,.0f}" if number < 1e9 else f"{number:.1e}"
