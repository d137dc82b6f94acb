"""The settings of a transformer encoder, and what a saved architecture may hold."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from treeparse.errors import TreeparseError
from treeparse.names import Tag
from treeparse.setting_fields import added_setting

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
# By these, an architecture could ask for code from elsewhere, or for weights of another sort.
REFUSED = re.compile(r"auto_map|.*_implementation.*|quantization_config|use_kernels|kernel_config|_.*")
COUNTED = re.compile(r"(num|n)_.*(layer|expert|block|group|head).*|.*layers|.*depth.*")  # how often something is built


@dataclass(frozen=True)
class TransformerConfig(EncoderConfig):
    """A pretrained transformer under the parser, over subwords; on top of it, if wanted, a BiLSTM.

    Attributes:
        type: names this kind of encoder.
        model: the folder of a model of Hugging Face's format, or the name of one on their Hub; its weights as
            safetensors.
        revision: branch, tag or commit of a model on the Hub, "" for the main branch; the commit is saved.
        architecture: the model's own settings; read from it, leave them out.
        pooling: which of a word's subwords make its vector: the first, the last, or the mean of all.
        mixed_layers: how many layers, from the last one down, are mixed by learned weights (Peters et al. 2018, §3.2);
            1 for the last one alone, 0 for all and the embeddings below them.
        layer_dropout: share of the mixed layers that are left out in training (Kondratyuk and Straka 2019, §3.3).
        window: most subwords of a window, the model's special ones included, 0 for as many as the model takes; longer
            sentences are read by several.
        overlap: most subwords that two windows share.
        dropout: dropout of the words' vectors, shared by the words of a sentence.
        frozen: whether the pretrained weights stay as they are.
        unfreeze_at: share of the training during which pretrained layers start to learn one by one, the last one first
            (Howard and Ruder 2018, §3.3); 0 for all at once.
        learning_rate_factor: learning rate of the pretrained weights as a share of the parser's.
        layer_decay: the same for each layer as a share of that of the layer above it.
        gradient_checkpointing: whether to compute layers twice instead of keeping what the gradient needs in memory.
        hidden_size: size of the BiLSTM on top in each direction, 0 for none.
        layers: number of its layers.
        lora_rank: rank of the adapters beside the pretrained weights, which alone learn of the model then (Hu et al.
            2022); 0 for none. They are part of the weights of the model that is saved.
        lora_alpha: factor of what adapters add, times the rank.
        lora_dropout: dropout of what adapters read.
        lora_targets: the ends of the names of the layers that get one; none for those usual in models of this type,
            mostly query and value.
        char_filters: filters of each convolution over a word's characters, whose result stands beside its vector; 0 for
            none.
        char_size: size of the character embeddings.
        char_widths: how many characters each convolution sees.
        tags: which of upos, xpos and feats stand beside the vector; parsing then needs them in its input.
        tag_size: size of each tag embedding.
        min_count: characters seen less often in training are unknown.
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
                raise TreeparseError(f"encoder.{name} is {value}, but must be more than 0 and at most 1.")
        self._check_adapters()
        check_spelling_and_tags(self)
        object.__setattr__(self, "architecture", checked_architecture(self.architecture))

    def _check_adapters(self) -> None:
        object.__setattr__(self, "lora_targets", several(self.lora_targets))
        check_at_least("encoder.lora_rank", self.lora_rank, 0)
        check_at_most("encoder.lora_rank", self.lora_rank, LARGEST)
        check_rate("encoder.lora_dropout", self.lora_dropout)
        if not 0 < self.lora_alpha <= LARGEST:
            raise TreeparseError(f"encoder.lora_alpha is {self.lora_alpha}, but must be more than 0.")
        if "" in self.lora_targets:
            raise TreeparseError("encoder.lora_targets names an empty layer: name the ends of names of layers.")
        if self.lora_rank and (self.frozen or self.unfreeze_at):
            other = "frozen" if self.frozen else "unfreeze_at"
            raise TreeparseError(
                f"encoder.lora_rank is {self.lora_rank}, beside which pretrained weights stay as they are and adapters "
                f"learn from the start: leave out encoder.{other}."
            )


def no_adapters(config: TransformerConfig, problem: object) -> TreeparseError:
    """The error where the library of adapters is not installed."""
    return TreeparseError(
        f"encoder.lora_rank is {config.lora_rank}, but adapters need the library peft ({problem}): install it by "
        "pip install treeparse[lora], or set encoder.lora_rank to 0."
    )


def checked_architecture(architecture: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a model as plain data; raises for any that a model of this library's does not need.

    Nothing is built by them yet, and no code of anyone's is run.
    """
    try:
        plain = json.loads(json.dumps(dict(architecture), allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise TreeparseError(f"encoder.architecture is no plain data ({error}).") from error
    for name, value in _settings(plain):
        if REFUSED.fullmatch(name):
            raise TreeparseError(
                f"encoder.architecture holds {name!r:.100}, by which a model could run code of its own or be of "
                "another form: only models that the library transformers itself has are built, as they are."
            )
        most = MOST_LAYERS if COUNTED.fullmatch(name) else LARGEST
        if type(value) is int and abs(value) > most:
            raise TreeparseError(f"encoder.architecture, {name} is {value:.0e}, but must be at most {most:,}.")
    return plain


def _settings(data: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """All names and their values, nested ones too; those in a list go by the list's name."""
    for inner, value in data.items() if isinstance(data, dict) else ((name, value) for value in data):
        yield inner, value
        if isinstance(value, dict | list):
            yield from _settings(value, inner)
