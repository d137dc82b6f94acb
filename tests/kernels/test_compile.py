"""Compiled code: used again, not past a change of any source, and made anew where nothing of it can be stored."""

import importlib
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.unprivileged import make_read_only, run_as_nobody

import treeparse.kernels

HELPER = """
from package.compile import exact_kernel

@exact_kernel
def helper(x):
    return {}
"""
KERNEL = """
from package.compile import exact_kernel
from package.helper import helper

@exact_kernel
def kernel(x):
    return 10.0 * helper(x)
"""
ROUNDING = "(x + 1.5 * 2.0**52) - 1.5 * 2.0**52  # to a whole number, unless the sum is reordered"
# One write a line, however output is buffered: processes that write at the same time do not mix theirs.
PROGRAM = """
from package.compile import call
from package.kernel import kernel
print(f"{call(kernel, 1.0)} {sum(kernel.stats.cache_hits.values())}\\n", end="")
"""
IN_TWO_PROCESSES = """
import os
for _ in range(2):
    if os.fork() == 0:
        break
else:
    assert [os.wait()[1] for _ in range(2)] == [0] * 2
    raise SystemExit
"""


def write_package(folder: Path, kernel: str = KERNEL, helper: str = "x + 1.0") -> Path:
    """A package of two kernel files, compiled as ours are."""
    package = folder / "package"
    package.mkdir()
    (package / "__init__.py").touch()
    text = Path(treeparse.kernels.__file__).with_name("compile.py").read_text(encoding="utf-8")
    (package / "compile.py").write_text(text.replace("treeparse.kernels", "package"), encoding="utf-8")
    (package / "kernel.py").write_text(kernel, encoding="utf-8")
    (package / "helper.py").write_text(HELPER.format(helper), encoding="utf-8")
    return package


def printed(folder: Path, program: str) -> str:
    """What a fresh process prints, for which numba is not set in any way."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    command = [sys.executable, "-c", program]
    return subprocess.check_output(command, cwd=folder, env=environment, text=True, timeout=120)


def answer(folder: Path) -> tuple[float, int]:
    """The kernel's result in a fresh process, and how often compiled code was found on disk."""
    result, hits = printed(folder, PROGRAM).split()
    return float(result), int(hits)


def answer_of_nobody(folder: Path, **variables: str) -> tuple[str, str]:
    """What the program says on its two streams, run by a user who can write to nothing."""
    done = run_as_nobody(["-W", "error", "-c", PROGRAM], folder, variables)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip(), done.stderr.strip()


class Kernels:
    """A package of kernels that is imported anew, as by a new process, whenever it is asked for an answer."""

    def __init__(self, folder: Path) -> None:
        self.package = write_package(folder)

    def answer(self, name: str = "kernel.kernel") -> tuple[float, int]:
        for loaded in [loaded for loaded in sys.modules if loaded.partition(".")[0] == "package"]:
            del sys.modules[loaded]
        importlib.invalidate_caches()
        module, _, function = f"package.{name}".rpartition(".")
        kernel = getattr(importlib.import_module(module), function)
        result = importlib.import_module("package.compile").call(kernel, 1.0)
        return result, sum(kernel.stats.cache_hits.values())

    def files(self, ending: str) -> list[Path]:
        return sorted(self.package.rglob(f"*.{ending}"))


@pytest.fixture
def kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kernels:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    return Kernels(tmp_path)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A temporary folder below none that is closed to other users."""
    with tempfile.TemporaryDirectory(prefix="treeparse-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.mark.parametrize("module", ["helper", "below.helper"])
def test_a_change_in_a_helper_of_another_file_is_seen(kernels: Kernels, module: str) -> None:
    (kernels.package / "below").mkdir()
    helper = kernels.package / f"{module.replace('.', '/')}.py"
    helper.write_text(HELPER.format("x + 1.0"), encoding="utf-8")
    (kernels.package / "kernel.py").write_text(KERNEL.replace("package.helper", f"package.{module}"), encoding="utf-8")
    assert kernels.answer() == (20.0, 0)
    assert kernels.answer() == (20.0, 1)
    helper.write_text(HELPER.format("x + 22.0"), encoding="utf-8")
    assert kernels.answer() == (230.0, 0)
    assert kernels.answer() == (230.0, 1)


def test_files_of_equal_names_in_two_folders_are_kept_apart(kernels: Kernels) -> None:
    for folder, result in (("best", "x + 1.0"), ("lists", "x + 22.0")):
        (kernels.package / folder).mkdir()
        (kernels.package / folder / "helper.py").write_text(HELPER.format(result), encoding="utf-8")
    for hits in (0, 1):
        assert kernels.answer("best.helper.helper") == (2.0, hits)
        assert kernels.answer("lists.helper.helper") == (23.0, hits)


def test_where_no_folder_is_writable_kernels_are_compiled_and_this_is_said_once(open_folder: Path) -> None:
    make_read_only(write_package(open_folder))
    open_folder.chmod(0o777)  # the current folder is no place for a home that does not exist
    for home in ({}, {"HOME": "/dev/null", "NUMBA_CACHE_DIR": "/dev/null/kernels"}):
        output, errors = answer_of_nobody(open_folder, **home)
        assert output == "20.0 0"
        assert errors.startswith("Compiled kernels cannot be cached, because no folder for them is writable: ")
        assert "Set NUMBA_CACHE_DIR" in errors and "treeparse warm" in errors and len(errors.splitlines()) == 1
    assert [path.name for path in open_folder.iterdir()] == ["package"]


def test_compiled_code_that_cannot_be_written_is_copied(open_folder: Path) -> None:
    package = write_package(open_folder)
    assert answer(open_folder) == (20.0, 0)
    make_read_only(package)
    assert answer_of_nobody(open_folder) == ("20.0 1", "")
    home = open_folder / "home"
    home.mkdir()
    home.chmod(0o777)
    assert answer_of_nobody(open_folder, HOME=str(home)) == ("20.0 1", "")
    assert list(home.rglob("*.nbi"))


@pytest.mark.parametrize("ending", ["nbi", "nbc"])
def test_damaged_files_are_made_anew(kernels: Kernels, ending: str, caplog: pytest.LogCaptureFixture) -> None:
    assert kernels.answer() == (20.0, 0)
    for path in kernels.files(ending):
        path.write_bytes(path.read_bytes()[:100])
    assert kernels.answer() == (20.0, 0)
    assert "are damaged" in caplog.messages[-1]
    assert kernels.answer() == (20.0, 1)


def test_processes_may_compile_at_the_same_time(tmp_path: Path) -> None:
    write_package(tmp_path)
    answers = printed(tmp_path, IN_TWO_PROCESSES + PROGRAM).splitlines()
    assert [answer.split()[0] for answer in answers] == ["20.0"] * 2
    assert answer(tmp_path) == (20.0, 1)


def test_a_helper_does_not_take_the_flags_of_its_first_caller(tmp_path: Path) -> None:
    write_package(
        tmp_path,
        KERNEL.replace("exact_kernel", "kernel as reordered", 1).replace("@exact_kernel", "@reordered"),
        ROUNDING,
    )
    program = "from package.kernel import kernel; print(kernel(0.3), kernel(1.3))"
    assert printed(tmp_path, program).split() == ["0.0", "10.0"]


def test_what_is_compiled_at_a_first_call_is_said_before(kernels: Kernels, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "package")
    kernels.answer()
    kernels.answer()
    [message] = caplog.messages
    assert "compiled when they are first used" in message and str(kernels.package / "__pycache__") in message


def test_kernels_use_public_names_of_numba_alone() -> None:
    folder = Path(treeparse.kernels.__file__).parent
    for path in folder.rglob("*.py"):
        assert not re.search(r"numba\.(core|misc|np)\b", path.read_text(encoding="utf-8")), path
