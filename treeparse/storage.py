"""A model's folder: ``config.json``, ``vocabulary.json`` and ``model.safetensors``; plain data, nothing that runs."""

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from treeparse.core import TreeparseError
from treeparse.data.files import atomic_folder

CONFIG, VOCABULARY, WEIGHTS = "config.json", "vocabulary.json", "model.safetensors"
FORMAT = 1

T = TypeVar("T")


def write_model(
    directory: str | Path, config: dict[str, Any], vocabulary: dict[str, Any], weights: Mapping[str, Tensor]
) -> None:
    """Write the three files, all of them or none."""
    with atomic_folder(directory) as folder:
        _write_json(folder / CONFIG, {"format": FORMAT, **config}, indent=2)
        _write_json(folder / VOCABULARY, vocabulary)
        save_file({name: tensor.detach().cpu().contiguous() for name, tensor in weights.items()}, folder / WEIGHTS)


def read_model(directory: str | Path) -> tuple[dict[str, Any], dict[str, Any], dict[str, Tensor]]:
    """The config, the vocabulary and the weights of a model folder; raises where one is missing or damaged."""
    folder = Path(directory)
    for name in (CONFIG, VOCABULARY, WEIGHTS):
        if not (folder / name).is_file():
            raise TreeparseError(f"{directory} is no model folder: it has no {name}. Give the one that training wrote.")
    config = _read_json(folder / CONFIG)
    if config.pop("format", None) != FORMAT:
        raise TreeparseError(f"{folder / CONFIG} is of another format than {FORMAT}, the one this version reads.")
    try:
        return config, _read_json(folder / VOCABULARY), load_file(folder / WEIGHTS)
    except SafetensorError as error:
        raise TreeparseError(f"{folder / WEIGHTS} is damaged ({error}): copy the model again.") from error


def from_plain(kind: type[T], data: Any, where: str) -> T:
    """The frozen dataclass ``kind``, nested ones included, from JSON's plain data; every field must be there."""
    if not isinstance(data, dict):
        raise TreeparseError(f"{where} should hold a mapping with the settings of {kind.__name__}, but holds {data!r}.")
    types = get_type_hints(kind)
    wanted = {field.name for field in fields(kind)}  # type: ignore[arg-type]
    if wanted != data.keys():
        odd = ", ".join(sorted(wanted ^ data.keys()))
        raise TreeparseError(f"{where} does not fit this version: these settings are missing or not known: {odd}.")
    return kind(**{name: _convert(types[name], value, f"{where}, {name}") for name, value in data.items()})


def _convert(kind: Any, value: Any, where: str) -> Any:
    if is_dataclass(kind):
        return from_plain(kind, value, where)  # type: ignore[type-var]
    return tuple(value) if isinstance(value, list) else value


def load_weights(module: nn.Module, weights: Mapping[str, Tensor], where: str) -> None:
    """Load weights that fit the module exactly: every name, every shape."""
    own = module.state_dict()
    odd = sorted(own.keys() ^ weights.keys())
    odd += [name for name, tensor in weights.items() if name in own and own[name].shape != tensor.shape]
    if odd:
        names = ", ".join(odd[:5]) + (", ..." if len(odd) > 5 else "")
        raise TreeparseError(
            f"The weights in {where} do not fit its config, see {names}: the files are not of one model."
        )
    module.load_state_dict(dict(weights))


def _write_json(path: Path, data: Any, indent: int | None = None) -> None:
    path.write_text(json.dumps(data, ensure_ascii=False, indent=indent) + "\n", encoding="utf-8")


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except ValueError as error:
        raise TreeparseError(f"{path} is damaged ({error}): copy the model again.") from error
