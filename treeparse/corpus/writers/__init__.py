r"""Output formats: a writer turns sentences with their trees into text. One file a format, one line in `WRITERS`.

A writer of a user's own is a class path, such as ``mine.Brackets``::

    from treeparse.corpus import Writer

    class Brackets(Writer):
        suffix = ".heads"

        def texts(self, results):
            for result in results:
                yield " ".join(map(str, result.parses[0].heads)) + "\n"
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from treeparse.data.compression import plain_name
from treeparse.data.outputs import atomic_output
from treeparse.data.parses import NBestList
from treeparse.errors import TreeparseError, did_you_mean
from treeparse.user_code import import_code

WRITERS = {
    "conllu": "treeparse.corpus.writers.conllu.ConlluWriter",
    "jsonl": "treeparse.corpus.writers.jsonl.JsonlWriter",
}


@dataclass(frozen=True, slots=True)
class WriterOptions:
    """What is written of each sentence.

    Attributes:
        lists: whether a sentence has a list of trees, otherwise it has one tree.
        tags: whether the tags that the model predicts are written.
        probabilities: whether the probabilities of arcs, labels and trees are written.
        head_sets: whether the sets of probable heads are written.
        drop_empty: whether empty nodes (8.1) are left out.
    """

    lists: bool = False
    tags: bool = False
    probabilities: bool = False
    head_sets: bool = False
    drop_empty: bool = False


class Writer(ABC):
    """An output format. ``suffix`` ends the names of its files."""

    suffix: ClassVar[str]

    def __init__(self, options: WriterOptions | None = None) -> None:
        self.options = options or WriterOptions()

    @abstractmethod
    def texts(self, results: Iterable[NBestList]) -> Iterator[str]:
        """Return the text of each sentence and its trees, in order, with whatever stands before, between and after."""


def check_format(name: str) -> str:
    """Return the name of an output format, or the class path of a writer; raise for a name that is neither.

    A class path is not imported.
    """
    if name not in WRITERS and "." not in name:
        problem = f"Unknown output format {name!r}. Formats: {', '.join(WRITERS)}, or the class path of a writer"
        raise TreeparseError(problem + (did_you_mean(name, WRITERS) or "."))
    return name


def format_of_name(path: str | Path) -> str:
    """Return the output format that the name of a file says: jsonl for ``.jsonl``, ``.jsonl.gz`` etc., else conllu."""
    return "jsonl" if plain_name(path).endswith(".jsonl") else "conllu"


def make_writer(name: str, options: WriterOptions) -> Writer:
    """Return the writer of a format, or of a class path.

    Raises:
        TreeparseError: there is no such writer, or it cannot write what the options say.
    """
    module, _, kind = WRITERS.get(check_format(name), name).rpartition(".")
    writer = getattr(import_code(module), kind, None)
    if not (isinstance(writer, type) and issubclass(writer, Writer)):
        raise TreeparseError(f"An output format must be a subclass of treeparse.corpus.Writer, got {name}.")
    return writer(options)


def with_id(result: NBestList) -> NBestList:
    """Return the result with an id of its sentence, by its ordinal in the file where the sentence has none."""
    if result.sent_id:
        return result
    return replace(result, sentence=replace(result.sentence, sent_id=f"sentence-{result.sentence.ordinal + 1}"))


def write_results(path: str | Path, writer: Writer, results: Iterable[NBestList]) -> None:
    """Write sentences with their trees, whole or not at all; see `treeparse.data.outputs.atomic_output`."""
    with atomic_output(path) as output:
        for text in writer.texts(results):
            output.write(text)
