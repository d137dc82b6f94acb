"""Folders that are written completely or not at all, and found again after a process that wrote one was killed."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from treeparse.data.outputs import check_output_folder, sync_folder, temporary_beside
from treeparse.errors import TreeparseError


@contextmanager
def atomic_folder(path: str | Path) -> Iterator[Path]:
    """Yield a new folder that replaces ``path`` when the block ends without an exception, and is removed otherwise.

    No system replaces a folder at once: the old one is renamed, the new one gets its name, the old one is removed. If
    the process is killed between the first two steps, `restore_folder` puts the old one back.

    Raises:
        TreeparseError: ``path`` is a file, or its parent does not exist.
    """
    check_output_folder(path)
    target = Path(os.path.realpath(path))
    restore_folder(target)
    temporary, old = temporary_beside(target), _old(target)
    try:
        temporary.mkdir()
        yield temporary
        shutil.rmtree(old, ignore_errors=True)  # of a process that was killed after the second step
        if target.exists():
            os.rename(target, old)
        os.rename(temporary, target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        restore_folder(target)
        shutil.rmtree(old, ignore_errors=True)
    sync_folder(target.parent)


def restore_folder(path: str | Path) -> None:
    """Put the old folder back if a process was killed when it had renamed it, and the new one had no name yet."""
    target = Path(os.path.realpath(path))
    if not target.exists() and (old := _old(target)).is_dir():
        os.rename(old, target)


def check_folder(path: str | Path) -> None:
    """Raise if a folder does not exist and cannot be restored."""
    restore_folder(path)
    if not os.path.isdir(path):
        problem = f"{path} is a file" if os.path.exists(path) else f"There is no folder {path!s:.200}"
        raise TreeparseError(f"{problem}: name the folder of a model, or of its run.")


def _old(target: Path) -> Path:
    return target.with_name(f".{target.name}.old")
