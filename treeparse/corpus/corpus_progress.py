"""Counts and reports of the parsing of a corpus."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, fields

from treeparse import terminal
from treeparse.sentence import Sentence


@dataclass(slots=True)
class CorpusSummary:
    """Counts of a corpus that was parsed.

    Attributes:
        outputs: written files.
        existing_outputs: files that existed and stayed as they were.
        sentences: parsed sentences.
        words: parsed words.
        invalid_sentences: faulty sentences that were left out.
        long_sentences: sentences that were left out because of their length.
        empty_files: inputs without a sentence.
        short_lists: sentences with fewer trees than k.
        seconds: from the start of reading to the end of writing.
    """

    outputs: int = 0
    existing_outputs: int = 0
    sentences: int = 0
    words: int = 0
    invalid_sentences: int = 0
    long_sentences: int = 0
    empty_files: int = 0
    short_lists: int = 0
    seconds: float = 0.0

    def merge(self, other: "CorpusSummary") -> None:
        """Add the counts of another part of the work; the time stays."""
        for each in fields(self):
            if each.name != "seconds":
                setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))

    def add(self, sentences: Sequence[Sentence]) -> None:
        """Count sentences as parsed."""
        self.sentences += len(sentences)
        self.words += sum(map(len, sentences))


class CorpusObserver:
    """Receives reports while a corpus is parsed; a subclass overrides methods to show them, as a progress bar does."""

    def start(self, size: int | None) -> None:
        """Report the start; ``size`` is the number of bytes to read, None if unknown."""

    def start_output(self, number: int, count: int) -> None:
        """Report the start of an output, by its number from 1, out of ``count`` outputs."""

    def advance(self, sentences: int, words: int, size: int) -> None:
        """Report how many more sentences and words are parsed, and how many more bytes of the input are done."""

    def warn(self, message: str) -> None:
        """Report a doubt about the input."""
        warnings.warn(terminal.message(f"{message[0].upper()}{message[1:]}"), stacklevel=2)

    def fail(self, done: int, count: int) -> None:
        """Report that an error ended the work when ``done`` of ``count`` outputs were written."""
