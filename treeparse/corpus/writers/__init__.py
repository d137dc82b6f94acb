r"""Output formats: a writer turns sentences with their trees into text. One file and one line in `WRITERS` a format.

A custom writer is named by its class path, such as ``mine.Brackets``::

    from treeparse.corpus import Writer

    class Brackets(Writer):
        suffix = ".heads"

        def texts(self, results):
            for result in results:
                yield " ".join(map(str, result.parses[0].heads)) + "\n"
"""

from collections.abc import Mapping

from treeparse.corpus.writers.conllu_writer import ConlluWriter
from treeparse.corpus.writers.jsonl_writer import JsonlWriter
from treeparse.corpus.writers.parquet_writer import ParquetWriter
from treeparse.corpus.writers.writer import FileWriter, Writer, WriterOptions
from treeparse.user_code import class_named

__all__ = [
    "TEXT_WRITERS",
    "WRITERS",
    "ConlluWriter",
    "FileWriter",
    "JsonlWriter",
    "ParquetWriter",
    "Writer",
    "WriterOptions",
    "make_writer",
]

TEXT_WRITERS: Mapping[str, type[Writer]] = {"conllu": ConlluWriter, "jsonl": JsonlWriter}
WRITERS: Mapping[str, type[FileWriter]] = {**TEXT_WRITERS, "parquet": ParquetWriter}


def make_writer(name: str, options: WriterOptions) -> FileWriter:
    """Return the writer of a format, or of a class path.

    Raises:
        TreeparseError: no such writer exists, or the writer cannot write what the options ask for.
    """
    return class_named(name, WRITERS, FileWriter, "output format")(options)
