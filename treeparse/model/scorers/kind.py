"""The interface that a parser needs from a scorer, by its settings: features, module, size, and the memory it needs."""

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self

from treeparse.data.features.indexer import Indexer
from treeparse.data.features.words import Features
from treeparse.data.vectors.files import WordVectors
from treeparse.errors import TreeparseError
from treeparse.model.config import ParserConfig, ScorerConfig
from treeparse.model.encoders import encoder_kind
from treeparse.model.encoders.kind import EncoderKind
from treeparse.model.scorers.scorer import EncoderScorer, Scorer
from treeparse.sentence import Sentence

BYTES = 4  # of a weight, in float32
TRAINING_COPIES = 4  # the weights, their gradient, and Adam's two averages
CONTAINER_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


@dataclass(frozen=True)
class ScorerKind(ABC):
    """A scorer as the settings of a parser describe it; one subclass for each kind, listed in ``model.scorers``.

    A new parser comes from `completed`, `features`, `module` and `initialise`, in this order; a saved one from
    `restored` and `module` alone.
    """

    settings: ClassVar[type[ScorerConfig]]  # the class of ``config.scorer``
    config: ParserConfig

    @classmethod
    def of(cls, config: ParserConfig) -> Self:
        """Return the scorer that the settings describe."""
        return cls(config)

    @property
    @abstractmethod
    def name(self) -> str:
        """The name by which a config chooses the scorer."""

    @property
    @abstractmethod
    def description(self) -> str:
        """The parts of the parser, for a model card: "an encoder (bilstm) under biaffine scores"."""

    @property
    @abstractmethod
    def reader(self) -> str:
        """The name of the part that decides which features are read: the encoder, for a scorer that has one."""

    @abstractmethod
    def completed(self, vectors: WordVectors | None) -> Self:
        """Return the kind with the settings that follow from the data; raise if it does not read the vectors."""

    @abstractmethod
    def features(self, sentences: Sequence[Sentence], vectors: WordVectors | None) -> Features:
        """Return the features that the scorer reads, with the vocabularies of these training sentences."""

    @abstractmethod
    def extended(self, features: Features, sentences: Sequence[Sentence]) -> Features:
        """Return the features of an earlier training, all ids unchanged, with new ids for new items appended."""

    @abstractmethod
    def restored(self, data: dict[str, Any]) -> Features:
        """Return the features from their ``to_json``. Raises an error of any class for other data."""

    @abstractmethod
    def module(self, indexer: Indexer) -> Scorer:
        """Return the scorer with random weights."""

    @abstractmethod
    def initialise(self, module: Scorer, vectors: WordVectors | None) -> None:
        """Set the pretrained weights of a new scorer."""

    @abstractmethod
    def size(self, indexer: Indexer | None) -> int:
        """Return the number of weights, frozen ones included; without an indexer a lower bound, for any data."""

    @abstractmethod
    def smaller(self) -> Iterator[tuple[str, Self]]:
        """Yield each setting that makes the scorer larger, as text with its value, and the kind with it lowered."""

    @abstractmethod
    def continuing(self, earlier: ParserConfig) -> ParserConfig:
        """Return the settings for a training that starts from a model of the settings ``earlier``."""

    @abstractmethod
    def merged(self) -> ParserConfig:
        """Return the settings of a scorer that has the module's ``merged_weights``: those that are saved."""

    @abstractmethod
    def shaping(self) -> Mapping[str, Any]:
        """Return the settings that decide the shapes or the meaning of weights, by the names of their options."""


@dataclass(frozen=True)
class EncoderScorerKind(ScorerKind):
    """A scorer over the encoder of ``config.encoder``, which decides the features."""

    encoder: EncoderKind[Any]

    @classmethod
    def of(cls, config: ParserConfig) -> Self:
        return cls(config, encoder_kind(config.encoder))

    @property
    def reader(self) -> str:
        return self.encoder.name

    def completed(self, vectors: WordVectors | None) -> Self:
        encoder = self.encoder.completed(vectors)
        return replace(self, config=replace(self.config, encoder=encoder.config), encoder=encoder)

    def features(self, sentences: Sequence[Sentence], vectors: WordVectors | None) -> Features:
        return self.encoder.features(sentences, vectors)

    def extended(self, features: Features, sentences: Sequence[Sentence]) -> Features:
        return self.encoder.extended(features, sentences)

    def restored(self, data: dict[str, Any]) -> Features:
        return self.encoder.restored(data)

    def initialise(self, module: Scorer, vectors: WordVectors | None) -> None:
        assert isinstance(module, EncoderScorer)
        self.encoder.initialise(module.encoder, vectors)

    def smaller(self) -> Iterator[tuple[str, Self]]:
        for setting, encoder in self.encoder.smaller():
            yield setting, self.of(replace(self.config, encoder=encoder))

    def continuing(self, earlier: ParserConfig) -> ParserConfig:
        return replace(self.config, encoder=self.encoder.continuing(earlier.encoder))

    def merged(self) -> ParserConfig:
        return replace(self.config, encoder=self.encoder.merged())

    def shaping(self) -> Mapping[str, Any]:
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
