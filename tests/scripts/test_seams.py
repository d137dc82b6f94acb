"""The changes in ``tests/seams`` apply, and touch as few files as they should; ``.ci/run`` applies and tests each."""

import shutil
import subprocess
from pathlib import Path

import pytest

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
