"""The interface of encoders, and of their settings: what they read, and which module they describe."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

from torch import Tensor, nn

from treeparse.batch import Batch
from treeparse.data.columns import column_named
from treeparse.data.features.vector_files import WordVectors
from treeparse.data.features.words import Features, LexicalFeatures
from treeparse.errors import TreeparseError
from treeparse.sentence import Sentence

LARGEST = 10**9
MOST_LAYERS = 1000
MOST_WIDTHS = 32
WIDEST = 1000  # characters


def weights_with(module: nn.Module, part: str, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return a module's state dict, with ``weights`` instead of the entries whose names begin with ``part``."""
    others = {name: tensor for name, tensor in module.state_dict().items() if not name.startswith(part)}
    return others | {f"{part}{name}": tensor for name, tensor in weights.items()}


class Learner(nn.Module):
    """A module that can have adapters, learning rates of its own, and weights that start to learn late."""

    def base_weights(self) -> dict[str, Tensor]:
        """Return the weights without adapters, named as in a module without adapters; not copies."""
        return self.state_dict()

    def merged_weights(self) -> dict[str, Tensor]:
        """Return the weights of a module without adapters that computes the same: those that are saved."""
        return self.state_dict()

    def rates(self) -> Mapping[nn.Parameter, float]:
        """Return a factor of the learning rate for each parameter whose factor is not 1."""
        return {}

    def advance(self, progress: float) -> None:
        """Note the share of training steps that are done; training calls this before every step."""


class Encoder(Learner, ABC):
    """A module that computes a contextual vector for every node of a sentence, the root included.

    ``output_size`` is the vectors' size. An encoder reads ``batch.features`` and ``batch.lengths``. The vectors of a
    sentence must not depend on the other sentences of the batch, apart from rounding.
    """

    output_size: int

    @abstractmethod
    def forward(self, batch: Batch) -> Tensor:
        """Return the nodes' vectors (B, n+1, output_size), with any finite values at padding."""


@dataclass(frozen=True)
class ReaderConfig:
    """The settings of the part of a parser that reads sentences: an encoder, or a scorer without one.

    The features are `LexicalFeatures`, by the settings ``min_count`` and ``tags`` if the class has them. A subclass
    with other features overrides `start`, `extended` and `restored`.
    """

    @property
    def name(self) -> str:
        """The name of the part in messages."""
        return type(self).__name__.removesuffix("Config")

    def start(
        self, sentences: Sequence[Sentence], vectors: WordVectors | None = None
    ) -> tuple[Self, Features, Callable[[Learner], None]]:
        """Start from training sentences.

        Returns:
            the settings with those that follow from the data; the features with the vocabularies of the sentences; a
            function that sets the pretrained weights of the new module.

        Raises:
            TreeparseError: the part reads no pretrained vectors, but there are some.
        """
        if vectors is not None:
            raise TreeparseError(f"{self.name} reads no pretrained vectors: leave out data.vectors.")
        reading = {name: getattr(self, name) for name in ("min_count", "tags") if hasattr(self, name)}
        return self, LexicalFeatures.build(sentences, **reading), lambda module: None

    def extended(self, features: Features, sentences: Sequence[Sentence]) -> Features:
        """Return the features of an earlier training, all ids unchanged, with new ids for new items appended."""
        return features.extended(sentences, min_count=getattr(self, "min_count", 2))

    def restored(self, data: dict[str, Any]) -> Features:
        """Return the features from their ``to_json``. Raises an error of any class for other data."""
        return LexicalFeatures.from_json(data)

    def continuing(self, earlier: Any) -> Self:
        """Return the settings for a training that starts from a model of the settings ``earlier``, of this class."""
        return self

    def merged(self) -> Self:
        """Return the settings of a module that has the module's ``merged_weights``: those that are saved."""
        return self


@dataclass(frozen=True)
class EncoderConfig(ReaderConfig, ABC):
    """The settings of an encoder; a subclass for each encoder, a frozen dataclass at the top of a module.

    A config names the class by ``model.encoder.class_path``, and its fields by ``init_args``.
    """

    @abstractmethod
    def module(self, features: Features) -> Encoder:
        """Return the encoder with random weights."""

    def shaping(self) -> Mapping[str, Any]:
        """Return the settings that decide the shapes or the meaning of weights."""
        return asdict(self)


@dataclass(frozen=True)
class LexicalConfig(EncoderConfig):
    """The settings of an encoder that reads characters and tags.

    Attributes:
        min_count: items that training data has fewer times are unknown.
        char_size: size of the character embeddings.
        char_filters: filters of each convolution over a word's characters, 0 for no characters.
        char_widths: the number of characters that each convolution spans.
        tags: the columns that the model reads: upos, xpos, feats, one feature, as feats.Case, or one value in MISC, as
            misc.Gloss; the input of parsing must have them.
        tag_size: size of each tag embedding.
    """

    min_count: int = 2
    char_size: int = 50
    char_filters: int = 80
    char_widths: tuple[int, ...] = (2, 3, 4, 5)
    tags: tuple[str, ...] = ()
    tag_size: int = 50

    def __post_init__(self) -> None:
        for name in ("char_widths", "tags"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        check_counts(self, "min_count", "char_size", "tag_size")
        check_counts(self, "char_filters", least=0)
        _check_range("the number of encoder.char_widths", len(self.char_widths), 0, MOST_WIDTHS)
        for width in self.char_widths:
            _check_range("encoder.char_widths", width, 1, WIDEST)
        if self.char_filters and not self.char_widths:
            raise TreeparseError(
                "encoder.char_widths must not be empty: give a width, or set encoder.char_filters to 0."
            )
        for tag in self.tags:
            column_named(tag, "encoder.tags")
        if len(set(self.tags)) < len(self.tags):
            raise TreeparseError(f"encoder.tags must name a column once, got {', '.join(self.tags)}.")

    def _shaping(self, free: set[str]) -> dict[str, Any]:
        """Return all settings but those on which no weight depends."""
        free = free | (set() if self.char_filters else {"char_size", "char_widths"})
        free |= set() if self.tags else {"tag_size"}
        return {name: value for name, value in asdict(self).items() if name not in free}


def check_counts(config: object, *names: str, least: int = 1, most: int = LARGEST, section: str = "encoder.") -> None:
    """Raise for the first of these integer settings that is below ``least`` or above ``most``."""
    for name in names:
        _check_range(f"{section}{name}", getattr(config, name), least, most)


def _check_range(name: str, value: int, least: int, most: int) -> None:
    if value < least:
        raise TreeparseError(f"{name} must be at least {least}, got {value}.")
    if value > most:
        raise TreeparseError(f"{name} must be at most {most}, got {value}.")


def check_rates(config: object, *names: str, section: str = "encoder.") -> None:
    """Raise for the first of these dropout rates that is not in [0, 1)."""
    for name in names:
        if not 0 <= getattr(config, name) < 1:
            raise TreeparseError(f"{section}{name} must be from 0 to less than 1, got {getattr(config, name)}.")
