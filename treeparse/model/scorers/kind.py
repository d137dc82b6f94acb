"""The interface that a parser needs from a scorer: its module and its size, by its settings."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from treeparse.data.features.indexer import Indexer
from treeparse.data.vectors.files import WordVectors
from treeparse.model.config import ParserConfig, ScorerConfig
from treeparse.model.encoders import encoder_kind
from treeparse.model.encoders.kind import EncoderKind
from treeparse.model.scorers.scorer import Scorer


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
