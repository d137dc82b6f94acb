"""Every script starts by ``python -m`` from the root; what scripts share lies below one folder and imports none."""

import ast
import runpy
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from helpers.commands import Capture

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
