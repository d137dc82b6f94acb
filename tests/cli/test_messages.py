"""What the commands say of kernels that are compiled, and how torch's threads wait in them."""

import argparse
import logging
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch

from treeparse.cli import main as cli

LOG = logging.getLogger("treeparse.kernels")


@pytest.fixture
def probe(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes ``probe``, which needs a kernel that is not there yet, the only command."""

    def run(args: argparse.Namespace) -> int:
        LOG.debug("found compiled: %(kernel)s", {"kernel": "sums", "folder": None})
        LOG.info("compiling kernels, once: %(kernel)s", {"kernel": "lists", "folder": None})
        LOG.warning("Compiled kernels cannot be kept.")
        return 0

    command = ModuleType("probe")
    vars(command).update(add_arguments=lambda parser: None, run=run)
    monkeypatch.setattr(cli, "COMMANDS", {"probe": "try"})
    monkeypatch.setitem(sys.modules, "treeparse.cli.commands.probe", command)


def test_compiling_is_said_on_standard_error(probe: None, capsys: pytest.CaptureFixture[str]) -> None:
    before = LOG.level, list(LOG.handlers)
    for _ in range(2):
        assert cli.main(["probe"]) == 0
        lines = "treeparse: compiling kernels, once: lists\ntreeparse: Compiled kernels cannot be kept.\n"
        assert capsys.readouterr() == ("", lines)
    assert (LOG.level, LOG.handlers) == before


def test_a_quiet_command_says_nothing(probe: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["probe", "-q"]) == 0
    assert capsys.readouterr() == ("", "")


LIBRARY = next(Path(torch.__file__).with_name("lib").glob("libgomp*"), None)
LOAD = "import torch" if LIBRARY is None else f"import ctypes; ctypes.CDLL({str(LIBRARY)!r})"  # which torch would load


def wait_policy(program: str, **variables: str) -> tuple[str, str]:
    """What OMP_WAIT_POLICY is after a program, and what the OpenMP library says of itself where it was loaded."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("OMP_", "GOMP_"))}
    done = subprocess.run(
        [sys.executable, "-c", program + "; import os; print(os.environ.get('OMP_WAIT_POLICY'))"],
        env=environment | {"OMP_DISPLAY_ENV": "VERBOSE"} | variables,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()[-1], done.stderr


def test_threads_of_commands_sleep_where_they_wait() -> None:
    command = "from treeparse.cli.main import main; main(['config'])"
    policy, display = wait_policy(f"{command}; {LOAD}")
    assert policy == "PASSIVE"
    assert "OMP_WAIT_POLICY" not in display or "OMP_WAIT_POLICY = 'PASSIVE'" in display
    assert "GOMP_SPINCOUNT" not in display or "GOMP_SPINCOUNT = '0'" in display
    assert wait_policy(command, OMP_WAIT_POLICY="ACTIVE")[0] == "ACTIVE"
