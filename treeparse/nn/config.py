"""Settings of encoders, in a training config and in a model's config, and the check of a saved architecture."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from treeparse.errors import TreeparseError, did_you_mean
from treeparse.names import TAGS, Tag

LARGEST = 10**9
MOST_LAYERS = 1000
MOST_WIDTHS = 32
WIDEST = 1000  # characters
LEAST_WINDOW = 8  # subwords
Pooling = Literal["first", "mean", "last"]
# Settings by which an architecture could load foreign code or other kinds of weights.
REFUSED = re.compile(r"auto_map|.*_implementation.*|quantization_config|use_kernels|kernel_config|_.*")
COUNTED = re.compile(r"(num|n)_.*(layer|expert|block|group|head).*|.*layers|.*depth.*")  # counts of modules to build


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
    recurrent_dropout: float = 0.0

    def __post_init__(self) -> None:
        _check_spelling_and_tags(self)
        check_counts(self, "word_size", "hidden_size")
        check_counts(self, "vector_size", least=0)
        check_counts(self, "layers", most=MOST_LAYERS)
        check_rates(self, "word_dropout", "embedding_dropout", "dropout", "recurrent_dropout")


@dataclass(frozen=True)
class TransformerConfig(EncoderConfig):
    """A pretrained transformer over subwords and, optionally, a BiLSTM over it.

    Attributes:
        type: the name of this kind of encoder.
        model: a folder in Hugging Face's format or the name of a model on their Hub; its weights must be safetensors.
        revision: branch, tag or commit of a model on the Hub, "" for the main branch; the commit is saved.
        architecture: the model's settings; leave them out, because they are read from the model.
        pooling: the subwords that make a word's vector: the first, the last, or the mean of all.
        mixed_layers: the number of layers, from the last one down, that learned weights mix (Peters et al. 2018, §3.2);
            1 for the last one alone, 0 for all layers and the embeddings.
        layer_dropout: share of the mixed layers that training drops (Kondratyuk and Straka 2019, §3.3).
        window: largest number of subwords in a window, special ones included, 0 for the model's limit; longer sentences
            are split into windows.
        overlap: largest number of subwords that two windows share.
        dropout: dropout of the words' vectors, shared by the words of a sentence.
        frozen: whether training leaves the pretrained weights unchanged.
        unfreeze_at: share of training after which all pretrained layers learn; they start one by one, the last one
            first (Howard and Ruder 2018, §3.3); 0 for all at once.
        learning_rate_factor: learning rate of the pretrained weights as a share of the parser's.
        layer_decay: learning rate of each layer as a share of the rate of the layer above it.
        gradient_checkpointing: whether to compute layers twice instead of storing what the gradient needs.
        hidden_size: size of the BiLSTM on top in each direction, 0 for none.
        layers: number of BiLSTM layers.
        lora_rank: rank of the low-rank adapters, 0 for none (Hu et al. 2022). With adapters the pretrained weights do
            not learn. A saved model has the adapters merged into its weights.
        lora_alpha: factor of the adapters' outputs, times the rank.
        lora_dropout: dropout of the adapters' inputs.
        lora_targets: ends of the names of the layers that get adapters; empty for peft's default for this type of
            model, mostly query and value.
        char_filters: filters of each convolution over a word's characters, concatenated with its vector; 0 for none.
        char_size: size of the character embeddings.
        char_widths: the number of characters that each convolution spans.
        tags: columns (upos, xpos, feats) whose embeddings are concatenated with a word's vector; the input of parsing
            must have them.
        tag_size: size of each tag embedding.
        min_count: characters that training data has fewer times are unknown.
    """

    type: Literal["transformer"] = "transformer"
    model: str = ""
    revision: str = ""
    architecture: Mapping[str, Any] = field(default_factory=dict)
    pooling: Pooling = "mean"
    mixed_layers: int = 1
    layer_dropout: float = 0.0
    window: int = 0
    overlap: int = 128
    dropout: float = 0.1
    frozen: bool = False
    unfreeze_at: float = 0.0
    learning_rate_factor: float = 0.05
    layer_decay: float = 1.0
    gradient_checkpointing: bool = False
    hidden_size: int = 0
    layers: int = 1
    lora_rank: int = 0
    lora_alpha: float = 16.0
    lora_dropout: float = 0.0
    lora_targets: tuple[str, ...] = ()
    char_filters: int = 0
    char_size: int = 50
    char_widths: tuple[int, ...] = (2, 3, 4, 5)
    tags: tuple[Tag, ...] = ()
    tag_size: int = 50
    min_count: int = 2

    def __post_init__(self) -> None:
        check_counts(self, "window", "overlap", "hidden_size", "lora_rank", least=0)
        check_counts(self, "mixed_layers", least=0, most=MOST_LAYERS)
        check_counts(self, "layers", most=MOST_LAYERS)
        if self.window:
            check_counts(self, "window", least=LEAST_WINDOW)
        check_rates(self, "layer_dropout", "dropout", "unfreeze_at", "lora_dropout")
        for name in ("learning_rate_factor", "layer_decay"):
            value = getattr(self, name)
            if not 0 < value <= 1:
                raise TreeparseError(f"encoder.{name} must be more than 0 and at most 1, got {value}.")
        self._check_adapters()
        _check_spelling_and_tags(self)
        object.__setattr__(self, "architecture", checked_architecture(self.architecture))

    def _check_adapters(self) -> None:
        object.__setattr__(self, "lora_targets", _several(self.lora_targets))
        if not 0 < self.lora_alpha <= LARGEST:
            raise TreeparseError(
                f"encoder.lora_alpha must be more than 0 and at most {LARGEST:,}, got {self.lora_alpha}."
            )
        if "" in self.lora_targets:
            raise TreeparseError("encoder.lora_targets must be ends of names of layers, got an empty one.")
        if self.lora_rank and (self.frozen or self.unfreeze_at):
            other = "frozen" if self.frozen else "unfreeze_at"
            raise TreeparseError(
                f"encoder.{other} does not go with adapters (encoder.lora_rank is {self.lora_rank}), because "
                "pretrained weights do not learn with adapters, and adapters learn from the start: leave out "
                f"encoder.{other}."
            )


SpellingAndTags: TypeAlias = BiLSTMConfig | TransformerConfig
"""Settings of an encoder that reads characters and tags."""


def _check_spelling_and_tags(config: SpellingAndTags) -> None:
    """Check the settings of characters and tags and make lists tuples."""
    for name in ("char_widths", "tags"):
        object.__setattr__(config, name, _several(getattr(config, name)))
    check_counts(config, "min_count", "char_size", "tag_size")
    check_counts(config, "char_filters", least=0)
    _check_range("the number of encoder.char_widths", len(config.char_widths), 0, MOST_WIDTHS)
    for width in config.char_widths:
        _check_range("encoder.char_widths", width, 1, WIDEST)
    if config.char_filters and not config.char_widths:
        raise TreeparseError("encoder.char_widths must not be empty: give a width, or set encoder.char_filters to 0.")
    for tag in config.tags:
        if tag not in TAGS:
            rule = f"encoder.tags must be from upos, xpos and feats, got {tag!r}"
            raise TreeparseError(rule + (did_you_mean(str(tag), TAGS) or "."))
    if len(set(config.tags)) < len(config.tags):
        raise TreeparseError(f"encoder.tags must name a column once, got {', '.join(config.tags)}.")


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


def _several(values: Any) -> tuple[Any, ...]:
    """Return the values of a setting as a tuple, from a single value, text with commas or a list."""
    if isinstance(values, str):
        return tuple(value.strip() for value in values.split(","))
    return (values,) if isinstance(values, int) else tuple(values)


def no_adapters(config: TransformerConfig, problem: object) -> TreeparseError:
    """Return the error for a missing library of adapters."""
    return TreeparseError(
        f"Adapters (encoder.lora_rank is {config.lora_rank}) need the library peft ({problem}): "
        "pip install treeparse[lora], or set encoder.lora_rank to 0."
    )


def checked_architecture(architecture: Mapping[str, Any]) -> dict[str, Any]:
    """Return a model's settings as plain data; raise ``TreeparseError`` for any that could run foreign code.

    The check itself builds nothing and runs no code from the settings.
    """
    try:
        plain = json.loads(json.dumps(dict(architecture), allow_nan=False))
    except (TypeError, ValueError) as error:
        raise TreeparseError(f"encoder.architecture must be plain JSON data ({error}).") from error
    for name, value in _settings(plain):
        if REFUSED.fullmatch(name):
            raise TreeparseError(
                f"encoder.architecture must not have {name!r:.100}, which could load custom code or other kinds of "
                "weights: treeparse builds only models of the library transformers itself."
            )
        most = MOST_LAYERS if COUNTED.fullmatch(name) else LARGEST
        if type(value) is int and abs(value) > most:
            raise TreeparseError(f"encoder.architecture: {name} must be at most {most:,}, got {value:.0e}.")
    return plain


def _settings(data: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield all names and values, nested ones too; an item of a list has the list's name."""
    for inner, value in data.items() if isinstance(data, dict) else ((name, value) for value in data):
        yield inner, value
        if isinstance(value, dict | list):
            yield from _settings(value, inner)
