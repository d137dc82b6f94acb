"""Download and upload models on the Hugging Face hub: the files of a model folder and nothing else."""

import os
import re
from pathlib import Path

from treeparse.downloads import first_line, snapshot
from treeparse.errors import TreeparseError
from treeparse.model.folder.files import CARD, FILES, check_model_files, model_folder

NAME = re.compile(r"[\w.-]+/[\w.-]+")


def check_local_model(name: str | Path) -> None:
    """Raise if a name is that of a folder without a model; names on the hub are not looked up."""
    if _is_local(name):
        check_model_files(model_folder(name))


def _is_local(name: str | Path) -> bool:
    # A name whose parent folder exists is that of a folder, perhaps mistyped, so that nobody waits for the network.
    return os.path.exists(Path(name).parent) or not NAME.fullmatch(str(name))


def local_folder(name: str | Path, revision: str | None = None) -> Path:
    """Return the folder of a model on this machine, or of a copy of a model on the hub.

    A copy in the cache is used without network access; otherwise the model is downloaded: only the files of a model
    folder, which hold no code.

    Args:
        name: a folder, or ``organisation/name`` if no folder ``organisation`` exists.
        revision: a branch, tag or commit on the hub; None for the main branch.

    Raises:
        TreeparseError: if a folder is given with a revision, if the hub has no such model or cannot be reached.
    """
    if _is_local(name):
        if revision is not None:
            raise TreeparseError(f"{name} is a folder, which has no revisions: leave out {revision!r:.100}.")
        return Path(name)
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
    check_model_files(source)
    from huggingface_hub import HfApi  # slow to import

    from treeparse.model.folder.storage import read_model

    read_model(source)

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
