"""Word vectors in text files: each line has a word and its values."""

import codecs
import re
from collections.abc import Container, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import BinaryIO

import numpy as np

from treeparse.data.files import numbered_lines
from treeparse.errors import DataError

_HEADER = re.compile(rb"[0-9]+ ([0-9]{1,9})")
_LINES_AT_ONCE = 4096

_Line = tuple[int, bytes]
"""A line number, and the line."""


def text_entries(
    stream: BinaryIO, source: str, limit: int | None = None, only: Container[str] | None = None
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
        header = _HEADER.fullmatch(line)
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
