"""Settings of encoders, in a training config and in a model's ``config.json``."""

from dataclasses import dataclass
from typing import Any, Literal, Protocol

from treeparse.errors import TreeparseError, did_you_mean
from treeparse.names import TAGS, Tag
from treeparse.upgrades import added_setting

SIZES = ("word_size", "vector_size", "char_size", "char_filters", "tag_size", "hidden_size")
LARGEST = 10**9
MOST_LAYERS = 1000
MOST_WIDTHS = 32
WIDEST = 1000  # characters


@dataclass(frozen=True)
class EncoderConfig:
    """Base class of the settings of every encoder; ``type`` or ``class_path`` chooses the encoder."""


@dataclass(frozen=True)
class BiLSTMConfig(EncoderConfig):
    """A BiLSTM over word, character and tag embeddings (Dozat and Manning 2017).

    Attributes:
        type: the name of this kind of encoder.
        min_count: words and characters that training data has fewer times are unknown.
        word_size: size of the word embeddings.
        vector_size: size of the pretrained vectors, 0 for none; set from the vectors file.
        char_size: size of the character embeddings.
        char_filters: filters of each convolution over characters, 0 for no characters.
        char_widths: the number of characters that each convolution spans.
        tags: the columns (upos, xpos, feats) that the model reads; the input of parsing must have them.
        tag_size: size of each tag embedding.
        hidden_size: size of the LSTM in each direction.
        layers: number of LSTM layers.
        word_dropout: share of words that training replaces by the unknown word.
        embedding_dropout: dropout of the embeddings, shared by the words of a sentence.
        dropout: dropout after every LSTM layer, shared by the words of a sentence.
        recurrent_dropout: dropout of the LSTMs' recurrent weights, one mask a batch (Merity et al. 2018, §2).
    """

    type: Literal["bilstm"] = "bilstm"
    min_count: int = 2
    word_size: int = 100
    vector_size: int = 0
    char_size: int = 50
    char_filters: int = 80
    char_widths: tuple[int, ...] = (2, 3, 4, 5)
    tags: tuple[Tag, ...] = ()
    tag_size: int = 50
    hidden_size: int = 256
    layers: int = 2
    word_dropout: float = 0.2
    embedding_dropout: float = 0.33
    dropout: float = 0.33
    recurrent_dropout: float = added_setting(0.0, before=0.0)

    def __post_init__(self) -> None:
        check_spelling_and_tags(self)
        for name in ("word_size", "hidden_size", "layers"):
            check_at_least(f"encoder.{name}", getattr(self, name), 1)
        check_at_least("encoder.vector_size", self.vector_size, 0)
        for name in ("word_size", "vector_size", "hidden_size"):
            check_at_most(f"encoder.{name}", getattr(self, name), LARGEST)
        for name in ("word_dropout", "embedding_dropout", "dropout", "recurrent_dropout"):
            check_rate(f"encoder.{name}", getattr(self, name))
        check_at_most("encoder.layers", self.layers, MOST_LAYERS)


class SpellingAndTags(Protocol):
    """Settings of an encoder that reads characters and tags; `BiLSTMConfig` describes each."""

    @property
    def min_count(self) -> int: ...
    @property
    def char_size(self) -> int: ...
    @property
    def char_filters(self) -> int: ...
    @property
    def char_widths(self) -> tuple[int, ...]: ...
    @property
    def tags(self) -> tuple[Tag, ...]: ...
    @property
    def tag_size(self) -> int: ...


def check_spelling_and_tags(config: SpellingAndTags) -> None:
    """Check the settings of characters and tags and make lists tuples; call this from ``__post_init__``."""
    for name in ("char_widths", "tags"):
        object.__setattr__(config, name, several(getattr(config, name)))
    for name in ("min_count", "char_size", "tag_size"):
        check_at_least(f"encoder.{name}", getattr(config, name), 1)
    check_at_least("encoder.char_filters", config.char_filters, 0)
    for name in ("char_size", "char_filters", "tag_size", "min_count"):
        check_at_most(f"encoder.{name}", getattr(config, name), LARGEST)
    check_at_most("the number of encoder.char_widths", len(config.char_widths), MOST_WIDTHS)
    for width in config.char_widths:
        check_at_least("encoder.char_widths", width, 1)
        check_at_most("encoder.char_widths", width, WIDEST)
    if config.char_filters and not config.char_widths:
        raise TreeparseError("encoder.char_widths must not be empty: give a width, or set encoder.char_filters to 0.")
    for tag in config.tags:
        if tag not in TAGS:
            rule = f"encoder.tags must be from upos, xpos and feats, got {tag!r}"
            raise TreeparseError(rule + (did_you_mean(str(tag), TAGS) or "."))
    if len(set(config.tags)) < len(config.tags):
        raise TreeparseError(f"encoder.tags must name a column once, got {', '.join(config.tags)}.")


def check_at_least(name: str, value: int, least: int) -> None:
    """Raise for a setting that is too small."""
    if value < least:
        raise TreeparseError(f"{name} must be at least {least}, got {value}.")


def check_at_most(name: str, value: int, most: int) -> None:
    """Raise for a setting that is too large."""
    if value > most:
        raise TreeparseError(f"{name} must be at most {most}, got {value}.")


def several(values: Any) -> tuple[Any, ...]:
    """Return the values of a setting as a tuple, from a single value, text with commas or a list."""
    if isinstance(values, str):
        return tuple(value.strip() for value in values.split(","))
    return (values,) if isinstance(values, int) else tuple(values)


def check_rate(name: str, rate: float) -> None:
    """Raise for a dropout rate that is not in [0, 1)."""
    if not 0 <= rate < 1:
        raise TreeparseError(f"{name} must be from 0 to less than 1, got {rate}.")
