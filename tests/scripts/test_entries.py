"""Scripts start from the root, the demo treebank is what its script draws, and reports open with what they show."""

import ast
import runpy
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from helpers.commands import Capture
from scripts.support.demo_grammar.sentences import DemoSentence
from scripts.support.make_demo_treebank import SIZES, draw_splits, to_conllu
from scripts.support.reports import plots
from scripts.support.reports.markdown import Opening

from treeparse.data.conllu import load_treebank
from treeparse.sentence import nonprojective_words

SCRIPTS = Path(__file__).parents[2] / "scripts"
FOLDERS = ("benchmarks", "checks", "experiments")
SUPPORT = SCRIPTS / "support"
ENTRIES = sorted(path for folder in FOLDERS for path in (SCRIPTS / folder).glob("*.py"))
ENTRIES += [SUPPORT / "make_demo_treebank.py", SUPPORT / "show_trees.py"]
HELPERS = sorted({*SUPPORT.rglob("*.py")} - {*ENTRIES})
NO_OPTIONS = {"show_trees"}  # it reads trees from standard input


def imported_names(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def modules_of_scripts() -> dict[str, ModuleType]:
    files = {name: getattr(module, "__file__", None) for name, module in sys.modules.items()}
    return {name: sys.modules[name] for name, file in files.items() if file and Path(file).is_relative_to(SCRIPTS)}


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder; only what lies in the root is found, and anew, as if Python had just started a script."""
    monkeypatch.chdir(tmp_path)
    ours = SCRIPTS, Path(__file__).parents[1]  # which pytest has put there
    others = [place for place in sys.path if not any(map(Path(place).is_relative_to, ours))]
    monkeypatch.setattr(sys, "path", [str(SCRIPTS.parent), *others])
    before = modules_of_scripts()
    for name in before:
        del sys.modules[name]
    yield tmp_path
    for name in modules_of_scripts():
        del sys.modules[name]
    sys.modules |= before
    for name, module in before.items():
        package, _, own = name.rpartition(".")
        if package in sys.modules:
            setattr(sys.modules[package], own, module)


def test_every_entry_has_help(elsewhere: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    names = [f"scripts.{path.parent.name}.{path.stem}" for path in ENTRIES if path.stem not in NO_OPTIONS]
    for name in names:
        for imported in modules_of_scripts():
            del sys.modules[imported]
        monkeypatch.setattr(sys, "argv", [name, "--help"])
        with pytest.raises(SystemExit) as end:
            runpy.run_module(name, run_name="__main__")
        assert not end.value.code, name
    assert capsys.readouterr().out.count("usage: ") == len(names) > 10
    assert not list(elsewhere.iterdir())


@pytest.mark.parametrize("path", ENTRIES, ids=lambda path: path.stem)
def test_an_entry_can_be_run(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert "def main(" in text and text.endswith('if __name__ == "__main__":\n    main()\n')


@pytest.mark.parametrize("path", HELPERS, ids=lambda path: str(path.relative_to(SCRIPTS)))
def test_what_entries_share_imports_no_entry(path: Path) -> None:
    assert not any(name.startswith(f"scripts.{folder}") for folder in FOLDERS for name in imported_names(path))


DATA = Path(__file__).parents[2] / "data"


@pytest.fixture(scope="module")
def splits() -> dict[str, list[DemoSentence]]:
    return draw_splits()


@pytest.mark.parametrize("split", SIZES)
def test_committed_files_are_what_the_script_draws(splits: dict[str, list[DemoSentence]], split: str) -> None:
    drawn = to_conllu(split, splits[split])
    assert (DATA / f"demo-{split}.conllu").read_bytes() == drawn.encode()
    assert len(splits[split]) == SIZES[split]


@pytest.mark.parametrize("split", SIZES)
def test_trees_are_valid_and_a_tenth_is_not_projective(split: str) -> None:
    trees = [item.words.heads for item in load_treebank([DATA / f"demo-{split}.conllu"])]
    crossing = sum(bool(nonprojective_words(heads)) for heads in trees if heads is not None)
    assert 0.05 <= crossing / len(trees) <= 0.15


def test_no_sentence_stands_twice(splits: dict[str, list[DemoSentence]]) -> None:
    texts = [item.text for sentences in splits.values() for item in sentences]
    assert len(set(texts)) == len(texts)


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
