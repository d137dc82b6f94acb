"""Write and read a model folder: ``config.json``, ``vocabulary.json`` and ``model.safetensors``, which hold no code.

The ``digests`` in the config are those of the other two files; they detect damage. The config may be edited.

The config holds every setting and the number of the format. A folder of another format is refused, so that a change of
what the files hold raises ``FORMAT``.
"""

import hashlib
import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from treeparse.data.folders import atomic_folder
from treeparse.data.outputs import atomic_write
from treeparse.errors import TreeparseError
from treeparse.json_files import from_json
from treeparse.model.folder.files import CONFIG, VOCABULARY, WEIGHTS, check_model_files
from treeparse.version import installed_version

FORMAT = 1  # of the JSON files in model folders and runs
DIGESTED = (VOCABULARY, WEIGHTS)
VERSION = "treeparse"  # the key of the version that wrote a file


def write_model(
    directory: str | Path, config: dict[str, Any], vocabulary: dict[str, Any], weights: Mapping[str, Tensor]
) -> None:
    """Write the three files, all of them or none."""
    with atomic_folder(directory) as folder:
        _write_json(folder / VOCABULARY, vocabulary)
        save_file({name: tensor.detach().cpu().contiguous() for name, tensor in weights.items()}, folder / WEIGHTS)
        shutil.copymode(folder / VOCABULARY, folder / WEIGHTS)  # save_file lets nobody else read what it writes
        digests = {name: file_digest(folder / name) for name in DIGESTED}
        _write_json(folder / CONFIG, {**file_header(), **config, "digests": digests}, indent=2)


def rewrite_config(directory: str | Path, config: dict[str, Any]) -> None:
    """Replace the settings of a model folder, and keep its vocabulary, weights and digests."""
    path = Path(directory) / CONFIG
    settings = {**file_header(), **config, "digests": _read_mapping(path).get("digests")}
    atomic_write(path, json.dumps(settings, ensure_ascii=False, indent=2) + "\n")


def file_header() -> dict[str, Any]:
    """The first keys of a file of settings: its format, and the version that wrote it."""
    return {"format": FORMAT, VERSION: installed_version()}


def read_model(directory: str | Path) -> tuple[dict[str, Any], dict[str, Any], dict[str, Tensor]]:
    """Return the config, vocabulary and weights of a model folder; raise if a file is missing or damaged."""
    folder = Path(directory)
    check_model_files(folder)
    try:
        config = without_header(_read_mapping(folder / CONFIG), str(folder / CONFIG))
        digests = config.pop("digests", None)
        changed = digests is not None and [each for each in DIGESTED if file_digest(folder / each) != digests.get(each)]
        if changed:
            raise _damaged(folder / changed[0], f"it is not the file that was saved with this {CONFIG}")
        return config, _read_mapping(folder / VOCABULARY), load_file(folder / WEIGHTS)
    except SafetensorError as error:
        raise _damaged(folder / WEIGHTS, error) from error
    except OSError as error:
        raise TreeparseError(f"The model in {directory} cannot be read: {error}.") from error


def without_header(data: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return the settings of a file without its `file_header`; raise if the file is of another format."""
    if data.get("format") != FORMAT:
        raise TreeparseError(
            f"{where} is of format {json.dumps(data.get('format')):.20}, but treeparse {installed_version()} reads "
            f"format {FORMAT} alone: install {file_writer(data)}, which wrote it, or train the model again."
        )
    return {name: value for name, value in data.items() if name not in ("format", VERSION)}


def file_writer(header: Mapping[Any, Any]) -> str:
    """Return the version that wrote a file, from its `file_header`."""
    return f"treeparse {header.get(VERSION, 'of an unknown version')!s:.40}"


def file_digest(path: Path) -> str:
    """Return the SHA-256 digest of a file."""
    with path.open("rb") as stream:
        return "sha256:" + hashlib.file_digest(stream, "sha256").hexdigest()


def _damaged(path: Path, problem: object) -> TreeparseError:
    return TreeparseError(f"{path} is damaged ({problem}): copy the model again.")


@contextmanager
def restoring(kind: str, directory: str | Path) -> Iterator[None]:
    """Turn errors from data that no model of this kind wrote into a sentence."""
    try:
        yield
    except (LookupError, TypeError, AttributeError, ValueError, RuntimeError) as error:
        raise TreeparseError(
            f"{VOCABULARY} and {CONFIG} in {directory} make no {kind} ({type(error).__name__}: {error}): "
            "copy the model again."
        ) from error


def load_weights(module: nn.Module, weights: Mapping[str, Tensor], where: str, *, mapped: bool = False) -> None:
    """Load weights whose names and shapes must be exactly those of the module.

    If ``mapped``, the module uses these tensors, if they are of its types, instead of copies.
    """
    own = module.state_dict()
    odd = sorted(own.keys() ^ weights.keys())
    odd += [name for name, tensor in weights.items() if name in own and own[name].shape != tensor.shape]
    if odd:
        names = ", ".join(odd[:5]) + (", ..." if len(odd) > 5 else "")
        raise TreeparseError(
            f"The weights in {where} do not fit its config, see {names}: the files are not of one model."
        )
    module.load_state_dict(dict(weights), assign=mapped and _can_take(own, weights))


def _can_take(own: Mapping[str, Tensor], weights: Mapping[str, Tensor]) -> bool:
    """Return whether a module can use weights as they are: of its types, and none of its own stands twice in it."""
    is_shared = len({tensor.data_ptr() for tensor in own.values()}) < len(own)  # these would come apart
    return not is_shared and all(tensor.dtype == own[name].dtype for name, tensor in weights.items())


def _write_json(path: Path, data: Any, indent: int | None = None) -> None:
    path.write_text(json.dumps(data, ensure_ascii=False, indent=indent) + "\n", encoding="utf-8")


def _read_mapping(path: Path) -> dict[str, Any]:
    try:
        data = from_json(path.read_bytes())
    except ValueError as error:
        raise _damaged(path, error) from error
    if not isinstance(data, dict):
        raise _damaged(path, "it holds no mapping")
    return data
