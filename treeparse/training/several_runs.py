"""Folders of several runs that share settings, which a file in the folder records."""

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from treeparse.data.outputs import atomic_write
from treeparse.errors import TreeparseError


def begin_runs(path: Path, settings: Mapping[str, Any], what: str, *, replaceable: Collection[str] = ()) -> None:
    """Write the settings of all runs of a folder to a file in it, or compare them with the settings in that file.

    The function creates the folder. It raises if the folder was begun with other settings, or holds other files.

    Args:
        path: the file.
        settings: plain data.
        what: the purpose of the runs in messages: "cross-parsing".
        replaceable: settings that may change, because nothing in the folder depends on them yet.
    """
    if path.is_file():
        recorded = json.loads(path.read_bytes())
        differing = [name for name in settings if recorded.get(name) != settings[name]]
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
