"""The interface that a parser needs from a scorer, by its settings: features and module."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from treeparse.data.features.indexer import Indexer
from treeparse.data.features.words import Features
from treeparse.data.vectors.files import WordVectors
from treeparse.model.config import ParserConfig, ScorerConfig
from treeparse.model.encoders import encoder_kind
from treeparse.model.encoders.kind import EncoderKind
from treeparse.model.scorers.scorer import EncoderScorer, Scorer
from treeparse.sentence import Sentence


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

    def continuing(self, earlier: ParserConfig) -> ParserConfig:
        return replace(self.config, encoder=self.encoder.continuing(earlier.encoder))

    def merged(self) -> ParserConfig:
        return replace(self.config, encoder=self.encoder.merged())

    def shaping(self) -> Mapping[str, Any]:
        return {f"encoder.{name}": value for name, value in self.encoder.shaping().items()}
