"""Custom encoders: a class in a user's module, named by its path, with its settings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from treeparse.data.features.words import Features, LexicalFeatures
from treeparse.data.vectors.files import WordVectors
from treeparse.errors import TreeparseError
from treeparse.model.class_path import ClassPathConfig
from treeparse.model.encoders.kind import EncoderKind
from treeparse.nn import Encoder, EncoderConfig
from treeparse.sentence import Sentence

READING = ("min_count", "tags")  # settings of an encoder that are also arguments of `LexicalFeatures`


class OwnEncoder(Encoder):
    """The base of a custom encoder: a class at the top level of a module that can be imported.

    ``__init__`` takes ``features``, the features of the words, and then the settings: typed arguments with plain values
    (numbers, text, lists of them). A config names the class by ``model.encoder.class_path`` and gives the settings as
    ``init_args``; both are saved with the model. Loading a model imports nothing: import the class before, or name its
    module by ``--import`` in commands.

    The features are `LexicalFeatures`, with the settings ``min_count`` and ``tags`` if the class has them. Override
    `read` and `restore` for other features.
    """

    @classmethod
    def read(cls, sentences: Sequence[Sentence], settings: Mapping[str, Any]) -> Features:
        """Return the features, with the vocabularies of the training sentences."""
        return LexicalFeatures.build(sentences, **_reading(settings))

    @classmethod
    def restore(cls, data: dict[str, Any]) -> Features:
        """Return the features from the result of their ``to_json``."""
        return LexicalFeatures.from_json(data)


@dataclass(frozen=True)
class OwnEncoderConfig(ClassPathConfig, EncoderConfig):
    """A custom encoder, a subclass of `OwnEncoder`, and its settings."""

    base = OwnEncoder
    part = "encoder"
    supplied: ClassVar[tuple[str, ...]] = ("features",)


@dataclass(frozen=True)
class CustomEncoderKind(EncoderKind[OwnEncoderConfig]):
    """The kind of a custom encoder."""

    settings = OwnEncoderConfig

    @property
    def encoder(self) -> type[OwnEncoder]:
        """The encoder's class."""
        return self.config.find_class(self.config.class_path)

    @property
    def name(self) -> str:
        return self.config.class_path

    def features(self, sentences: Sequence[Sentence], vectors: WordVectors | None) -> Features:
        return self.encoder.read(sentences, self.config.init_args)

    def extended(self, features: Features, sentences: Sequence[Sentence]) -> Features:
        reading = _reading(self.config.init_args)
        reading.pop("tags", None)  # the model keeps its own
        return features.extended(sentences, **reading)

    def restored(self, data: dict[str, Any]) -> Features:
        return self.encoder.restore(data)

    def module(self, features: Features) -> Encoder:
        module = self.encoder(features, **self.config.init_args)  # pyright: ignore[reportCallIssue]
        if not isinstance(getattr(module, "output_size", None), int):
            raise TreeparseError(
                f"{self.name} sets no output_size: set it to the size of the encoder's vectors, an integer."
            )
        return module

    def shaping(self) -> Mapping[str, Any]:
        return self.config.shaping()


def _reading(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {name: settings[name] for name in READING if name in settings}
