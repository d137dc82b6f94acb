"""A tree as arcs over its words, in one row or wrapped into several."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from treeparse.pictures.layout import (
    TAG_SIZE,
    WORD_SIZE,
    Arc,
    Mark,
    Row,
    Segment,
    Tree,
    arcs_of,
    measure,
    rows_of,
    segments_of,
)
from treeparse.pictures.svg import LABEL_SIZE, MARGIN, Drawing, escaped, number, runs_to_the_left, text_element, visible

LEVEL = 21.0  # from one level of arcs to the next
LEG = 17.0  # from the lowest level down to the words' arcs' ends
BEND = 7.0  # the radius of an arc's corners
TIP = 5.0  # the length of an arrow's tip
LABEL_HEIGHT = 16.0
ROW_GAP = 20.0
NO_TAG = "_"
TOKEN_HEIGHT = WORD_SIZE * 1.6  # of the line below the words of a multiword token, and its form


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
    """Draw a tree: arcs with labels over words with tags and tokens, read in the direction of their script.

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
    widths, measured = measure(tree, arcs)
    leftwards = runs_to_the_left(tree.words)
    has_tags = any(tag != NO_TAG for tag in tree.tags or ())
    parts: list[str] = []
    height = width = 0.0
    for row in rows_of(widths, measured, None if wrap is None else wrap - 2 * MARGIN):
        segments = segments_of(row, measured)
        height += ROW_GAP if parts else 0
        width = row.width
        foot = height + LABEL_HEIGHT / 2 + LEG + max((segment.level for segment in segments), default=0) * LEVEL
        position = _Position(foot, row.width, leftwards)
        lines, labels = ([draw(segment, position) for segment in segments] for draw in (_line, _label))
        parts += ['<g fill="none" stroke="#7a828e" stroke-width="1.3">', *lines, '</g><g fill="#0a4a8f">', *labels]
        height = foot + WORD_SIZE * 1.3 + (TAG_SIZE * 1.5 if has_tags else 0)
        tokens = list(_tokens(tree, row, widths, position, height))
        parts += ['</g><g fill="#1f2328">', *_words(tree, row, position), *tokens, "</g>"]
        height += TOKEN_HEIGHT if tokens else 0
    return Drawing(width, height, "".join(parts), " ".join(map(visible, tree.words)), leftwards)


def _line(segment: Segment, position: _Position) -> str:
    """Return an arc's line with a tip at its dependent; the note is its title."""
    arc = segment.arc
    is_left = arc.dependent == arc.left
    tip = ""
    if arc.is_root or not (segment.opens_left if is_left else segment.opens_right):
        x = position.x(segment.legs()[0 if is_left else -1])
        half, top = TIP * 0.7, number(position.foot - TIP)
        corners = f"M{number(x - half)} {top}H{number(x + half)}L{number(x)} {number(position.foot)}Z"
        tip = f'<path class="tp-tip" fill="#7a828e" stroke="none" d="{corners}"/>'
    dashes = ' stroke-dasharray="6 4"' if arc.mark is Mark.HEAD else ""
    return (
        f'<g class="{_classes("tp-arc", arc)}" data-head="{arc.head}" data-dependent="{arc.dependent}"{dashes}>'
        f'{_note(arc)}<path d="{_path(segment, position)}"/>{tip}</g>'
    )


def _note(arc: Arc) -> str:
    return f"<title>{escaped(arc.note)}</title>" if arc.note else ""


def _classes(kind: str, arc: Arc) -> str:
    return f"{kind} {arc.mark}".rstrip()


def _path(segment: Segment, position: _Position) -> str:
    """Return the path up at the left end, along the level, and down at the right end; open sides end at the margin."""
    arc, bend = segment.arc, min(BEND, (segment.right - segment.left) / 2)
    left, right, start, end = (
        number(position.x(along)) for along in (segment.left, segment.right, segment.left + bend, segment.right - bend)
    )
    level, below = (number(position.y(segment.level) + down) for down in (0, bend))
    foot, tip = number(position.foot), number(position.foot - TIP)
    if arc.is_root:
        return f"M{number(position.x(segment.legs()[0]))} {level}V{tip}"
    bottom_left, bottom_right = (tip, foot) if arc.dependent == arc.left else (foot, tip)
    up = f"M{left} {bottom_left}V{below}Q{left} {level} {start} {level}"
    down = f"H{end}Q{right} {level} {right} {below}V{bottom_right}"
    return (f"M{left} {level}" if segment.opens_left else up) + (f"H{right}" if segment.opens_right else down)


def _label(segment: Segment, position: _Position) -> str:
    x, y = position.x(segment.centre), position.y(segment.level)
    box = f'x="{number(x - segment.width / 2)}" y="{number(y - LABEL_HEIGHT / 2)}" width="{number(segment.width)}"'
    arc = segment.arc
    return (
        f'<g class="{_classes("tp-name", arc)}">{_note(arc)}'
        f'<rect class="tp-back" fill="#fff" {box} height="{number(LABEL_HEIGHT)}" rx="3"/>'
        f"{text_element('label-text', x, y + LABEL_SIZE * 0.35, visible(arc.label))}</g>"
    )


def _words(tree: Tree, row: Row, position: _Position) -> list[str]:
    """Return the words of a row with their tags; a word that is cut has its whole form in a title."""
    parts = []
    for word in range(row.first, row.last + 1):
        x, y = position.x(row.centre(word)), position.foot + WORD_SIZE * 1.1
        form = tree.words[word - 1]
        shown = visible(form)
        drawn = text_element("word", x, y, shown, size=WORD_SIZE, leftwards=position.leftwards)
        parts.append(drawn if shown == form else f"<g><title>{escaped(form)}</title>{drawn}</g>")
        tag = NO_TAG if tree.tags is None else tree.tags[word - 1]
        if tag != NO_TAG:
            parts.append(text_element("tag", x, y + TAG_SIZE * 1.5, visible(tag), size=TAG_SIZE))
    return parts


def _tokens(tree: Tree, row: Row, widths: Sequence[float], position: _Position, top: float) -> Iterator[str]:
    """Yield a line below the words in a row of each multiword token, and below the line the token's form."""
    for token in tree.tokens:
        first, last = max(token.first, row.first), min(token.last, row.last)
        if first > last:
            continue
        left = position.x(row.centre(first) - widths[first - 1] / 2)
        right = position.x(row.centre(last) + widths[last - 1] / 2)
        line = f'<path class="tp-rule" stroke="#7a828e" d="M{number(left)} {number(top + 2)}H{number(right)}"/>'
        x, y, shown = (left + right) / 2, top + 2 + WORD_SIZE * 1.1, visible(token.form)
        form = text_element("tag", x, y, shown, size=WORD_SIZE, leftwards=position.leftwards)
        span = f'data-first="{token.first}" data-last="{token.last}"'
        title = "" if shown == token.form else f"<title>{escaped(token.form)}</title>"
        yield f'<g class="tp-token" {span}>{title}{line}{form}</g>'
