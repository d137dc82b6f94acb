r"""Output formats: a writer turns sentences with their trees into text. Each format is one line in `WRITERS`.

A custom writer is named by its class path, such as ``mine.Brackets``::

    from treeparse.corpus import Writer

    class Brackets(Writer):
        suffix = ".heads"

        def texts(self, results):
            for result in results:
                yield " ".join(map(str, result.parses[0].heads)) + "\n"
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from treeparse.data.annotations import with_head_sets, with_probabilities
from treeparse.data.compression import plain_name
from treeparse.data.conllu import ConlluSentence, conllu_texts
from treeparse.data.nbest.files import nbest_texts
from treeparse.data.outputs import atomic_output
from treeparse.data.parses import NBestList
from treeparse.errors import TreeparseError, did_you_mean
from treeparse.user_code import import_code


@dataclass(frozen=True, slots=True)
class WriterOptions:
    """The parts of each result that a writer writes.

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
        """Yield the text of each sentence with its trees, in order; the texts together are the file."""


class ConlluWriter(Writer):
    """Writes CoNLL-U, for lists one block a tree; only HEAD, DEPREL, DEPS and what the options add change."""

    suffix = ".conllu"

    def texts(self, results: Iterable[NBestList]) -> Iterator[str]:
        """Yield the text of each sentence."""
        if self.options.lists:
            return nbest_texts(map(_with_id, results), "conllu", drop_empty=self.options.drop_empty)
        return conllu_texts(map(self._parsed, results))

    def _parsed(self, result: NBestList) -> ConlluSentence:
        parse, options = result.parses[0], self.options
        tags = parse.tags if options.tags else {}
        parsed = result.sentence.with_parse(parse.heads, parse.labels, tags=tags, drop_empty=options.drop_empty)
        if options.probabilities:
            parsed = with_probabilities(parsed, parse)
        return with_head_sets(parsed, parse) if options.head_sets else parsed


class JsonlWriter(Writer):
    """Writes JSON Lines, an object a sentence, whose keys `treeparse.data.nbest.jsonl` lists; a parse is a list of one.

    Raises:
        TreeparseError: the options ask for tags or sets of heads, for which the format has no keys.
    """

    suffix = ".jsonl"

    def __init__(self, options: WriterOptions | None = None) -> None:
        super().__init__(options)
        if self.options.tags or self.options.head_sets:
            raise TreeparseError("The output format jsonl has no tags and no sets of heads: choose conllu.")

    def texts(self, results: Iterable[NBestList]) -> Iterator[str]:
        """Yield the line of each sentence."""
        return nbest_texts(map(_with_id, results), "jsonl")


WRITERS: Mapping[str, type[Writer]] = {"conllu": ConlluWriter, "jsonl": JsonlWriter}


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
        TreeparseError: no such writer exists, or the writer cannot write what the options ask for.
    """
    kind = WRITERS.get(check_format(name))
    if kind is None:
        module, _, attribute = name.rpartition(".")
        kind = getattr(import_code(module), attribute, None)
    if not (isinstance(kind, type) and issubclass(kind, Writer)):
        raise TreeparseError(f"An output format must be a subclass of treeparse.corpus.Writer, got {name}.")
    return kind(options)


def _with_id(result: NBestList) -> NBestList:
    """Return the result; a sentence without an id gets its ordinal in the file as its id."""
    if result.sent_id:
        return result
    return replace(result, sentence=replace(result.sentence, sent_id=f"sentence-{result.sentence.ordinal + 1}"))


def write_results(path: str | Path, writer: Writer, results: Iterable[NBestList]) -> None:
    """Write sentences with their trees, whole or not at all; see `treeparse.data.outputs.atomic_output`."""
    with atomic_output(path) as output:
        for text in writer.texts(results):
            output.write(text)
