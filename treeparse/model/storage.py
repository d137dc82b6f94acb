"""A model's folder: ``config.json``, ``vocabulary.json`` and ``model.safetensors``; plain data, nothing that runs.

The config holds digests of the other two files, ``digests``, by which damage to them is found. It may be edited.
"""

import hashlib
import json
import math
import shutil
from collections import Counter
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
DIGESTED = (VOCABULARY, WEIGHTS)
FORMAT = 1

T = TypeVar("T")


def write_model(
    directory: str | Path, config: dict[str, Any], vocabulary: dict[str, Any], weights: Mapping[str, Tensor]
) -> None:
    """Write the three files, all of them or none."""
    with atomic_folder(directory) as folder:
        _write_json(folder / VOCABULARY, vocabulary)
        save_file({name: tensor.detach().cpu().contiguous() for name, tensor in weights.items()}, folder / WEIGHTS)
        shutil.copymode(folder / VOCABULARY, folder / WEIGHTS)  # save_file lets nobody else read what it writes
        digests = {name: _digest(folder / name) for name in DIGESTED}
        _write_json(folder / CONFIG, {"format": FORMAT, **config, "digests": digests}, indent=2)


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
    try:
        config = _read_mapping(folder / CONFIG)
        if config.pop("format", None) != FORMAT:
            raise TreeparseError(f"{folder / CONFIG} is of another format than {FORMAT}, the one this version reads.")
        _check_digests(folder, config.pop("digests", None))
        return config, _read_mapping(folder / VOCABULARY), _read_weights(folder / WEIGHTS)
    except OSError as error:
        raise TreeparseError(f"The model in {directory} cannot be read: {error}.") from error


def _check_digests(folder: Path, digests: Any) -> None:
    """Raise for files that are not those that were saved; models of before there were digests have none."""
    if digests is None:
        return
    if not isinstance(digests, dict) or digests.keys() != set(DIGESTED):
        raise _damaged(folder / CONFIG, f"its digests are not those of {' and '.join(DIGESTED)}")
    for name in DIGESTED:
        if _digest(folder / name) != digests[name]:
            raise _damaged(folder / name, f"it is not the file that was saved with this {CONFIG}")


def _digest(path: Path) -> str:
    with path.open("rb") as stream:
        return "sha256:" + hashlib.file_digest(stream, "sha256").hexdigest()


def _damaged(path: Path, problem: object) -> TreeparseError:
    return TreeparseError(f"{path} is damaged ({problem}): copy the model again.")


def _read_weights(path: Path) -> dict[str, Tensor]:
    """The weights, which are real numbers."""
    try:
        weights = load_file(path)
    except SafetensorError as error:
        raise _damaged(path, error) from error
    for name, tensor in weights.items():
        if not tensor.is_floating_point():
            raise _damaged(path, f"{name} holds numbers of type {tensor.dtype}, which are no weights")
    return weights


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
        expected, fits = "a finite number", type(value) in (int, float) and abs(value) < math.inf
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
        data = json.loads(path.read_bytes(), object_pairs_hook=_without_repeats)
    except (ValueError, RecursionError) as error:
        raise _damaged(path, error) from error
    if not isinstance(data, dict):
        raise _damaged(path, "it holds no mapping")
    return data


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object's keys and values; of repeated keys JSON would take the last without a word."""
    [(key, count)] = Counter(key for key, _ in pairs).most_common(1) or [("", 1)]
    if count > 1:
        raise ValueError(f"the key {json.dumps(key)} stands there {count} times")
    return dict(pairs)
