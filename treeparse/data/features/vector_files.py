"""Pretrained word vectors from text files of word2vec, fastText and GloVe and word2vec's binary files."""

import codecs
import re
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import BinaryIO

import numpy as np
import torch
from torch import Tensor

from treeparse.data.features.vocabulary import Vocabulary
from treeparse.data.features.words import PADDING, ROOT, vector_vocabulary
from treeparse.data.files import display_name, numbered_lines, open_by_content
from treeparse.errors import DataError, TreeparseError

_FIRST_LINE = re.compile(rb"[0-9]+ ([0-9]{1,9})")
_LINES_AT_ONCE = 4096

_Line = tuple[int, bytes]
"""A line number, and the line."""
_HEADER = re.compile(rb"([0-9]{1,12}) ([0-9]{1,7})[ \r]*\n")
_NUMERALS = frozenset(b"0123456789+-.eEnaifNAIFty \r\n")
_TEXT = frozenset(range(32, 127)) | frozenset(b"\t\r\n")
_AT_ONCE = 2**20  # bytes
_MAX_WORD = 10_000  # bytes


def text_entries(
    stream: BinaryIO, source: str, limit: int | None, only: Container[str] | None
) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the words of the first ``limit`` lines, or those of them in ``only``, with their vectors (size,) float32.

    Raises:
        DataError: a line has too few values, or a word to read has a value that is not finite.
    """
    size, lines = _size(_lines(numbered_lines(stream, source)), source)
    lines = islice(lines, limit)
    while block := list(islice(lines, _LINES_AT_ONCE)):
        yield from _vectors(block, size, source, only)


def _lines(stream: Iterable[_Line]) -> Iterator[_Line]:
    """Yield the lines that are not blank, without their ends; word2vec and fastText end each one with a space."""
    for number, line in stream:
        text = (line.removeprefix(codecs.BOM_UTF8) if number == 1 else line).rstrip(b" \r\n")
        if text:
            yield number, text


def _size(lines: Iterator[_Line], source: str) -> tuple[int, Iterator[_Line]]:
    """Return the vectors' size, and the lines that hold vectors."""
    for number, line in lines:
        header = _FIRST_LINE.fullmatch(line)
        size = int(header[1]) if header else line.count(b" ")
        if size < 1:
            problem = "the first line must hold a word and its vector, or the number of vectors and their size"
            raise DataError(problem, source=source, line=number)
        return size, lines if header else chain([(number, line)], lines)
    return 0, lines


def _vectors(
    block: Sequence[_Line], size: int, source: str, only: Container[str] | None
) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the words and vectors of some lines."""
    words: list[str] = []
    texts: list[str] = []
    numbers: list[int] = []
    for number, line in block:
        word, values = _split(line, size)
        if not word or not values:
            raise _fault(size, source, number)
        form = word.decode(errors="replace")
        if only is None or form in only:
            words.append(form)
            texts.append(values.decode("latin-1"))
            numbers.append(number)
    if not texts:
        return
    table = _numbers(texts, size)
    if table is None:
        wrong = (number for number, text in zip(numbers, texts, strict=True) if _numbers([text], size) is None)
        raise _fault(size, source, next(wrong))
    yield from zip(words, table, strict=True)


def _fault(size: int, source: str, line: int) -> DataError:
    problem = f"the line must hold a word and {size} finite numbers, separated by single spaces"
    return DataError(problem, source=source, line=line)


def _split(line: bytes, size: int) -> tuple[bytes, bytes]:
    """Return the word and the text of its values; both are empty if values are missing."""
    if (spaces := line.count(b" ")) == size:
        word, _, values = line.partition(b" ")
        return word, values
    if spaces < size:
        return b"", b""
    word = line.rsplit(b" ", size)[0]
    return word, line[len(word) + 1 :]


def _numbers(texts: Sequence[str], size: int) -> np.ndarray | None:
    """Return the texts' values (texts, size) as float32; None unless each text holds ``size`` finite numbers."""
    try:
        values = np.loadtxt(texts, dtype=np.float32, delimiter=" ", comments=None, ndmin=2)
    except ValueError:
        return None
    return values if values.shape == (len(texts), size) and np.isfinite(values).all() else None


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
    stream: BinaryIO, source: str, limit: int | None, only: Container[str] | None
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


@dataclass(frozen=True, slots=True)
class WordVectors:
    """Distinct words and their vectors, ``table`` (words, size) float32."""

    words: tuple[str, ...]
    table: Tensor

    @property
    def size(self) -> int:
        """The number of values of each vector."""
        return self.table.shape[1]

    def vocabulary(self) -> Vocabulary:
        """Return the words with their rows in ``embedding`` as ids."""
        return vector_vocabulary(self.words)

    def embedding(self) -> Tensor:
        """Return the weights of an embedding: a row for each special of ``vocabulary``, then one for each word.

        All values are divided by their common standard deviation, as in [DM]'s parser and SuPar, because the scales of
        files differ by an order of magnitude. An unknown word gets the mean of all vectors, padding and root get zeros.
        """
        vocabulary = self.vocabulary()
        scale = float(self.table.std(correction=0)) or 1.0  # 0 where all values are equal
        specials = self.table.mean(0).repeat(len(vocabulary.specials), 1)
        specials[[vocabulary.special(PADDING), vocabulary.special(ROOT)]] = 0
        return torch.cat([specials, self.table]).div_(scale)


def read_vectors(
    path: str | Path, *, max_vectors: int | None = None, only: Container[str] | None = None
) -> WordVectors:
    """Read a file of word vectors. Its first bytes, not its name, decide the format; each format may be compressed.

    - Text: a line has a word and its values, separated by single spaces. The values are the last fields of a line; the
      word may have spaces. A first line of two integers is a header, as of word2vec and fastText: the number of
      vectors (not checked, so that ``head`` can cut a file) and their size. Without a header, as in GloVe, the first
      line decides the size. Lines end with LF or CRLF; blank lines are ignored.
    - word2vec's binary: the same header, then each word, a space, its values as float32, and optionally a line break.

    The first of several vectors of a word counts. Bytes of a word that are not UTF-8 become U+FFFD. Memory holds only
    the returned vectors.

    Args:
        path: the file.
        max_vectors: the largest number of vectors to read; files have the frequent words first.
        only: read only these words. Values of other words are not parsed, which saves most of the time of a text file.

    Raises:
        DataError: a vector has too few values or a value that is not finite, or the file has no vector; with file and
            line.
        TreeparseError: ``max_vectors`` is less than 1.
        OSError: the file cannot be read.
    """
    if max_vectors is not None and max_vectors < 1:
        raise TreeparseError(f"max_vectors must be at least 1, got {max_vectors}.")
    source = display_name(path)
    rows: dict[str, np.ndarray] = {}
    with open_by_content(path) as stream:
        entries_of = binary_entries if is_binary(stream.peek()) else text_entries
        for word, row in entries_of(stream, source, max_vectors, only):
            rows.setdefault(word, row)
    if not rows:
        problem = "the file holds no vector" if only is None else "the file holds no vector of the words to read"
        raise DataError(problem, source=source)
    return WordVectors(tuple(rows), torch.from_numpy(np.stack(list(rows.values()))))
