"""The interface of output formats."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from treeparse.data.outputs import atomic_output
from treeparse.data.parses import NBestList


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

    @property
    def is_independent(self) -> bool:
        """Whether the text of a sentence is the same whatever comes before it, but for what `following` changes.

        Then several processes (``--jobs``) make the texts; otherwise they only parse.
        """
        return False

    def following(self, before: str, text: str) -> str:
        """Return the text of some sentences as it stands after the text of others, for independent texts."""
        del before
        return text

    @abstractmethod
    def texts(self, results: Iterable[NBestList]) -> Iterator[str]:
        """Yield the text of each sentence with its trees, in order; the texts together are the file."""


def with_id(result: NBestList) -> NBestList:
    """Return the result; a sentence without an id gets its ordinal in the file as its id."""
    if result.sent_id:
        return result
    return replace(result, sentence=replace(result.sentence, sent_id=f"sentence-{result.sentence.ordinal + 1}"))


def write_results(writer: Writer, path: str | Path, results: Iterable[NBestList]) -> None:
    """Write sentences with their trees, whole or not at all; see `treeparse.data.outputs.atomic_output`."""
    with atomic_output(path) as output:
        for text in writer.texts(results):
            output.write(text)


def write_texts(writer: Writer, path: str | Path, texts: Iterable[str]) -> None:
    """Write independent texts of several processes as `write_results` writes their sentences."""
    with atomic_output(path) as output:
        before = ""
        for text in texts:
            output.write(writer.following(before, text) if before else text)
            before = text
