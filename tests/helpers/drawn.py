"""What a picture shows, read back from its SVG: texts, labels' boxes, arcs as corners; and trees to draw."""

import itertools
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.etree import ElementTree

from treeparse.pictures.layout import Tree

SVG = "{http://www.w3.org/2000/svg}"
Point = tuple[float, float]
Box = tuple[float, float, float, float]  # left, top, right, bottom


@dataclass
class Drawn:
    title: str
    size: Point
    words: list[tuple[Point, str]] = field(default_factory=list)  # in the order of the file
    tags: list[str] = field(default_factory=list)
    labels: list[tuple[Box, str]] = field(default_factory=list)
    arcs: list[tuple[tuple[int, int], list[Point]]] = field(default_factory=list)  # (head, dependent), corners
    tips: list[tuple[int, int]] = field(default_factory=list)  # the arcs that have one
    classes: dict[str, set[tuple[int, int]]] = field(default_factory=dict)  # of arcs' lines
    framed: list[str] = field(default_factory=list)  # labels


def read_drawn(svg: str) -> Drawn:
    """Fails where the text is no XML."""
    root = ElementTree.fromstring(svg)
    assert root.tag == f"{SVG}svg" and root.attrib["role"] == "img"
    drawn = Drawn(root.findtext(f"{SVG}title") or "", (float(root.attrib["width"]), float(root.attrib["height"])))
    for element in root.iter():
        kinds = element.attrib.get("class", "").split()
        if "tp-word" in kinds:
            drawn.words.append(((float(element.attrib["x"]), float(element.attrib["y"])), element.text or ""))
        elif "tp-tag" in kinds:
            drawn.tags.append(element.text or "")
        elif "tp-name" in kinds:
            _read_label(element, drawn)
        elif "tp-arc" in kinds:
            _read_arc(element, drawn)
    return drawn


def _read_label(element: ElementTree.Element, drawn: Drawn) -> None:
    rect, text = element.find(f"{SVG}rect"), element.findtext(f"{SVG}text") or ""
    assert rect is not None
    x, y, width, height = (float(rect.attrib[name]) for name in ("x", "y", "width", "height"))
    drawn.labels.append(((x, y, x + width, y + height), text))
    if "tp-other-label" in element.attrib["class"]:
        drawn.framed.append(text)


def _read_arc(element: ElementTree.Element, drawn: Drawn) -> None:
    arc = int(element.attrib["data-head"]), int(element.attrib["data-dependent"])
    line, *tips = element.findall(f"{SVG}path")
    drawn.arcs.append((arc, corners(line.attrib["d"])))
    drawn.tips += [arc for _ in tips]
    for kind in element.attrib["class"].split():
        drawn.classes.setdefault(kind, set()).add(arc)


def corners(path: str) -> list[Point]:
    """The corners of a path of lines, as if those that are rounded were sharp."""
    points: list[Point] = []
    for command, arguments in re.findall(r"([MHVQ])([^MHVQ]*)", path):
        values = [float(value) for value in arguments.split()]
        x, y = points[-1] if points else (0.0, 0.0)
        sharp = {"H": (values[0], y), "V": (x, values[0])}
        points.append(sharp[command] if command in sharp else (values[0], values[1]))
    return points


def meet(one: list[Point], other: list[Point]) -> bool:
    """Whether two lines of upright and level strokes have a point in common."""
    return any(_overlap(a, b) for a in _strokes(one) for b in _strokes(other))


def _strokes(points: list[Point]) -> Iterator[Box]:
    for (x, y), (u, v) in itertools.pairwise(points):
        yield min(x, u), min(y, v), max(x, u), max(y, v)


def _overlap(a: Box, b: Box) -> bool:
    return a[0] <= b[2] and b[0] <= a[2] and a[1] <= b[3] and b[1] <= a[3]


def boxes_overlap(a: Box, b: Box) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


LABELS = ("det", "nsubj", "compound:prt", "obl", "a", "conj")
WORDS = ("a", "of", "international", "Wörter", "ill", "日本語", "👩‍👩‍👧", "WWW", ".")


def random_tree(seed: int, count: int, *, projective: bool, labels: tuple[str, ...] = LABELS) -> Tree:
    stream = random.Random(seed)
    heads = [0] * (count + 1)
    if projective:
        _hang(heads, 1, count, 0, stream)
    else:
        order = stream.sample(range(1, count + 1), count)
        for place, word in enumerate(order):
            heads[word] = stream.choice(order[:place]) if place else 0
    words = tuple(stream.choice(WORDS) for _ in range(count))
    names = tuple("root" if head == 0 else stream.choice(labels) for head in heads[1:])
    return Tree(words, tuple(heads[1:]), names)


def _hang(heads: list[int], first: int, last: int, head: int, stream: random.Random) -> None:
    """Hang a subtree over the words from first to last from a head."""
    top = stream.randint(first, last)
    heads[top] = head
    for start, end in ((first, top - 1), (top + 1, last)):
        while start <= end:
            cut = stream.randint(start, end)
            _hang(heads, start, cut, top, stream)
            start = cut + 1


def cross(one: tuple[int, int], other: tuple[int, int]) -> bool:
    """Whether two arcs cross by the order of their words, the root's coming down from above."""
    (a, b), (c, d) = sorted((span(one), span(other)))
    return a < c < b < d or (0 in one and c < a < d) or (0 in other and a < c < b)


def span(arc: tuple[int, int]) -> tuple[int, int]:
    head, dependent = arc
    return (dependent, dependent) if head == 0 else (min(arc), max(arc))
