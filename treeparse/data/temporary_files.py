"""Temporary files and folders beside outputs. A process locks its own; the next process removes those without a lock.

A killed process cannot remove its temporary files, but its locks end with it. On systems without locks (Windows, some
network file systems) such files stay.
"""

import errno
import os
import re
import secrets
import shutil
import sys
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

TEMPORARY, OLD = ".tmp", ".old"  # endings of an unfinished output, and of the folder that it replaces
MAX_NAME = 200  # bytes of the target's name in a temporary name, which has 20 more; file systems allow 255
_TEMPORARY_NAME = re.compile(r"(\.(.+)\.[0-9a-f]+)\.(?:tmp|old)", re.DOTALL)

if sys.platform == "win32":

    def _lock(descriptor: int) -> None:
        raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))

else:
    import fcntl

    def _lock(descriptor: int) -> None:
        """Lock an open file or folder.

        Raises:
            BlockingIOError: another process holds the lock.
            OSError: the system has no locks.
        """
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextmanager
def temporary_beside(target: Path, *, is_folder: bool = False) -> Iterator[Path]:
    """Make a locked file or folder beside ``target``; at the end of the block, remove it or the folder it replaced."""
    name = target.name if is_folder else _shortened(target.name)
    path = descriptor = None
    try:
        while True:
            path = target.with_name(f".{name}.{secrets.token_hex(6)}{TEMPORARY}")  # a signal may come once it is made
            if is_folder:
                path.mkdir()
            else:
                path.touch(exist_ok=False)
            try:
                descriptor = _open_and_lock(path)
            except (FileNotFoundError, BlockingIOError):  # another process took the file for one without an owner
                continue
            except OSError:  # without locks, no process removes the file
                break
            if path.exists():
                break
            os.close(descriptor)
            descriptor = None
        yield path
    finally:
        if path is not None:
            _clean_up(path, target)
        if descriptor is not None:
            os.close(descriptor)


def remove_leftovers(targets: Iterable[str | Path]) -> None:
    """Remove the temporary files that killed processes left beside outputs; restore half-replaced folders."""
    names = defaultdict[Path, set[str]](set)
    for target in targets:
        path = Path(os.path.realpath(target))
        names[path.parent].add(_shortened(path.name))
    for folder, own_names in names.items():
        remove_all_leftovers(folder, own_names)


def remove_all_leftovers(folder: Path, names: Container[str] | None = None) -> None:
    """Remove the temporary files that killed processes left in a folder, of all outputs or of those with some names."""
    try:
        matches = list(filter(None, map(_TEMPORARY_NAME.fullmatch, os.listdir(folder))))
    except OSError:  # the folder does not exist or cannot be read
        return
    for stem, name in {(match[1], match[2]) for match in matches if names is None or match[2] in names}:
        temporary, descriptor = folder / f"{stem}{TEMPORARY}", None
        try:
            with suppress(FileNotFoundError):  # only the old folder is left
                descriptor = _open_and_lock(temporary)
            _clean_up(temporary, folder / name)
        except OSError:  # another process has the file, there are no locks, or it cannot be removed: it stays
            continue
        finally:
            if descriptor is not None:
                os.close(descriptor)


def _clean_up(temporary: Path, target: Path) -> None:
    """Remove a temporary file or folder; move the old folder back to ``target`` if that is missing, else remove it.

    An old folder is renamed before its removal, so that a folder in ``.old`` is always complete.
    """
    old = temporary.with_suffix(OLD)
    if not target.exists():
        with suppress(OSError):
            os.rename(old, target)
    _remove(temporary)
    if target.exists():
        with suppress(OSError):
            os.rename(old, temporary)
            _remove(temporary)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _open_and_lock(path: Path) -> int:
    """Return the descriptor of a file or folder, which holds its lock."""
    descriptor = os.open(path, (os.O_RDONLY if path.is_dir() else os.O_RDWR) | getattr(os, "O_NOFOLLOW", 0))
    try:
        _lock(descriptor)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _shortened(name: str) -> str:
    return os.fsencode(name)[:MAX_NAME].decode(errors="ignore")
