"""What lies at the top of scripts/ starts from anywhere; what it shares lies below one root and imports none of it."""

import ast
import runpy
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

SCRIPTS = Path(__file__).parents[2] / "scripts"
ENTRIES = sorted(SCRIPTS.glob("*.py"))
HELPERS = sorted((SCRIPTS / "support").rglob("*.py"))
NO_OPTIONS = {"show_trees"}  # it reads trees from standard input


def imported_roots(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.split(".")[0]


def modules_of_scripts() -> dict[str, ModuleType]:
    files = {name: getattr(module, "__file__", None) for name, module in sys.modules.items()}
    return {name: sys.modules[name] for name, file in files.items() if file and Path(file).is_relative_to(SCRIPTS)}


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Another folder, from which Python has just started a script: only what lies beside that is found, and anew."""
    monkeypatch.chdir(tmp_path)
    ours = SCRIPTS, Path(__file__).parents[1]  # which pytest has put there
    others = [place for place in sys.path if not any(map(Path(place).is_relative_to, ours))]
    monkeypatch.setattr(sys, "path", [str(SCRIPTS), *others])
    before = modules_of_scripts()
    for name in before:
        del sys.modules[name]
    yield tmp_path
    for name in modules_of_scripts():
        del sys.modules[name]
    sys.modules |= before


def test_every_entry_has_help_from_another_folder(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [str(path) for path in ENTRIES if path.stem not in NO_OPTIONS]
    for path in paths:
        monkeypatch.setattr(sys, "argv", [path, "--help"])
        with pytest.raises(SystemExit) as end:
            runpy.run_path(path, run_name="__main__")
        assert not end.value.code, path
    assert capsys.readouterr().out.count("usage: ") == len(paths) > 10
    assert not list(elsewhere.iterdir())


@pytest.mark.parametrize("path", ENTRIES, ids=lambda path: path.stem)
def test_an_entry_can_be_run(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert "def main(" in text and text.endswith('if __name__ == "__main__":\n    main()\n')


@pytest.mark.parametrize("path", HELPERS, ids=lambda path: str(path.relative_to(SCRIPTS)))
def test_what_entries_share_imports_no_entry(path: Path) -> None:
    assert not {entry.stem for entry in ENTRIES} & set(imported_roots(path))
