"""Write and read a model folder: ``config.json``, ``vocabulary.json`` and ``model.safetensors``, which hold no code.

The ``digests`` in the config are those of the other two files; they detect damage. The config may be edited.

The config holds every setting and the number of the format. A folder of another format is refused, so that a change of
what the files hold raises ``FORMAT``.
"""

import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from treeparse.data.outputs import atomic_folder, atomic_write, check_folder, check_output_folder, restore_folder
from treeparse.errors import TreeparseError
from treeparse.json_files import from_json
from treeparse.nn.pretrained import first_line, snapshot
from treeparse.shipped import installed_version, shipped_model

CONFIG, VOCABULARY, WEIGHTS = "config.json", "vocabulary.json", "model.safetensors"
FILES = (CONFIG, VOCABULARY, WEIGHTS)
CARD = "README.md"  # optional
RUN_MODEL, RUN_CHECKPOINTS = "model", "checkpoints"  # folders of a training run
FORMAT = 1  # of the JSON files in model folders and runs
DIGESTED = (VOCABULARY, WEIGHTS)
VERSION = "treeparse"  # the key of the version that wrote a file
NAME = re.compile(r"[\w.-]+/[\w.-]+")


def model_folder(directory: str | Path) -> Path:
    """Return the model folder: the directory itself, or the ``model`` folder of a training run."""
    folder = Path(directory)
    for path in (folder, folder / RUN_MODEL):
        restore_folder(path)
    if any(os.path.exists(folder / name) for name in FILES):  # False too for a name that no file can have
        return folder
    if os.path.isdir(folder / RUN_MODEL):
        return folder / RUN_MODEL
    if os.path.isdir(folder / RUN_CHECKPOINTS):
        raise TreeparseError(
            f"The run in {directory} has no model yet: treeparse export {directory} writes the model of its best epoch."
        )
    return folder


def check_model_files(directory: str | Path) -> None:
    """Raise if a folder lacks a file of a model."""
    check_folder(directory)
    for name in FILES:
        if not (Path(directory) / name).is_file():
            raise TreeparseError(
                f"{directory} is no model folder: it has no {name}. Name a folder that training wrote, as RUN/model."
            )


def check_model_folder(path: str | Path, kind: str, *others: str) -> None:
    """Raise if no model can be written to a folder, or if the folder holds other files than a model's.

    The message names the kind of model; the folder may hold ``others``, too.
    """
    check_output_folder(path)
    restore_folder(path)
    foreign = sorted(set(os.listdir(path)).difference(FILES, others)) if os.path.isdir(path) else []
    if foreign:
        raise TreeparseError(f"{path} holds other things than a {kind}, {foreign[0]} is one: name a new folder.")


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
        changed = digests is not None and [name for name in DIGESTED if file_digest(folder / name) != digests.get(name)]
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
            f"format {FORMAT} alone: install treeparse {data.get(VERSION, 'of an unknown version')!s:.40}, which wrote "
            "it, or train the model again."
        )
    return {name: value for name, value in data.items() if name not in ("format", VERSION)}


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


def check_local_model(name: str | Path) -> None:
    """Raise if a name is that of a folder without a model; names on the hub are not looked up."""
    if _is_local(name):
        check_model_files(model_folder(local_folder(name)))


def _is_local(name: str | Path) -> bool:
    # A name whose parent folder exists is that of a folder, perhaps mistyped, so that nobody waits for the network.
    return os.path.exists(Path(name).parent) or not NAME.fullmatch(str(name))


def local_folder(name: str | Path, revision: str | None = None) -> Path:
    """Return the folder of a model on this machine, of one that comes with treeparse, or of a copy of one on the hub.

    A copy in the cache is used without network access; otherwise the model is downloaded: only the files of a model
    folder, which hold no code.

    Args:
        name: a folder; or, if there is no such folder, ``en`` or ``organisation/name``.
        revision: a branch, tag or commit on the hub; None for the main branch.

    Raises:
        TreeparseError: if a folder is given with a revision, if the hub has no such model or cannot be reached.
    """
    if _is_local(name):
        if revision is not None:
            raise TreeparseError(f"{name} is a folder, which has no revisions: leave out {revision!r:.100}.")
        return shipped_model(name) or Path(name)
    return snapshot(str(name), revision, [*FILES, CARD], _is_whole, lambda text: _no_model(str(name), revision, text))


def push(folder: str | Path, name: str, *, private: bool = False, revision: str | None = None) -> str:
    """Upload a model folder to the hub and return its address; a damaged model is refused before.

    Args:
        folder: the folder of a model or of a training run.
        name: ``organisation/name``; a repository is created if none exists.
        private: whether a new repository is private.
        revision: the branch to upload to; None for the main branch.

    Raises:
        TreeparseError: if the folder holds no valid model, or if the hub refuses or cannot be reached.
    """
    if not NAME.fullmatch(name):
        raise TreeparseError(f"A model of the hub is called organisation/name, not {name!r:.100}.")
    source = model_folder(folder)
    read_model(source)
    from huggingface_hub import HfApi  # slow to import

    api = HfApi()
    try:
        address = api.create_repo(name, private=private, exist_ok=True)
        if revision is not None:
            api.create_branch(name, branch=revision, exist_ok=True)
        api.upload_folder(
            repo_id=name, folder_path=source, allow_patterns=[*FILES, CARD], revision=revision, commit_message="A model"
        )
    except OSError as error:
        raise TreeparseError(
            f"{folder} was not put on the hub as {name} ({first_line(error)}): is there a network, and did hf auth "
            "login get a token that may write there?"
        ) from error
    return str(address)


def _is_whole(folder: Path) -> bool:
    return all((folder / file).is_file() for file in FILES)


def _no_model(name: str, revision: str | None, text: str) -> TreeparseError:
    at = "" if revision is None else f" with a revision {revision!r:.100}"
    return TreeparseError(
        f"There is no folder {name}, and the Hugging Face hub gave no model of that name{at} ({text})."
    )
