"""Encoders of a user's own: a class in a module of theirs, named by its path, with its settings."""

import inspect
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import torch

from treeparse.data.features.words import Features, LexicalFeatures
from treeparse.data.vectors.files import WordVectors
from treeparse.errors import TreeparseError
from treeparse.model.encoders.kind import EncoderKind
from treeparse.nn import Encoder, EncoderConfig
from treeparse.nn.size import EncoderSize
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
class OwnEncoderConfig(EncoderConfig):
    """An encoder of one's own; `of` makes it from the class. Raises where that has not been imported.

    Attributes:
        class_path: the path of its class, a subclass of `OwnEncoder`: mymodule.MyEncoder.
        init_args: its settings, plain data.
    """

    class_path: str
    init_args: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        try:
            plain = json.loads(json.dumps(dict(self.init_args), allow_nan=False))
        except (TypeError, ValueError) as error:
            raise TreeparseError(
                f"The settings of {self.class_path!r:.100} cannot be saved ({error}): numbers, text and lists can."
            ) from error
        object.__setattr__(self, "init_args", plain)
        _check_settings(imported_encoder(self.class_path), plain)

    @classmethod
    def of(cls, encoder: type[OwnEncoder], **settings: Any) -> Self:
        """The class with these settings, and with its defaults for all others.

        Raises where it does not take them, or is not at the top of a module, from which it could be imported again.
        """
        path = f"{encoder.__module__}.{encoder.__qualname__}"
        if encoder.__module__ == "__main__" or "." in encoder.__qualname__:
            raise TreeparseError(f"{path} could not be found again by a saved model: put it at the top of a module.")
        _check_settings(encoder, settings)
        _, *parameters = inspect.signature(encoder).parameters.values()
        defaults = {each.name: each.default for each in parameters if each.default is not inspect.Parameter.empty}
        return cls(path, defaults | settings)


@dataclass(frozen=True)
class Own(EncoderKind[OwnEncoderConfig]):
    """An encoder of one's own."""

    settings = OwnEncoderConfig

    @property
    def encoder(self) -> type[OwnEncoder]:
        """The class."""
        return imported_encoder(self.config.class_path)

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
        for name, value in self.config.init_args.items():
            if type(value) is int and value > 1:
                lowered = replace(self.config, init_args={**self.config.init_args, name: 1})
                yield f"encoder.init_args.{name} ({value})", lowered

    def shaping(self) -> Mapping[str, Any]:
        settings = {f"init_args.{name}": value for name, value in self.config.init_args.items()}
        return {"class_path": self.config.class_path, **settings}


def imported_encoder(class_path: str) -> type[OwnEncoder]:
    """The class of that path. Nothing is imported for it, nor run: its module must have been imported."""
    path, _, name = class_path.rpartition(".")
    module = sys.modules.get(path)
    if module is None:
        raise TreeparseError(
            f"The encoder {class_path!r:.100} is a class of a module that has not been imported, and a model's folder "
            f"has no code imported by itself. If you trust it: import {path:.100} first; in commands, "
            f"--import {path:.100}."
        )
    found = vars(module).get(name)  # not getattr, for which a module may have code
    if not (isinstance(found, type) and issubclass(found, OwnEncoder)):
        raise TreeparseError(
            f"The encoder {class_path!r:.100} is none: its module has no class of that name, derived from "
            "treeparse.model.OwnEncoder."
        )
    return found


def _check_settings(encoder: type[OwnEncoder], settings: Mapping[str, Any]) -> None:
    """Raise where a class lacks settings, or does not take them."""
    try:
        inspect.signature(encoder).bind(None, **settings)
    except TypeError as error:
        raise TreeparseError(
            f"{encoder.__module__}.{encoder.__qualname__} does not take its settings ({error}): they are the arguments "
            "of its __init__ behind features."
        ) from error


def _reading(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {name: settings[name] for name in READING if name in settings}
