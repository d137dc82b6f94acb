"""One self-contained HTML page of many sentences: no scripts, nothing loaded from elsewhere."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from treeparse.pictures.svg import PAGE_STYLE, STYLE, Drawing, clean, element, escaped

LISTED = 80  # characters of a sentence in the list of all


@dataclass(frozen=True, slots=True)
class Figure:
    """A drawing and its caption, which may be empty."""

    drawing: Drawing
    caption: str = ""


@dataclass(frozen=True, slots=True)
class Section:
    """A sentence on a page: its id, its text and its pictures."""

    name: str
    text: str
    figures: tuple[Figure, ...]


def legend(reference: str) -> str:
    """Return HTML that explains how differences to a reference, such as "the first tree", are drawn."""
    dashed = '<span class="tp-sample tp-dashed">dashed arcs</span> have another head'
    framed = '<span class="tp-sample tp-framed">framed labels</span> differ at the same head'
    return f"<p>Compared with {escaped(reference)}: {dashed}, {framed}.</p>\n"


def page(title: str, sections: Sequence[Section], *, introduction: str = "") -> str:
    """Return a page; ``introduction`` is HTML below the title. Each section has the anchor ``s-ID``."""
    return html_page(title, f"{introduction}{sections_html(sections)}")


def sections_html(sections: Sequence[Section], *, prefix: str = "") -> str:
    """Return HTML of sentences with their pictures, after a list of links if there are several.

    ``prefix`` makes their anchors different from other sections of a page.
    """
    anchors = [prefix + anchor for anchor in _anchors(section.name for section in sections)]
    content = "".join(map(_section, sections, anchors))
    if len(sections) < 2:
        return content
    lines = ""
    for section, anchor in zip(sections, anchors, strict=True):
        text = section.text if len(section.text) <= LISTED else f"{section.text[: LISTED - 1]}…"
        lines += f"<li>{_link(section, anchor)} <bdi>{escaped(text)}</bdi></li>\n"
    return f"<nav><details><summary>{len(sections):,} sentences</summary><ol>\n{lines}</ol></details></nav>\n{content}"


def html_page(title: str, body: str) -> str:
    """Return a page with the style of pictures around some HTML."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escaped(title)}</title>\n<style>{PAGE_STYLE}{STYLE}</style>\n</head>\n"
        f"<body>\n<h1>{escaped(title)}</h1>\n{body}</body>\n</html>\n"
    )


def table(rows: Sequence[Sequence[str]]) -> str:
    """Return an HTML table of texts; the first row has the columns' names."""
    head, *body = rows
    names = "".join(f'<th scope="col">{escaped(name)}</th>' for name in head)
    lines = "".join(f"<tr>{''.join(f'<td>{escaped(text)}</td>' for text in row)}</tr>\n" for row in body)
    return f'<div class="tp-tables"><table>\n<tr>{names}</tr>\n{lines}</table></div>\n'


def figure(drawn: Figure) -> str:
    """Return HTML of a picture with its caption; a picture wider than the page scrolls."""
    caption = f'<figcaption dir="ltr">{escaped(drawn.caption)}</figcaption>' if drawn.caption else ""
    return f'<figure tabindex="0">{caption}{element(drawn.drawing)}</figure>\n'


def _section(section: Section, anchor: str) -> str:
    figures = "".join(map(figure, section.figures))
    text = f'<p dir="auto">{escaped(section.text)}</p>'
    direction = ' dir="rtl"' if any(figure.drawing.leftwards for figure in section.figures) else ""
    return part(anchor, f'<h2>{_link(section, anchor)}</h2>{text}\n<div class="tp-figures"{direction}>{figures}</div>')


def part(anchor: str, content: str) -> str:
    """Return HTML of a part of a page with its anchor; ``content`` is HTML."""
    return f'<section id="{escaped(anchor)}">{content}</section>\n'


def _link(section: Section, anchor: str) -> str:
    return f'<a href="#{quote(anchor)}"><bdi>{escaped(section.name)}</bdi></a>'


def _anchors(names: Iterable[str]) -> list[str]:
    """Return an id for each name, without spaces; a repeated name gets a number."""
    anchors: dict[str, None] = {}  # in order
    for name in names:
        anchor = base = "s-" + "-".join(clean(name).split())
        count = 1
        while anchor in anchors:
            anchor = f"{base}+{(count := count + 1)}"
        anchors[anchor] = None
    return list(anchors)
