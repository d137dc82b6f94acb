"""Build models of the library transformers from plain data, and add low-rank adapters (Hu et al. 2022) to them.

Adapters are those of the library peft, which only this module imports. In a model with adapters, peft renames the
pretrained weights of the adapted layers.
"""

import inspect
import json
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from typing import Any

from torch import Tensor, nn

from treeparse.errors import TreeparseError, did_you_mean

from .encoder_config import LARGEST, MOST_LAYERS

# Settings of a model that do not concern its architecture.
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
# Settings by which an architecture could load foreign code or other kinds of weights.
REFUSED = re.compile(r"auto_map|.*_implementation.*|quantization_config|use_kernels|kernel_config|_.*")
COUNTED = re.compile(r"(num|n)_.*(layer|expert|block|group|head).*|.*layers|.*depth.*")  # counts of modules to build
DEFAULT_LIMIT = 512  # subwords, for a model without a limit
UNLIMITED = 10**6
INNER = ".base_layer."  # in peft's name of a pretrained weight


def library() -> Any:
    """The library transformers, which takes seconds to load and which parsers without a transformer do not need."""
    import transformers

    return transformers


def architecture_of(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the architecture in a model's ``config.json``, with every default written out.

    Writing them out protects a model from other defaults in a later version of the library. Raises ``TreeparseError``
    for a model type that the library does not have, and for a model that needs custom code.
    """
    if "auto_map" in config:
        raise TreeparseError("it needs custom code (auto_map), which treeparse does not run")
    full = config_of(config).to_dict()
    return {name: value for name, value in full.items() if name not in UNUSED and not name.startswith("_")}


def build_transformer(architecture: Mapping[str, Any]) -> nn.Module:
    """Build a model of this architecture with random weights in float32.

    Raises ``TreeparseError`` for an invalid architecture.
    """
    config = config_of(architecture)
    config.use_cache = False  # the cache serves text generation only
    with quiet(), library_faults(_invalid_architecture("does not build a model")):
        return library().AutoModel.from_config(config, **model_arguments(config)).float()


def config_of(architecture: Mapping[str, Any]) -> Any:
    """Return the library's config object of an architecture; raise ``TreeparseError`` for an invalid one."""
    transformers, settings = library(), dict(architecture)
    name = settings.pop("model_type", None)
    if not isinstance(name, str) or name not in transformers.CONFIG_MAPPING:
        known = "" if not isinstance(name, str) else did_you_mean(name, transformers.CONFIG_MAPPING.keys())
        raise TreeparseError(f"its model_type must be one that the library transformers has, got {name!r:.100}{known}")
    with quiet(), library_faults(_invalid_architecture("has invalid settings")):
        _check_types(settings, transformers.CONFIG_MAPPING[name]().to_dict())
        config = transformers.AutoConfig.for_model(name, **settings)
    tasks = transformers.MODEL_FOR_MASKED_LM_MAPPING, transformers.MODEL_FOR_CAUSAL_LM_MAPPING
    of_text = any(type(config) in models for models in tasks)
    sizes = all(type(getattr(config, size, None)) is int for size in ("hidden_size", "vocab_size", "num_hidden_layers"))
    if not of_text or not sizes or config.is_encoder_decoder or type(config) not in transformers.MODEL_MAPPING:
        raise TreeparseError(f"models of type {name} do not encode text alone: use a type such as bert or xlm-roberta")
    return config


def _check_types(settings: Mapping[str, Any], defaults: Mapping[str, Any]) -> None:
    """Raise for settings that are not of the type of the library's default, where that is a number or text.

    The library checks few types, and others fail only where a model computes.
    """
    for name, value in settings.items():
        kind = type(defaults.get(name))
        if kind in (int, float) and (type(value) in (str, bool, dict) or (kind is int and type(value) is float)):
            raise TypeError(f"{name} must be a number of type {kind.__name__}, got {value!r:.40}")
        if kind is str and value is not None and type(value) is not str:
            raise TypeError(f"{name} must be text, got {value!r:.40}")


def model_arguments(config: Any) -> dict[str, Any]:
    """Return the arguments that build a model of this config without a pooler, which a parser does not use."""
    model_class: Any = library().MODEL_MAPPING[type(config)]
    model_class = model_class[0] if isinstance(model_class, tuple) else model_class
    return {"add_pooling_layer": False} if "add_pooling_layer" in inspect.signature(model_class).parameters else {}


def most_subwords(model: nn.Module) -> int:
    """Return the largest number of subwords that the model reads at once, special ones included."""
    for name, table in model.named_modules():
        if name.rpartition(".")[2] == "position_embeddings" and isinstance(table, nn.Embedding):
            # If padding has a position, as in RoBERTa, no subword has that position or a lower one.
            return table.num_embeddings - (0 if table.padding_idx is None else table.padding_idx + 1)
    config: Any = model.config
    return getattr(config, "max_position_embeddings", None) or DEFAULT_LIMIT


def layer_depths(model: nn.Module) -> dict[str, int]:
    """Return the number of layers above each named parameter: 0 in the last layer, most in the embeddings."""
    numbers = {name: re.search(r"\.(\d+)\.", f".{name}") for name, _ in model.named_parameters()}
    layers = max((int(number[1]) + 1 for number in numbers.values() if number), default=0)
    return {
        name: layers - 1 - int(number[1]) if number else layers if "embed" in name or "wte" in name else 0
        for name, number in numbers.items()
    }


def checkpoint_layers(model: Any) -> None:
    """Turn on gradient checkpointing; raise if the model does not support it."""
    if not model.supports_gradient_checkpointing:
        raise TreeparseError(
            "This model does not support gradient checkpointing: set encoder.gradient_checkpointing to false."
        )
    enable = getattr(model, "activation_checkpointing_enable", None) or model.gradient_checkpointing_enable
    enable({"use_reentrant": False})


@contextmanager
def quiet() -> Iterator[None]:
    """Silence the library's warnings and progress bars within this context."""
    logging = library().logging
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
    """Raise ``error_of(text)`` for an exception of any type from a library, with the text of the exception."""
    try:
        yield
    except MemoryError:
        raise
    except Exception as error:
        text = " ".join(f"{type(error).__name__}: {error}".split())
        raise error_of(f"{text:.300}") from error


def _invalid_architecture(problem: str) -> Callable[[str], TreeparseError]:
    return lambda text: TreeparseError(f"its architecture {problem} ({text})")


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


def no_adapters(problem: object) -> TreeparseError:
    """Return the error for a missing library of adapters."""
    return TreeparseError(
        f"Adapters (encoder.lora_rank) need the library peft ({problem}): pip install treeparse[lora], or set "
        "encoder.lora_rank to 0."
    )


def add_adapters(model: nn.Module, rank: int, alpha: Any, dropout: float, targets: Sequence[str]) -> None:
    """Add an adapter to each target layer and freeze all other parameters of the model.

    New adapters do not change the model's outputs. Raises ``TreeparseError`` if peft is not installed, or if the model
    has no target layer.
    """
    try:
        from peft import LoraConfig, inject_adapter_in_model
    except ImportError as error:
        raise no_adapters(error) from error
    settings = LoraConfig(r=rank, lora_alpha=alpha, lora_dropout=dropout, target_modules=list(targets) or None)
    with warnings.catch_warnings(), library_faults(_no_target(targets)):
        warnings.filterwarnings("ignore", "fan_in_fan_out is set")  # peft detects the transposed layers of GPT-2 itself
        inject_adapter_in_model(settings, model)


def _no_target(targets: Sequence[str]) -> Any:
    names = ", ".join(targets) or "the default of peft"
    return lambda text: TreeparseError(
        f"encoder.lora_targets must name layers of the model, such as query and value, got {names} ({text})."
    )


def base_weights(model: nn.Module) -> dict[str, Tensor]:
    """Return the model's weights without adapters, named as without adapters; not copies."""
    adapted = _adapted_layers(model)
    return {
        name.replace(INNER, "."): tensor
        for name, tensor in model.state_dict().items()
        if INNER in name or not _inside(name, adapted)
    }


def merged_weights(model: nn.Module) -> dict[str, Tensor]:
    """Return the weights of an equal model without adapters; new tensors for adapted layers."""
    adapted = _adapted_layers(model)
    weights = {name: tensor for name, tensor in model.state_dict().items() if not _inside(name, adapted)}
    for name, layer in adapted.items():
        merged = deepcopy(layer)
        merged.merge()
        weights |= {f"{name}.{part}": tensor for part, tensor in merged.get_base_layer().state_dict().items()}
    return weights


def _adapted_layers(model: nn.Module) -> dict[str, Any]:
    return {name: layer for name, layer in model.named_modules() if hasattr(layer, "base_layer")}


def _inside(name: str, layers: Mapping[str, Any]) -> bool:
    """Return whether a parameter belongs to one of these layers."""
    parts = name.split(".")
    return any(".".join(parts[:end]) in layers for end in range(1, len(parts)))
