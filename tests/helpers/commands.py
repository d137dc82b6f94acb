"""Commands that are run in the process of a test, and refused; calls that are refused."""

import re
from collections.abc import Callable

import pytest

from treeparse.cli.main import main
from treeparse.errors import TreeparseError

Capture = pytest.CaptureFixture[str]


def run(*arguments: object) -> int:
    """The exit code of a command on the CPU."""
    return main([*map(str, arguments), "--device", "cpu"])


def error_of(capsys: Capture, *arguments: object) -> str:
    """The one sentence of a command that is refused, by its parser of arguments or by itself."""
    try:
        code = main([*map(str, arguments)])
    except SystemExit as stopped:
        code = stopped.code
    out, err = capsys.readouterr()
    *usage, error = err.splitlines()
    assert (code, out) == (2, "") and re.match("treeparse[a-z -]*: error: ", error), err
    assert not usage or usage[0].startswith("usage: "), err
    return error


def assert_refused(*cases: tuple[Callable[[], object], str]) -> None:
    """Every call is refused with its sentence."""
    for call, problem in cases:
        with pytest.raises(TreeparseError, match=problem):
            call()
