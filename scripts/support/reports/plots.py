"""How pictures are drawn: from the tables of a report, a method in the same colour and marker in all of them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

# Colours of Okabe and Ito, then of Tol's muted scheme: the colour-blind tell them apart. A name's look is that of the
# longest entry with which it begins, so variants of a method share it.
LOOKS = {
    "treeparse": ("#000000", "o"),
    "treeparse, reweighting": ("#999999", "P"),
    "sample()": ("#000000", "o"),
    "ufal": ("#D55E00", "v"),
    "networkx": ("#882255", "X"),
    "SuPar": ("#0072B2", "s"),
    "Stanza": ("#56B4E9", "D"),
    "SynJax": ("#009E73", "^"),
    "spanningtrees": ("#E69F00", "s"),
    "torch-struct": ("#CC79A7", "v"),
    "expansion": ("#E69F00", "s"),
    "Wilson": ("#009E73", "P"),
    "WilsonMarginal": ("#56B4E9", "^"),
    "WilsonReject": ("#0072B2", "v"),
    "WilsonRC": ("#D55E00", "X"),
    "Colbourn": ("#CC79A7", "D"),
    "list": ("#882255", "v"),
    "repeat": ("#44AA99", "^"),
    "trie": ("#332288", "s"),
    "beam": ("#999933", "D"),
    "beam, CPU": ("#999933", "D"),
    "beam, CUDA": ("#0072B2", "s"),
    "torch": ("#0072B2", "s"),
    "compiled": ("#D55E00", "^"),
    "equal weights": ("#999999", "P"),
    "random weights": ("#E69F00", "s"),
    "weights uniform in (0, 1)": ("#009E73", "P"),
    "uniform in (0, 1)": ("#009E73", "P"),
    "exponential": ("#D55E00", "X"),
    "normal above 0, mean 0": ("#882255", "v"),
    "normal above 0, mean 1, sd 1": ("#CC79A7", "D"),
    "normal above 0, mean 1, sd 3": ("#332288", "s"),
    "a parser's weights": ("#0072B2", "^"),
    "EWT": ("#0072B2", "o"),
    "Turkish-IMST": ("#E69F00", "s"),
    "Latin-Perseus": ("#009E73", "^"),
    "EWT-500": ("#CC79A7", "D"),
}


def look(name: str) -> dict[str, Any]:
    """The colour and marker of a method's lines."""
    color, marker = LOOKS[max((known for known in LOOKS if name.startswith(known)), key=len)]
    return {"color": color, "marker": marker, "markersize": 5, "linewidth": 1.3}


@dataclass
class Table:
    """A Markdown table, and the heading above it."""

    title: str
    columns: Sequence[str]
    rows: list[Sequence[str]] = field(default_factory=list)

    def records(self) -> Iterator[dict[str, str]]:
        """Every row, by the names of the columns."""
        for row in self.rows:
            yield dict(zip(self.columns, row, strict=True))

    def line(self, x: str, y: str) -> list[tuple[float, float]]:
        """The points of two columns, of the rows that have numbers in both."""
        pairs = ((number(record[x]), number(record[y])) for record in self.records())
        return [(left, right) for left, right in pairs if left is not None and right is not None]


def read_tables(report: Path) -> list[Table]:
    """The tables of a Markdown file, in order."""
    tables, title, above = [], "", ""
    for line in report.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("#"):
            title = line.lstrip("# ")
        elif line.startswith("|") and not above.startswith("|"):
            tables.append(Table(title, cells))
        elif line.startswith("|") and not line.startswith(("|:-", "|--")):
            tables[-1].rows.append(cells)
        above = line
    return tables


def number(cell: str) -> float | None:
    """A cell's number: its first one where a spread stands behind it, the middle of a range "6 - 10", None of words."""
    first, *more = cell.replace(",", "").replace("%", "").split()[:3] or [""]
    try:
        return (float(first) + float(more[1])) / 2 if more and more[0] == "-" else float(first)
    except ValueError:
        return None


def new_figure(width: float, height: float) -> Any:
    """An empty figure, in inches; what stands outside the axes gets room."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def label_plainly(axis: Any, values: Iterable[float] | None = None) -> None:
    """Numbers of a logarithmic axis as one reads them, 10,000 and 0.01, at ``values`` or at powers of ten."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullLocator

    axis.set_major_locator(LogLocator(numticks=12) if values is None else FixedLocator(list(values)))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}"))


def legend_below(figure: Any, panels: Sequence[Any], columns: int, extra: Sequence[Any] = ()) -> None:
    """One legend below all panels, which has every label once."""
    entries: dict[str, Any] = {}
    for axes in panels:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    for handle in extra:
        entries.setdefault(handle.get_label(), handle)
    figure.legend(entries.values(), entries.keys(), loc="outside lower center", ncols=columns, frameon=False)


def style_key(label: str, linestyle: Literal["-", "--"]) -> Any:
    """A legend's entry for a style of line, whatever its colour."""
    from matplotlib.lines import Line2D

    return Line2D([], [], color="0.4", linestyle=linestyle, label=label)
