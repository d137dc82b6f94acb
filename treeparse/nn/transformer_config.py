"""Settings of a transformer encoder, and the check of a saved architecture."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from treeparse.errors import TreeparseError
from treeparse.names import Tag
from treeparse.upgrades import added_setting

from .config import (
    LARGEST,
    MOST_LAYERS,
    EncoderConfig,
    check_at_least,
    check_at_most,
    check_rate,
    check_spelling_and_tags,
    several,
)

Pooling = Literal["first", "mean", "last"]
LEAST_WINDOW = 8  # subwords
# Settings by which an architecture could load foreign code or other kinds of weights.
REFUSED = re.compile(r"auto_map|.*_implementation.*|quantization_config|use_kernels|kernel_config|_.*")
COUNTED = re.compile(r"(num|n)_.*(layer|expert|block|group|head).*|.*layers|.*depth.*")  # counts of modules to build


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
    lora_rank: int = added_setting(0, before=0)
    lora_alpha: float = added_setting(16.0, before=16.0)
    lora_dropout: float = added_setting(0.0, before=0.0)
    lora_targets: tuple[str, ...] = added_setting((), before=())
    char_filters: int = added_setting(0, before=0)
    char_size: int = added_setting(50, before=50)
    char_widths: tuple[int, ...] = added_setting((2, 3, 4, 5), before=(2, 3, 4, 5))
    tags: tuple[Tag, ...] = added_setting((), before=())
    tag_size: int = added_setting(50, before=50)
    min_count: int = added_setting(2, before=2)

    def __post_init__(self) -> None:
        for name in ("mixed_layers", "window", "overlap", "hidden_size"):
            check_at_least(f"encoder.{name}", getattr(self, name), 0)
        check_at_least("encoder.layers", self.layers, 1)
        for name in ("mixed_layers", "layers"):
            check_at_most(f"encoder.{name}", getattr(self, name), MOST_LAYERS)
        for name in ("window", "overlap", "hidden_size"):
            check_at_most(f"encoder.{name}", getattr(self, name), LARGEST)
        if self.window:
            check_at_least("encoder.window", self.window, LEAST_WINDOW)
        for name in ("layer_dropout", "dropout", "unfreeze_at"):
            check_rate(f"encoder.{name}", getattr(self, name))
        for name in ("learning_rate_factor", "layer_decay"):
            value = getattr(self, name)
            if not 0 < value <= 1:
                raise TreeparseError(f"encoder.{name} must be more than 0 and at most 1, got {value}.")
        self._check_adapters()
        check_spelling_and_tags(self)
        object.__setattr__(self, "architecture", checked_architecture(self.architecture))

    def _check_adapters(self) -> None:
        object.__setattr__(self, "lora_targets", several(self.lora_targets))
        check_at_least("encoder.lora_rank", self.lora_rank, 0)
        check_at_most("encoder.lora_rank", self.lora_rank, LARGEST)
        check_rate("encoder.lora_dropout", self.lora_dropout)
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
    except (TypeError, ValueError, RecursionError) as error:
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
