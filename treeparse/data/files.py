"""Input files: plain, compressed or standard streams, and the patterns that name them."""

import glob
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from io import BufferedReader, BytesIO, RawIOBase
from pathlib import Path
from typing import BinaryIO, cast

from treeparse.data.compression import (
    MAGIC_LENGTH,
    Compression,
    check_compression,
    compression_of_content,
    compression_of_name,
)
from treeparse.errors import DataError, TreeparseError

STANDARD_STREAM = "-"
STDIN = "<stdin>"  # the name of standard input in messages
AT_ONCE = 2**16  # bytes that are read ahead of a compressed file
MAX_LINE = 2**23  # bytes


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
        with open(path, "rb") as stream, _decompressed(stream, compression_of_name(path), path) as plain:
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
    if source == STDIN:
        remedy = f"decompress it in the pipe by {compression.command}"
    raise DataError(f"this is compressed by {compression.name}: {remedy}", source=source)


def expand_paths(patterns: Sequence[str | Path]) -> list[Path]:
    """Expand ``~``, ``$VARIABLES`` and globs (``**`` too), each glob's files sorted; ``-`` stays.

    Raises:
        TreeparseError: if a pattern matches no file or names an unset variable, or this Python cannot decompress a
            file; the message names it.
    """
    paths = [path for pattern in patterns for path in _expand(str(pattern))]
    for path in paths:
        check_compression(path)
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
