"""The positions of words in rows: far enough apart for the labels of all arcs between them."""

from collections.abc import Sequence
from dataclasses import dataclass

from treeparse.pictures.arcs import Arc, Tree
from treeparse.pictures.text import text_width, visible

WORD_SIZE, TAG_SIZE, LABEL_SIZE = 15.0, 10.5, 11.5  # of the fonts, in pixels
GAP = 16.0  # between words
SLOT = 7.0  # between the ends of arcs at one word
LABEL_PADDING = 4.0  # of a label's background, at each side
LABEL_ROOM = 9.0  # from a label's background to the bends of its arc


@dataclass(frozen=True, slots=True)
class Measures:
    """Widths of words and of labels on their background, and how far from their words' centres arcs begin and end.

    Words are counted from 0 here; ``ends`` has a pair for each arc, its left and its right end.
    """

    words: tuple[float, ...]
    labels: tuple[float, ...]
    ends: tuple[tuple[float, float], ...]


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


def label_width(label: str) -> float:
    """Return the width of a label's background."""
    return text_width(visible(label), LABEL_SIZE) + 2 * LABEL_PADDING


def measure(tree: Tree, arcs: Sequence[Arc]) -> Measures:
    """Return the widths of a tree's texts, and the ends of its arcs.

    At a word, arcs to its left end at the left, the longest nearest to the middle; then come the root's arc and the
    arcs to its right, the longest first. So no arc crosses another arc of the same word.
    """
    at_left: list[list[int]] = [[] for _ in tree.words]  # of arcs that begin here and lead to the right
    at_right: list[list[int]] = [[] for _ in tree.words]
    roots: list[list[int]] = [[] for _ in tree.words]
    for place in sorted(range(len(arcs)), key=lambda place: arcs[place].length):
        arc = arcs[place]
        if arc.is_root:
            roots[arc.dependent - 1].append(place)
        else:
            at_left[arc.left - 1].insert(0, place)
            at_right[arc.right - 1].append(place)
    ends = [[0.0, 0.0] for _ in arcs]
    widths = []
    for word, form in enumerate(tree.words):
        slots = [*at_right[word], *roots[word], *at_left[word]]
        for slot, place in enumerate(slots):
            offset = (slot - (len(slots) - 1) / 2) * SLOT
            for side in (0, 1):
                if (arcs[place].left, arcs[place].right)[side] == word + 1:
                    ends[place][side] = offset
        tag = "" if tree.tags is None else tree.tags[word]
        drawn = max(text_width(visible(form), WORD_SIZE), text_width(tag, TAG_SIZE))
        widths.append(max(drawn, (len(slots) - 1) * SLOT))
    return Measures(tuple(widths), tuple(label_width(arc.label) for arc in arcs), tuple((a, b) for a, b in ends))


def rows_of(arcs: Sequence[Arc], measures: Measures, wrap: float | None) -> list[Row]:
    """Return the words in rows no wider than ``wrap``, if possible, or in one row; all rows are equally wide."""
    count = len(measures.words)
    rows: list[Row] = []
    first = 1
    while first <= count:
        if wrap is None:
            row = space(first, count, arcs, measures)
        else:
            row = space(first, first, arcs, measures)
            while row.last < count and (longer := space(first, row.last + 1, arcs, measures)).width <= wrap:
                row = longer
        rows.append(row)
        first = row.last + 1
    width = max((row.width for row in rows), default=0.0)
    return [Row(row.first, row.last, row.centres, width) for row in rows]


def space(first: int, last: int, arcs: Sequence[Arc], measures: Measures) -> Row:
    """Return a row of the words from ``first`` to ``last``, as narrow as its texts allow."""
    ending: list[list[int]] = [[] for _ in range(last - first + 1)]
    crossing: list[int] = []  # arcs that go on beyond the row's right end
    for place, arc in enumerate(arcs):
        if first <= arc.right <= last:
            ending[arc.right - first].append(place)
        elif arc.left <= last < arc.right:
            crossing.append(place)
    centres: list[float] = []
    right = 0.0
    for word in range(first, last + 1):
        half = measures.words[word - 1] / 2
        centre = right + half + (GAP if centres else 0)
        for place in ending[word - first]:
            centre = max(centre, _least(arcs[place], first, centres, measures, place))
        centres.append(centre)
        right = max(right, centre + half)
    for place in crossing:
        right = max(right, _start(arcs[place], first, centres, measures, place) + _room(measures, place))
    for word, centre in enumerate(centres, first):
        roots = (place for place in ending[word - first] if arcs[place].is_root)
        right = max([right, *(centre + measures.ends[place][0] + measures.labels[place] / 2 for place in roots)])
    return Row(first, last, tuple(centres), right)


def _least(arc: Arc, first: int, centres: Sequence[float], measures: Measures, place: int) -> float:
    """Return the least centre of the word at an arc's right end that leaves room for its label."""
    if arc.is_root:
        return measures.labels[place] / 2 - measures.ends[place][0]
    return _start(arc, first, centres, measures, place) + _room(measures, place) - measures.ends[place][1]


def _start(arc: Arc, first: int, centres: Sequence[float], measures: Measures, place: int) -> float:
    """Return the start of an arc in a row: its left end, or the row's margin."""
    return 0.0 if arc.left < first else centres[arc.left - first] + measures.ends[place][0]


def _room(measures: Measures, place: int) -> float:
    return measures.labels[place] + 2 * LABEL_ROOM
