r"""Output formats: a writer turns sentences with their trees into text. One class and one line in `WRITERS` a format.

A custom writer is named by its class path, such as ``mine.Brackets``::

    from treeparse.corpus import Writer

    class Brackets(Writer):
        suffix = ".heads"

        def texts(self, results):
            for result in results:
                yield " ".join(map(str, result.parses[0].heads)) + "\n"
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, Self

from treeparse.corpus.readers import load_pyarrow
from treeparse.data.annotations import with_head_sets, with_probabilities
from treeparse.data.conllu import LONGEST_FILE, following_text, joinable_texts
from treeparse.data.nbest import nbest_texts
from treeparse.data.outputs import atomic_output
from treeparse.data.parses import NBestList, Parse
from treeparse.errors import TreeparseError
from treeparse.model import TreeRequest
from treeparse.user_code import class_named

ROWS = 10_000  # of a row group
PACKED = 1000  # sentences
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


@dataclass(frozen=True, slots=True)
class WriterOptions:
    """The parts of each result that a writer writes.

    Attributes:
        lists: whether a sentence has a list of trees, otherwise it has one tree.
        tags: whether the tags that the model predicts are written.
        probabilities: whether the probabilities of arcs, labels and trees are written.
        head_sets: whether the sets of probable heads are written.
        certain: words of a lower certainty than this are written without a head; None for all heads.
        drop_empty: whether empty nodes (8.1) are left out.
    """

    lists: bool = False
    tags: bool = False
    probabilities: bool = False
    head_sets: bool = False
    certain: float | None = None
    drop_empty: bool = False

    @classmethod
    def of(cls, trees: TreeRequest, *, tags: bool, drop_empty: bool = False) -> Self:
        """Return the options that write all that a request asks for."""
        return cls(
            lists=trees.is_list,
            tags=tags,
            probabilities=trees.probabilities,
            head_sets=trees.head_threshold is not None,
            certain=trees.certain,
            drop_empty=drop_empty,
        )


class FileWriter(ABC):
    """An output format. ``suffix`` ends the names of its files; `Writer` is the base of formats that are text."""

    suffix: ClassVar[str]

    def __init__(self, options: WriterOptions | None = None) -> None:
        self.options: WriterOptions = options or WriterOptions()

    @property
    def is_independent(self) -> bool:
        """Whether sentences can be packed whatever comes before them: then several processes (``--jobs``) pack them.

        Otherwise these processes only parse.
        """
        return False

    @abstractmethod
    def write(self, path: str | Path, results: Iterable[NBestList]) -> None:
        """Write sentences with their trees, whole or not at all; see `treeparse.data.outputs.atomic_output`."""

    @abstractmethod
    def pack(self, results: Sequence[NBestList]) -> Any:
        """Return some sentences as `write_packed` takes them; what is returned must pickle."""

    @abstractmethod
    def write_packed(self, path: str | Path, packed: Iterable[Any]) -> None:
        """Write what `pack` returned, in order, as `write` writes its sentences."""


class Writer(FileWriter):
    """An output format that is text."""

    @abstractmethod
    def texts(self, results: Iterable[NBestList]) -> Iterator[str]:
        """Yield the text of each sentence with its trees, in order; the texts together are the file."""

    def following(self, before: str, text: str) -> str:
        """Return the text of some sentences as it stands after the text of others, for independent texts."""
        del before
        return text

    def write(self, path: str | Path, results: Iterable[NBestList]) -> None:
        """Write the texts of sentences."""
        with atomic_output(path) as output:
            for text in self._strings(results):
                output.write(text)

    def pack(self, results: Sequence[NBestList]) -> str:
        """Return the text of some sentences."""
        return "".join(self._strings(results))

    def _strings(self, results: Iterable[NBestList]) -> Iterator[str]:
        for text in self.texts(results):
            if not isinstance(text, str):
                raise TreeparseError(f"The texts of {type(self).__name__} must be strings, got {text!r:.50}.")
            yield text

    def write_packed(self, path: str | Path, packed: Iterable[str]) -> None:
        """Write texts, each as it stands after the one before."""
        with atomic_output(path) as output:
            before = ""
            for text in packed:
                output.write(self.following(before, text) if before else text)
                before = text


def with_id(result: NBestList) -> NBestList:
    """Return the result; a sentence without an id gets its ordinal in the file as its id."""
    if result.sent_id:
        return result
    number = result.sentence.ordinal % LONGEST_FILE + 1
    return replace(result, sentence=replace(result.sentence, sent_id=f"sentence-{number}"))


class ConlluWriter(Writer):
    """Writes CoNLL-U, for lists one block a tree; only HEAD, DEPREL, DEPS and what the options add change."""

    suffix = ".conllu"

    def texts(self, results: Iterable[NBestList]) -> Iterator[str]:
        """Yield the text of each sentence."""
        if self.options.lists:
            return nbest_texts(map(with_id, results), "conllu", drop_empty=self.options.drop_empty)
        return joinable_texts(map(self._text, results))

    @property
    def is_independent(self) -> bool:
        """Whether there is one tree a sentence: the names of lists must differ."""
        return not self.options.lists

    def following(self, before: str, text: str) -> str:
        """Return the text with a missing blank line before it, and without a byte order mark."""
        return following_text(before, text)

    def _text(self, result: NBestList) -> str:
        parse, options, sentence = result.parses[0], self.options, result.sentence
        tags = parse.tags if options.tags else {}
        heads, labels = parse.certain_tree(options.certain)
        text = sentence.text_with_parse(heads, labels, tags=tags, drop_empty=options.drop_empty)
        if options.probabilities:
            text = with_probabilities(replace(sentence, text=text), parse).text
        return with_head_sets(replace(sentence, text=text), parse).text if options.head_sets else text


class JsonlWriter(Writer):
    """Writes JSON Lines, an object a sentence, as `treeparse.data.nbest`; a parse is a list of one.

    Raises:
        TreeparseError: the options ask for tags, sets of heads or open words, for which the format has no keys.
    """

    suffix = ".jsonl"

    def __init__(self, options: WriterOptions | None = None) -> None:
        super().__init__(options)
        if self.options.tags or self.options.head_sets or self.options.certain is not None:
            raise TreeparseError("The output format jsonl has no tags, sets of heads or open words: choose conllu.")

    def texts(self, results: Iterable[NBestList]) -> Iterator[str]:
        """Yield the line of each sentence."""
        return nbest_texts(map(with_id, results), "jsonl")


class ParquetWriter(FileWriter):
    """Writes Parquet, a row for each tree.

    The columns are ``sent_id``, ``text`` (null if unknown), ``tokens``, of lists ``rank`` (from 1), then ``heads``,
    ``labels``, ``log_prob`` (null if the trees have none) and ``score``; and those that the options add.

    Raises:
        TreeparseError: the options ask for sets of heads or open words, for which there is no column; or pyarrow is not
            installed.
    """

    suffix: ClassVar[str] = ".parquet"

    def __init__(self, options: WriterOptions | None = None) -> None:
        super().__init__(options)
        if self.options.head_sets or self.options.certain is not None:
            raise TreeparseError("The output format parquet has no sets of heads or open words: choose conllu.")
        self._schema = _schema(self.options)

    @property
    def is_independent(self) -> bool:
        """Whether processes can pack sentences: always, because ids need not differ."""
        return True

    def write(self, path: str | Path, results: Iterable[NBestList]) -> None:
        """Write the rows of sentences."""
        rest = iter(results)
        self.write_packed(path, map(self.pack, iter(lambda: [*islice(rest, PACKED)], [])))

    def pack(self, results: Sequence[NBestList]) -> Any:
        """Return the rows of sentences, a ``RecordBatch`` of pyarrow."""
        rows = [row for result in results for row in self._rows(result)]
        return load_pyarrow("the output").RecordBatch.from_pylist(rows, schema=self._schema)

    def write_packed(self, path: str | Path, packed: Iterable[Any]) -> None:
        """Write rows, always as many in a row group, so that the bytes do not depend on how they were packed."""
        pa = load_pyarrow(path)
        open_stream = pa.parquet.ParquetWriter
        with atomic_output(path) as output, open_stream(output, self._schema, compression="zstd") as stream:
            waiting = pa.Table.from_batches([], schema=self._schema)
            for batch in packed:
                waiting = pa.Table.from_batches([*waiting.to_batches(), batch], schema=self._schema)
                while len(waiting) >= ROWS:
                    stream.write_table(waiting.slice(0, ROWS).combine_chunks())
                    waiting = waiting.slice(ROWS)
            if len(waiting):
                stream.write_table(waiting.combine_chunks())

    def _rows(self, result: NBestList) -> Iterator[dict[str, Any]]:
        result = with_id(result)
        text = next(iter(result.sentence.comments("text")), None) or None
        columns = {"sent_id": result.sent_id, "text": text, "tokens": result.tokens}
        for rank, parse in enumerate(result.parses, 1):
            yield columns | {"rank": rank, **_columns(parse)}


def _columns(parse: Parse) -> dict[str, Any]:
    """Return the columns of a tree; the schema chooses among them."""
    names = ("heads", "labels", "score", "upos", "xpos", "feats", "arc_probs", "label_probs", "entropy")
    log_prob = None if math.isnan(parse.log_prob) else parse.log_prob
    return {name: getattr(parse, name) for name in names} | {"log_prob": log_prob}


def _schema(options: WriterOptions) -> Any:
    pa = load_pyarrow("the output")
    texts, numbers = pa.list_(pa.string()), pa.list_(pa.float64())
    columns = {"sent_id": pa.string(), "text": pa.string(), "tokens": texts}
    if options.tags:
        columns |= dict.fromkeys(("upos", "xpos", "feats"), texts)
    if options.lists:
        columns["rank"] = pa.int32()
    columns |= {"heads": pa.list_(pa.int32()), "labels": texts, "log_prob": pa.float64(), "score": pa.float64()}
    if options.probabilities:
        columns |= {"arc_probs": numbers, "label_probs": numbers, "entropy": pa.float64()}
    return pa.schema(list(columns.items()))


TEXT_WRITERS: Mapping[str, type[Writer]] = {"conllu": ConlluWriter, "jsonl": JsonlWriter}
WRITERS: Mapping[str, type[FileWriter]] = {**TEXT_WRITERS, "parquet": ParquetWriter}


def make_writer(name: str, options: WriterOptions) -> FileWriter:
    """Return the writer of a format, or of a class path.

    Raises:
        TreeparseError: no such writer exists, or the writer cannot write what the options ask for.
    """
    return class_named(name, WRITERS, FileWriter, "output format")(options)
