"""What the commands say of kernels that are compiled, how torch's threads wait in them, and that freed memory stays."""

import logging
import os
import platform
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch
from helpers.forked import Forks

from treeparse.cli import main as cli
from treeparse.kernels import compile

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


def test_what_is_compiled_is_said_once_on_standard_error(probe: None, capsys: pytest.CaptureFixture[str]) -> None:
    before = LOG.level, list(LOG.handlers)
    lines = "treeparse: Kernels are compiled.\ntreeparse: Compiled kernels cannot be cached.\n"
    for said in (lines, ""):
        assert cli.main(["probe"]) == 0
        assert capsys.readouterr() == ("", said)
    assert (LOG.level, LOG.handlers) == before


def test_a_quiet_command_says_nothing(probe: None, capsys: pytest.CaptureFixture[str]) -> None:
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
