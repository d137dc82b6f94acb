"""Models on the Hugging Face hub: what comes from there and goes there are the files of a model's folder."""

import re
from pathlib import Path

from treeparse.errors import TreeparseError
from treeparse.model.folder.files import CARD, FILES, check_model_files, model_folder
from treeparse.model.folder.snapshots import first_line, snapshot

NAME = re.compile(r"[\w.-]+/[\w.-]+")


def check_local_model(name: str | Path) -> None:
    """Raise where a name is of no folder of a model; a model of the hub is not looked up."""
    if _is_local(name):
        check_model_files(model_folder(name))


def _is_local(name: str | Path) -> bool:
    # A name in a folder that is there is a folder's, mistyped: nobody waits for the network to say that it has none.
    return Path(name).parent.exists() or not NAME.fullmatch(str(name))


def local_folder(name: str | Path, revision: str | None = None) -> Path:
    """The folder of a model on this machine: the one of that name, or the copy of a model of the hub.

    A copy that is there already is taken without a look at the network; otherwise the model is fetched. Of a model of
    the hub, only the files that a model's folder has are fetched, and nothing in them runs.

    Args:
        name: a folder, or ``organisation/name`` where there is no folder ``organisation``.
        revision: a branch, tag or commit of the hub; None for the main branch.

    Raises:
        TreeparseError: a revision of a folder is asked for; the hub has no such model, or cannot be reached.
    """
    if _is_local(name):
        if revision is not None:
            raise TreeparseError(f"{name} is a folder, which has no revisions: leave out {revision!r:.100}.")
        return Path(name)
    return snapshot(str(name), revision, [*FILES, CARD], _is_whole, lambda text: _no_model(str(name), revision, text))


def push(folder: str | Path, name: str, *, private: bool = False, revision: str | None = None) -> str:
    """Put a model's folder on the hub, and say its address there; the model is read first, so only a sound one goes.

    Args:
        folder: of a model, or of a run.
        name: ``organisation/name``; made if there is none.
        private: whether a new one is for its owners alone.
        revision: the branch that gets it; None for the main one.

    Raises:
        TreeparseError: the folder holds no sound model; the hub refuses, or cannot be reached.
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
