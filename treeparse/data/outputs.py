"""Output files and folders, which are written whole or not at all: plain, compressed or standard output."""

import errno
import os
import secrets
import shutil
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from treeparse.data.compression import compression_of_name
from treeparse.data.files import STANDARD_STREAM
from treeparse.errors import TreeparseError

NO_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.EBADF)  # what file systems say that cannot sync a folder


class Output:
    """Bytes on their way out, with a small text face: ``write`` takes ``bytes`` or ``str`` (written as UTF-8)."""

    def __init__(self, stream: BinaryIO, *, flush: bool = False) -> None:
        self._stream, self._flush = stream, flush

    def write(self, data: str | bytes) -> int:
        """Write all of ``data`` (to a standard stream at once, without waiting for more) and return its length."""
        self._stream.write(data.encode() if isinstance(data, str) else data)
        if self._flush:
            self._stream.flush()
        return len(data)


@contextmanager
def atomic_output(path: str | Path) -> Iterator[Output]:
    """Open an output that appears under its name only once it is complete; after an exception the old file stands.

    A regular file is written beside its target (through symbolic links) and renamed over it. A name in ``.gz``,
    ``.bz2``, ``.xz`` or ``.zst`` compresses, with the same bytes for the same input. ``-`` is standard output; it,
    pipes and devices take what is written at once.

    Raises:
        TreeparseError: the path is a folder, or its folder does not exist.
        OSError: the file cannot be written.
    """
    if str(path) == STANDARD_STREAM:
        sys.stdout.flush()
        yield Output(sys.stdout.buffer, flush=True)
        return
    if os.path.isdir(path):
        raise TreeparseError(f"cannot write {path}: it is a folder; name a file")
    if os.path.exists(path) and not os.path.isfile(path):
        with open(path, "wb") as stream:
            yield Output(stream, flush=True)
        return
    with _replacing(Path(os.path.realpath(path))) as stream:
        if (compression := compression_of_name(path)) is None:
            yield Output(stream)
        else:
            with compression.writing(stream, str(path)) as compressed:
                yield Output(compressed)


def atomic_write(path: str | Path, data: str | bytes) -> None:
    """Write a whole file or nothing; see `atomic_output`."""
    with atomic_output(path) as output:
        output.write(data)


@contextmanager
def _replacing(target: Path) -> Iterator[BinaryIO]:
    """A temporary file beside ``target`` that takes its place, and its permissions, when the block ends well."""
    if not target.parent.is_dir():
        raise TreeparseError(f"cannot write {target}: the folder {target.parent} does not exist; create it first")
    temporary = target.with_name(f".{target.name[:200]}.{secrets.token_hex(6)}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)  # less the umask, as open() does
    try:
        with open(descriptor, "wb") as stream:
            yield stream
            stream.flush()
            if target.exists():
                os.chmod(temporary, stat.S_IMODE(target.stat().st_mode))
            os.fsync(stream.fileno())
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync_folder(target.parent)


@contextmanager
def atomic_folder(path: str | Path) -> Iterator[Path]:
    """A new folder to fill, which takes the place of ``path`` when the block ends well, and is gone otherwise.

    Raises:
        TreeparseError: ``path`` is a file, or its parent cannot be found.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_dir():
        raise TreeparseError(f"cannot write the folder {path}: there is a file of that name; name another folder")
    if not target.parent.is_dir():
        raise TreeparseError(f"cannot write {path}: the folder {target.parent} does not exist; create it first")
    token = secrets.token_hex(6)
    temporary, old = (target.with_name(f".{target.name}.{token}.{end}") for end in ("tmp", "old"))
    temporary.mkdir()
    try:
        yield temporary
        if target.exists():
            os.rename(target, old)
        os.rename(temporary, target)
    except BaseException:
        if old.exists() and not target.exists():
            os.rename(old, target)
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    shutil.rmtree(old, ignore_errors=True)
    _sync_folder(target.parent)


def _sync_folder(folder: Path) -> None:
    """Make a rename in ``folder`` last through a power cut, where the system can: the rename itself is done."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except PermissionError:  # Windows opens no folders, and others none that may not be read
        return
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in NO_SYNC:
            raise
    finally:
        os.close(descriptor)
