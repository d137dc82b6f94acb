"""Input files: plain, compressed or standard streams, and the patterns that name them.

Compressed are gzip, bzip2, xz, and Zstandard where Python or the package `backports.zstd` has it.
"""

import glob
import gzip
import os
import re
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from importlib import import_module
from io import BufferedReader, BytesIO, RawIOBase
from pathlib import Path
from typing import Any, BinaryIO, Literal, cast

from treeparse.errors import DataError, TreeparseError

STANDARD_STREAM = "-"
STDIN = "<stdin>"  # the name of standard input in messages
AT_ONCE = 2**16  # bytes that are read ahead of a compressed file
MAX_LINE = 2**23  # bytes
BUFFER = 2**20  # bytes: at each call of the system a thread may have to wait for Python's lock
MAGIC_LENGTH = 10  # bytes of a file that tell its format

Mode = Literal["rb", "wb"]


@dataclass(frozen=True, slots=True)
class Compression:
    """A format of compressed files.

    Attributes:
        name: the name of the format and of its shell command.
        suffix: the end of its files' names.
        magic: the first bytes of its files, as a regular expression.
        open: opens a stream of compressed bytes; closing the result does not close the stream.
        errors: returns the exceptions by which the format's library reports damage, besides ``EOFError``.
    """

    name: str
    suffix: str
    magic: bytes
    open: Callable[[BinaryIO, Mode], Any]
    errors: Callable[[], tuple[type[Exception], ...]]

    @contextmanager
    def reading(self, stream: BinaryIO, source: str) -> Iterator[BinaryIO]:
        """Decompress a stream; a ``DataError`` names ``source`` if the stream is damaged or incomplete."""
        plain = self.opened(stream, "rb", source)
        try:
            with plain:
                yield plain
        except (EOFError, *self.errors()) as error:
            if isinstance(error, OSError) and error.errno is not None:  # an error of the disk, not of the format
                raise
            raise DataError(f"this is no whole {self.name} file ({error})", source=source) from error

    def opened(self, stream: BinaryIO, mode: Mode, path: str) -> Any:
        """Open a stream of compressed bytes; ``path`` is the name in errors. Written bytes depend on the input only."""
        self.check_installed(path)
        return self.open(stream, mode)

    def check_installed(self, path: str) -> None:
        """Raise a ``TreeparseError`` that names ``path`` if the library of the format is not installed."""
        try:
            self.errors()
        except ImportError as error:
            problem = f"{path}: files in {self.suffix} need {error.name}, which is not installed"
            raise TreeparseError(f"{problem}: pip install {error.name}") from error


def check_compression(path: str | Path) -> None:
    """Raise a ``TreeparseError`` if the library of the compression that a file's name ends in is not installed."""
    if (compression := compression_of_name(path)) is not None:
        compression.check_installed(str(path))


def compression_of_name(path: str | Path) -> Compression | None:
    """Return the compression that the end of a file's name stands for; None for a plain file."""
    return next((compression for compression in _FORMATS if str(path).endswith(compression.suffix)), None)


def compression_of_content(head: bytes) -> Compression | None:
    """Return the compression of a file from its first `MAGIC_LENGTH` bytes or more; None for a plain file."""
    return next((compression for compression in _FORMATS if re.match(compression.magic, head)), None)


def plain_name(path: str | Path) -> str:
    """Return a file's name without the suffix of its compression."""
    compression = compression_of_name(path)
    return str(path).removesuffix("" if compression is None else compression.suffix)


def _gzip(stream: BinaryIO, mode: Mode) -> Any:
    return gzip.GzipFile(filename="", mode=mode, compresslevel=6, fileobj=stream, mtime=0)


def _bzip2(stream: BinaryIO, mode: Mode) -> Any:
    return import_module("bz2").BZ2File(stream, mode)


def _xz(stream: BinaryIO, mode: Mode) -> Any:
    return import_module("lzma").LZMAFile(stream, mode)


def _zstd(stream: BinaryIO, mode: Mode) -> Any:
    return _zstd_library().ZstdFile(stream, mode)


def _zstd_library() -> Any:
    """Return the standard library's module (from Python 3.14 on) or the same module from a package."""
    for name in ("compression.zstd", "backports.zstd"):
        with suppress(ImportError):
            return import_module(name)
    raise ImportError(name="backports.zstd")


_FORMATS = (
    Compression("gzip", ".gz", rb"\x1f\x8b", _gzip, lambda: (OSError, zlib.error)),
    Compression("bzip2", ".bz2", rb"BZh[1-9](1AY&SY|\x17rE8P\x90)", _bzip2, lambda: (OSError,)),
    Compression("xz", ".xz", rb"\xfd7zXZ\x00", _xz, lambda: (import_module("lzma").LZMAError,)),
    Compression("zstd", ".zst", rb"\x28\xb5\x2f\xfd", _zstd, lambda: (_zstd_library().ZstdError,)),
)


@dataclass(frozen=True, slots=True)
class InMemory:
    """Bytes that are read as a file, and their name in messages."""

    name: str
    data: bytes

    def __str__(self) -> str:
        return self.name


def display_name(path: str | Path | InMemory) -> str:
    """Return the name of an input path in messages."""
    return STDIN if str(path) == STANDARD_STREAM else str(path)


def is_stream(path: str | Path) -> bool:
    """Return whether a path is standard input, a pipe or a device, which can be read only once."""
    is_file = os.path.isfile(path) or os.path.isdir(path)
    return str(path) in (STANDARD_STREAM, STDIN) or (os.path.exists(path) and not is_file)


def has_name(path: str | Path) -> bool:
    """Return whether a path names its input: ``-`` does not, nor does what lies in /dev; a named pipe does."""
    return str(path) not in (STANDARD_STREAM, STDIN) and not str(path).startswith("/dev/")


def check_rereadable(path: str | Path, reason: str) -> None:
    """Raise a ``DataError`` if a path can be read only once; ``reason`` says why once is not enough."""
    if is_stream(path):
        problem = f"a pipe cannot be read more than once, but {reason}: write it to a file first, and name that file"
        raise DataError(problem, source=display_name(path))


@contextmanager
def open_input(path: str | Path | InMemory) -> Iterator[BinaryIO]:
    """Open a file, ``-`` (standard input) or bytes in memory for reading bytes.

    A file whose name ends in ``.gz``, ``.bz2``, ``.xz`` or ``.zst`` is decompressed.

    Raises:
        OSError: if the file cannot be opened.
        DataError: if a compressed file is damaged.
        TreeparseError: if this Python lacks the library of the compression.
    """
    if isinstance(path, InMemory):
        yield BytesIO(path.data)
    elif str(path) == STANDARD_STREAM:
        yield sys.stdin.buffer
    else:
        with open(path, "rb", BUFFER) as stream, _decompressed(stream, compression_of_name(path), path) as plain:
            yield plain


@contextmanager
def open_by_content(path: str | Path) -> Iterator[BufferedReader]:
    """Open a file or standard input; the first bytes, not the name, decide whether it is compressed."""
    with nullcontext(sys.stdin.buffer) if str(path) == STANDARD_STREAM else open(path, "rb") as stream:
        plain = cast(BufferedReader, stream)
        compression = compression_of_content(plain.peek(MAGIC_LENGTH))
        with _decompressed(plain, compression, path) as decompressed:
            yield plain if compression is None else BufferedReader(cast(RawIOBase, decompressed), AT_ONCE)


def _decompressed(
    stream: BinaryIO, compression: Compression | None, path: str | Path
) -> AbstractContextManager[BinaryIO]:
    return nullcontext(stream) if compression is None else compression.reading(stream, display_name(path))


def numbered_lines(stream: BinaryIO, source: str, *, limit: int = MAX_LINE) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of a stream with their ends, and their numbers from 1.

    Raises:
        DataError: the stream is compressed, or a line has more than ``limit`` bytes; no more of it is read.
    """
    number = 0
    while line := stream.readline(limit + 1):
        number += 1
        if number == 1:
            _check_not_compressed(line, source)
        if len(line) > limit:
            problem = f"a line must be at most {limit >> 20} MiB long; is this a text file?"
            raise DataError(problem, source=source, line=number)
        yield number, line


def _check_not_compressed(head: bytes, source: str) -> None:
    compression = compression_of_content(head)
    if compression is None:
        return
    remedy = f"give it a name that ends in {compression.suffix}, and it is decompressed"
    if is_stream(source) or not has_name(source):
        remedy = f"decompress it in the pipe by {compression.name} -dc"
    raise DataError(f"this is compressed by {compression.name}: {remedy}", source=source)


def expand_paths(patterns: Sequence[str | Path]) -> list[Path]:
    """Expand ``~``, ``$VARIABLES`` and globs (``**`` too), each glob's files sorted; ``-`` stays.

    Raises:
        TreeparseError: if a pattern matches no file or names an unset variable, a pipe is named twice, or this Python
            cannot decompress a file; the message names it.
    """
    paths = [path for pattern in patterns for path in _expand(str(pattern))]
    streams: list[os.stat_result] = []
    for path in paths:
        check_compression(path)
        if is_stream(path):
            stream = os.fstat(0) if str(path) == STANDARD_STREAM else os.stat(path)
            if any(os.path.samestat(stream, other) for other in streams):
                check_rereadable(path, "the command names it twice")
            streams.append(stream)
    return paths


def _expand(pattern: str) -> list[Path]:
    expanded = os.path.expanduser(os.path.expandvars(pattern))
    if pattern == STANDARD_STREAM or os.path.exists(expanded):
        return [Path(expanded)]
    matches = sorted(match for match in glob.glob(expanded, recursive=True) if not os.path.isdir(match))
    if matches:
        return [Path(match) for match in matches]
    if "$" in expanded:
        raise TreeparseError(f"no file matches {pattern!r}: set the variable in it, or write the path out")
    if glob.has_magic(expanded):
        raise TreeparseError(f"no file matches {pattern!r}")
    raise TreeparseError(f"there is no file {expanded!r}")
