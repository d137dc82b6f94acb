"""Output files and folders, which are written whole or not at all: plain, compressed or standard output."""

import errno
import os
import shutil
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from treeparse.data.compression import compression_of_name
from treeparse.data.files import STANDARD_STREAM
from treeparse.data.leftovers import OLD, lock_kept, new_file, new_folder, remove_leftovers
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


def check_output(path: str | Path) -> None:
    """Raise where no file can be written at a path; standard output, pipes and devices can.

    Raises:
        TreeparseError: the path is a folder, or its folder does not exist.
        OSError: the folder may not be written to, or the name cannot be.
    """
    if str(path) == STANDARD_STREAM:
        return
    mode = _mode(path)
    if stat.S_ISDIR(mode):
        raise TreeparseError(f"cannot write {path}: it is a folder; name a file")
    if stat.S_ISREG(mode) or not mode:
        _check_parent(path)


def check_output_folder(path: str | Path) -> None:
    """Raise where no folder can be written at a path, or where one cannot be replaced.

    Raises:
        TreeparseError: the path is a file, or its parent does not exist.
        OSError: the parent may not be written to, or the name cannot be.
    """
    if not stat.S_ISDIR(_mode(path) or stat.S_IFDIR):
        raise TreeparseError(f"cannot write the folder {path}: there is a file of that name; name another folder")
    _check_parent(path)


def _mode(path: str | Path) -> int:
    """The type and permissions of a file, 0 where there is none."""
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
    """Open an output that appears under its name only once it is complete; after an exception the old file stands.

    A regular file is written beside its target (through symbolic links) and renamed over it. A name in ``.gz``,
    ``.bz2``, ``.xz`` or ``.zst`` compresses, with the same bytes for the same input. ``-`` is standard output; it,
    pipes and devices take what is written at once.

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
    temporary, descriptor = new_file(target)
    try:
        with lock_kept(descriptor):
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

    What a killed process left of an earlier attempt is removed first, and put back where it is all that there is.

    Raises:
        TreeparseError: ``path`` is a file, or its parent cannot be found.
    """
    check_output_folder(path)
    target = Path(os.path.realpath(path))
    remove_leftovers([target])
    with new_folder(target) as temporary:
        yield temporary
        _exchange(temporary, target)
    _sync_folder(target.parent)


def _exchange(temporary: Path, target: Path) -> None:
    """Put a new folder in the place of the old one, which is then beside it; the last one wins of several writers."""
    old = temporary.with_suffix(OLD)
    while True:
        with suppress(FileNotFoundError):
            os.rename(target, old)
        try:
            os.rename(temporary, target)
            return
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
        shutil.rmtree(old, ignore_errors=True)  # another writer was quicker: what it wrote is the old folder now


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
