"""Compiled code: used again, not past a change of any source, and made anew where nothing of it can be kept."""

import errno
import importlib
import json
import logging
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import create_autospec

import pytest
from helpers.unprivileged import make_read_only, run_as_nobody
from numba.core import config, event
from numba.core.caching import IndexDataCacheFile
from numba.core.codegen import CPUCodegen, CPUCodeLibrary
from numba.core.errors import NumbaError
from numba.core.registry import cpu_target

import treeparse.kernels

HELPER = """
from package.compile import jit, part_jit

@{}
def helper(x):
    return {}
"""
KERNEL = """
from package.compile import jit
from package.helper import helper

@jit
def kernel(x):
    return 10.0 * helper(x)
"""
ROUNDING_HELPER = """
from package.compile import jit

@jit
def helper(x):
    return (x + 1.5 * 2.0**52) - 1.5 * 2.0**52  # to a whole number, unless the sum is reordered
"""
REORDERED_KERNEL = """
from package.compile import vector_jit
from package.helper import helper

@vector_jit
def kernel(x):
    return 10.0 * helper(x)
"""
LENDING_KERNEL = """
import numpy as np
from package.compile import jit, lent_jit, view_jit

@view_jit
def front(array):
    return array[:2]

@lent_jit
def lent(arrays, number):
    return {}

@jit
def kernel(x):
    arrays = np.full(3, x), np.full(3, x)
    lent(arrays, 0)
    return 10.0 * arrays[0].sum() + arrays[1].sum()
"""
KERNEL_OF_TWO_ROOMS = """
from package.compile import jit
from package.best import helper as best
from package.lists import helper as lists

@jit
def kernel(x):
    return 10.0 * best.helper(x) + lists.helper(x)
"""
# One write a line, however output is buffered: processes that write at the same time do not mix theirs.
PROGRAM = """
from package.kernel import kernel
print(f"{kernel(1.0)} {sum(kernel.stats.cache_hits.values())}\\n", end="")
"""
IN_FOUR_PROCESSES = """
import os
from numba.core.registry import cpu_target
cpu_target.target_context.refresh()  # which takes half as long as to compile
for _ in range(4):
    if os.fork() == 0:
        break
else:
    assert [os.wait()[1] for _ in range(4)] == [0] * 4
    raise SystemExit
"""


def write_package(folder: Path, kernel: str = KERNEL, helper: str = HELPER.format("jit", "x + 1.0")) -> Path:
    """A package of two kernel files, compiled as ours are."""
    package = folder / "package"
    package.mkdir()
    (package / "__init__.py").touch()
    for source in ("compile.py", "numba_private.py"):
        text = Path(treeparse.kernels.__file__).with_name(source).read_text(encoding="utf-8")
        (package / source).write_text(text.replace("treeparse.kernels", "package"), encoding="utf-8")
    (package / "kernel.py").write_text(kernel, encoding="utf-8")
    (package / "helper.py").write_text(helper, encoding="utf-8")
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
        self.folder = folder
        self.package = write_package(folder)

    def answer(self) -> tuple[float, int]:
        return self.answers("kernel.kernel")[0]

    def answers(self, *names: str) -> list[tuple[float, int]]:
        """Of several functions, each called from Python."""
        for name in [name for name in sys.modules if name.partition(".")[0] == "package"]:
            del sys.modules[name]
        importlib.invalidate_caches()
        paths = [f"package.{name}".rpartition(".") for name in names]
        functions = [getattr(importlib.import_module(module), name) for module, _, name in paths]
        try:
            return [(function(1.0), sum(function.stats.cache_hits.values())) for function in functions]
        finally:
            event.unregister("numba:compile", sys.modules["package.numba_private"]._announcer)

    def change(self) -> None:
        """Another answer, 230."""
        (self.package / "helper.py").write_text(HELPER.format("jit", "x + 22.0"), encoding="utf-8")

    def files(self, ending: str) -> list[Path]:
        return sorted(self.package.rglob(f"*.{ending}"))


@pytest.fixture
def kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kernels:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(config, "CACHE_DIR", "")
    return Kernels(tmp_path)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A temporary folder below none that is closed to other users."""
    with tempfile.TemporaryDirectory(prefix="treeparse-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.mark.parametrize("compiler", ["jit", "part_jit"])
def test_a_change_in_a_helper_of_another_file_is_seen(kernels: Kernels, compiler: str) -> None:
    helper = kernels.package / "helper.py"
    helper.write_text(HELPER.format(compiler, "x + 1.0"), encoding="utf-8")
    assert kernels.answer() == (20.0, 0)
    assert kernels.answer() == (20.0, 1)
    helper.write_text(HELPER.format(compiler, "x + 22.0"), encoding="utf-8")
    assert kernels.answer() == (230.0, 0)
    assert kernels.answer() == (230.0, 1)


def test_a_change_in_a_folder_below_is_seen(kernels: Kernels) -> None:
    (kernels.package / "kernel.py").write_text(KERNEL.replace("package.helper", "package.below.helper"))
    (kernels.package / "below").mkdir()
    helper = (kernels.package / "helper.py").rename(kernels.package / "below" / "helper.py")
    assert kernels.answer() == (20.0, 0)
    helper.write_text(HELPER.format("jit", "x + 22.0"), encoding="utf-8")
    assert kernels.answer() == (230.0, 0)


def test_rooms_with_equal_names_are_kept_apart_in_one_folder(
    kernels: Kernels, caplog: pytest.LogCaptureFixture
) -> None:
    """The same line of the same file of two rooms."""
    caplog.set_level(logging.INFO, "package")
    for room, result in (("best", "x + 1.0"), ("lists", "x + 22.0")):
        (kernels.package / room).mkdir()
        (kernels.package / room / "helper.py").write_text(HELPER.format("jit", result), encoding="utf-8")
    (kernels.package / "best" / "kernel.py").write_text(KERNEL_OF_TWO_ROOMS, encoding="utf-8")
    names = "best.kernel.kernel", "best.helper.helper", "lists.helper.helper"
    assert kernels.answers(*names) == [(43.0, 0), (2.0, 0), (23.0, 0)]
    assert kernels.answers(*names) == [(43.0, 1), (2.0, 1), (23.0, 1)]
    assert caplog.messages == [f"compiling kernels, once: {name}" for name in names]
    assert len(kernels.files("nbi")) == 3
    assert {path.parent for path in kernels.files("nbi")} == {kernels.package / "__pycache__"}


def test_without_a_folder_to_write_to_kernels_are_compiled_and_this_is_said_once(open_folder: Path) -> None:
    make_read_only(write_package(open_folder))
    open_folder.chmod(0o777)  # the current folder is no place for a home that is not there
    for home in ({}, {"HOME": "/dev/null", "NUMBA_CACHE_DIR": "/dev/null/kernels"}):
        output, errors = answer_of_nobody(open_folder, **home)
        assert output == "20.0 0"
        assert errors.startswith("Compiled kernels cannot be cached (no folder for them is writable): ")
        assert "Set NUMBA_CACHE_DIR" in errors
        assert "treeparse warm" in errors
        assert len(errors.splitlines()) == 1
    assert [path.name for path in open_folder.iterdir()] == ["package"]


def test_compiled_code_is_found_where_nothing_can_be_written(open_folder: Path) -> None:
    package = write_package(open_folder)
    assert answer(open_folder) == (20.0, 0)
    make_read_only(package)
    assert answer_of_nobody(open_folder) == ("20.0 1", "")
    home = open_folder / "home"
    home.mkdir()
    home.chmod(0o777)
    assert answer_of_nobody(open_folder, HOME=str(home)) == ("20.0 1", "")
    assert not list(home.rglob("*.nbi"))


@pytest.mark.parametrize("writer", ["_save_data", "_save_index"])
def test_a_full_disk_does_not_end_the_call(
    kernels: Kernels, writer: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    fail = create_autospec(getattr(IndexDataCacheFile, writer), side_effect=full)
    assert kernels.answer() == (20.0, 0)
    kernels.change()
    with monkeypatch.context() as patch:
        patch.setattr(IndexDataCacheFile, writer, fail)
        assert kernels.answer() == (230.0, 0)
    (message,) = caplog.messages  # of two functions
    assert message.startswith("Compiled kernels cannot be cached (")
    assert "__pycache__: No space left on device): " in message
    assert kernels.answer() == (230.0, 0)  # not what was compiled before the change
    assert kernels.answer() == (230.0, 1)


@pytest.mark.parametrize("ending", ["nbi", "nbc"])
def test_damaged_files_are_made_anew(kernels: Kernels, ending: str) -> None:
    assert kernels.answer() == (20.0, 0)
    assert len(kernels.files(ending)) == 1
    for path in kernels.files(ending):
        path.write_bytes(path.read_bytes()[:100])
    assert kernels.answer() == (20.0, 0)
    assert kernels.answer() == (20.0, 1)


def test_machines_that_share_a_folder_do_not_take_each_others_code(
    kernels: Kernels, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two that compile at once: neither has seen the other's index."""
    assert kernels.answer() == (20.0, 0)
    code = {path: path.read_bytes() for path in kernels.files("nbc")}
    for path in kernels.files("nbi"):
        path.unlink()
    monkeypatch.setattr(CPUCodegen, "magic_tuple", lambda self: ("another", "machine", ""))
    assert kernels.answer() == (20.0, 0)
    assert len(kernels.files("nbc")) == 2 * len(code)
    assert all(path.read_bytes() == content for path, content in code.items())


def test_what_is_compiled_is_logged_but_not_its_parts(kernels: Kernels, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "package")
    kernels.answer()
    kernels.answer()
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("INFO", "compiling kernels, once: kernel.kernel"),
        ("DEBUG", "read from cache: kernel.kernel"),
    ]
    folder = str(kernels.package / "__pycache__")
    assert all(record.args == {"kernel": "kernel.kernel", "folder": folder} for record in caplog.records)


def test_processes_may_compile_at_the_same_time(tmp_path: Path) -> None:
    write_package(tmp_path)
    answers = printed(tmp_path, IN_FOUR_PROCESSES + PROGRAM).splitlines()
    assert [answer.split()[0] for answer in answers] == ["20.0"] * 4
    assert answer(tmp_path) == (20.0, 1)


def test_a_helper_does_not_take_the_flags_of_its_first_caller(tmp_path: Path) -> None:
    write_package(tmp_path, REORDERED_KERNEL, ROUNDING_HELPER)
    program = "from package.kernel import kernel; print(kernel(0.3), kernel(1.3))"
    assert printed(tmp_path, program).split() == ["0.0", "10.0"]


def test_what_is_lent_arrays_neither_makes_nor_returns_any(kernels: Kernels) -> None:
    """Otherwise they would be freed too early, or never."""
    kernel = kernels.package / "kernel.py"
    kernel.write_text(LENDING_KERNEL.format("front(arrays[0]).sum() + front(arrays[1])[number]"), encoding="utf-8")
    assert kernels.answer() == (33.0, 0)
    for result in ("arrays", "(number, arrays[0])", "front(arrays[0])", "np.zeros(number).sum()"):
        kernel.write_text(LENDING_KERNEL.format(result), encoding="utf-8")
        with pytest.raises((TypeError, NumbaError), match=r"borrows its arrays|returning of array|NRT required"):
            kernels.answer()


class Shipped:
    """Kernels whose code was compiled for a kind of processor, and lies in a package of such code."""

    def __init__(self, kernels: Kernels, patch: pytest.MonkeyPatch) -> None:
        self.kernels = kernels
        context: Any = cpu_target.target_context
        target, _, features = context.codegen().magic_tuple()
        some = ",".join(name for name in features.split(",")[:20] if name.startswith("+"))
        self.machine = target, "kind", some
        with patch.context() as there:
            there.setattr(CPUCodegen, "magic_tuple", lambda self: (target, "kind", some))
            assert kernels.answer() == (20.0, 0)
        private: Any = sys.modules["package.numba_private"]
        self.versions: dict[str, str] = private.ShippedCode.versions()
        self.folder = kernels.folder / private.SHIPPED / "kind"
        self.folder.mkdir(parents=True)
        for file in kernels.files("nb?"):
            file.rename(self.folder / file.name)
        self.describe(self.machine)

    def describe(self, machine: tuple[str, str, str], **changes: str) -> None:
        described = {"machine": machine, "versions": self.versions | changes}
        (self.folder / "manifest.json").write_text(json.dumps(described), encoding="utf-8")


@pytest.fixture
def shipped(kernels: Kernels, monkeypatch: pytest.MonkeyPatch) -> Shipped:
    return Shipped(kernels, monkeypatch)


def test_shipped_code_is_read_where_no_cache_has_any(shipped: Shipped) -> None:
    assert shipped.kernels.answer() == (20.0, 1)
    assert not shipped.kernels.files("nbi")


def test_code_for_this_processor_comes_before_shipped_code(
    shipped: Shipped, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.DEBUG, "package")
    monkeypatch.chdir(shipped.kernels.folder)  # recompile() writes an empty index into the current folder
    assert shipped.kernels.answer() == (20.0, 1)
    private: Any = sys.modules["package.numba_private"]
    kernel: Any = importlib.import_module("package.kernel").kernel
    with private.without_shipped_code():
        kernel.recompile()
    assert len(shipped.kernels.files("nbi")) == 1
    assert shipped.kernels.answer() == (20.0, 1)
    folders = [record.args["folder"] for record in caplog.records if isinstance(record.args, dict)]
    assert folders == [str(shipped.folder), str(shipped.kernels.package / "__pycache__")]


@pytest.mark.parametrize("version", ["sources", "numba", "llvmlite"])
def test_shipped_code_of_other_versions_is_not_read(shipped: Shipped, version: str) -> None:
    shipped.describe(shipped.machine, **{version: "other"})
    assert shipped.kernels.answer() == (20.0, 0)


def test_shipped_code_is_not_read_after_a_change(shipped: Shipped) -> None:
    shipped.kernels.change()
    assert shipped.kernels.answer() == (230.0, 0)


def test_shipped_code_for_features_that_a_processor_lacks_is_not_read(shipped: Shipped) -> None:
    target, name, features = shipped.machine
    shipped.describe((target, name, f"{features},+of-the-future"))
    assert shipped.kernels.answer() == (20.0, 0)
    shipped.describe(("another-target", name, features))
    assert shipped.kernels.answer() == (20.0, 1)  # from the cache, where the kernel is by now


def test_damaged_shipped_code_is_not_read(shipped: Shipped) -> None:
    for path in shipped.folder.glob("*.nbc"):
        path.write_bytes(path.read_bytes()[:100])
    assert shipped.kernels.answer() == (20.0, 0)
    (shipped.folder / "manifest.json").write_text("{", encoding="utf-8")
    for path in shipped.kernels.files("nb?"):
        path.unlink()
    assert shipped.kernels.answer() == (20.0, 0)


def test_what_is_not_optimised_is_not_cached(kernels: Kernels, monkeypatch: pytest.MonkeyPatch) -> None:
    """It holds addresses of this process."""
    monkeypatch.setattr(CPUCodeLibrary, "has_dynamic_globals", True)
    assert kernels.answer() == (20.0, 0)
    assert not kernels.files("nbi")
