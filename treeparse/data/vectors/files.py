"""Pretrained word vectors from files of word2vec, fastText and GloVe, text and binary, plain or compressed."""

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
from treeparse.data.vectors.fasttext import MAGIC, fasttext_entries
from treeparse.data.vectors.text import text_entries
from treeparse.errors import DataError, TreeparseError

ZIP = b"PK\x03\x04"


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


def read_vectors(
    path: str | Path, *, max_vectors: int | None = None, only: Container[str] | None = None
) -> WordVectors:
    """Read a file of word vectors; its first bytes, not its name, tell the format. Each format may be gzipped.

    - Text: a word and its values a line, separated by single spaces. A first line of two whole numbers is a header, as
      of word2vec and fastText: the number of vectors (not checked, so that a file can be cut by ``head``) and their
      size. Without one, as in GloVe, the first line has as many values as all. The values are a line's last fields, the
      word is what stands before them, spaces included. Lines end with LF or CRLF, blank ones are passed over.
    - word2vec's binary: the same header, then each word, a space, its values as float32, and a line's end or none.
    - fastText's model, ``.bin``: the vector of a word is the mean of its own and those of its n-grams.

    The first of several vectors of a word counts. Bytes of a word that are not UTF-8 become U+FFFD. Reading streams the
    file, so memory holds only the returned vectors.

    Args:
        path: the file.
        max_vectors: the most vectors to read; files have the frequent words first.
        only: read only these words. Values of other words are not parsed, which saves most of the time of a text file.

    Raises:
        DataError: a vector has too few values or one that is no finite number, or there is none; with file and line.
        TreeparseError: ``max_vectors`` is less than 1.
        OSError: the file cannot be read.
    """
    if max_vectors is not None and max_vectors < 1:
        raise TreeparseError(f"max_vectors must be at least 1, got {max_vectors}.")
    source = display_name(path)
    rows: dict[str, np.ndarray] = {}
    with open_by_content(path) as stream:
        head = stream.peek()
        if head.startswith(ZIP):
            raise DataError("this is a zip archive: unpack it, and name the file in it", source=source)
        if head.startswith(MAGIC):
            entries = fasttext_entries(path, max_vectors, only)
        elif is_binary(head):
            entries = binary_entries(stream, source, max_vectors, only)
        else:
            entries = text_entries(stream, source, max_vectors, only)
        for word, row in entries:
            rows.setdefault(word, row)
    if not rows:
        problem = "the file holds no vector" if only is None else "the file holds no vector of the words that it is for"
        raise DataError(problem, source=source)
    return WordVectors(tuple(rows), torch.from_numpy(np.stack(list(rows.values()))))
