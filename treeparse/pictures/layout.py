"""The words and arcs of a tree to draw, and their layout: rows of words, levels of arcs, positions of labels."""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import pairwise
from typing import NamedTuple

from treeparse.pictures.svg import LABEL_SIZE, text_width, visible

WORD_SIZE, TAG_SIZE = 15.0, 10.5  # of the fonts, in pixels
GAP = 16.0  # between words
SLOT = 7.0  # between the ends of arcs at one word
LABEL_PADDING = 4.0  # of a label's background, at each side
LABEL_ROOM = 9.0  # from a label's background to the bends of its arc
NO_LABEL = "_"
CLEARANCE = 5.0  # between arcs of the same level, and between labels and the arcs that pass by them


class Mark(StrEnum):
    """How an arc differs from the reference; the value is the CSS class, empty for an equal arc."""

    SAME = ""
    HEAD = "tp-other-head"  # another head
    LABEL = "tp-other-label"  # the same head under another label


class MultiwordToken(NamedTuple):
    """A token of several words, from ``first`` to ``last``, counted from 1, and its form in the text."""

    first: int
    last: int
    form: str


@dataclass(frozen=True, slots=True)
class Tree:
    """A tree to draw: words, their heads as in CoNLL-U (0 is the root, -1 no arc) and their labels.

    ``tags`` are drawn below the words; ``"_"`` draws none. ``tokens`` are drawn below the words that they span.

    Raises:
        ValueError: if the columns differ in length, or a head or a word of a token is not a node.
    """

    words: tuple[str, ...]
    heads: tuple[int, ...]
    labels: tuple[str, ...]
    tags: tuple[str, ...] | None = None
    tokens: tuple[MultiwordToken, ...] = ()

    def __post_init__(self) -> None:
        count = len(self.words)
        for name, column in (("heads", self.heads), ("labels", self.labels), ("tags", self.tags)):
            if column is not None and len(column) != count:
                raise ValueError(f"A tree of {count} words needs {count} {name}, got {len(column)}.")
        for word, head in enumerate(self.heads, 1):
            if not -1 <= head <= count or head == word:
                raise ValueError(
                    f"The head of word {word} must be another word, from 1 to {count}, 0 or -1, got {head}."
                )
        for token in self.tokens:
            if not 1 <= token.first <= token.last <= count:
                raise ValueError(f"A token must span words from 1 to {count}, got {token.first} to {token.last}.")


@dataclass(frozen=True, slots=True)
class Arc:
    """An arc with its label; words are counted from 1, the head 0 is the root. ``note`` is the tooltip."""

    head: int
    dependent: int
    label: str
    mark: Mark = Mark.SAME
    note: str = ""

    @property
    def is_root(self) -> bool:
        return self.head == 0

    @property
    def left(self) -> int:
        """The word at the left end, in sentence order; for the root's arc, its dependent."""
        return self.dependent if self.is_root else min(self.head, self.dependent)

    @property
    def right(self) -> int:
        return max(self.head, self.dependent)

    @property
    def length(self) -> int:
        """The distance of its ends in words; 0 for the root's arc."""
        return self.right - self.left


def arcs_of(tree: Tree, reference: Tree | None = None) -> list[Arc]:
    """Return the arcs of a tree by dependent, marked where ``reference``, a tree of the same words, differs.

    Where the reference has no label (``_``), any label is equal.

    Raises:
        ValueError: if the reference has other words.
    """
    if reference is not None and reference.words != tree.words:
        raise ValueError("The reference tree must have the words of the drawn tree, got other words.")
    reference = reference or tree
    arcs = []
    for dependent, (head, label) in enumerate(zip(tree.heads, tree.labels, strict=True), 1):
        if head >= 0:
            mark, note = Mark.SAME, _described(tree, dependent)
            if head != reference.heads[dependent - 1]:
                mark = Mark.HEAD
            elif reference.labels[dependent - 1] not in (NO_LABEL, label):
                mark = Mark.LABEL
            if mark:
                note += f" instead of {_described(reference, dependent)}"
            arcs.append(Arc(head, dependent, label, mark, note))
    return arcs


def count_marks(arcs: Sequence[Arc]) -> tuple[int, int]:
    """Return how many arcs have another head, and how many only another label."""
    marks = [arc.mark for arc in arcs]
    return marks.count(Mark.HEAD), marks.count(Mark.LABEL)


def _described(tree: Tree, dependent: int) -> str:
    head = tree.heads[dependent - 1]
    if head < 0:
        return f"no head for {tree.words[dependent - 1]}"
    above = tree.words[head - 1] if head else "root"
    return f"{above} → {tree.words[dependent - 1]}: {tree.labels[dependent - 1]}"


@dataclass(frozen=True, slots=True)
class MeasuredArc:
    """An arc, the width of its label's background, and how far from the centres of its words its two ends are."""

    arc: Arc
    width: float
    left_offset: float
    right_offset: float

    @property
    def room(self) -> float:
        """The least length of the arc that leaves room for its label."""
        return self.width + 2 * LABEL_ROOM


@dataclass(frozen=True, slots=True)
class Row:
    """The words from ``first`` to ``last``, counted from 1, with their centres, in a row of some width."""

    first: int
    last: int
    centres: tuple[float, ...]
    width: float

    def centre(self, word: int) -> float:
        return self.centres[word - self.first]

    def holds(self, word: int) -> bool:
        return self.first <= word <= self.last


@dataclass(frozen=True, slots=True)
class Segment:
    """The part of an arc that lies in a row, from ``left`` to ``right``, at a level counted from 0.

    It is open on a side on which the arc continues in another row. The root's arc is as wide as its label. ``centre``
    and ``width`` are of the label.
    """

    arc: Arc
    left: float
    right: float
    opens_left: bool
    opens_right: bool
    width: float
    level: int = 0
    centre: float = 0.0

    def legs(self) -> list[float]:
        """Return the positions at which the segment goes down to words."""
        if self.arc.is_root:
            return [(self.left + self.right) / 2]
        ends = ((self.left, self.opens_left), (self.right, self.opens_right))
        return [end for end, is_open in ends if not is_open]


def measure(tree: Tree, arcs: Sequence[Arc]) -> tuple[list[float], list[MeasuredArc]]:
    """Return the widths of a tree's words with their tags and arcs' ends, and its arcs with their measures.

    The words of a token are together at least as wide as its form. At a word, arcs to its left end at the left, the
    longest nearest to the middle; then come the root's arc and the arcs to its right, the longest first. So no arc
    crosses another arc of the same word.
    """
    slots: list[list[tuple[int, int, int]]] = [[] for _ in tree.words]  # side, order on this side, index of the arc
    for order, index in enumerate(sorted(range(len(arcs)), key=lambda index: arcs[index].length)):
        arc = arcs[index]
        if arc.is_root:
            slots[arc.dependent - 1].append((0, 0, index))
        else:
            slots[arc.right - 1].append((-1, order, index))
            slots[arc.left - 1].append((1, -order, index))
    left_offsets, right_offsets = [0.0] * len(arcs), [0.0] * len(arcs)
    widths = []
    for word, form in enumerate(tree.words):
        last = len(slots[word]) - 1
        for slot, (side, _, index) in enumerate(sorted(slots[word])):
            offset = (slot - last / 2) * SLOT
            if side >= 0:
                left_offsets[index] = offset
            if side <= 0:
                right_offsets[index] = offset
        tag = "" if tree.tags is None else tree.tags[word]
        widths.append(max(text_width(visible(form), WORD_SIZE), text_width(tag, TAG_SIZE), last * SLOT))
    for token in tree.tokens:
        span = range(token.first - 1, token.last)
        missing = text_width(visible(token.form), WORD_SIZE) - sum(widths[word] + GAP for word in span) + GAP
        for word in span:
            widths[word] += max(missing, 0) / len(span)
    labels = [text_width(visible(arc.label), LABEL_SIZE) + 2 * LABEL_PADDING for arc in arcs]
    return widths, list(map(MeasuredArc, arcs, labels, left_offsets, right_offsets))


def rows_of(widths: Sequence[float], arcs: Sequence[MeasuredArc], wrap: float | None) -> list[Row]:
    """Return words of these widths in rows no wider than ``wrap``, if possible; None is one row.

    All rows are equally wide.
    """
    count = len(widths)
    rows: list[Row] = []
    first = 1
    while first <= count:
        row = _space(first, count if wrap is None else first, widths, arcs)
        while row.last < count and wrap is not None:
            longer = _space(first, row.last + 1, widths, arcs)
            if longer.width > wrap:
                break
            row = longer
        rows.append(row)
        first = row.last + 1
    width = max((row.width for row in rows), default=0.0)
    return [replace(row, width=width) for row in rows]


def _space(first: int, last: int, widths: Sequence[float], arcs: Sequence[MeasuredArc]) -> Row:
    """Return a row of the words from ``first`` to ``last``, as narrow as its texts allow."""

    def start(measured: MeasuredArc) -> float:
        """Return the start of an arc in the row: its left end, or the row's margin."""
        left = measured.arc.left
        return 0.0 if left < first else centres[left - first] + measured.left_offset

    ending: defaultdict[int, list[MeasuredArc]] = defaultdict(list)  # by the word at the right end
    for measured in arcs:
        ending[measured.arc.right].append(measured)
    centres: list[float] = []
    right = 0.0
    for word in range(first, last + 1):
        half = widths[word - 1] / 2
        centre = right + half + (GAP if centres else 0)
        for measured in ending[word]:
            least = measured.width / 2 if measured.arc.is_root else start(measured) + measured.room
            centre = max(centre, least - measured.right_offset)
        centres.append(centre)
        right = max(right, centre + half)
    for measured in arcs:
        arc = measured.arc
        if arc.left <= last < arc.right:
            right = max(right, start(measured) + measured.room)
        elif arc.is_root and first <= arc.dependent <= last:
            right = max(right, start(measured) + measured.width / 2)
    return Row(first, last, tuple(centres), right)


def segments_of(row: Row, arcs: Sequence[MeasuredArc]) -> list[Segment]:
    """Return the arcs' parts in a row, each as low as nesting allows; arcs of the root are above nearby ones."""
    segments: list[Segment] = []
    for measured in sorted(arcs, key=lambda measured: (measured.arc.is_root, measured.arc.length)):
        if measured.arc.left <= row.last and measured.arc.right >= row.first:
            segment = _segment(row, measured)
            segments.append(replace(segment, level=_level(segment, segments)))
    return [replace(segment, centre=_label_centre(segment, segments)) for segment in segments]


def _segment(row: Row, measured: MeasuredArc) -> Segment:
    arc, width = measured.arc, measured.width
    if arc.is_root:
        middle = row.centre(arc.dependent) + measured.left_offset
        return Segment(arc, middle - width / 2, middle + width / 2, False, False, width)
    opens_left, opens_right = not row.holds(arc.left), not row.holds(arc.right)
    left = 0.0 if opens_left else row.centre(arc.left) + measured.left_offset
    right = row.width if opens_right else row.centre(arc.right) + measured.right_offset
    return Segment(arc, left, right, opens_left, opens_right, width)


def _level(segment: Segment, below: Sequence[Segment]) -> int:
    """Return the lowest free level above all arcs nested in this one."""
    arc = segment.arc
    near = [
        placed
        for placed in below
        if segment.left < placed.right + CLEARANCE and placed.left < segment.right + CLEARANCE
    ]
    nested = [
        placed.level
        for placed in near
        if arc.is_root or (arc.left <= placed.arc.left and placed.arc.right <= arc.right)
    ]
    lowest, taken = max(nested, default=-1) + 1, {placed.level for placed in near}
    while lowest in taken:
        lowest += 1
    return lowest


def _label_centre(segment: Segment, others: Sequence[Segment]) -> float:
    """Return the middle, or the nearest position where no higher arc comes down; the middle if there is none."""
    legs = [leg for higher in others if higher.level > segment.level for leg in higher.legs()]
    passing = sorted(leg for leg in legs if segment.left < leg < segment.right)
    middle, half = (segment.left + segment.right) / 2, segment.width / 2
    away = half + CLEARANCE
    least, most = segment.left + half + LABEL_ROOM, segment.right - half - LABEL_ROOM
    gaps = [(max(least, a + away), min(most, b - away)) for a, b in pairwise([-math.inf, *passing, math.inf])]
    centres = [min(max(middle, low), high) for low, high in gaps if low <= high]
    return min(centres, key=lambda x: abs(x - middle), default=middle)
