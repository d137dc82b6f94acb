"""Drawings as SVG: documents or elements of a page, their colours, and the widths of their texts."""

import html
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

LABEL_SIZE = 11.5  # of the font of labels, in pixels
COLOURS = {  # light, dark
    "ground": ("#ffffff", "#0d1117"),
    "ink": ("#1f2328", "#e6edf3"),
    "line": ("#7a828e", "#7d8590"),
    "label": ("#0a4a8f", "#8cc2ff"),
    "tag": ("#656d76", "#9aa4af"),
    "mark": ("#c4281c", "#ff8a80"),
    "heat": ("#063d7a", "#6aa5e8"),
    "value": ("#000000", "#ffffff"),
    "on-heat": ("#ffffff", "#000000"),
    "rule": ("#d7dce2", "#30363d"),
}
LIGHT, DARK = ({name: pair[scheme] for name, pair in COLOURS.items()} for scheme in (0, 1))
MARGIN = 12.0  # around a drawing
CAPTION_SIZE = 12.5
CAPTION_LINE = 26.0
ELLIPSIS = "…"
MOST_CHARACTERS = 60  # of a word or label in a picture; its tooltip has all of them
_SPACES = "\t\n\r\v\f"
_UNSEEN = ("Cc", "Cf", "Cs", "Cn", "Zs", "Zl", "Zp", "Mn", "Me")
_JOINER = "\u200d"  # joins emoji to one
_JOINING = ("\u200c", _JOINER)  # format characters that scripts and emoji need
# Shares of the font's size, on the wide side of common sans-serif fonts.
_WIDTHS = {
    **dict.fromkeys("ijl|'`!.,:;", 0.32),
    **dict.fromkeys(' frtI()[]{}/\\-"', 0.42),
    **dict.fromkeys("mw", 0.92),
    **dict.fromkeys("MW%@—…", 1.0),
}
_CAPITAL, _OTHER, _WIDE, _EMOJI, _FLAG_HALF = 0.74, 0.62, 1.02, 1.35, 0.7


def _variables(colours: dict[str, str]) -> str:
    return "".join(f"--tp-{name}:{colour};" for name, colour in colours.items())


# A program that draws SVG without CSS variables uses the light colours of the elements' attributes.
STYLE = (
    f".tp{{{_variables(LIGHT)}font-family:'Noto Sans','Segoe UI',Helvetica,Arial,sans-serif;direction:ltr}}"
    f"@media (prefers-color-scheme:dark){{.tp{{{_variables(DARK)}}}}}"
    ".tp-ground,.tp-back{fill:var(--tp-ground)}"
    ".tp-word,.tp-caption{fill:var(--tp-ink)}"
    ".tp-tag{fill:var(--tp-tag)}"
    ".tp-arc{stroke:var(--tp-line)}"
    ".tp-arc .tp-tip{fill:var(--tp-line);stroke:none}"
    ".tp-name text{fill:var(--tp-label)}"
    ".tp-arc.tp-other-head{stroke:var(--tp-mark);stroke-width:2;stroke-dasharray:6 4}"
    ".tp-arc.tp-other-head .tp-tip{fill:var(--tp-mark)}"
    ".tp-name.tp-other-head text,.tp-name.tp-other-label text{fill:var(--tp-mark);font-weight:bold}"
    ".tp-name.tp-other-label rect{stroke:var(--tp-mark);stroke-dasharray:3 2}"
    ".tp-arc:hover{stroke:var(--tp-ink)}"
    ".tp-heat{fill:var(--tp-heat);stroke:var(--tp-rule)}"
    ".tp-value{fill:var(--tp-value)}"
    ".tp-on-heat{fill:var(--tp-on-heat)}"
    ".tp-bar{fill:var(--tp-heat)}.tp-curve{stroke:var(--tp-heat)}.tp-rule{stroke:var(--tp-rule)}"
    ".tp-frame{stroke:var(--tp-mark)}"
)

PAGE_STYLE = (
    f":root{{color-scheme:light dark;{_variables(LIGHT)}}}"
    f"@media (prefers-color-scheme:dark){{:root{{{_variables(DARK)}}}}}"
    "body{margin:0 auto;padding:1rem;max-width:110rem;background:var(--tp-ground);color:var(--tp-ink);"
    "font:16px/1.5 'Noto Sans','Segoe UI',Helvetica,Arial,sans-serif}"
    "h1{font-size:1.4rem;overflow-wrap:anywhere}h2{font-size:1.05rem;margin:0;overflow-wrap:anywhere}"
    "h2 a,nav a{color:var(--tp-label);text-decoration:none}a:hover{text-decoration:underline}"
    "section{border-top:1px solid var(--tp-rule);padding:1rem 0}section p{margin:.3rem 0 .8rem;overflow-wrap:anywhere}"
    ".tp-figures{display:flex;flex-wrap:wrap;gap:1rem}"
    "figure{margin:0;max-width:100%;overflow-x:auto}figure svg{display:block}"
    ".tp-figures[dir=rtl] figcaption{text-align:right}"
    "figcaption{position:sticky;left:0;color:var(--tp-tag);font-size:.875rem}"
    ".tp-sample{color:var(--tp-mark);font-weight:bold}"
    ".tp-dashed{border-bottom:2px dashed}.tp-framed{border:1px dashed;border-radius:3px;padding:0 .3em}"
    "table{border-collapse:collapse;margin:0 0 1rem;font-variant-numeric:tabular-nums}"
    "th,td{text-align:right;padding:.15rem .7rem;border-bottom:1px solid var(--tp-rule)}"
    "th:first-child,td:first-child{text-align:left;padding-left:0}th{color:var(--tp-tag);font-weight:normal}"
    ".tp-tables{overflow-x:auto}"
    "nav ol{max-height:20rem;overflow:auto;overflow-wrap:anywhere}"
)


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


def clean(text: str) -> str:
    """Return a text without control characters and marks of direction; line ends become spaces."""
    spaced = "".join(" " if character in _SPACES else character for character in text)
    return "".join(character for character in spaced if character in _JOINING or not _is_control(character))


def _is_control(character: str) -> bool:
    category = unicodedata.category(character)
    return category in ("Cc", "Cs", "Cf") or (ord(character) & 0xFFFE) == 0xFFFE


def escaped(text: str) -> str:
    """Return a text escaped for elements and attributes of XML and HTML."""
    return html.escape(clean(text), quote=True)


def visible(text: str) -> str:
    """Return a word as it is drawn: cleaned and cut to fit; an invisible word becomes its code points."""
    shown = clean(text)
    if all(unicodedata.category(character) in _UNSEEN for character in shown):
        shown = " ".join(f"U+{ord(character):04X}" for character in text)
    if len(shown) <= MOST_CHARACTERS:
        return shown
    half = MOST_CHARACTERS // 2
    return f"{shown[:half]}{ELLIPSIS}{shown[1 - half :]}"


def text_width(text: str, size: float) -> float:
    """Return the approximate width of a text, in the unit of the font's ``size``."""
    width, before = 0.0, ""
    for character in text:
        if before != _JOINER:
            width += _character_width(character)
        before = character
    return width * size


def _character_width(character: str) -> float:
    if (known := _WIDTHS.get(character)) is not None:
        return known
    if unicodedata.category(character) in ("Mn", "Me", "Cf") or "\U0001f3fb" <= character <= "\U0001f3ff":
        return 0.0  # marks on the character before, skin colours
    if "\U0001f1e6" <= character <= "\U0001f1ff":
        return _FLAG_HALF
    if character >= "\U0001f000":
        return _EMOJI
    if unicodedata.east_asian_width(character) in "WF":
        return _WIDE
    return _CAPITAL if character.isupper() else _OTHER


def runs_to_the_left(words: Iterable[str]) -> bool:
    """Whether most characters are of scripts written from right to left."""
    kinds = [unicodedata.bidirectional(character) for word in words for character in word]
    return kinds.count("R") + kinds.count("AL") > kinds.count("L")
