"""Word vectors in word2vec's binary files: a header line, then each word, a space, and its values as float32."""

import re
from collections.abc import Container, Iterator
from typing import BinaryIO

import numpy as np

from treeparse.errors import DataError

_HEADER = re.compile(rb"([0-9]{1,12}) ([0-9]{1,7})[ \r]*\n")
_NUMERALS = frozenset(b"0123456789+-.eEnaifNAIFty \r\n")
_TEXT = frozenset(range(32, 127)) | frozenset(b"\t\r\n")
_AT_ONCE = 2**20  # bytes
_MAX_WORD = 10_000  # bytes


def is_binary(head: bytes) -> bool:
    """Return whether a file with these first bytes is in this format, and not text with the same header.

    The bytes after the first word decide: a value has at least two characters in text, and four bytes in this format.
    """
    header = _HEADER.match(head)
    if header is None:
        return False
    size, entry = int(header[2]), head[header.end() :]
    values = entry[entry.find(b" ") + 1 :]
    return not _NUMERALS.issuperset(values[: 2 * size - 1]) and not _TEXT.issuperset(values[: 4 * size])


def binary_entries(
    stream: BinaryIO, source: str, limit: int | None = None, only: Container[str] | None = None
) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the first ``limit`` words, or those of them in ``only``, with their vectors (size,) float32.

    Raises:
        DataError: the header has another number of vectors, or a number is not finite.
    """
    header = _HEADER.match(stream.readline(_MAX_WORD))
    assert header is not None
    count, size = int(header[1]), int(header[2])
    if not size:
        raise DataError("the size in the header must be at least 1, got 0", source=source, line=1)
    number_read = count if limit is None else min(limit, count)
    reader = _Reader(stream)
    for number in range(1, number_read + 1):
        entry = reader.entry(4 * size)
        if entry is None:
            problem = f"the file ends in or before vector {number:,} of {count:,}, or is not in word2vec's format"
            raise DataError(f"{problem}: download it again", source=source)
        word, values = entry[0].decode(errors="replace"), entry[1]
        if only is None or word in only:
            row = np.frombuffer(values, "<f4").astype(np.float32)
            if not word or not np.isfinite(row).all():
                problem = f"vector {number:,} must have a word and {size} finite numbers"
                raise DataError(problem, source=source)
            yield word, row
    if number_read == count and reader.remaining().strip():
        problem = f"bytes follow the last of the {count:,} vectors of size {size} that the header names"
        raise DataError(problem, source=source)


class _Reader:
    """Reads words, each with the bytes after it, from large pieces of a stream."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream, self._buffer, self._position = stream, b"", 0

    def entry(self, size: int) -> tuple[bytes, bytes] | None:
        """Return the next word and the ``size`` bytes after it; None if the stream ends or a word is too long."""
        space = self._buffer.find(b" ", self._position)
        if space < 0 or space + 1 + size > len(self._buffer):
            self._fill(_MAX_WORD + size)
            space = self._buffer.find(b" ", self._position, self._position + _MAX_WORD)
            if space < 0 or space + 1 + size > len(self._buffer):
                return None
        # A line break may end the previous entry.
        word, end = self._buffer[self._position : space].removeprefix(b"\n"), space + 1 + size
        self._position = end
        return word, self._buffer[space + 1 : end]

    def remaining(self) -> bytes:
        """Return some of the remaining bytes, none only at the end of the stream."""
        self._fill(_MAX_WORD)
        return self._buffer[self._position :]

    def _fill(self, least: int) -> None:
        """Buffer at least this number of bytes, or all that remain."""
        pieces = [self._buffer[self._position :]]
        missing = least - len(pieces[0])
        while missing > 0 and (piece := self._stream.read(_AT_ONCE)):
            pieces.append(piece)
            missing -= len(piece)
        self._buffer, self._position = b"".join(pieces), 0
