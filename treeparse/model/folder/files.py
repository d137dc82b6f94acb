"""The files of a model folder. This module imports no torch, so that commands refuse a wrong folder at once."""

from pathlib import Path

from treeparse.data.files import check_folder
from treeparse.errors import TreeparseError

CONFIG, VOCABULARY, WEIGHTS = "config.json", "vocabulary.json", "model.safetensors"
FILES = (CONFIG, VOCABULARY, WEIGHTS)
CARD = "README.md"  # optional
RUN_MODEL, RUN_CHECKPOINTS = "model", "checkpoints"  # folders of a training run


def model_folder(directory: str | Path) -> Path:
    """Return the model folder: the directory itself, or the ``model`` folder of a training run."""
    folder = Path(directory)
    if any((folder / name).exists() for name in FILES):
        return folder
    if (folder / RUN_MODEL).is_dir():
        return folder / RUN_MODEL
    if (folder / RUN_CHECKPOINTS).is_dir():
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
