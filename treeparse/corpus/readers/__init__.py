"""Input formats: a reader turns files into sentences. One file and one line in `READERS` a format.

A custom reader is a subclass of `Reader`, named by its class path, such as ``mine.Verticals``.
"""

from collections.abc import Mapping

from treeparse.corpus.readers.conllu_reader import ConlluReader
from treeparse.corpus.readers.jsonl_reader import JsonlReader
from treeparse.corpus.readers.parquet_reader import ParquetReader
from treeparse.corpus.readers.reader import Reader
from treeparse.corpus.readers.text import TextReader
from treeparse.user_code import class_named

READERS: Mapping[str, type[Reader]] = {
    "conllu": ConlluReader,
    "text": TextReader,
    "jsonl": JsonlReader,
    "parquet": ParquetReader,
}


def reader_named(name: str) -> type[Reader]:
    """Return the reader of a format, or of a class path; see `class_named`."""
    return class_named(name, READERS, Reader, "input format")
