"""A tree as arcs over its words, in one row or wrapped into several."""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from treeparse.pictures.arcs import Arc, Mark, Tree, arcs_of
from treeparse.pictures.levels import Segment, segments_of
from treeparse.pictures.spacing import LABEL_SIZE, TAG_SIZE, WORD_SIZE, Row, measure, rows_of
from treeparse.pictures.svg import MARGIN, Drawing, number, text_element
from treeparse.pictures.text import escaped, runs_to_the_left, visible

LEVEL = 21.0  # from one level of arcs to the next
LEG = 17.0  # from the lowest level down to the words' arcs' ends
BEND = 7.0  # the radius of an arc's corners
TIP = 5.0  # the length of an arrow's tip
LABEL_HEIGHT = 16.0
ROW_GAP = 20.0
NO_TAG = "_"


class _Position(NamedTuple):
    """The position of a row: the height of arcs' ends, its width, and whether it runs leftwards."""

    foot: float
    width: float
    leftwards: bool

    def x(self, along: float) -> float:
        return self.width - along if self.leftwards else along

    def y(self, level: int) -> float:
        return self.foot - LEG - level * LEVEL


def draw_tree(tree: Tree, reference: Tree | None = None, *, wrap: float | None = None) -> Drawing:
    """Draw a tree: arcs with labels over words with tags, read in the direction of their script.

    Args:
        tree: the tree.
        reference: a tree of the same words; arcs that it lacks are dashed, and labels that differ at the same head
            get a frame.
        wrap: the width in pixels at which rows end, if words allow: arcs between words of different rows run to the
            margin and continue in the next row. None is one row.

    Raises:
        ValueError: if the reference has other words.
    """
    arcs = arcs_of(tree, reference)
    measures = measure(tree, arcs)
    leftwards = runs_to_the_left(tree.words)
    parts: list[str] = []
    height = width = 0.0
    for row in rows_of(arcs, measures, None if wrap is None else wrap - 2 * MARGIN):
        segments = segments_of(row, arcs, measures)
        height += ROW_GAP if parts else 0
        width = row.width
        foot = height + LABEL_HEIGHT / 2 + LEG + max((segment.level for segment in segments), default=0) * LEVEL
        place = _Position(foot, row.width, leftwards)
        parts += [*_lines(segments, place), *_labels(segments, place), *_words(tree, row, place)]
        height = foot + WORD_SIZE * 1.3 + (TAG_SIZE * 1.5 if _has_tags(tree) else 0)
    return Drawing(width, height, "".join(parts), " ".join(map(visible, tree.words)), leftwards)


def _has_tags(tree: Tree) -> bool:
    return tree.tags is not None and any(tag != NO_TAG for tag in tree.tags)


def _lines(segments: Sequence[Segment], place: _Position) -> list[str]:
    lines = [_line(segment, place) for segment in segments]
    return ['<g fill="none" stroke="#7a828e" stroke-width="1.3">', *lines, "</g>"]


def _line(segment: Segment, place: _Position) -> str:
    """Return an arc's line with a tip at its dependent; the note is its title."""
    arc = segment.arc
    down = place.x(_dependent_end(segment)) if _has_tip(segment) else None
    tip = "" if down is None else _tip(down, place.foot)
    path = f"M{number(down or 0)} {number(place.y(segment.level))}V{number(place.foot - TIP)}"
    dashes = ' stroke-dasharray="6 4"' if arc.mark is Mark.HEAD else ""
    return (
        f'<g class="{_classes("tp-arc", arc)}" data-head="{arc.head}" data-dependent="{arc.dependent}"{dashes}>'
        f'{_note(arc)}<path d="{path if arc.is_root else _path(segment, place)}"/>{tip}</g>'
    )


def _note(arc: Arc) -> str:
    return f"<title>{escaped(arc.note)}</title>" if arc.note else ""


def _classes(kind: str, arc: Arc) -> str:
    return f"{kind} {arc.mark}".rstrip()


def _has_tip(segment: Segment) -> bool:
    return not (segment.opens_left if segment.arc.dependent == segment.arc.left else segment.opens_right)


def _dependent_end(segment: Segment) -> float:
    if segment.arc.is_root:
        return (segment.left + segment.right) / 2
    return segment.left if segment.arc.dependent == segment.arc.left else segment.right


def _tip(x: float, foot: float) -> str:
    half = TIP * 0.7
    corners = f"M{number(x - half)} {number(foot - TIP)}H{number(x + half)}L{number(x)} {number(foot)}Z"
    return f'<path class="tp-tip" fill="#7a828e" stroke="none" d="{corners}"/>'


def _path(segment: Segment, place: _Position) -> str:
    """Return the path up at the left end, along the level, and down at the right end; open sides end at the margin."""
    y, bend = place.y(segment.level), min(BEND, (segment.right - segment.left) / 2)
    x = partial(_at, place)
    foot = {True: place.foot - TIP, False: place.foot}
    dependent = segment.arc.dependent
    if segment.opens_left:
        start = f"M{x(segment.left)} {number(y)}"
    else:
        bottom = number(foot[dependent == segment.arc.left])
        up = f"V{number(y + bend)}Q{x(segment.left)} {number(y)} {x(segment.left + bend)} {number(y)}"
        start = f"M{x(segment.left)} {bottom}{up}"
    if segment.opens_right:
        return f"{start}H{x(segment.right)}"
    down = f"Q{x(segment.right)} {number(y)} {x(segment.right)} {number(y + bend)}"
    return f"{start}H{x(segment.right - bend)}{down}V{number(foot[dependent == segment.arc.right])}"


def _at(place: _Position, along: float) -> str:
    return number(place.x(along))


def _labels(segments: Sequence[Segment], place: _Position) -> list[str]:
    labels = [_label(segment, place) for segment in segments]
    return ['<g fill="#0a4a8f">', *labels, "</g>"]


def _label(segment: Segment, place: _Position) -> str:
    x, y = place.x(segment.centre), place.y(segment.level)
    box = f'x="{number(x - segment.width / 2)}" y="{number(y - LABEL_HEIGHT / 2)}" width="{number(segment.width)}"'
    arc = segment.arc
    return (
        f'<g class="{_classes("tp-name", arc)}">{_note(arc)}'
        f'<rect class="tp-back" fill="#fff" {box} height="{number(LABEL_HEIGHT)}" rx="3"/>'
        f"{text_element('label-text', x, y + LABEL_SIZE * 0.35, visible(arc.label))}</g>"
    )


def _words(tree: Tree, row: Row, place: _Position) -> list[str]:
    """Return the words of a row with their tags; a word that is cut has its whole form in a title."""
    parts = ['<g fill="#1f2328">']
    for word in range(row.first, row.last + 1):
        x, y = place.x(row.centre(word)), place.foot + WORD_SIZE * 1.1
        form = tree.words[word - 1]
        shown = visible(form)
        drawn = text_element("word", x, y, shown, size=WORD_SIZE, leftwards=place.leftwards)
        parts.append(drawn if shown == form else f"<g><title>{escaped(form)}</title>{drawn}</g>")
        tag = NO_TAG if tree.tags is None else tree.tags[word - 1]
        if tag != NO_TAG:
            parts.append(text_element("tag", x, y + TAG_SIZE * 1.5, visible(tag), size=TAG_SIZE))
    return [*parts, "</g>"]
