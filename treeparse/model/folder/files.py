"""The files of a model folder, and downloads of such files from the Hugging Face hub."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from treeparse.data.folders import check_folder, restore_folder
from treeparse.data.outputs import check_output_folder
from treeparse.errors import TreeparseError

CONFIG, VOCABULARY, WEIGHTS = "config.json", "vocabulary.json", "model.safetensors"
FILES = (CONFIG, VOCABULARY, WEIGHTS)
CARD = "README.md"  # optional
RUN_MODEL, RUN_CHECKPOINTS = "model", "checkpoints"  # folders of a training run


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


def snapshot(
    name: str,
    revision: str | None,
    patterns: Sequence[str],
    is_whole: Callable[[Path], bool],
    error_of: Callable[[str], TreeparseError],
) -> Path:
    """Return the folder of a repository's files; a complete copy in the cache is used without network access.

    Args:
        name: ``organisation/name``.
        revision: a branch, tag or commit; None for the main branch.
        patterns: names of the files to download.
        is_whole: whether a folder has all files that are needed.
        error_of: makes the error from the hub's message if the download fails.
    """
    from huggingface_hub import snapshot_download  # slow to import

    options: dict[str, Any] = {"revision": revision or None, "allow_patterns": [*patterns]}
    try:
        cached = Path(snapshot_download(name, local_files_only=True, **options))
        if is_whole(cached):
            return cached
    except Exception:  # no copy in the cache, which the library reports by several errors
        pass
    try:
        return Path(snapshot_download(name, local_files_only=False, **options))
    except Exception as error:
        raise error_of(first_line(error)) from error


def first_line(error: Exception) -> str:
    """The first line of the hub's message."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")[:300]


def check_model_folder(path: str | Path, kind: str, *others: str) -> None:
    """Raise if no model can be written to a folder, or if the folder holds other files than a model's.

    The message names the kind of model; the folder may hold ``others``, too.
    """
    check_output_folder(path)
    restore_folder(path)
    foreign = sorted(set(os.listdir(path)).difference(FILES, others)) if os.path.isdir(path) else []
    if foreign:
        raise TreeparseError(f"{path} holds other things than a {kind}, {foreign[0]} is one: name a new folder.")
