"""Compiled code on disk: used again, and not past a change of any source of its folder."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from treeparse.kernels import _compile

HELPER = """
from package import _compile

@_compile.{}
def helper(x):
    return {}
"""
KERNEL = """
from package._compile import jit
from package.helper import helper

@jit
def kernel(x):
    return 10.0 * helper(x)
"""
ROUNDING_HELPER = """
from package._compile import jit

@jit
def helper(x):
    return (x + 1.5 * 2.0**52) - 1.5 * 2.0**52  # to a whole number, unless the sum is reordered
"""
REORDERED_KERNEL = """
from package._compile import vector_jit
from package.helper import helper

@vector_jit
def kernel(x):
    return 10.0 * helper(x)
"""
PROGRAM = "from package.kernel import kernel; print(kernel(1.0), sum(kernel.stats.cache_hits.values()))"


def write_package(folder: Path, kernel: str, helper: str) -> Path:
    """A package of two kernel files, compiled as ours are."""
    package = folder / "package"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "_compile.py").write_bytes(Path(_compile.__file__).read_bytes())
    (package / "kernel.py").write_text(kernel, encoding="utf-8")
    (package / "helper.py").write_text(helper, encoding="utf-8")
    return package


def answer(folder: Path) -> tuple[float, int]:
    """The kernel's result in a fresh process, and how often compiled code was found on disk."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    command = [sys.executable, "-c", PROGRAM]
    output = subprocess.check_output(command, cwd=folder, env=environment, text=True, timeout=120)
    result, hits = output.split()
    return float(result), int(hits)


@pytest.mark.parametrize("compiler", ["jit", "part_jit"])
def test_a_change_in_a_helper_of_another_file_is_seen(tmp_path: Path, compiler: str) -> None:
    package = write_package(tmp_path, KERNEL, HELPER.format(compiler, "x + 1.0"))
    assert answer(tmp_path) == (20.0, 0)
    assert answer(tmp_path) == (20.0, 1)
    (package / "helper.py").write_text(HELPER.format(compiler, "x + 22.0"), encoding="utf-8")
    assert answer(tmp_path) == (230.0, 0)
    assert answer(tmp_path) == (230.0, 1)


def test_a_helper_does_not_take_the_flags_of_its_first_caller(tmp_path: Path) -> None:
    write_package(tmp_path, REORDERED_KERNEL, ROUNDING_HELPER)
    program = "from package.kernel import kernel; print(kernel(0.3), kernel(1.3))"
    output = subprocess.check_output([sys.executable, "-c", program], cwd=tmp_path, text=True, timeout=120)
    assert output.split() == ["0.0", "10.0"]
