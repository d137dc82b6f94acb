"""Output files, written completely or not at all: plain, compressed or standard output."""

import errno
import os
import secrets
import shutil
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import BinaryIO

from treeparse.data.files import BUFFER, STANDARD_STREAM, compression_of_name
from treeparse.errors import TreeparseError

NO_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.EBADF)  # errors of file systems that cannot sync a folder


class Output:
    """A binary output stream whose ``write`` takes ``bytes`` or ``str`` (written as UTF-8)."""

    closed = False  # which libraries ask before they write

    def __init__(self, stream: BinaryIO, *, flush: bool = False) -> None:
        self._stream, self._flush = stream, flush

    def write(self, data: str | bytes) -> int:
        """Write all of ``data``, to a standard stream without buffering, and return its length."""
        self._stream.write(data.encode() if isinstance(data, str) else data)
        if self._flush:
            self._stream.flush()
        return len(data)

    def flush(self) -> None:
        """Pass on what is buffered."""
        self._stream.flush()


def check_output(path: str | Path) -> None:
    """Raise if no file can be written at a path; standard output, pipes and devices always can.

    Raises:
        TreeparseError: the path is a folder, or its folder does not exist.
        OSError: the folder is not writable, or the name is invalid.
    """
    if str(path) == STANDARD_STREAM:
        return
    mode = _mode(path)
    if stat.S_ISDIR(mode):
        raise TreeparseError(f"cannot write {path}: it is a folder; name a file")
    if stat.S_ISREG(mode) or not mode:
        _check_parent(path)


def check_output_folder(path: str | Path) -> None:
    """Raise if no folder can be written at a path, or if the folder there cannot be replaced.

    Raises:
        TreeparseError: the path is a file, or its parent does not exist.
        OSError: the parent is not writable, or the name is invalid.
    """
    if not stat.S_ISDIR(_mode(path) or stat.S_IFDIR):
        raise TreeparseError(f"The output {path} must be a folder, but a file has that name: name another folder.")
    _check_parent(path)


def _mode(path: str | Path) -> int:
    """Return the type and permissions of a file, 0 if it does not exist."""
    try:
        return os.stat(path).st_mode
    except FileNotFoundError:
        return 0


def _check_parent(path: str | Path) -> None:
    parent = Path(os.path.realpath(path)).parent
    if not parent.is_dir():
        raise TreeparseError(f"cannot write {path}: the folder {parent} does not exist; create it first")
    if not os.access(parent, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, f"{os.strerror(errno.EACCES)}; no file can be written there", str(parent))


@contextmanager
def atomic_output(path: str | Path) -> Iterator[Output]:
    """Open an output that appears under its name only once it is complete; after an exception the old file remains.

    A regular file is written beside its target (through symbolic links) and renamed over it. A name in ``.gz``,
    ``.bz2``, ``.xz`` or ``.zst`` compresses, with the same bytes for the same input. ``-`` is standard output; it,
    pipes and devices receive each write at once.

    Raises:
        TreeparseError: the path is a folder, or its folder does not exist.
        OSError: the file cannot be written.
    """
    check_output(path)
    if str(path) == STANDARD_STREAM:
        sys.stdout.flush()
        yield Output(sys.stdout.buffer, flush=True)
        return
    if os.path.exists(path) and not os.path.isfile(path):
        with open(path, "wb") as stream:
            yield Output(stream, flush=True)
        return
    target, compression = Path(os.path.realpath(path)), compression_of_name(path)
    temporary = temporary_beside(target)
    try:
        with open(temporary, "wb", BUFFER) as stream:
            with nullcontext(stream) if compression is None else compression.opened(stream, "wb", str(path)) as packed:
                yield Output(packed)
            stream.flush()
            if target.exists():
                os.chmod(temporary, stat.S_IMODE(target.stat().st_mode))
            os.fsync(stream.fileno())
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)
    sync_folder(target.parent)


def atomic_write(path: str | Path, data: str | bytes) -> None:
    """Write a whole file or nothing; see `atomic_output`."""
    with atomic_output(path) as output:
        output.write(data)


def temporary_beside(target: Path) -> Path:
    """Return a path beside ``target`` that no file has; 50 characters of a name are at most 200 bytes of 255."""
    return target.with_name(f".{target.name[:50]}.{secrets.token_hex(6)}.tmp")


def sync_folder(folder: Path) -> None:
    """Make a rename in ``folder`` survive a power cut, if the system can; the rename itself is done."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except PermissionError:  # Windows opens no folders, and other systems none without read permission
        return
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in NO_SYNC:
            raise
    finally:
        os.close(descriptor)


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
