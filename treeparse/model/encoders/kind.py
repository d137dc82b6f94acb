"""The interface that a parser needs from an encoder: its features and its module, by its settings."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Generic, Self, TypeVar

from treeparse.data.features.words import Features
from treeparse.data.vectors.files import WordVectors
from treeparse.errors import TreeparseError
from treeparse.nn import Encoder, EncoderConfig
from treeparse.sentence import Sentence

C = TypeVar("C", bound=EncoderConfig)


@dataclass(frozen=True)
class EncoderKind(ABC, Generic[C]):
    """An encoder as its settings describe it; one subclass for each kind, listed in ``treeparse.model.encoders``.

    A new parser comes from `completed`, `features`, `module` and `initialise`, in this order; a saved one from
    `restored` and `module` alone.
    """

    settings: ClassVar[type[Any]]  # the class of ``config``
    config: C

    @property
    @abstractmethod
    def name(self) -> str:
        """The name by which a config chooses the encoder."""

    def completed(self, vectors: WordVectors | None) -> Self:
        """Return the kind with the settings that follow from the data; raise if it does not read the vectors."""
        if vectors is not None:
            raise TreeparseError(f"The encoder {self.name} reads no pretrained vectors: leave out data.vectors.")
        return self

    @abstractmethod
    def features(self, sentences: Sequence[Sentence], vectors: WordVectors | None) -> Features:
        """Return the features that the encoder reads, with the vocabularies of these training sentences."""

    @abstractmethod
    def extended(self, features: Features, sentences: Sequence[Sentence]) -> Features:
        """Return the features of an earlier training, all ids unchanged, with new ids for new items appended."""

    @abstractmethod
    def restored(self, data: dict[str, Any]) -> Features:
        """Return the features from their ``to_json``. Raises an error of any class for other data."""

    @abstractmethod
    def module(self, features: Features) -> Encoder:
        """Return the encoder with random weights."""

    def initialise(self, module: Encoder, vectors: WordVectors | None) -> None:
        """Set the pretrained weights of a new encoder."""

    def continuing(self, earlier: C) -> C:
        """Return the settings for a training that starts from a model of the settings ``earlier``."""
        return self.config

    def merged(self) -> C:
        """Return the settings of an encoder that has the module's ``merged_weights``: those that are saved."""
        return self.config

    def shaping(self) -> Mapping[str, Any]:
        """Return the settings that decide the shapes or the meaning of weights, by the names of their options."""
        return asdict(self.config)
