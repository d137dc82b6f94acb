"""``treeparse warm`` leaves no kernel out; what commands say of kernels, how threads wait, and freed memory."""

import json
import logging
import os
import platform
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType

import pytest
import torch
from helpers.commands import Capture, error_of
from helpers.forked import Forks

from treeparse.cli import main as cli
from treeparse.cli.commands import warm
from treeparse.device import compiler
from treeparse.kernels import compile

LAST_LINE = r"treeparse: (\d+) functions of kernels compiled, (\d+) were there already, in (.*kernels-.*); \d+ s\n"


def test_no_kernel_is_forgotten(forks: Forks) -> None:
    done = forks.run(Path(__file__).with_name("warm_run.py"), anew=["treeparse"])
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report.pop("functions") > 200
    assert report == {"forgotten": [], "late": []}


def test_what_is_compiled_is_loaded(capsys: Capture) -> None:
    assert cli.main(["warm"]) == 0
    output, errors = capsys.readouterr()
    found = re.fullmatch(LAST_LINE, output)
    assert found is not None
    assert int(found[1]) == 0
    assert int(found[2]) > 100
    assert "compiling kernels: " in errors


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that compiles nothing, in this process."""
    monkeypatch.setattr(warm, "CALLS", (("projective", lambda p: p.scores),))
    monkeypatch.setattr(warm, "ProcessPoolExecutor", lambda *_: ThreadPoolExecutor(1))


def test_what_is_compiled_is_counted(
    calls: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Capture
) -> None:
    (tmp_path / "old.nbc").touch()
    monkeypatch.setattr(warm, "FOLDER", tmp_path)
    monkeypatch.setattr(warm, "CALLS", (("projective", lambda _: (tmp_path / "new.nbc").touch()),))
    assert cli.main(["warm"]) == 0
    output, errors = capsys.readouterr()
    assert output.startswith(f"treeparse: 1 functions of kernels compiled, 1 were there already, in {tmp_path}; ")
    assert "treeparse: compiling" not in errors  # there is the bar


def test_quiet(calls: None, capsys: Capture) -> None:
    assert cli.main(["warm", "-q"]) == 0
    assert capsys.readouterr() == ("", "")


def test_compiling_what_cannot_be_cached_is_an_error(
    calls: None, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setattr(warm, "LASTS", False)
    assert "Compiled kernels cannot be cached" in error_of(capsys, "warm", "-q")


@pytest.fixture
def devices(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """Three CUDA devices of two kinds, and what is compiled for them."""
    compiled: list[str] = []

    def compile_source(source: Path, architecture: str) -> bytes:
        compiled.append(f"{source.name} for {architecture}")
        return b"code"

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 3)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda index: ((9, 0), (8, 0), (9, 0))[index])
    monkeypatch.setattr(compiler, "compile_source", compile_source)
    monkeypatch.setattr(compiler, "version", lambda: (13, 0))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return compiled


def test_kernels_of_devices_are_compiled_once(calls: None, devices: list[str], tmp_path: Path, capsys: Capture) -> None:
    assert cli.main(["warm"]) == 0
    files = {path.name for path in compiler.kernels().values()}
    assert sorted(devices) == sorted(f"{name} for sm_{kind}" for name in files for kind in (80, 90))
    assert len(list((tmp_path / "treeparse").iterdir())) == len(devices)
    assert cli.main(["warm"]) == 0
    assert len(devices) == 2 * len(files)


def test_kernels_of_devices_that_cannot_be_kept_are_an_error(
    calls: None, devices: list[str], tmp_path: Path, capsys: Capture
) -> None:
    (tmp_path / "treeparse").touch()
    assert f"cannot be cached in {tmp_path / 'treeparse'}" in error_of(capsys, "warm", "-q")


def test_without_their_compiler_the_rest_is_compiled(
    calls: None, devices: list[str], monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    def fail() -> None:
        raise ImportError("No module named 'cuda'")

    monkeypatch.setattr(compiler, "version", fail)
    assert cli.main(["warm"]) == 0
    _, errors = capsys.readouterr()
    assert "treeparse: warning: Kernels for cuda:0 cannot be compiled" in errors and not devices


def test_nothing_is_compiled_where_numba_is_told_so(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    assert "NUMBA_DISABLE_JIT is set" in error_of(capsys, "warm")


LOG = logging.getLogger("treeparse.kernels")


@pytest.fixture
def probe(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes ``probe``, which calls a kernel after a first import with notices, the only command."""
    notices = [(logging.WARNING, "Compiled kernels cannot be cached."), (logging.INFO, "Kernels are compiled.")]
    monkeypatch.setattr(compile, "NOTICES", notices)
    command = ModuleType("probe")
    vars(command).update(add_arguments=lambda parser: None, run=lambda args: compile.call(int))
    monkeypatch.setattr(cli, "COMMANDS", {"probe": "try"})
    monkeypatch.setitem(sys.modules, "treeparse.cli.commands.probe", command)


def test_what_is_compiled_is_said_once_on_standard_error(probe: None, capsys: Capture) -> None:
    before = LOG.level, list(LOG.handlers)
    lines = "treeparse: Kernels are compiled.\ntreeparse: Compiled kernels cannot be cached.\n"
    for said in (lines, ""):
        assert cli.main(["probe"]) == 0
        assert capsys.readouterr() == ("", said)
    assert (LOG.level, LOG.handlers) == before


def test_a_quiet_command_says_nothing(probe: None, capsys: Capture) -> None:
    assert cli.main(["probe", "-q"]) == 0
    assert capsys.readouterr() == ("", "")


LIBRARY = next(Path(torch.__file__).with_name("lib").glob("libgomp*"), None)
LOAD = "import torch" if LIBRARY is None else f"import ctypes; ctypes.CDLL({str(LIBRARY)!r})"  # which torch would load


PROBE = f"""
import os, sys, types
from treeparse.cli import main as cli

def run(args):
    {LOAD}
    print(os.environ.get("OMP_WAIT_POLICY"))
    return 0

cli.COMMANDS = {{"probe": "try"}}
sys.modules["treeparse.cli.commands.probe"] = types.SimpleNamespace(add_arguments=lambda parser: None, run=run)
cli.main(["probe"])
"""


def wait_policy(**variables: str) -> tuple[str, str]:
    """What OMP_WAIT_POLICY is in a command, and what the OpenMP library says of itself where it was loaded."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("OMP_", "GOMP_"))}
    done = subprocess.run(
        [sys.executable, "-c", PROBE],
        env=environment | {"OMP_DISPLAY_ENV": "VERBOSE"} | variables,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()[-1], done.stderr


def test_threads_of_commands_sleep_where_they_wait() -> None:
    policy, display = wait_policy()
    assert policy == "PASSIVE"
    assert "OMP_WAIT_POLICY" not in display or "OMP_WAIT_POLICY = 'PASSIVE'" in display
    assert "GOMP_SPINCOUNT" not in display or "GOMP_SPINCOUNT = '0'" in display
    assert wait_policy(OMP_WAIT_POLICY="ACTIVE")[0] == "ACTIVE"


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries are left alone")
def test_the_c_library_keeps_freed_memory(forks: Forks) -> None:
    """In a process of its own, which alone changes: glibc takes the parameters."""
    call = "from treeparse.cli.commands.train import keep_freed_memory; print(keep_freed_memory())"
    assert forks.run(call).stdout == "True\n"
