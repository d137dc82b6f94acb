"""Temporary files and folders beside outputs: each is locked while its process lives, and removed by the next one.

A killed process cannot remove what it was writing. Its lock ends with it, so whoever gets the lock of a temporary file
may remove it. Where there are no locks (Windows, some network file systems) such files stay.
"""

import errno
import os
import re
import secrets
import shutil
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

TEMPORARY, OLD = ".tmp", ".old"  # endings of what is being written, and of a folder that gives way to it
MOST_BYTES = 200  # of a temporary file's name, which has 20 more, are its target's: file systems know 255
_LEFTOVER = re.compile(r"(\.(.+)\.[0-9a-f]+)\.(?:tmp|old)", re.DOTALL)

if sys.platform == "win32":

    def _lock(descriptor: int) -> None:
        raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))

else:
    import fcntl

    def _lock(descriptor: int) -> None:
        """Lock an open file or folder; ``BlockingIOError`` where it is locked, another ``OSError`` without locks."""
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def new_file(target: Path) -> tuple[Path, int]:
    """Make a file beside ``target``, locked and open for writing, with the permissions that `open` would give it."""
    while True:
        path = _beside(target, _shortened(target.name))
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        if _claim(path, descriptor):
            return path, descriptor
        os.close(descriptor)


@contextmanager
def lock_kept(descriptor: int) -> Iterator[None]:
    """Keep the lock of an open file until the end of the block, though the descriptor is closed in it."""
    if sys.platform == "win32":  # which has no such lock, and replaces no file that is open
        yield
        return
    copy = os.dup(descriptor)
    try:
        yield
    finally:
        os.close(copy)


@contextmanager
def new_folder(target: Path) -> Iterator[Path]:
    """A locked folder beside ``target``; in the end it is removed, or the folder that gave way to it."""
    while True:
        path = _beside(target, target.name)
        path.mkdir()
        descriptor = _open_folder(path)
        if descriptor is None or _claim(path, descriptor):
            break
        os.close(descriptor)
    try:
        yield path
    finally:
        _settle(path, target)
        if descriptor is not None:
            os.close(descriptor)


def remove_leftovers(targets: Iterable[str | Path]) -> None:
    """Remove what killed processes left of outputs; a folder that was about to be replaced is put back."""
    names = defaultdict[Path, set[str]](set)
    for target in targets:
        path = Path(os.path.realpath(target))
        names[path.parent].add(_shortened(path.name))
    for folder, own in names.items():
        _remove_leftovers(folder, own)


def remove_all_leftovers(folder: Path) -> None:
    """Remove what killed processes left of any output in a folder."""
    _remove_leftovers(folder, None)


def _remove_leftovers(folder: Path, names: set[str] | None) -> None:
    try:
        found = list(filter(None, map(_LEFTOVER.fullmatch, os.listdir(folder))))
    except OSError:  # the folder does not exist, or may not be read
        return
    for stem, name in {(match[1], match[2]) for match in found if names is None or match[2] in names}:
        temporary = folder / f"{stem}{TEMPORARY}"
        with suppress(OSError), _locked(temporary):  # another process has it, or there are no locks: it stays
            _settle(temporary, folder / name)


def _settle(temporary: Path, target: Path) -> None:
    """Remove a temporary file or folder; the folder that gave way to it is put back, or goes too.

    An old folder goes under the name of the temporary one, so that what ends in ``.old`` is always whole.
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


def _claim(path: Path, descriptor: int) -> bool:
    """Lock what was just made; False where another process took it for a leftover in the meantime, and removes it."""
    try:
        _lock(descriptor)
    except BlockingIOError:
        return False
    except OSError:  # there are no locks, so nobody removes it
        return True
    return path.exists()


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the lock of a file or folder, if it exists; raises ``OSError`` where that cannot be had."""
    try:
        descriptor = os.open(path, (os.O_RDONLY if path.is_dir() else os.O_RDWR) | getattr(os, "O_NOFOLLOW", 0))
    except FileNotFoundError:
        yield
        return
    try:
        _lock(descriptor)
        yield
    finally:
        os.close(descriptor)


def _open_folder(path: Path) -> int | None:
    """The descriptor of a folder; None on systems that open no folders."""
    try:
        return os.open(path, os.O_RDONLY)
    except PermissionError:
        return None


def _beside(target: Path, name: str) -> Path:
    return target.with_name(f".{name}.{secrets.token_hex(6)}{TEMPORARY}")


def _shortened(name: str) -> str:
    return os.fsencode(name)[:MOST_BYTES].decode(errors="ignore")
