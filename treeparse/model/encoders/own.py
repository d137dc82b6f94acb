"""Encoders of a user's own: a class in a module of theirs, named by its path, with its settings."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from treeparse.data.features.words import Features, LexicalFeatures
from treeparse.data.vectors.files import WordVectors
from treeparse.errors import TreeparseError
from treeparse.model.class_path import ClassPathConfig
from treeparse.model.encoders.kind import EncoderKind, EncoderSize
from treeparse.nn import Encoder, EncoderConfig
from treeparse.sentence import Sentence

READING = ("min_count", "tags")  # settings, where a class has them, that `LexicalFeatures` are built by


class OwnEncoder(Encoder):
    """The base of an encoder of one's own: one class, at the top of a module that can be imported.

    Its ``__init__`` takes ``features``, what the encoder reads, and behind them its settings: arguments with types, of
    plain values (numbers, text, lists of them). A config names the class by ``model.encoder.class_path`` and gives the
    settings as ``init_args``; both are saved with the model. Loading imports nothing: the program that loads the model
    has imported the class, and commands import it by ``--import``.

    What it reads are `LexicalFeatures`, by the settings ``min_count`` and ``tags`` if it has them. To read something
    else, override `read` and `restore`.
    """

    @classmethod
    def read(cls, sentences: Sequence[Sentence], settings: Mapping[str, Any]) -> Features:
        """The features, with the vocabularies of the training sentences."""
        return LexicalFeatures.build(sentences, **_reading(settings))

    @classmethod
    def restore(cls, data: dict[str, Any]) -> Features:
        """The features whose ``to_json`` is given."""
        return LexicalFeatures.from_json(data)


@dataclass(frozen=True)
class OwnEncoderConfig(ClassPathConfig, EncoderConfig):
    """A custom encoder, a subclass of `OwnEncoder`, and its settings."""

    base = OwnEncoder
    part = "encoder"
    supplied = ("features",)


@dataclass(frozen=True)
class CustomEncoderKind(EncoderKind[OwnEncoderConfig]):
    """An encoder of one's own."""

    settings = OwnEncoderConfig

    @property
    def encoder(self) -> type[OwnEncoder]:
        """The class."""
        return self.config.imported_class()

    @property
    def name(self) -> str:
        return self.config.class_path

    def features(self, sentences: Sequence[Sentence], vectors: WordVectors | None) -> Features:
        return self.encoder.read(sentences, self.config.init_args)

    def extended(self, features: Features, sentences: Sequence[Sentence]) -> Features:
        reading = _reading(self.config.init_args)
        reading.pop("tags", None)  # those that the model reads
        return features.extended(sentences, **reading)

    def restored(self, data: dict[str, Any]) -> Features:
        return self.encoder.restore(data)

    def module(self, features: Features) -> Encoder:
        module = self.encoder(features, **self.config.init_args)  # pyright: ignore[reportCallIssue]
        if not isinstance(getattr(module, "output_size", None), int):
            raise TreeparseError(f"{self.name} sets no output_size: give it the size of its vectors, a whole number.")
        return module

    def size(self, features: Features | None) -> EncoderSize:
        """As counted in a module without storage; 0 where it cannot be made so."""
        if features is None:
            return EncoderSize(0, 0)
        try:
            with torch.random.fork_rng(devices=[]), torch.device("meta"):
                module = self.module(features)
        except Exception:  # of the class's own code: what is wrong shows when it is made in earnest
            return EncoderSize(0, 0)
        return EncoderSize(sum(tensor.numel() for tensor in module.state_dict().values()), module.output_size)

    def smaller(self) -> Iterator[tuple[str, OwnEncoderConfig]]:
        return self.config.smaller()

    def shaping(self) -> Mapping[str, Any]:
        return self.config.shaping()


def _reading(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {name: settings[name] for name in READING if name in settings}
