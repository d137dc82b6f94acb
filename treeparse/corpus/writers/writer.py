"""The interface of output formats."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from treeparse.data.conllu import LONGEST_FILE
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
            for text in self.texts(results):
                output.write(text)

    def pack(self, results: Sequence[NBestList]) -> str:
        """Return the text of some sentences."""
        return "".join(self.texts(results))

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
