"""Low-rank adapters of a transformer (Hu et al. 2022) by the library peft, which only this module imports.

In a model with adapters, peft renames the pretrained weights of the adapted layers.
"""

import warnings
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

from torch import Tensor, nn

from treeparse.errors import TreeparseError

from .huggingface import library_faults

INNER = ".base_layer."  # in peft's name of a pretrained weight


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
        weights |= {f"{name}.{own}": tensor for own, tensor in merged.get_base_layer().state_dict().items()}
    return weights


def _adapted_layers(model: nn.Module) -> dict[str, Any]:
    from peft.tuners.tuners_utils import BaseTunerLayer

    return {name: layer for name, layer in model.named_modules() if isinstance(layer, BaseTunerLayer)}


def _inside(name: str, layers: Mapping[str, Any]) -> bool:
    """Return whether a parameter belongs to one of these layers."""
    parts = name.split(".")
    return any(".".join(parts[:end]) in layers for end in range(1, len(parts)))
