"""Checks of the repository: mutants of a toy package, rows that compile, changes that touch few files."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from scripts.checks import check_compile, mutants

SOURCE = '''
"""A toy."""
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    LIMIT = 3

def is_small(x: "int | 7", *, limit: int = 10) -> bool:
    """Not 10."""
    if x is None:
        raise ValueError(f"{x + 1} is 3")
    return x < limit and x != 0

class Toy:
    def __repr__(self):
        return 1 + 1
    def add(self, x):
        return x + 2
'''
FILE = "treeparse/trees/toy.py"


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with a toy package and its tests, as the root of all."""
    for name, text in (
        (FILE, SOURCE),
        ("treeparse/trees/__init__.py", ""),
        ("treeparse/__init__.py", ""),
        (
            "tests/trees/test_toy.py",
            "from treeparse.trees.toy import Toy\n\ndef test_add():\n    assert Toy().add(1) == 3\n",
        ),
        ("tests/trees/test_other.py", "def test_nothing():\n    pass\n"),
        ("pytest.ini", "[pytest]\nmarkers = slow\n"),
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.setattr(mutants, "ROOT", tmp_path)
    return tmp_path


def mutant(function: str, kind: str) -> mutants.Mutant:
    """The only mutant of a kind in a function."""
    [found] = (
        each for each in mutants.mutants_of(SOURCE, FILE) if (each["function"], each["kind"]) == (function, kind)
    )
    return found


def test_expressions_are_changed_but_not_texts_and_annotations() -> None:
    changes = {(each["function"], each["before"], each["after"]) for each in mutants.mutants_of(SOURCE, FILE)}
    condition = "x < limit and x != 0"
    assert changes == {
        ("is_small", "10", "(11)"),
        ("is_small", "x is None", "(x is not None)"),
        ("is_small", "x is None", "(not x is None)"),
        ("is_small", condition, "(x < limit or x != 0)"),
        ("is_small", "x < limit", "(x <= limit)"),
        ("is_small", "x != 0", "(x == 0)"),
        ("is_small", "0", "(1)"),
        ("Toy.add", "x + 2", "(x - 2)"),
        ("Toy.add", "2", "(3)"),
    }


def test_a_draw_is_repeatable_and_takes_one_mutant_a_function(tree: Path) -> None:
    drawn = mutants.draw(tree, 10, seed=1)
    assert drawn == mutants.draw(tree, 10, seed=1)
    assert sorted(each["function"] for each in drawn) == ["Toy.add", "is_small"]


def test_a_mutant_is_found_after_its_line_moved_and_not_after_it_changed(tree: Path) -> None:
    path, added = tree / FILE, mutant("Toy.add", "arithmetic")
    path.write_text("# é\n\n" + SOURCE.replace("def add", "def more(self, x):\n        return x + 2\n    def add"))
    found = mutants.find(tree, added)
    assert found is not None and mutants.is_same(found, added)
    assert path.read_bytes()[found["start"] :].startswith(b"x + 2") and found["start"] > added["start"]
    path.write_text(SOURCE.replace("x + 2", "2 + x"))
    assert mutants.find(tree, added) is None
    path.unlink()
    assert mutants.find(tree, added) is None


def test_files_that_share_words_with_the_module_are_tested_first(tree: Path) -> None:
    assert mutants.tests_of(tree, FILE) == ["tests/trees/test_toy.py", "tests/trees/test_other.py"]


def test_outcomes_are_compared_with_those_before(tree: Path) -> None:
    before, later = tree / "before.jsonl", tree / "later.jsonl"
    mutants.main(["--output", str(before), "--limit", "60"])
    outcomes = {each["function"]: each for each in map(json.loads, before.read_text().splitlines())}
    assert outcomes["Toy.add"]["outcome"] == "killed"
    assert outcomes["Toy.add"]["by"] == "tests/trees/test_toy.py::test_add"
    assert outcomes["is_small"]["outcome"] == "survived"  # nothing tests it
    assert (tree / FILE).read_text() == SOURCE

    (tree / FILE).write_text(SOURCE.replace("is_small", "is_little"))
    (tree / "tests/trees/test_toy.py").unlink()
    with pytest.raises(SystemExit) as ended:
        mutants.main(["--again", str(before), "--output", str(later)])
    assert ended.value.code not in (None, 0)
    outcomes = {each["function"]: each["outcome"] for each in map(json.loads, later.read_text().splitlines())}
    assert outcomes == {"Toy.add": "survived", "is_small": "code is gone"}


SCRIPT = Path(check_compile.__file__)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*check_compile.rows(), check_compile.EXPORT])
def test_a_row_compiles(name: str) -> None:
    command = [sys.executable, str(SCRIPT), "--row", name, "--backend", "aot_eager"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr


def test_a_row_that_differs_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its function returns other values the second time."""
    numbers = iter([1.0, 2.0])
    row = check_compile.Row(
        lambda scores: scores.sum() + next(numbers), check_compile.rows()["mode"].arguments[:1], False
    )
    monkeypatch.setattr(check_compile, "rows", lambda: {"row": row})
    monkeypatch.setattr(check_compile.torch, "compile", lambda function, **options: function)
    with pytest.raises(AssertionError, match="not close"):
        check_compile.check("row", "eager")


ROOT = Path(__file__).parents[2]
MOST_FILES = {
    "column": 1,
    "command": 2,
    "encoder": 1,
    "family": 1,
    "format": 1,
    "objective": 1,
    "option": 4,
    "scorer": 1,
}


def git_apply(option: str, name: str) -> str:
    change = ROOT / "tests" / "seams" / f"{name}.patch"
    return subprocess.run(
        ["git", "apply", option, str(change)], cwd=ROOT, capture_output=True, check=True, text=True
    ).stdout


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
@pytest.mark.parametrize("name", MOST_FILES)
def test_a_change_applies_to_few_files(name: str) -> None:
    git_apply("--check", name)
    files = [line.split("\t")[2] for line in git_apply("--numstat", name).splitlines()]
    assert f"tests/seams/test_{name}.py" in files
    assert len([file for file in files if not file.startswith("tests/")]) == MOST_FILES[name]


def test_every_change_is_tested() -> None:
    assert {path.stem for path in (ROOT / "tests" / "seams").glob("*.patch")} == set(MOST_FILES)
