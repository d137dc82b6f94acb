"""Which of treeparse's samplers is fastest, over lengths, scales of scores and shifts of the root's: tables and a plot.

Trees are drawn by the kernels, many of each sentence, so that what a sampler makes ready hardly counts.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from timing import Timed, take_turns

from treeparse.kernels.sampling import AUTO, COLBOURN, EXPANSION, WILSON, WILSON_MARGINAL, WILSON_REJECT, sample_trees

SCALES = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
SHIFTS = (-50.0, -20.0, -10.0, -5.0, 0.0, 5.0, 10.0, 50.0)
NAMES = {
    AUTO: "sample()",
    EXPANSION: "expansion",
    WILSON: "Wilson",
    WILSON_MARGINAL: "WilsonMarginal",
    WILSON_REJECT: "WilsonReject",
    COLBOURN: "Colbourn",
}
COLORS = {  # of Okabe and Ito, which the colour-blind tell apart
    AUTO: "#000000",
    EXPANSION: "#E69F00",
    WILSON: "#009E73",
    WILSON_MARGINAL: "#56B4E9",
    WILSON_REJECT: "#0072B2",
    COLBOURN: "#CC79A7",
}
MARKERS = {AUTO: "x", EXPANSION: "o", WILSON: "s", WILSON_MARGINAL: "^", WILSON_REJECT: "v", COLBOURN: "D"}
TREES, WORDS, MOST_SENTENCES = 100, 320, 8  # trees of each sentence, and about so many words in a batch
ROUND, MIN_ROUNDS, MAX_ROUNDS, BUDGET = 0.01, 3, 9, 0.5  # as in bench_samplers.py


@dataclass
class Draws(Timed):
    """A sampler on one batch, the trees of a call, and the mean steps of a tree in the last one."""

    trees: int
    steps: float = field(default=0.0, init=False)

    @property
    def microseconds(self) -> float:
        return 1e6 * self.median / self.trees


Cell = dict[int, Draws]


@dataclass
class Map:
    """All samplers under one rule for the root, at every place (row, scale) of a table.

    With a single root, rows are lengths: what is added to all of the root's scores changes no tree's probability, and
    walks end at the word drawn for the root. Otherwise rows are such shifts, and all sentences have so many ``words``.
    """

    rows: Sequence[float]
    scales: Sequence[float]
    words: int = 0
    cells: dict[tuple[float, float], Cell] = field(default_factory=dict)

    @property
    def single_root(self) -> bool:
        return self.words == 0

    @property
    def title(self) -> str:
        return "one root" if self.single_root else f"any number of roots, {self.words} words"

    @property
    def row_name(self) -> str:
        return "words" if self.single_root else "root shift"

    def measure(self, row: float, scale: float) -> Cell:
        """Let the samplers take turns on N(0, 1) scores times ``scale``, the root's shifted."""
        walks = (WILSON_MARGINAL, WILSON_REJECT) if self.single_root else (WILSON,)
        words, shift = (int(row), 0.0) if self.single_root else (self.words, row)
        sentences = max(1, min(MOST_SENTENCES, WORDS // words))
        scores = scale * np.random.default_rng(1).normal(size=(sentences, words + 1, words + 1))
        scores[:, 0] += shift
        cell = {method: self._enter(scores, method) for method in (AUTO, EXPANSION, *walks, COLBOURN)}
        take_turns(list(cell.values()), fewest=MIN_ROUNDS, most=MAX_ROUNDS, budget=BUDGET)
        self.cells[row, scale] = cell
        return cell

    def _enter(self, scores: np.ndarray, method: int) -> Draws:
        lengths, stream = np.full(len(scores), scores.shape[1] - 1), np.random.default_rng(2)

        def draw() -> None:
            seeds = stream.integers(2**64, size=len(scores), dtype=np.uint64)
            _, steps = sample_trees(scores, lengths, seeds, TREES, single_root=self.single_root, method=method)
            draws.steps = float(steps.mean())

        draws = Draws(draw, len(scores) * TREES)
        draws.fill_round(ROUND, 100)
        return draws


def fastest(cell: Cell) -> int:
    """The method, what is chosen by itself aside."""
    return min((method for method in cell if method != AUTO), key=lambda method: cell[method].median)


def loss(cell: Cell) -> float:
    """How much longer than the fastest method it takes to let the method be chosen: 0.1 for a tenth."""
    return cell[AUTO].over(cell[fastest(cell)])[1] - 1


def lines(chart: Map) -> Iterator[str]:
    """The markdown table of a map, as it is measured."""
    yield f"\n## Which sampler is fastest: {chart.title}, {TREES} trees of each sentence\n"
    for place, (row, scale) in enumerate((row, scale) for row in chart.rows for scale in chart.scales):
        cell = chart.measure(row, scale)
        if place == 0:
            names = [NAMES[method] for method in cell]
            stepping = [f"steps, {NAMES[method]}" for method in cell if method not in (EXPANSION, COLBOURN)]
            yield f"| {' | '.join([chart.row_name, 'scale', *names, 'fastest', 'loss', *stepping])} |"
            yield f"|--:|--:|{'--:|' * len(names)}:--|--:|{'--:|' * len(stepping)}"
        times = [f"{draws.microseconds:.3g}" for draws in cell.values()]
        steps = [f"{draws.steps:.0f}" for method, draws in cell.items() if method not in (EXPANSION, COLBOURN)]
        names = [f"{row:g}", f"{scale:g}", *times, NAMES[fastest(cell)], f"{loss(cell):+.0%}", *steps]
        yield f"| {' | '.join(names)} |"


def plot(charts: Sequence[Map], path: Path) -> None:
    """Draw the fastest samplers on a grid for every map, and beside it all of them in one of its rows."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 5 * len(charts)), layout="constrained")
    for (grid, curves), chart in zip(figure.subplots(len(charts), 2, squeeze=False), charts, strict=True):
        _draw_grid(grid, chart)
        _draw_curves(curves, chart)
    figure.savefig(path, dpi=110)


def _draw_grid(axes: Any, chart: Map) -> None:
    """A coloured cell a place, with the time of the fastest sampler and the loss of the choice."""
    from matplotlib.patches import Rectangle

    shown: dict[int, Any] = {}
    for (row, scale), cell in chart.cells.items():
        x, y, best = chart.scales.index(scale), chart.rows.index(row), fastest(cell)
        box = axes.add_patch(Rectangle((x, y), 1, 1, facecolor=COLORS[best], edgecolor="white", label=NAMES[best]))
        shown.setdefault(best, box)
        text = f"{cell[best].microseconds:.3g} µs\n{loss(cell):+.0%}"
        axes.text(x + 0.5, y + 0.5, text, ha="center", va="center", fontsize="small")
    axes.set(xlim=(0, len(chart.scales)), ylim=(0, len(chart.rows)), xlabel="scale of scores", ylabel=chart.row_name)
    axes.set_xticks(np.arange(len(chart.scales)) + 0.5, [f"{scale:g}" for scale in chart.scales])
    axes.set_yticks(np.arange(len(chart.rows)) + 0.5, [f"{row:g}" for row in chart.rows])
    axes.legend(handles=list(shown.values()), loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=4, frameon=False)
    axes.set_title(f"Fastest sampler, {chart.title}\n(µs a tree; how much longer sample() takes, which chooses itself)")


def _draw_curves(axes: Any, chart: Map) -> None:
    """The times of all samplers over scales, in the row of 40 words, or of no shift, if there is one."""
    wanted = 40 if chart.single_root else 0
    row = wanted if wanted in chart.rows else chart.rows[0]
    for method in chart.cells[row, chart.scales[0]]:
        times = [chart.cells[row, scale][method].microseconds for scale in chart.scales]
        style = {"color": COLORS[method], "marker": MARKERS[method], "linestyle": "--" if method == AUTO else "-"}
        axes.plot(chart.scales, times, label=NAMES[method], **style)
    axes.set(xscale="log", yscale="log", xlabel="scale of scores", ylabel="µs a tree")
    axes.set_title(f"{chart.row_name} {row:g}: {chart.title}")
    axes.legend()
