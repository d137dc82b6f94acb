"""``treeparse warm``: no kernel is left out, and what was done is said."""

import json
import logging
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers.commands import Capture, error_of
from helpers.forked import COMMAND, Forks

from treeparse.cli import main as cli
from treeparse.cli.commands import warm
from treeparse.device import compiler

LAST_LINE = r"treeparse: (\d+) kernels compiled, (\d+) were there already, in (.*kernels.*); \d+ s\n"


def assert_all_was_there(output: str, errors: str) -> None:
    found = re.fullmatch(LAST_LINE, output)
    assert found is not None
    assert int(found[1]) == 0
    assert 15 <= int(found[2]) <= 50
    assert "compiling kernels: " in errors


def test_no_kernel_is_forgotten(forks: Forks) -> None:
    done = forks.run(Path(__file__).with_name("warm_run.py"), "--jobs", "1", anew=["treeparse"])
    assert done.returncode == 0, done.stderr
    said, lists = done.stdout.splitlines(keepends=True)
    assert_all_was_there(said, done.stderr)
    report = json.loads(lists)
    assert report.pop("functions") > 200
    assert report == {"code": 0, "forgotten": [], "late": [], "repeated": []}


def test_what_several_processes_find_is_counted_once(forks: Forks) -> None:
    done = forks.run(COMMAND, "warm", "--jobs", "2", anew=["treeparse"])
    assert done.returncode == 0, done.stderr
    assert_all_was_there(done.stdout, done.stderr)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two calls, of which the second finds what the first one compiled."""
    log = logging.getLogger("treeparse.kernels")

    def first(_: Any) -> None:
        log.info("compiling", {"kernel": "lists", "folder": "/kernels"})
        log.info("compiling", {"kernel": "sums", "folder": "/kernels"})

    def second(_: Any) -> None:
        log.debug("found", {"kernel": "sums", "folder": "/kernels"})
        log.debug("found", {"kernel": "samples", "folder": "/kernels"})

    monkeypatch.setattr(warm, "CALLS", (("projective", first), ("projective", second)))


def test_what_is_compiled_is_counted(calls: None, capsys: Capture) -> None:
    assert cli.main(["warm"]) == 0
    output, errors = capsys.readouterr()
    assert re.sub(r"\d+ s", "0 s", output) == "treeparse: 2 kernels compiled, 1 were there already, in /kernels; 0 s\n"
    assert "treeparse: compiling" not in errors  # there is the bar


def test_quiet(calls: None, capsys: Capture) -> None:
    assert cli.main(["warm", "-q"]) == 0
    assert capsys.readouterr() == ("", "")


def test_compiling_what_cannot_be_kept_is_an_error(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    def fail(_: Any) -> None:
        logging.getLogger("treeparse.kernels").warning("Compiled kernels cannot be cached (%s).", "no room")

    monkeypatch.setattr(warm, "CALLS", (("projective", fail),))
    assert cli.main(["warm", "-q"]) == 2
    assert capsys.readouterr() == ("", "treeparse: error: Compiled kernels cannot be cached (no room).\n")


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
    output, _ = capsys.readouterr()
    assert output.startswith(f"treeparse: {2 + len(devices)} kernels compiled, 1 were there already, in /kernels, ")
    assert cli.main(["warm"]) == 0
    assert len(devices) == 2 * len(files)
    assert f"{1 + len(devices)} were there already" in capsys.readouterr().out


def test_kernels_of_devices_that_cannot_be_kept_are_an_error(
    calls: None, devices: list[str], tmp_path: Path, capsys: Capture
) -> None:
    (tmp_path / "treeparse").touch()
    assert f"cannot be kept in {tmp_path / 'treeparse'}" in error_of(capsys, "warm", "-q")


def test_without_their_compiler_the_rest_is_compiled(
    calls: None, devices: list[str], monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    def fail() -> None:
        raise ImportError("No module named 'cuda'")

    monkeypatch.setattr(compiler, "version", fail)
    assert cli.main(["warm"]) == 0
    output, errors = capsys.readouterr()
    assert "2 kernels compiled" in output
    assert "treeparse: warning: Kernels for cuda:0 cannot be compiled" in errors and not devices


def test_nothing_is_compiled_where_numba_is_told_so(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    assert "NUMBA_DISABLE_JIT is set" in error_of(capsys, "warm")
