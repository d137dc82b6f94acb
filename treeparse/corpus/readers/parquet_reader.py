"""Documents in Parquet: an item is a row, of which one column holds the text and another may hold the id."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from treeparse.corpus.readers.jsonl_reader import JsonlReader
from treeparse.data.conllu import NO_SENTENCE, RawSentence
from treeparse.errors import DataError, TreeparseError

ROWS = 1000  # that are read at once


@contextmanager
def parquet_errors(path: str | Path) -> Iterator[None]:
    """Turn the library's errors into one that names the file.

    Raises:
        TreeparseError: the library is not installed.
        DataError: the file is damaged.
    """
    try:
        from pyarrow import ArrowException
    except ImportError as error:
        problem = f"{path}: Parquet needs pyarrow, which is not installed: pip install treeparse[corpus]"
        raise TreeparseError(problem) from error
    try:
        yield
    except (ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:  # an error of the disk, not of the format
            raise
        raise DataError(f"this is no whole Parquet file ({error!s:.200})", source=str(path)) from error


if TYPE_CHECKING:
    from pyarrow.parquet import ParquetFile


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

    def _columns(self, file: "ParquetFile", path: Path) -> list[str]:
        """Return the columns to read; raise if the file lacks one."""
        names = file.schema_arrow.names
        options = {"--text-column": self.options.text_column, "--id-column": self.options.id_column}
        for option, column in options.items():
            if column is not None and column not in names:
                problem = f"the file has no column {column!r}: name one by {option} ({', '.join(names)})"
                raise DataError(problem, source=str(path))
        return [column for column in options.values() if column is not None]


@contextmanager
def _opened(path: Path) -> Iterator["ParquetFile"]:
    if not path.is_file():
        raise DataError("Parquet is read from its end: write this input to a file first", source=str(path))
    with parquet_errors(path):
        from pyarrow.parquet import ParquetFile

        with ParquetFile(path) as file:
            yield file
