"""What this package reads though the form of CoNLL-U forbids it: other line ends, blank lines, white space in columns.

The official validator of Universal Dependencies refuses files with any of it.
"""

import re
from collections.abc import Iterable, Iterator

from treeparse.data.conllu import ConlluSentence, is_row
from treeparse.data.validation import COLUMNS, FORM, LEMMA, MISC

_WITH_SPACES = FORM, LEMMA, MISC
_MAY_BE_LOOSE = re.compile(r"[^\S\n\t]")
_SPACE = re.compile(r"[^\S\r]")
MARK = "a byte order mark"
LINE_END = "a line that does not end with LF alone"
CARRIAGE_RETURN = "a carriage return inside a line"
BLANK_LINE = "a blank line that follows no sentence"
NO_BLANK_LINE = "no blank line after the last sentence"


class LooseForm:
    """The lines of one file that are read though their form is not allowed: by problem, how many and the first."""

    def __init__(self) -> None:
        self.found: dict[str, tuple[int, int]] = {}
        self._last: ConlluSentence | None = None

    def watching(self, sentences: Iterable[ConlluSentence]) -> Iterator[ConlluSentence]:
        """Yield the sentences, after looking at each."""
        for sentence in sentences:
            for line, problem in loose_lines(sentence):
                count, first = self.found.get(problem, (0, line))
                self.found[problem] = count + 1, first
            self._last = sentence
            yield sentence

    def notes(self) -> Iterator[str]:
        """Yield a note on each problem, the last sentence's end included."""
        found = dict(self.found)
        if self._last is not None and not self._last.text.endswith(("\n\n", "\n\r\n")):
            found[NO_BLANK_LINE] = 1, self._last.line + self._last.text.strip("\r\n").count("\n")
        for problem, (count, first) in found.items():
            where = f"in line {first:,}" if count == 1 else f"in {count:,} lines, first in line {first:,}"
            yield f"{problem}, {where}"


def loose_lines(sentence: ConlluSentence) -> Iterator[tuple[int, str]]:
    """Yield the number of each line of a sentence whose form is not allowed, and what is wrong with it."""
    mark, lines = sentence.mark_and_lines()
    bare = [line.removesuffix("\r") for line in lines]
    with_content = [index for index, line in enumerate(bare) if line]
    first, last = with_content[0], with_content[-1]
    number = sentence.line - first  # of the first line
    if mark:
        yield number, MARK
    for index, line in enumerate(bare):
        if line != lines[index]:
            yield number + index, LINE_END
        if "\r" in line:
            yield number + index, CARRIAGE_RETURN
        if (index < first or index > last + 1) and index < len(bare) - 1:
            yield number + index, BLANK_LINE
        if is_row(line) and _MAY_BE_LOOSE.search(line):
            yield from ((number + index, problem) for problem in _problems_of_columns(line.split("\t")))


def _problems_of_columns(columns: list[str]) -> Iterator[str]:
    for index, column in enumerate(columns):
        if index not in _WITH_SPACES and _SPACE.search(column):
            yield f"white space in the column {COLUMNS[index]}"
