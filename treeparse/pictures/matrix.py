"""The probabilities of a sentence's arcs, heads by dependents, as a heat map."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from treeparse.pictures.svg import Drawing, escaped, number, runs_to_the_left, text_element, text_width, visible

CELL = 32.0
NAME_SIZE, VALUE_SIZE = 13.0, 11.0  # of the fonts
NAME_GAP = 6.0
TURN = 60.0  # degrees, of the dependents' names
ALONG, UP = 0.5, 0.87  # how far a rotated name extends to the side and up, as shares of its width
LEAST = 0.005  # smaller probabilities are left blank
STRONG = 0.695  # larger probabilities get the colour for dark cells: so the contrast is at least 4.5
ROOT = "root"


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
