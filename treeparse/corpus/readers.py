"""Input formats: a reader turns files into sentences. One class and one line in `READERS` a format.

A custom reader is a subclass of `Reader`, named by its class path, such as ``mine.Verticals``.
"""

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from treeparse.data.conllu import NO_SENTENCE, ConlluSentence, RawSentence, parse_conllu, raw_conllu
from treeparse.data.files import check_rereadable, compression_of_name, open_input
from treeparse.data.tokenised import forms_of, parse_text, raw_text
from treeparse.data.validation import TreeCheck
from treeparse.errors import DataError, TreeparseError

_LINE_END = re.compile(r"\r\n|\n|\r")
_SPACES = re.compile(r"\s+")
ROWS = 1000  # that are read at once
_READ = 1 << 20  # bytes at a time, to measure a compressed file


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
            DataError: the path is a pipe or a damaged compressed file.
            OSError: the file cannot be read.
        """
        check_rereadable(path, "every shard reads its inputs")
        if compression_of_name(path) is None:
            return path.stat().st_size
        with open_input(path) as stream:
            return sum(iter(lambda: len(stream.read(_READ)), 0))

    def known_length(self, path: Path) -> int | None:
        """Return the length of a file; None if only reading the file can tell."""
        return path.stat().st_size if path.is_file() and compression_of_name(path) is None else None

    def length_of(self, item: RawSentence) -> int:
        """Return the length of an item."""
        return len(item.text)


class ConlluReader(Reader):
    """Reads CoNLL-U."""

    is_text: ClassVar[bool] = False

    def items(self, path: Path, span: range | None = None) -> Iterator[RawSentence]:
        """Yield the sentences of a file as bytes."""
        return raw_conllu(path, prompt=self.options.prompt, span=span)

    def sentences(self, item: RawSentence, check: TreeCheck | None) -> Sequence[ConlluSentence]:
        """Return the sentence."""
        sentence = parse_conllu(item, check)
        if isinstance(sentence, ConlluSentence):
            return (sentence,)
        raise sentence[0]


class TextReader(Reader):
    """Reads text; a sentence's id is the number of its line among those that are not blank."""

    def items(self, path: Path, span: range | None = None) -> Iterator[RawSentence]:
        """Yield the lines that are not blank."""
        return raw_text(path, span=span)

    def sentences(self, item: RawSentence, check: TreeCheck | None) -> Sequence[ConlluSentence]:
        """Return the sentence of a line."""
        return (parse_text(item, first=item.before + 1),)


class JsonlReader(TextReader):
    """Reads documents in JSON Lines."""

    def sentences(self, item: RawSentence, check: TreeCheck | None) -> Sequence[ConlluSentence]:
        """Return the sentences of a document; before the first one stands ``# newdoc id``."""
        fault = partial(DataError, source=item.source, line=item.line)
        try:
            document = json.loads(item.text)
        except ValueError as error:
            raise fault(f"the line must be JSON ({error!s:.200})") from error
        if not isinstance(document, dict):
            raise fault("the line must be a JSON object of one document")
        name = self._name(document, item.before + item.ordinal + 1, fault)
        fault = partial(fault, sent_id=name)
        text = document.get(self.options.text_column)
        if not isinstance(text, str):
            raise fault(self._text_problem(document))
        place = {"source": item.source, "line": item.line, "ordinal": item.ordinal}
        sentences = [
            ConlluSentence.from_forms(forms, sent_id=f"{name}-{number}", **place)
            for number, line in enumerate(_LINE_END.split(_encodable(text, "text", fault)), 1)
            if (forms := forms_of(line))
        ]
        if sentences:
            sentences[0] = replace(sentences[0], text=f"# newdoc id = {name}\n{sentences[0].text}")
        return sentences

    def _name(self, document: dict[str, Any], number: int, fault: partial[DataError]) -> str:
        """Return the id of a document, with _ for white space, which ids of CoNLL-U cannot have."""
        column = self.options.id_column
        if column is None:
            return str(number)
        value = document.get(column)
        if isinstance(value, bool) or not isinstance(value, str | int) or not str(value).strip():
            raise fault(f"the id of a document, {column!r}, must be a string or an integer, got {value!r:.50}")
        return _SPACES.sub("_", _encodable(str(value).strip(), "id", fault))

    def _text_problem(self, document: dict[str, Any]) -> str:
        column = self.options.text_column
        if column in document:
            return f"the text of a document, {column!r}, must be a string, got {document[column]!r:.50}"
        names = ", ".join(f"{name!r:.50}" for name in list(document)[:10])
        return f"the document has no key {column!r} with its text: name one by --text-column ({names or 'it is empty'})"


def _encodable(text: str, what: str, fault: partial[DataError]) -> str:
    """Return a text; raise if it holds a half of a surrogate pair, which no file can hold."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise fault(f"the {what} of the document holds half of a surrogate pair: {error}") from error
    return text


def load_pyarrow(path: str | Path) -> Any:
    """Return the library of Parquet, with its module ``parquet``; raise and name the file if it is not installed."""
    try:
        import pyarrow.parquet
    except ImportError as error:
        problem = f"{path}: Parquet needs pyarrow, which is not installed: pip install treeparse[corpus]"
        raise TreeparseError(problem) from error
    return pyarrow


class ParquetReader(JsonlReader):
    """Reads documents in Parquet; lengths are rows."""

    def items(self, path: Path, span: range | None = None) -> Iterator[RawSentence]:
        """Yield the rows, each as a JSON object."""
        with _opened(path) as file:
            columns = self._columns(file, path)
            if not file.metadata.num_rows:
                raise DataError(NO_SENTENCE, source=str(path))
            row = 0
            for batch in file.iter_batches(batch_size=ROWS, columns=columns):
                if span is None or (row < span.stop and row + len(batch) > span.start):
                    for number, document in enumerate(batch.to_pylist(), row):
                        if span is None or number in span:
                            text = json.dumps(document, default=repr).encode()
                            yield RawSentence(text, str(path), number + 1, number)
                row += len(batch)

    def count(self, path: Path) -> int:
        """Return the number of rows."""
        return self.length(path)

    def length(self, path: Path) -> int:
        """Return the number of rows."""
        with _opened(path) as file:
            return file.metadata.num_rows

    def known_length(self, path: Path) -> int | None:
        """Return the number of rows."""
        return self.length(path)

    def length_of(self, item: RawSentence) -> int:
        """Return 1, a row."""
        return 1

    def _columns(self, file: Any, path: Path) -> list[str]:
        """Return the columns to read; raise if the file lacks one."""
        names = file.schema_arrow.names
        options = {"--text-column": self.options.text_column, "--id-column": self.options.id_column}
        for option, column in options.items():
            if column is not None and column not in names:
                problem = f"the file has no column {column!r}: name one by {option} ({', '.join(names)})"
                raise DataError(problem, source=str(path))
        return [column for column in options.values() if column is not None]


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """Open a Parquet file; raise ``DataError`` if it is damaged."""
    check_rereadable(path, "Parquet is read from its end")
    pyarrow = load_pyarrow(path)
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            yield file
    except (pyarrow.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:  # an error of the disk, not of the format
            raise
        raise DataError(f"this is no whole Parquet file ({error!s:.200})", source=str(path)) from error


READERS: Mapping[str, type[Reader]] = {
    "conllu": ConlluReader,
    "text": TextReader,
    "jsonl": JsonlReader,
    "parquet": ParquetReader,
}
