"""A model's folder: ``config.json``, ``vocabulary.json`` and ``model.safetensors``; plain data, nothing that runs."""

import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from treeparse.core import TreeparseError
from treeparse.data.files import atomic_folder

CONFIG, VOCABULARY, WEIGHTS = "config.json", "vocabulary.json", "model.safetensors"
FILES = (CONFIG, VOCABULARY, WEIGHTS)
RUN_MODEL, RUN_CHECKPOINTS = "model", "checkpoints"  # folders in that of a training run
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


def model_folder(directory: str | Path) -> Path:
    """The model folder that is meant: the directory itself, or the one in it if it is the folder of a training run."""
    folder = Path(directory)
    if any((folder / name).exists() for name in FILES):
        return folder
    if (folder / RUN_MODEL).is_dir():
        return folder / RUN_MODEL
    if (folder / RUN_CHECKPOINTS).is_dir():
        raise TreeparseError(
            f"The run in {directory} has no model yet: treeparse export {directory} writes that of its best epoch."
        )
    return folder


def read_model(directory: str | Path) -> tuple[dict[str, Any], dict[str, Any], dict[str, Tensor]]:
    """The config, the vocabulary and the weights of a model folder; raises where one is missing or damaged."""
    folder = Path(directory)
    for name in FILES:
        if not (folder / name).is_file():
            raise TreeparseError(
                f"{directory} is no model folder: it has no {name}. Give one that training wrote, such as RUN/model."
            )
    config, vocabulary = _read_mapping(folder / CONFIG), _read_mapping(folder / VOCABULARY)
    if config.pop("format", None) != FORMAT:
        raise TreeparseError(f"{folder / CONFIG} is of another format than {FORMAT}, the one this version reads.")
    try:
        return config, vocabulary, load_file(folder / WEIGHTS)
    except SafetensorError as error:
        raise TreeparseError(f"{folder / WEIGHTS} is damaged ({error}): copy the model again.") from error


def from_plain(kind: type[T], data: Any, where: str) -> T:
    """The frozen dataclass ``kind``, nested ones included, from JSON's plain data.

    Raises a ``TreeparseError`` that starts with ``where`` unless every field is there, in its type and range, and no
    other.
    """
    if not isinstance(data, dict):
        raise TreeparseError(f"{where} should hold a mapping with the settings of {kind.__name__}, but holds {data!r}.")
    types = get_type_hints(kind)
    wanted = {field.name for field in fields(kind)}  # type: ignore[arg-type]
    if wanted != data.keys():
        odd = ", ".join(sorted(wanted ^ data.keys()))
        raise TreeparseError(f"{where} does not fit this version: these settings are missing or not known: {odd}.")
    values = {name: _convert(types[name], value, f"{where}, {name}") for name, value in data.items()}
    try:
        return kind(**values)
    except TreeparseError as error:  # of a value out of its range
        raise TreeparseError(f"{where}: {error}") from error


def _convert(kind: Any, value: Any, where: str) -> Any:
    """A field's value from JSON's, which must be of the field's type."""
    if is_dataclass(kind):
        return from_plain(kind, value, where)  # type: ignore[type-var]
    if get_origin(kind) is tuple and isinstance(value, list):
        return tuple(_convert(get_args(kind)[0], item, where) for item in value)
    if get_origin(kind) is Literal:
        expected, fits = " or ".join(map(json.dumps, get_args(kind))), value in get_args(kind)
    elif kind is float:
        expected, fits = "a finite number", type(value) in (int, float) and math.isfinite(value)
    else:  # not isinstance: True is an int
        expected, fits = f"of type {getattr(kind, '__name__', kind)}", type(value) is kind
    if not fits:
        raise TreeparseError(f"{where} is {json.dumps(value)}, but must be {expected}.")
    return value


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


def _read_mapping(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise TreeparseError(f"{path} is damaged ({error}): copy the model again.") from error
    if not isinstance(data, dict):
        raise TreeparseError(f"{path} is damaged (it holds no mapping): copy the model again.")
    return data
