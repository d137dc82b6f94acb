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
_LONGEST = 10_000  # bytes of a word


def is_binary(head: bytes) -> bool:
    """Whether a file that begins so is one of these, and not text with the same header.

    Each value takes at least two characters of a text, and four bytes here: what is behind the first word tells.
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
    """The first ``limit`` words, or those of them in ``only``, with their vectors (size,) float32.

    Raises:
        DataError: there are less vectors than the header says, or more; one of them holds other than finite numbers.
    """
    header = _HEADER.match(stream.readline(_LONGEST))
    assert header is not None
    count, size = int(header[1]), int(header[2])
    if not size:
        raise DataError("the header says that vectors have no values", source=source, line=1)
    wanted = count if limit is None else min(limit, count)
    reader = _Reader(stream)
    for number in range(1, wanted + 1):
        entry = reader.entry(4 * size)
        if entry is None:
            problem = f"the file ends in or before vector {number:,} of {count:,}, or is none of word2vec's format"
            raise DataError(f"{problem}: get it again", source=source)
        word, values = entry[0].decode(errors="replace"), entry[1]
        if only is None or word in only:
            row = np.frombuffer(values, "<f4").astype(np.float32)
            if not word or not np.isfinite(row).all():
                problem = f"vector {number:,} does not have a word and {size} finite numbers"
                raise DataError(problem, source=source)
            yield word, row
    if wanted == count and reader.rest().strip():
        raise DataError(f"the header says {count:,} vectors of size {size}, but there is more behind", source=source)


class _Reader:
    """Words and the bytes behind them, from large pieces of a stream."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream, self._held, self._place = stream, b"", 0

    def entry(self, size: int) -> tuple[bytes, bytes] | None:
        """The next word and the ``size`` bytes behind it; None where the stream ends before, or a word does not."""
        space = self._held.find(b" ", self._place)
        if space < 0 or space + 1 + size > len(self._held):
            self._fill(_LONGEST + size)
            space = self._held.find(b" ", self._place, self._place + _LONGEST)
            if space < 0 or space + 1 + size > len(self._held):
                return None
        # The end of the entry before, where there is one.
        word, end = self._held[self._place : space].removeprefix(b"\n"), space + 1 + size
        self._place = end
        return word, self._held[space + 1 : end]

    def rest(self) -> bytes:
        """Some of what is left, nothing only at the stream's end."""
        self._fill(_LONGEST)
        return self._held[self._place :]

    def _fill(self, least: int) -> None:
        """Hold that many bytes, or all that are left."""
        pieces = [self._held[self._place :]]
        missing = least - len(pieces[0])
        while missing > 0 and (piece := self._stream.read(_AT_ONCE)):
            pieces.append(piece)
            missing -= len(piece)
        self._held, self._place = b"".join(pieces), 0
