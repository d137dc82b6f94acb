"""Which of treeparse's samplers is fastest, over lengths, scales of scores and shifts of the root's: tables and a plot.

Trees are drawn by the kernels, many of each sentence, so that what a sampler makes ready hardly counts.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scripts.support.reports import plots
from scripts.support.reports.timing import Timed, take_turns
from scripts.support.sampling.methods import (
    AUTO,
    COLBOURN,
    EXPANSION,
    WILSON,
    WILSON_MARGINAL,
    WILSON_REJECT,
    sample_trees,
)

SCALES = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
ROOT_SHIFTS = (-50.0, -20.0, -10.0, -5.0, 0.0, 5.0, 10.0, 50.0)
SAMPLER_NAMES = {
    AUTO: "sample()",
    EXPANSION: "expansion",
    WILSON: "Wilson",
    WILSON_MARGINAL: "WilsonMarginal",
    WILSON_REJECT: "WilsonReject",
    COLBOURN: "Colbourn",
}
TITLE = "Which sampler is fastest:"
SCALE_LABEL = "standard deviation of the scores, nats"
ROW_LABELS = {"words": "words a sentence", "root shift": "root shift: added to the root's scores, nats"}
TREES, BATCH_WORDS, MOST_SENTENCES = 100, 320, 8  # trees of each sentence, and about so many words in a batch
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
        sentences = max(1, min(MOST_SENTENCES, BATCH_WORDS // words))
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
    yield f"\n## {TITLE} {chart.title}, {TREES} trees of each sentence\n"
    for place, (row, scale) in enumerate((row, scale) for row in chart.rows for scale in chart.scales):
        cell = chart.measure(row, scale)
        if place == 0:
            names = [SAMPLER_NAMES[method] for method in cell]
            stepping = [f"steps, {SAMPLER_NAMES[method]}" for method in cell if method not in (EXPANSION, COLBOURN)]
            yield f"| {' | '.join([chart.row_name, 'scale', *names, 'fastest', 'loss', *stepping])} |"
            yield f"|--:|--:|{'--:|' * len(names)}:--|--:|{'--:|' * len(stepping)}"
        times = [f"{draws.microseconds:.3g}" for draws in cell.values()]
        steps = [f"{draws.steps:.0f}" for method, draws in cell.items() if method not in (EXPANSION, COLBOURN)]
        names = [f"{row:g}", f"{scale:g}", *times, SAMPLER_NAMES[fastest(cell)], f"{loss(cell):+.0%}", *steps]
        yield f"| {' | '.join(names)} |"


def plot(report: Path) -> None:
    """Draw the fastest samplers of a report's maps on a grid, and beside it all of them in one of its rows."""
    tables = [table for table in plots.read_tables(report) if table.title.startswith(TITLE)]
    figure = plots.new_figure(12, 4.6 * len(tables))
    for (grid, curves), table in zip(figure.subplots(len(tables), 2, squeeze=False), tables, strict=True):
        _draw_grid(grid, table)
        _draw_curves(curves, table)
    figure.savefig(report.with_suffix(".png"), dpi=100)


def _draw_grid(axes: Any, table: plots.Table) -> None:
    """A coloured cell a place, with the time of the fastest sampler and the loss of the choice."""
    from matplotlib.patches import Rectangle

    records = list(table.records())
    rows, scales = (list(dict.fromkeys(record[name] for record in records)) for name in table.columns[:2])
    for record in records:
        x, y, best = scales.index(record["scale"]), rows.index(record[table.columns[0]]), record["fastest"]
        axes.add_patch(Rectangle((x, y), 1, 1, facecolor=plots.look(best)["color"], edgecolor="white", label=best))
        text = f"{record[best]} µs\n{record['loss']}"
        dark = best == SAMPLER_NAMES[WILSON_REJECT]
        axes.text(x + 0.5, y + 0.5, text, ha="center", va="center", fontsize="small", color="w" if dark else "k")
    axes.set(xlim=(0, len(scales)), ylim=(0, len(rows)), xlabel=SCALE_LABEL, ylabel=ROW_LABELS[table.columns[0]])
    axes.set_xticks(np.arange(len(scales)) + 0.5, scales)
    axes.set_yticks(np.arange(len(rows)) + 0.5, rows)
    _legend_below(axes)
    axes.set_title(f"The fastest sampler: {_rule(table)}\nµs a tree, and how much longer sample() takes")


def _draw_curves(axes: Any, table: plots.Table) -> None:
    """The times of all samplers over scales, in the row of 40 words, or of no shift, if there is one."""
    rows = [record[table.columns[0]] for record in table.records()]
    row = next((wanted for wanted in ("40", "0") if wanted in rows), rows[0])
    shown = plots.Table(table.title, table.columns, [cells for cells in table.rows if cells[0] == row])
    for name in table.columns[2 : table.columns.index("fastest")]:
        style = "--" if name == SAMPLER_NAMES[AUTO] else "-"
        axes.plot(*zip(*shown.line("scale", name), strict=True), style, label=name, **plots.look(name))
    axes.set(xscale="log", yscale="log", xlabel=SCALE_LABEL, ylabel="µs a tree")
    plots.label_plainly(axes.xaxis, [x for x, _ in shown.line("scale", table.columns[2])])
    plots.label_plainly(axes.yaxis, [1, 2, 5, 10, 20, 50])
    words = f"{row} words, " if table.columns[0] == "words" else ""
    shift = "" if words else ", root shift 0" if row == "0" else f", root shift {row}"
    axes.set_title(f"All samplers: {words}{_rule(table)}{shift}")
    _legend_below(axes)


def _rule(table: plots.Table) -> str:
    """The rule for the root, from the table's title."""
    return table.title.removeprefix(TITLE).rpartition(",")[0].strip()


def _legend_below(axes: Any) -> None:
    """Every label once, below the axes."""
    entries = dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
    place = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.14), "ncols": 3, "frameon": False, "columnspacing": 1.2}
    axes.legend(entries.values(), entries.keys(), **place)
