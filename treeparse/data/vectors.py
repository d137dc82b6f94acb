"""Pretrained word vectors from text files in the word2vec, fastText or GloVe format."""

import codecs
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from treeparse.core import DataError, TreeparseError
from treeparse.data.features import PADDING, ROOT, vector_vocabulary
from treeparse.data.files import display_name, numbered_lines, open_input
from treeparse.data.vocabulary import Vocabulary

_HEADER = re.compile(rb"[0-9]+ ([0-9]+)")
_LINES_AT_ONCE = 4096

_Line = tuple[int, bytes]
"""The number of a line in its file, and the line."""


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
        """The words with their rows in :meth:`embedding` as ids."""
        return vector_vocabulary(self.words)

    def embedding(self) -> Tensor:
        """The weights of an embedding: a row for each special of :meth:`vocabulary`, then one a word.

        All values are divided by their common standard deviation, as [DM]'s parser and SuPar have it, because the
        scales of files differ by an order of magnitude. A word that is not in the file gets the mean of all vectors,
        padding and root get zeros.
        """
        vocabulary = self.vocabulary()
        scale = float(self.table.std(correction=0)) or 1.0  # 0 where all values are equal
        specials = self.table.mean(0).repeat(len(vocabulary.specials), 1)
        specials[[vocabulary.special(PADDING), vocabulary.special(ROOT)]] = 0
        return torch.cat([specials, self.table]).div_(scale)


def read_vectors(path: str | Path, *, max_vectors: int | None = None) -> WordVectors:
    """Read a text file of word vectors, plain or ``.gz``: a word and its values a line, separated by single spaces.

    A first line of two whole numbers is a header: the number of vectors (not checked, so that a file can be cut by
    ``head``) and their size. Without one the first line has as many values as all. The values are a line's last fields,
    the word is what stands before them, spaces included. Lines end with LF or CRLF, blank ones are passed over. Of
    several vectors of a word the first is taken. What is not UTF-8 in a word becomes U+FFFD.

    Args:
        path: the file.
        max_vectors: read that many lines at most; files have the frequent words first.

    Raises:
        DataError: a line has too few values or one that is no finite number, or there is no vector; with file and line.
        TreeparseError: ``max_vectors`` is less than 1.
        OSError: the file cannot be read.
    """
    if max_vectors is not None and max_vectors < 1:
        raise TreeparseError(f"max_vectors is {max_vectors}, but must be at least 1.")
    source = display_name(path)
    rows: dict[str, np.ndarray] = {}
    with open_input(path) as stream:
        size, lines = _size(_lines(numbered_lines(stream, source)), source)
        lines = islice(lines, max_vectors)
        while block := list(islice(lines, _LINES_AT_ONCE)):
            for word, row in _vectors(block, size, source):
                rows.setdefault(word, row)
    if not rows:
        raise DataError("the file holds no vector", source=source)
    return WordVectors(tuple(rows), torch.from_numpy(np.stack(list(rows.values()))))


def _lines(stream: Iterable[_Line]) -> Iterator[_Line]:
    """The lines that are not blank, without their ends; word2vec and fastText end each one with a space."""
    for number, line in stream:
        text = (line.removeprefix(codecs.BOM_UTF8) if number == 1 else line).rstrip(b" \r\n")
        if text:
            yield number, text


def _size(lines: Iterator[_Line], source: str) -> tuple[int, Iterator[_Line]]:
    """The vectors' size, and the lines that hold vectors."""
    for number, line in lines:
        header = _HEADER.fullmatch(line)
        size = int(header[1]) if header else line.count(b" ")
        if size < 1:
            problem = "the first line holds neither a word with its vector nor the number of vectors and their size"
            raise DataError(problem, source=source, line=number)
        return size, lines if header else chain([(number, line)], lines)
    return 0, lines


def _vectors(block: Sequence[_Line], size: int, source: str) -> Iterator[tuple[str, np.ndarray]]:
    """The words and vectors of some lines."""
    words, texts = zip(*(_split(line, size) for _, line in block), strict=True)
    values = _numbers(texts, size)
    if values is None or b"" in words:
        number = next(
            number
            for (number, _), word, text in zip(block, words, texts, strict=True)
            if not word or _numbers([text], size) is None
        )
        problem = f"the line does not hold a word and {size} finite numbers, separated by single spaces"
        raise DataError(problem, source=source, line=number)
    return zip((word.decode(errors="replace") for word in words), values, strict=True)


def _split(line: bytes, size: int) -> tuple[bytes, str]:
    """The word, and the text of its values."""
    if line.count(b" ") == size:
        word, _, values = line.partition(b" ")
    else:
        word = line.rsplit(b" ", size)[0]
        values = line[len(word) + 1 :]
    return word, values.decode("latin-1")


def _numbers(texts: Sequence[str], size: int) -> np.ndarray | None:
    """The texts' values (texts, size) as float32; None unless each text holds that many finite numbers."""
    if not all(texts):
        return None
    try:
        values = np.loadtxt(texts, dtype=np.float32, delimiter=" ", comments=None, ndmin=2)
    except ValueError:
        return None
    return values if values.shape == (len(texts), size) and np.isfinite(values).all() else None
