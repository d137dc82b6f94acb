"""``treeparse warm``: no kernel is left out, and what was done is said."""

import json
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from helpers.commands import Capture, error_of
from helpers.forked import Forks

from treeparse.cli import main as cli
from treeparse.cli.commands import warm
from treeparse.device import compiler

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
