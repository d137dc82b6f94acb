"""The files of a model folder."""

import os
from pathlib import Path

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


def check_model_folder(path: str | Path, kind: str, *others: str) -> None:
    """Raise if no model can be written to a folder, or if the folder holds other files than a model's.

    The message names the kind of model; the folder may hold ``others``, too.
    """
    check_output_folder(path)
    restore_folder(path)
    foreign = sorted(set(os.listdir(path)).difference(FILES, others)) if os.path.isdir(path) else []
    if foreign:
        raise TreeparseError(f"{path} holds other things than a {kind}, {foreign[0]} is one: name a new folder.")
