"""Low-rank adapters beside a transformer's weights (Hu et al. 2022), by the library peft, imported here only.

An adapted model has each of its own weights under its own name or, in adapted layers, under one that peft makes of it.
"""

import warnings
from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from torch import Tensor, nn

from treeparse.errors import TreeparseError

from .huggingface import library_faults
from .transformer_config import TransformerConfig, no_adapters

INNER = ".base_layer."  # in peft's name of a weight of the model's own


def add_adapters(model: nn.Module, config: TransformerConfig) -> None:
    """Put an adapter beside each target layer; of the model's parameters only those of adapters learn then.

    They change nothing until they have learnt. Raises where the library peft is missing, and where there is no target.
    """
    try:
        from peft import LoraConfig, inject_adapter_in_model
    except ImportError as error:
        raise no_adapters(config, error) from error
    alpha: Any = config.lora_alpha  # any number, whatever peft's annotation says
    settings = LoraConfig(
        r=config.lora_rank,
        lora_alpha=alpha,
        lora_dropout=config.lora_dropout,
        target_modules=list(config.lora_targets) or None,
    )
    with warnings.catch_warnings(), library_faults(_no_target(config)):
        warnings.filterwarnings("ignore", "fan_in_fan_out is set")  # it finds out by itself how GPT-2's layers lie
        inject_adapter_in_model(settings, model)


def _no_target(config: TransformerConfig) -> Any:
    targets = f"encoder.lora_targets are {', '.join(config.lora_targets)}" if config.lora_targets else "by default"
    return lambda text: TreeparseError(
        f"The model cannot have adapters, {targets} ({text}): name layers of the model, such as query and value."
    )


def base_weights(model: nn.Module) -> dict[str, Tensor]:
    """The model's own weights, by their names without adapters; copying into them changes the model's."""
    adapted = _adapted_layers(model)
    return {
        name.replace(INNER, "."): tensor
        for name, tensor in model.state_dict().items()
        if INNER in name or not _inside(name, adapted)
    }


def merged_weights(model: nn.Module) -> dict[str, Tensor]:
    """The weights of a model without adapters that computes the same; new tensors in adapted layers."""
    adapted = _adapted_layers(model)
    weights = {name: tensor for name, tensor in model.state_dict().items() if not _inside(name, adapted)}
    for name, layer in adapted.items():
        merged = deepcopy(layer)
        merged.merge()
        weights |= {f"{name}.{own}": tensor for own, tensor in merged.get_base_layer().state_dict().items()}
    return weights


def _adapted_layers(model: nn.Module) -> dict[str, Any]:
    from peft.tuners.tuners_utils import BaseTunerLayer

    return {name: layer for name, layer in model.named_modules() if isinstance(layer, BaseTunerLayer)}


def _inside(name: str, layers: Mapping[str, Any]) -> bool:
    """Whether a parameter is in one of these layers."""
    parts = name.split(".")
    return any(".".join(parts[:end]) in layers for end in range(1, len(parts)))
