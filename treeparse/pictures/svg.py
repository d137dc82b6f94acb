"""Drawings, and their SVG as documents or as elements of a page."""

from collections.abc import Sequence
from dataclasses import dataclass

from treeparse.pictures.layout import LABEL_SIZE
from treeparse.pictures.style import STYLE
from treeparse.pictures.text import escaped, text_width

MARGIN = 12.0  # around a drawing
CAPTION_SIZE = 12.5
CAPTION_LINE = 26.0


@dataclass(frozen=True, slots=True)
class Drawing:
    """SVG elements, their width and height, a title for screen readers, and whether their texts run leftwards."""

    width: float
    height: float
    body: str
    title: str
    leftwards: bool = False


def number(value: float) -> str:
    """Return a coordinate, rounded to a tenth of a pixel."""
    return f"{value:.1f}".removesuffix(".0")


def text_element(
    kind: str,
    x: float,
    y: float,
    text: str,
    *,
    anchor: str = "middle",
    size: float = LABEL_SIZE,
    turn: float = 0,
    leftwards: bool = False,
) -> str:
    """Return a text element at ``x`` and ``y`` with the class ``tp-KIND``, rotated by ``turn`` degrees.

    The anchor ``start`` is its left end, and ``end`` its right end, in texts of both directions.
    """
    if leftwards:
        anchor = {"start": "end", "end": "start"}.get(anchor, anchor)
    direction = ' direction="rtl"' if leftwards else ""
    turned = f' transform="rotate({number(turn)} {number(x)} {number(y)})"' if turn else ""
    position = f'x="{number(x)}" y="{number(y)}" text-anchor="{anchor}" font-size="{number(size)}"'
    return f'<text class="tp-{kind}" {position}{direction}{turned}>{escaped(text)}</text>'


def element(drawing: Drawing, style: str = "") -> str:
    """Return a drawing as an ``svg`` element with a ``style``, which may be empty if its page has the style."""
    width, height = number(drawing.width + 2 * MARGIN), number(drawing.height + 2 * MARGIN)
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    ground = f'<rect class="tp-ground" fill="#fff" width="{width}" height="{height}" rx="6"/>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="tp" role="img" {size}><title>{escaped(drawing.title)}</title>'
        f'{style}{ground}<g transform="translate({number(MARGIN)} {number(MARGIN)})">{drawing.body}</g></svg>'
    )


def standalone(drawing: Drawing) -> str:
    """Return a drawing as an ``svg`` element with its style."""
    return element(drawing, f"<style>{STYLE}</style>")


def document(drawing: Drawing) -> str:
    """Return a drawing as an SVG file, a complete XML document, light or dark as the reader prefers."""
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{standalone(drawing)}\n'


def stacked(drawings: Sequence[Drawing], captions: Sequence[str], title: str) -> Drawing:
    """Stack drawings vertically, each below its caption; an empty caption takes no space."""
    parts, height, width = [], 0.0, 0.0
    for drawing, caption in zip(drawings, captions, strict=True):
        if caption:
            parts.append(text_element("caption", 0, height + CAPTION_SIZE, caption, anchor="start", size=CAPTION_SIZE))
            height += CAPTION_LINE
            width = max(width, text_width(caption, CAPTION_SIZE))
        parts.append(f'<g transform="translate(0 {number(height)})">{drawing.body}</g>')
        height += drawing.height + MARGIN
        width = max(width, drawing.width)
    leftwards = any(drawing.leftwards for drawing in drawings)
    return Drawing(width, max(height - MARGIN, 0.0), "".join(parts), title, leftwards)
