"""Pretrained word vectors from text files of word2vec, fastText and GloVe and word2vec's binary files."""

from collections.abc import Container
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from treeparse.data.features.vocabulary import Vocabulary
from treeparse.data.features.words import PADDING, ROOT, vector_vocabulary
from treeparse.data.files import display_name, open_by_content
from treeparse.data.vectors.binary import binary_entries, is_binary
from treeparse.data.vectors.text import text_entries
from treeparse.errors import DataError, TreeparseError


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
