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
from treeparse.errors import TreeparseError, did_you_mean
from treeparse.user_code import import_code

__all__ = [
    "TEXT_WRITERS",
    "WRITERS",
    "ConlluWriter",
    "FileWriter",
    "JsonlWriter",
    "ParquetWriter",
    "Writer",
    "WriterOptions",
    "check_format",
    "make_writer",
]

TEXT_WRITERS: Mapping[str, type[Writer]] = {"conllu": ConlluWriter, "jsonl": JsonlWriter}
WRITERS: Mapping[str, type[FileWriter]] = {**TEXT_WRITERS, "parquet": ParquetWriter}


def check_format(name: str) -> str:
    """Return the name of an output format, or the class path of a writer; raise for a name that is neither.

    A class path is not imported.
    """
    if name not in WRITERS and "." not in name:
        problem = f"Unknown output format {name!r}. Formats: {', '.join(WRITERS)}, or the class path of a writer"
        raise TreeparseError(problem + (did_you_mean(name, WRITERS) or "."))
    return name


def make_writer(name: str, options: WriterOptions) -> FileWriter:
    """Return the writer of a format, or of a class path.

    Raises:
        TreeparseError: no such writer exists, or the writer cannot write what the options ask for.
    """
    kind = WRITERS.get(check_format(name))
    if kind is None:
        module, _, attribute = name.rpartition(".")
        kind = getattr(import_code(module), attribute, None)
    if not (isinstance(kind, type) and issubclass(kind, FileWriter)):
        raise TreeparseError(f"An output format must be a subclass of treeparse.corpus.Writer, got {name}.")
    return kind(options)
