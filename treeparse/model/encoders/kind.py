"""What the parser asks of an encoder: how it reads sentences, its module and its size, all by its settings."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Generic, NamedTuple, Self, TypeVar

from treeparse.data.features.words import Features
from treeparse.data.vectors.files import WordVectors
from treeparse.errors import TreeparseError
from treeparse.names import TAGS
from treeparse.nn import Encoder, EncoderConfig
from treeparse.sentence import Sentence

C = TypeVar("C", bound=EncoderConfig)
SMALLEST: Mapping[str, int] = {name: 1 for name in ("words", "characters", "vectors", *TAGS)}  # vocabularies


class EncoderSize(NamedTuple):
    """The number of weights of an encoder, frozen ones included, and the size of its vectors."""

    weights: int
    output_size: int


@dataclass(frozen=True)
class EncoderKind(ABC, Generic[C]):
    """An encoder as its settings describe it; one subclass for each kind, entered in ``treeparse.model.encoders``.

    A new parser comes from `completed`, `features`, `module` and `initialise`, in this order; a saved one from
    `restored` and `module` alone.
    """

    settings: ClassVar[type[Any]]  # the class of ``config``
    config: C

    @property
    @abstractmethod
    def name(self) -> str:
        """By which a config chooses the encoder."""

    def completed(self, vectors: WordVectors | None) -> Self:
        """With what follows from the data in the settings; raises where the encoder has no use for the vectors."""
        if vectors is not None:
            raise TreeparseError(f"The encoder {self.name} reads no pretrained vectors: leave out data.vectors.")
        return self

    @abstractmethod
    def features(self, sentences: Sequence[Sentence], vectors: WordVectors | None) -> Features:
        """What it reads of sentences, with the vocabularies of these, of training."""

    @abstractmethod
    def extended(self, features: Features, sentences: Sequence[Sentence]) -> Features:
        """Features of an earlier training, every id as it is, with what is new in these sentences behind."""

    @abstractmethod
    def restored(self, data: dict[str, Any]) -> Features:
        """The features whose ``to_json`` is given. Raises any error where it is not."""

    @abstractmethod
    def module(self, features: Features) -> Encoder:
        """The encoder, with weights that are drawn."""

    def initialise(self, module: Encoder, vectors: WordVectors | None) -> None:
        """Give a new encoder those of its weights that are not drawn: pretrained ones."""

    @abstractmethod
    def size(self, features: Features | None) -> EncoderSize:
        """The size of `module`'s result; without features the least that it can be."""

    def smaller(self) -> Iterator[tuple[str, C]]:
        """The settings that make the encoder larger, with values, as text, and all settings with this one lowered."""
        yield from ()

    def continuing(self, earlier: C) -> C:
        """The settings where training starts from a model of the settings ``earlier``."""
        return self.config

    def merged(self) -> C:
        """The settings of an encoder that has the module's ``merged_weights``: those that are saved."""
        return self.config

    def shaping(self) -> Mapping[str, Any]:
        """The settings on which the weights' shapes or meaning depend, as plain data by the names of their options."""
        return asdict(self.config)
