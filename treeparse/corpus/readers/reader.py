"""The interface of input formats."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from treeparse.data.compression import compression_of_name
from treeparse.data.conllu import ConlluSentence, RawSentence
from treeparse.data.shards import file_size
from treeparse.data.validation import TreeCheck


@dataclass(frozen=True, slots=True)
class ReaderOptions:
    """How files are read.

    Attributes:
        prompt: whether each sentence is read once it is complete, without looking ahead.
        text_column: the key or column of documents that holds their text.
        id_column: the one that holds their ids; None numbers them.
    """

    prompt: bool = False
    text_column: str = "text"
    id_column: str | None = None


class Reader(ABC):
    """An input format. A file holds items: sentences, lines of text or documents.

    Items are first bytes, which one process cuts from a file, and then sentences, which any process may read from them.

    Attributes:
        is_text: whether items are text, without tags or trees.
    """

    is_text: ClassVar[bool] = True

    def __init__(self, options: ReaderOptions | None = None) -> None:
        self.options: ReaderOptions = options or ReaderOptions()

    @abstractmethod
    def items(self, path: Path, span: range | None = None) -> Iterator[RawSentence]:
        """Yield the items of a file, with ``span`` those that start there; its unit is that of `length`.

        Raises:
            DataError: the file is faulty as a whole.
            OSError: the file cannot be read.
        """

    @abstractmethod
    def sentences(self, item: RawSentence, check: TreeCheck | None) -> Sequence[ConlluSentence]:
        """Return the sentences of an item; text is split at white space only.

        Args:
            item: the bytes.
            check: tests the trees, in formats that have them.

        Raises:
            DataError: the item is faulty; the message names the first fault.
        """

    def count(self, path: Path) -> int:
        """Return the number of items of a file."""
        return sum(1 for _ in self.items(path))

    def length(self, path: Path) -> int:
        """Return the length of a file, which shards divide; in bytes, decompressed, unless a format has another unit.

        Raises:
            DataError: the path is standard input, a pipe or a device, or a damaged compressed file.
            OSError: the file cannot be read.
        """
        return file_size(path)

    def known_length(self, path: Path) -> int | None:
        """Return the length of a file; None if only reading the file can tell."""
        return path.stat().st_size if path.is_file() and compression_of_name(path) is None else None

    def length_of(self, item: RawSentence) -> int:
        """Return the length of an item."""
        return len(item.text)
