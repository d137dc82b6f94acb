"""Distributions compile in one graph, each row in a fresh process whose first call is the compiled one."""

import subprocess
import sys
from pathlib import Path

import pytest
from scripts.checks import check_compile

SCRIPT = Path(check_compile.__file__)
FIRST = ("log partition", "labeled mode", "training step", check_compile.EXPORT)


@pytest.mark.parametrize(
    "name",
    [*FIRST, *(pytest.param(name, marks=pytest.mark.slow) for name in check_compile.rows() if name not in FIRST)],
)
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
