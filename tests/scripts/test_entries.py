"""What lies at the top of scripts/ starts from anywhere; what it shares lies below one root and imports none of it."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[2] / "scripts"
ENTRIES = sorted(SCRIPTS.glob("*.py"))
HELPERS = sorted((SCRIPTS / "support").rglob("*.py"))
NO_OPTIONS = {"show_trees"}  # it reads trees from standard input
START_EACH = """
import runpy, sys
for path in sys.argv[1:]:
    sys.argv = [path, "--help"]
    try:
        runpy.run_path(path, run_name="__main__")
    except SystemExit as end:
        assert not end.code, path
"""


def imported_roots(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.split(".")[0]


def test_every_entry_has_help_from_another_folder(tmp_path: Path) -> None:
    paths = [str(path) for path in ENTRIES if path.stem not in NO_OPTIONS]
    code = f"import sys; sys.path[0] = {str(SCRIPTS)!r}\n{START_EACH}"  # Python's own first place for a script
    done = subprocess.run([sys.executable, "-c", code, *paths], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("usage: ") == len(paths) > 10
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("path", ENTRIES, ids=lambda path: path.stem)
def test_an_entry_can_be_run(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert "def main(" in text and text.endswith('if __name__ == "__main__":\n    main()\n')


@pytest.mark.parametrize("path", HELPERS, ids=lambda path: str(path.relative_to(SCRIPTS)))
def test_what_entries_share_imports_no_entry(path: Path) -> None:
    assert not {entry.stem for entry in ENTRIES} & set(imported_roots(path))
