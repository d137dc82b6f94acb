"""Check the lines of a CoNLL-U sentence: columns, the order of ids, heads, labels. Each fault has its line number."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from treeparse.sentence import EMPTY, INTO_CYCLE, tree_problem, unreached_words

BYTE_ORDER_MARK = "\ufeff"
COLUMNS = ("ID", "FORM", "LEMMA", "UPOS", "XPOS", "FEATS", "HEAD", "DEPREL", "DEPS", "MISC")
ID, FORM, LEMMA, UPOS, XPOS, FEATS, HEAD, DEPREL, DEPS, MISC = range(len(COLUMNS))

Fault = tuple[int, str]
"""A line number, and what is wrong in that line."""

NO_HEAD = "(HEAD is _)"  # ends the fault of a word whose head is open
NO_HEADS = f"no word has a head {NO_HEAD}"
NO_LABELS = "no word has a label (DEPREL is _)"
NO_UTF8 = "a line is not valid UTF-8"
CONVERT = "convert the file, for example by iconv -f ENCODING -t UTF-8"
IS_JSONL = "; is this JSON Lines? To read lists, give --format jsonl, or a name that ends in .jsonl"
IS_TEXT = "; is this text? To parse it, give --format text, and to the server input=horizontal"

_NUMBER = r"[1-9][0-9]{0,8}"  # int() refuses endless digits, and no sentence has a billion words
_WORD = re.compile(_NUMBER)
_RANGE = re.compile(rf"({_NUMBER})-({_NUMBER})")
_POSSIBLE_HEADS = re.compile(rf"(?:^|\|)Heads=((?:0|{_NUMBER})(?:,(?:0|{_NUMBER}))*)(?=\||$)")
_EMPTY_NODE = re.compile(rf"(0|{_NUMBER})\.({_NUMBER})")


def word_columns(lines: Sequence[str], first: int) -> tuple[Sequence[int], Sequence[Sequence[str]], list[Fault]]:
    """Split the lines of a sentence into columns; ``first`` is the number of its first line.

    Returns:
        The line numbers of the words, the ten columns of their values, and the faults; with faults, words are missing.
    """
    start = next((index for index, line in enumerate(lines) if line[0] != "#"), len(lines))
    if columns := _plain_columns(lines[start:]):  # as nearly always: the checks below take most of the time
        return range(first + start, first + len(lines)), columns, []
    numbers: list[int] = []
    rows: list[list[str]] = []
    faults: list[Fault] = []
    ids = _IdOrder()
    for number, line in enumerate(lines, first):
        if problem := byte_order_mark_problem(line):
            faults.append((number, problem))
            line = line.removeprefix(BYTE_ORDER_MARK)
        if line.startswith("#"):
            if ids.started:
                problem = "a comment must be before the first word; is the empty line between two sentences missing?"
                faults.append((number, problem))
            continue
        columns = line.split("\t")
        is_word, misplaced = ids.follow(columns[ID], number)
        problem = _column_problem(columns) or misplaced
        if problem is not None:
            faults.append((number, problem))
        elif is_word:
            numbers.append(number)
            rows.append(columns)
    faults.extend(ids.faults_at_end(first + len(lines) - 1))
    return numbers, [*zip(*rows, strict=True)], faults


def _plain_columns(rows: Sequence[str]) -> Sequence[Sequence[str]] | None:
    """Return the columns of rows that are the words 1, 2 and so on; None if a row is anything else or faulty."""
    values = "\t\n\t".join(rows).split("\t")
    *columns, ends = (values[index :: len(COLUMNS) + 1] for index in range(len(COLUMNS) + 1))
    has_ten_each = len(columns[MISC]) == len(rows) and ends == ["\n"] * (len(rows) - 1)
    is_plain = has_ten_each and columns[ID] == [*map(str, range(1, len(rows) + 1))] and "" not in values
    return columns if is_plain else None


def undecodable_lines(block: bytes, first_line: int) -> list[Fault]:
    """Return the faults of the lines of a block that are not UTF-8: their first bad byte."""
    faults = []
    for number, line in enumerate(block.split(b"\n"), first_line):
        try:
            line.decode()
        except UnicodeDecodeError as error:
            faults.append((number, utf8_problem(error)))
    return faults


def utf8_problem(error: UnicodeDecodeError) -> str:
    """Return the fault of a line that is not UTF-8."""
    return f"byte {error.start + 1} of the line (0x{error.object[error.start]:02x}) is not valid UTF-8: {CONVERT}"


def byte_order_mark_problem(line: str) -> str | None:
    """Return the fault of a line, not the first of its file, that begins with a byte order mark."""
    if not line.startswith(BYTE_ORDER_MARK):
        return None
    return "the line begins with a byte order mark, which only a file may begin with; were two files joined?"


def _column_problem(columns: list[str]) -> str | None:
    if len(columns) != len(COLUMNS):
        is_other = IS_JSONL if columns[0].startswith("{") else IS_TEXT
        remedy = f"separate them by single tabs{is_other * (len(columns) == 1)}"
        return f"a line must have 10 columns, got {len(columns)}: {remedy}"
    if "" in columns:
        return f"the column {COLUMNS[columns.index('')]} must not be empty; write a missing value as _"
    return None


class _IdOrder:
    """Check the order of the ID column: words 1 to n, a range before its first word, empty nodes after their word."""

    def __init__(self) -> None:
        self.started = False
        self.next_word = "1"
        self._word = self._empty_node = 0  # the last word, and its last empty node
        self._covered = self._range_line = 0  # the last word of the last range, and the line of that range

    def follow(self, identifier: str, line: int) -> tuple[bool, str | None]:
        """Take the next ID; return whether it is a word's, and its fault or None."""
        self.started = True
        if identifier == self.next_word:
            self.take_word()
            return True, None
        if match := _RANGE.fullmatch(identifier):
            return False, self._range_problem(identifier, int(match[1]), int(match[2]), line)
        if match := _EMPTY_NODE.fullmatch(identifier):
            return False, self._empty_node_problem(identifier, int(match[1]), int(match[2]))
        problem = f"the ID must be {self._word + 1}, the next word, got {shown(identifier)}"
        if _WORD.fullmatch(identifier):
            self.take_word(int(identifier))
        return True, problem

    def take_word(self, word: int | None = None) -> None:
        """Take the next word, or another one."""
        self.started = True
        self._word, self._empty_node = self._word + 1 if word is None else word, 0
        self.next_word = str(self._word + 1)

    def _range_problem(self, identifier: str, start: int, end: int, line: int) -> str | None:
        if start <= self._covered:
            return f"the range {identifier} overlaps the range before it, which ends at word {self._covered}"
        if start != self._word + 1:
            return f"the range {identifier} is out of place: the next word is {self._word + 1}"
        if end < start:
            return f"the range {identifier} runs backwards"
        self._covered, self._range_line = end, line
        return None

    def _empty_node_problem(self, identifier: str, word: int, position: int) -> str | None:
        expected = (self._word, self._empty_node + 1)
        if word == self._word:
            self._empty_node = position
        if (word, position) == expected:
            return None
        return f"the empty node {identifier} is out of place: the next one here is {expected[0]}.{expected[1]}"

    def faults_at_end(self, line: int) -> list[Fault]:
        """Return the faults that only the end of the sentence shows; ``line`` is the number of its last line."""
        if not self._word:
            return [(line, f"the sentence has no words{IS_TEXT}")]
        if self._covered > self._word:
            return [(self._range_line, f"the range ends at word {self._covered}, but the last word is {self._word}")]
        return []


@dataclass(frozen=True, slots=True)
class TreeCheck:
    """The rules that the heads of a sentence must satisfy.

    Attributes:
        single_root: exactly one word hangs from the root.
        partial: heads may be unknown (HEAD is ``_``), or MISC may name several possible heads.
        heads: check HEAD; otherwise check only the possible heads.
        labels: every word of a complete tree has a label; a sentence without any head has one fault for all words.
    """

    single_root: bool = True
    partial: bool = False
    heads: bool = True
    labels: bool = False

    def faults(self, columns: Sequence[Sequence[str]], heads: Sequence[int], lines: Sequence[int]) -> list[Fault]:
        """Return the faults of the heads of words, from the ten columns, their heads and line numbers."""
        if not self.heads:
            return possible_head_faults(columns[MISC], [-1] * len(heads), lines)
        column = columns[HEAD]
        if self.labels and set(column) == {EMPTY}:
            return [(lines[0], NO_HEADS)]
        unusable = [
            (line, _head_problem(word, text, len(heads)))
            for word, (line, text, head) in enumerate(zip(lines, column, heads, strict=True), 1)
            if head < 0 and not (self.partial and text == EMPTY)
        ]
        if unusable:
            return unusable
        if problem := tree_problem(heads, single_root=self.single_root, partial=self.partial):
            if problem.endswith(INTO_CYCLE):
                problem += f": {' '.join(columns[FORM][word - 1] for word in unreached_words(heads)):.100}"
            return [(lines[_faulty_word(heads, self.single_root) - 1], problem)]
        if self.partial:
            return possible_head_faults(columns[MISC], heads, lines)
        return label_faults(columns[DEPREL], heads, lines) if self.labels else []


def label_faults(labels: Sequence[str], heads: Sequence[int], lines: Sequence[int]) -> list[Fault]:
    """Return the faults of the words of a tree that have no label."""
    if set(labels) == {EMPTY}:
        return [(lines[0], NO_LABELS)]
    return [
        (line, f"word {word} has head {head} and no label (DEPREL is _)")
        for word, (label, head, line) in enumerate(zip(labels, heads, lines, strict=True), 1)
        if label == EMPTY
    ]


def possible_heads(column: Sequence[str]) -> tuple[tuple[int, ...], ...] | None:
    """Return each word's possible heads, which MISC names as ``Heads=2,5``: () for none; None if no word has any."""
    matches = [_POSSIBLE_HEADS.search(misc) for misc in column]
    if not any(matches):
        return None
    return tuple(tuple(map(int, match[1].split(","))) if match else () for match in matches)


def possible_head_faults(column: Sequence[str], heads: Sequence[int], lines: Sequence[int]) -> list[Fault]:
    """Return the faults of the possible heads in a MISC column, from it, the heads and the words' line numbers."""
    faults = []
    for word, (misc, head, line) in enumerate(zip(column, heads, lines, strict=True), 1):
        items = [item for item in misc.split("|") if item.startswith("Heads=")]
        match = _POSSIBLE_HEADS.search(misc)
        choice = "" if match is None else match[1]
        named = list(map(int, choice.split(","))) if choice else []
        if len(items) > 1 or (items and match is None):
            problem = f"write the possible heads of word {word} once, as Heads=2,5, not {shown('|'.join(items))}"
            faults.append((line, problem))
        elif named and (max(named) > len(heads) or word in named):
            problem = f"word {word} may have the heads {choice}, one of which is no other node of the sentence"
            faults.append((line, problem))
        elif named and head >= 0 and head not in named:
            faults.append((line, f"word {word} has head {head}, which is not among its possible heads {choice}"))
    return faults


def _head_problem(word: int, head: str, count: int) -> str:
    if head == EMPTY:
        return f"word {word} has no head {NO_HEAD}"
    if _WORD.fullmatch(head.removeprefix("-")):
        return f"the head of word {word} must be from 0 to {count}, got {head}"
    return f"the head of word {word} must be a number, got {shown(head)}"


def _faulty_word(heads: Sequence[int], single_root: bool) -> int:
    """Return the word whose line gets the fault of `tree_problem`: the second root or the first word off the tree."""
    roots = [word for word, head in enumerate(heads, 1) if head == 0]
    if single_root and len(roots) > 1:
        return roots[1]
    return unreached_words(heads)[0]


def shown(value: str) -> str:
    """Return a value from a file as messages show it: quoted, unprintable characters escaped, shortened."""
    return repr(value if len(value) <= 40 else value[:39] + "…")
