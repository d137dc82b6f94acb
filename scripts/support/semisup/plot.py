"""The plot of the experiment: a bar a setting, and a point a seed."""

from collections.abc import Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from scripts.support.training.runs import Record

BAR, POINT = "#56B4E9", "#000000"


def draw(few: Sequence[Record], none: Sequence[Record], path: Path) -> None:
    """Draw the UAS of parsers from few trees beside that of parsers from none; without matplotlib nothing is drawn."""
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        print("no plot: it needs matplotlib (pip install treeparse[bench])")
        return
    parts = [
        (records, title)
        for records, title in ((few, "100 sentences with trees"), (none, "no tree, up to 20 words"))
        if records
    ]
    if not parts:
        return
    figure = Figure(figsize=(5.5 * len(parts), 3.6), layout="constrained")
    for axes, (records, title) in zip(figure.subplots(1, len(parts), squeeze=False)[0], parts, strict=True):
        _bars(axes, records)
        axes.set_title(title, fontsize=10)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)


def _bars(axes: Any, records: Sequence[Record]) -> None:
    settings = list(dict.fromkeys(record["setting"] for record in records))[::-1]  # the first on top
    for place, setting in enumerate(settings):
        scores = [100 * record["uas"] for record in records if record["setting"] == setting]
        axes.barh(place, mean(scores), color=BAR, height=0.6)
        axes.plot(scores, [place] * len(scores), "o", color=POINT, markersize=3.5)
        axes.annotate(f"{mean(scores):.1f}", (1, place), va="center", fontsize=8)
    axes.set_yticks(range(len(settings)), settings, fontsize=8)
    axes.set_xlabel("UAS on the test set; points are seeds", fontsize=8)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
