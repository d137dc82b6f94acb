"""Reports open with what they show, and pictures show the numbers of their tables, a method in one look."""

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from scripts.support.reports import plots
from scripts.support.reports.markdown import Opening

RESULTS = Path(plots.__file__).parents[2] / "experiments" / "results"
REPORTS = sorted(path for path in RESULTS.glob("*.md") if path.stem not in ("README", "figures", "before"))
PICTURES = sorted(RESULTS.glob("*.png"))


def script_of(result: Path) -> Any:
    """Return the module that writes a file of results."""
    [path] = RESULTS.parents[1].glob(f"*/{result.stem}.py")
    return import_module(f"scripts.{path.parent.name}.{path.stem}")


@pytest.mark.parametrize("report", REPORTS, ids=lambda path: path.stem)
def test_a_report_opens_with_what_its_script_says(report: Path) -> None:
    opening: Opening = script_of(report).OPENING
    text = report.read_text(encoding="utf-8")
    points = text.splitlines()[2:7]
    assert [point.split(":")[0] for point in points] == [
        f"- **{name}**" for name in ("Measured", "On", "To read", "Machine", "To repeat")
    ]
    machine = points[3].partition(": ")[2]
    assert text.startswith(opening.text(machine) + "\n\n## ")


@pytest.mark.parametrize("picture", PICTURES, ids=lambda path: path.stem)
def test_a_picture_is_drawn_from_its_tables_alone(picture: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    [source] = (path for path in map(picture.with_suffix, (".md", ".jsonl")) if path.exists())
    report = tmp_path / source.name
    report.write_bytes(source.read_bytes())
    script_of(picture).main(["--replot", str(report)])
    assert report.with_suffix(".png").read_bytes().startswith(b"\x89PNG")
    assert sorted(tmp_path.iterdir()) == [report, report.with_suffix(".png")]


def test_every_file_of_results_is_explained() -> None:
    index = (RESULTS / "README.md").read_text(encoding="utf-8")
    for path in RESULTS.iterdir():
        names = {f"`{path.name}`", f"`{path.stem}.md`, `.png`", f"`{path.stem}.jsonl`, `.png`"}
        assert path.name == "README.md" or any(name in index for name in names), path.name


def test_tables_are_read_as_they_stand(tmp_path: Path) -> None:
    report = tmp_path / "report.md"
    report.write_text(
        "# Title\n\n## One\n\n| n | time |\n|--:|--:|\n| 1 - 5 | 1,200 |\n| 10 | 2.5 (2.0 - 3.0) |\n| slope | 1.5 |\n"
        "| 20 |  |\n\nText.\n\n| K | list |\n|:--|--:|\n| 3 | -4 |\n"
    )
    first, second = plots.read_tables(report)
    assert (first.title, second.title, first.columns) == ("One", "One", ["n", "time"])
    assert first.line("n", "time") == [(3.0, 1200.0), (10.0, 2.5)] and second.line("K", "list") == [(3.0, -4.0)]
