"""Transformers of the library of that name, built from plain data; it is imported here only, where one is built."""

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from torch import nn

from treeparse.errors import TreeparseError, did_you_mean

# Settings of a model that say nothing of its architecture, or only how its outputs are wrapped.
UNUSED = {
    "architectures",
    "dtype",
    "gradient_checkpointing",
    "id2label",
    "label2id",
    "output_attentions",
    "output_hidden_states",
    "problem_type",
    "return_dict",
    "torch_dtype",
    "transformers_version",
    "use_cache",
}
DEFAULT_LIMIT = 512  # subwords, where a model says nothing
UNLIMITED = 10**6


def architecture_of(config: Mapping[str, Any]) -> dict[str, Any]:
    """The architecture in a model's ``config.json``, every default written out, so that later ones change nothing.

    Raises a ``TreeparseError`` for a model whose type the library does not have, and for code of its own.
    """
    if "auto_map" in config:
        raise TreeparseError("it needs code of its own (auto_map), which is not run")
    full = config_of(config).to_dict()
    return {name: value for name, value in full.items() if name not in UNUSED and not name.startswith("_")}


def build_transformer(architecture: Mapping[str, Any]) -> nn.Module:
    """The model of an architecture, with weights that are drawn, in single precision.

    Raises a ``TreeparseError`` where the architecture is none.
    """
    from transformers import AutoModel

    config = config_of(architecture)
    config.use_cache = False  # of what a text generator keeps for its next word
    with quiet(), library_faults(_no_architecture("makes no model")):
        return AutoModel.from_config(config, **model_arguments(config)).float()


def config_of(architecture: Mapping[str, Any]) -> Any:
    """The library's own object of an architecture; raises a ``TreeparseError`` where there is none."""
    from transformers import (
        CONFIG_MAPPING,
        MODEL_FOR_CAUSAL_LM_MAPPING,
        MODEL_FOR_MASKED_LM_MAPPING,
        MODEL_MAPPING,
        AutoConfig,
    )

    settings = dict(architecture)
    name = settings.pop("model_type", None)
    if not isinstance(name, str) or name not in CONFIG_MAPPING:
        known = "" if not isinstance(name, str) else did_you_mean(name, CONFIG_MAPPING.keys())
        raise TreeparseError(f"its model_type is {name!r:.100}, which the library transformers does not have{known}")
    with quiet(), library_faults(_no_architecture("has settings that make no model")):
        config = AutoConfig.for_model(name, **settings)
    of_text = any(type(config) in models for models in (MODEL_FOR_MASKED_LM_MAPPING, MODEL_FOR_CAUSAL_LM_MAPPING))
    sizes = all(type(getattr(config, size, None)) is int for size in ("hidden_size", "vocab_size", "num_hidden_layers"))
    if not of_text or not sizes or config.is_encoder_decoder or type(config) not in MODEL_MAPPING:
        raise TreeparseError(f"models of type {name} are no encoders of text alone: take one like bert or xlm-roberta")
    return config


def model_arguments(config: Any) -> dict[str, Any]:
    """What to build a model of this config with: without the pooler on top, of which no parser has a use."""
    from transformers import MODEL_MAPPING

    made: Any = MODEL_MAPPING[type(config)]
    made = made[0] if isinstance(made, tuple) else made
    return {"add_pooling_layer": False} if "add_pooling_layer" in inspect.signature(made).parameters else {}


def most_subwords(model: nn.Module) -> int:
    """How many subwords the model reads at once, special ones included."""
    for name, table in model.named_modules():
        if name.rpartition(".")[2] == "position_embeddings" and isinstance(table, nn.Embedding):
            # Where one position is that of padding, as in RoBERTa, those up to it stand for no subword.
            return table.num_embeddings - (0 if table.padding_idx is None else table.padding_idx + 1)
    config: Any = model.config
    return getattr(config, "max_position_embeddings", None) or DEFAULT_LIMIT


def layer_depths(model: nn.Module) -> dict[str, int]:
    """How many layers are above each parameter, by its name: 0 in the last one, most in the embeddings."""
    numbers = {name: re.search(r"\.(\d+)\.", f".{name}") for name, _ in model.named_parameters()}
    layers = max((int(number[1]) + 1 for number in numbers.values() if number), default=0)
    return {
        name: layers - 1 - int(number[1]) if number else layers if "embed" in name or "wte" in name else 0
        for name, number in numbers.items()
    }


def checkpoint_layers(model: Any) -> None:
    """Let a model compute its layers again for the gradient, instead of keeping what it needs; raises if it cannot."""
    if not model.supports_gradient_checkpointing:
        raise TreeparseError("The model cannot compute its layers twice: set encoder.gradient_checkpointing to false.")
    enable = getattr(model, "activation_checkpointing_enable", None) or model.gradient_checkpointing_enable
    enable({"use_reentrant": False})


@contextmanager
def quiet() -> Iterator[None]:
    """Without the library's remarks and bars, which come back behind it."""
    from transformers.utils import logging

    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


@contextmanager
def library_faults(error_of: Callable[[str], TreeparseError]) -> Iterator[None]:
    """What a library finds wrong, in as many kinds of error as there are mistakes, as the error made of its text."""
    try:
        yield
    except MemoryError:
        raise
    except Exception as error:
        text = " ".join(f"{type(error).__name__}: {error}".split())
        raise error_of(f"{text:.300}") from error


def _no_architecture(problem: str) -> Callable[[str], TreeparseError]:
    return lambda text: TreeparseError(f"its architecture {problem} ({text})")
