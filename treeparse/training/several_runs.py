"""The folder of several runs that belong together: what was begun in it, and that nothing else goes on there."""

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from treeparse.data.outputs import atomic_write
from treeparse.errors import TreeparseError


def begin_runs(path: Path, settings: Mapping[str, Any], what: str, *, replaceable: Collection[str] = ()) -> None:
    """Write down the settings of all runs of a folder, or compare them with those that it was begun with.

    Args:
        path: the file of the settings, in that folder, which is made.
        settings: plain data; what the file lacks came later, and is not compared.
        what: what the runs are for, as messages say it: "cross-parsing".
        replaceable: the settings on which nothing in the folder depends yet.

    Raises:
        TreeparseError: the folder was begun with other settings, holds other things, or its file is damaged.
    """
    if path.is_file():
        before = _read(path)
        differing = [name for name in settings if name in before and before[name] != settings[name]]
        if fixed := [name for name in differing if name not in replaceable]:
            raise TreeparseError(
                f"{what.capitalize()} with other settings was begun in {path.parent}, {', '.join(fixed)} differ: name "
                "another folder, or give the same settings."
            )
        if not differing:
            return
    elif path.parent.is_dir() and any(path.parent.iterdir()):
        raise TreeparseError(f"{path.parent} holds other things than {what}'s: name a new folder.")
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic_write(path, json.dumps(settings, ensure_ascii=False, indent=2) + "\n")


def _read(path: Path) -> dict[str, Any]:
    try:
        settings = json.loads(path.read_bytes())
    except ValueError as error:
        raise TreeparseError(f"{path} is damaged ({error}): name another folder.") from error
    if not isinstance(settings, dict):
        raise TreeparseError(f"{path} is damaged (it holds no mapping): name another folder.")
    return settings
