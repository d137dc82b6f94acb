"""Charts: bars of shares, curves with different dashes and names, and the probabilities of arcs as a heat map."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from treeparse.pictures.svg import Drawing, escaped, number, runs_to_the_left, text_element, text_width, visible

BAR, BAR_STEP, BAR_LENGTH = 14.0, 22.0, 180.0
SIZE = 12.0  # of the font of bars and curves
GAP = 8.0
CHART_WIDTH, CHART_HEIGHT = 270.0, 160.0  # without the names around it
TICKS = 5
DASHES = ("", "6 4", "2 3", "9 3 2 3")
CELL = 32.0
NAME_SIZE, VALUE_SIZE = 13.0, 11.0  # of the fonts
NAME_GAP = 6.0
TURN = 60.0  # degrees, of the dependents' names
ALONG, UP = 0.5, 0.87  # how far a rotated name extends to the side and up, as shares of its width
LEAST = 0.005  # smaller probabilities are left blank
STRONG = 0.695  # larger probabilities get the colour for dark cells: so the contrast is at least 4.5
ROOT = "root"


@dataclass(frozen=True, slots=True)
class ShareBar:
    """A share in [0, 1], its name, and a remark after it, such as a number of words."""

    name: str
    share: float
    remark: str = ""


def draw_bars(bars: Sequence[ShareBar], title: str) -> Drawing:
    """Draw shares as bars, one below the other, with their percentages."""
    left = max((text_width(bar.name, SIZE) for bar in bars), default=0.0) + GAP
    texts = [f"{100 * bar.share:.2f} {bar.remark}".rstrip() for bar in bars]
    width = left + BAR_LENGTH + GAP + max((text_width(text, SIZE) for text in texts), default=0.0)
    parts = ['<g fill="#1f2328">']
    for index, (bar, text) in enumerate(zip(bars, texts, strict=True)):
        top = index * BAR_STEP
        middle, end = top + BAR / 2 + SIZE * 0.35, left + BAR_LENGTH * bar.share
        parts.append(text_element("word", left - GAP, middle, bar.name, anchor="end", size=SIZE))
        parts.append(
            f'<rect class="tp-bar" fill="#063d7a" x="{number(left)}" y="{number(top)}" '
            f'width="{number(end - left)}" height="{number(BAR)}"/>'
        )
        parts.append(text_element("word", end + GAP, middle, text, anchor="start", size=SIZE))
    return Drawing(width, max(len(bars) * BAR_STEP, BAR), "".join([*parts, "</g>"]), title)


def draw_curves(curves: Mapping[str, Sequence[tuple[float, float]]], title: str) -> Drawing:
    """Draw curves of points ``(x, y)``, with x from left to right, and their names at their ends.

    Raises:
        ValueError: if there is no curve, or a curve has no point.
    """
    points = [point for curve in curves.values() for point in curve]
    if not curves or not all(curves.values()):
        raise ValueError("A chart needs one or more curves of one or more points each, got none.")
    frame = _Frame(points)
    names = _apart([frame.y(curve[-1][1]) for curve in curves.values()])
    parts = ['<g fill="#1f2328">', *frame.axes(), "</g>", '<g fill="none" stroke="#063d7a" stroke-width="1.8">']
    for index, (name, curve) in enumerate(curves.items()):
        path = "L".join(f"{number(frame.x(x))} {number(frame.y(y))}" for x, y in curve)
        dashes = f' stroke-dasharray="{DASHES[index % len(DASHES)]}"' if index % len(DASHES) else ""
        line = f'<path class="tp-curve" d="M{path}"{dashes} stroke-linecap="round"/>'
        parts.append(f"<g><title>{escaped(name)}</title>{line}</g>")
    parts += ["</g>", '<g fill="#1f2328">']
    end = frame.left + CHART_WIDTH + GAP
    for name, y in zip(curves, names, strict=True):
        parts.append(text_element("word", end, y + SIZE * 0.35, name, anchor="start", size=SIZE))
    width = end + max(text_width(name, SIZE) for name in curves)
    return Drawing(width, CHART_HEIGHT + 2 * SIZE + GAP, "".join([*parts, "</g>"]), title)


class _Frame:
    """The coordinates of a chart of points; its ticks are round numbers from the lowest to the highest."""

    def __init__(self, points: Sequence[tuple[float, float]]) -> None:
        xs, ys = zip(*points, strict=True)
        self.x_least, self.x_most = min(xs), max(xs)
        self.y_ticks = _round_ticks(min(ys), max(ys))
        self.left = max(text_width(f"{tick:g}", SIZE) for tick in self.y_ticks) + GAP

    def x(self, value: float) -> float:
        return self.left + CHART_WIDTH * (value - self.x_least) / (self.x_most - self.x_least or 1)

    def y(self, value: float) -> float:
        low, high = self.y_ticks[0], self.y_ticks[-1]
        return SIZE + CHART_HEIGHT * (high - value) / (high - low)

    def axes(self) -> Iterator[str]:
        for tick in self.y_ticks:
            y = self.y(tick)
            right = number(self.left + CHART_WIDTH)
            yield f'<path class="tp-rule" stroke="#d7dce2" d="M{number(self.left)} {number(y)}H{right}"/>'
            yield text_element("tag", self.left - GAP, y + SIZE * 0.35, f"{tick:g}", anchor="end", size=SIZE)
        for value, anchor in ((self.x_least, "start"), (self.x_most, "end")):
            y = CHART_HEIGHT + 2 * SIZE + GAP / 2
            yield text_element("tag", self.x(value), y, f"{round(value, 1):g}", anchor=anchor, size=SIZE)


def _round_ticks(low: float, high: float) -> tuple[float, ...]:
    """Return evenly spaced round numbers that include the range from ``low`` to ``high``."""
    spread = high - low or abs(high) or 1.0
    unit = 10 ** math.floor(math.log10(spread / TICKS))
    step = next(unit * factor for factor in (1, 2, 5, 10, 20) if spread / (unit * factor) <= TICKS)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return tuple(round(step * index, 12) for index in range(first, max(last, first + 1) + 1))


def _apart(heights: Sequence[float]) -> list[float]:
    """Return the heights of names, moved down where they would overlap."""
    moved = list(heights)
    order = sorted(range(len(heights)), key=lambda index: heights[index])
    for above, below in pairwise(order):
        moved[below] = max(moved[below], moved[above] + SIZE * 1.2)
    return moved


@dataclass(frozen=True, slots=True)
class _Grid:
    """The positions of cells: from ``left``, in reading order, and from ``top``."""

    left: float
    top: float
    width: float
    leftwards: bool

    def x(self, along: float) -> float:
        return self.width - along if self.leftwards else along

    def column(self, dependent: int) -> float:
        """Return the middle of a column."""
        return self.x(self.left + (dependent - 0.5) * CELL)

    def row(self, head: int) -> float:
        """Return the middle of a row."""
        return self.top + (head + 0.5) * CELL


def draw_marginals(words: Sequence[str], marginals: Sequence[Sequence[float]], heads: Sequence[int] = ()) -> Drawing:
    """Draw how probable every arc is: a row a head, the root first, and a column a dependent.

    Args:
        words: n words.
        marginals: n + 1 rows of n + 1 probabilities, ``marginals[head][dependent]``; column 0 is ignored.
        heads: heads of a tree, as in CoNLL-U; the cells of its arcs get a frame.

    Raises:
        ValueError: if the matrix has another size.
    """
    count = len(words)
    if [len(row) for row in marginals] != [count + 1] * (count + 1):
        raise ValueError(f"Marginals of {count} words must be {count + 1} rows of {count + 1} numbers.")
    names = [ROOT, *map(visible, words)]
    longest = max(text_width(name, NAME_SIZE) for name in names)
    left, top = longest + NAME_GAP, longest * UP + NAME_SIZE + NAME_GAP
    grid = _Grid(left, top, left + count * CELL + longest * ALONG, runs_to_the_left(words))
    arcs = {(head, dependent) for dependent, head in enumerate(heads, 1)}
    cells = [
        _cell(grid, (head, dependent), row[dependent], names, framed=(head, dependent) in arcs)
        for head, row in enumerate(marginals)
        for dependent in range(1, count + 1)
        if head != dependent
    ]
    diagonal = (_box(grid.column(word), grid.row(word), CELL) for word in range(1, count + 1))
    cells += [f'<rect class="tp-heat" fill-opacity="0" {box}/>' for box in diagonal]
    parts = ['<g fill="#1f2328">', *_names(grid, names), "</g>", '<g fill="none">', *cells, "</g>"]
    title = f"Arc probabilities: {' '.join(names[1:])}"
    return Drawing(grid.width, grid.row(count) + CELL / 2, "".join(parts), title, grid.leftwards)


def _names(grid: _Grid, names: Sequence[str]) -> Iterator[str]:
    for head, name in enumerate(names):
        x, y = grid.x(grid.left - NAME_GAP), grid.row(head) + NAME_SIZE * 0.35
        anchor = "start" if grid.leftwards else "end"
        yield text_element("word", x, y, name, anchor=anchor, size=NAME_SIZE, leftwards=grid.leftwards)
    turn, anchor = (TURN, "end") if grid.leftwards else (-TURN, "start")
    for dependent, name in enumerate(names[1:], 1):
        x, y = grid.column(dependent), grid.top - NAME_GAP
        yield text_element("word", x, y, name, anchor=anchor, size=NAME_SIZE, turn=turn, leftwards=grid.leftwards)


def _cell(grid: _Grid, arc: tuple[int, int], value: float, names: Sequence[str], *, framed: bool) -> str:
    """Return a cell, darker for probable arcs, with the number; the tooltip has it in full."""
    head, dependent = arc
    x, y = grid.column(dependent), grid.row(head)
    frame = f'<rect class="tp-frame" stroke="#c4281c" stroke-width="2" {_box(x, y, CELL - 4)}/>' if framed else ""
    kind, colour = ("on-heat", "#fff") if value > STRONG else ("value", "#000")
    shown = text_element(kind, x, y + VALUE_SIZE * 0.35, f"{value:.2f}".removeprefix("0"), size=VALUE_SIZE)
    number_element = f'<g fill="{colour}">{shown}</g>' if value >= LEAST else ""
    note = f"<title>{escaped(f'{names[head]} → {names[dependent]}: {value:.4g}')}</title>"
    ground = f'<rect class="tp-heat" fill="#063d7a" fill-opacity="{value:.3f}" {_box(x, y, CELL)}/>'
    return f"<g>{note}{ground}{number_element}{frame}</g>"


def _box(x: float, y: float, side: float) -> str:
    return f'x="{number(x - side / 2)}" y="{number(y - side / 2)}" width="{number(side)}" height="{number(side)}"'
