"""The files of a model's folder, and which folder is meant. Imports no torch, so a wrong folder is refused at once."""

from pathlib import Path

from treeparse.data.files import check_folder
from treeparse.errors import TreeparseError

CONFIG, VOCABULARY, WEIGHTS = "config.json", "vocabulary.json", "model.safetensors"
FILES = (CONFIG, VOCABULARY, WEIGHTS)
CARD = "README.md"  # which a model may have
RUN_MODEL, RUN_CHECKPOINTS = "model", "checkpoints"  # folders in that of a training run


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


def check_model_files(directory: str | Path) -> None:
    """Raise unless a folder has all files of a model."""
    check_folder(directory)
    for name in FILES:
        if not (Path(directory) / name).is_file():
            raise TreeparseError(
                f"{directory} is no model folder: it has no {name}. Give one that training wrote, such as RUN/model."
            )
