"""Training that is told to end says how to go on, and leaves nothing half written."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers.commands import Capture

from treeparse.cli import main as cli
from treeparse.cli.main import main, signals_exit
from treeparse.model import Parser
from treeparse.training import fit
from treeparse.training import run as training_run
from treeparse.training.parser_module import ParserModule
from treeparse.training.run_directory import RunDirectory


@pytest.fixture(autouse=True)
def interruptible() -> Iterator[None]:
    """Ctrl-C raises and SIGHUP ends, though shells start background jobs, and nohup all jobs, with them ignored."""
    ours = signal.signal(signal.SIGINT, signal.default_int_handler), signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    for number, handler in zip((signal.SIGINT, signal.SIGHUP), ours, strict=True):
        signal.signal(number, handler)


def before(function: Callable, number: signal.Signals, when: Callable[..., bool] = lambda *_: True) -> Callable:
    """The function, with a signal to this process in front of the calls that are meant."""

    def signalled(*arguments: Any, **options: Any) -> Any:
        if when(*arguments):
            os.kill(os.getpid(), number)
        return function(*arguments, **options)

    return signalled


def in_epoch(epoch: int) -> Callable[..., bool]:
    return lambda module, *_: module.current_epoch == epoch


# Of a run of two epochs.
POINTS: dict[str, tuple[object, str, Callable[..., bool]]] = {
    "reading": (training_run, "load_treebanks", lambda *_: True),
    "vocabularies": (Parser, "build", lambda *_: True),
    "first epoch": (ParserModule, "training_step", in_epoch(0)),
    "first dev set": (ParserModule, "validation_step", in_epoch(0)),
    "second epoch": (ParserModule, "training_step", in_epoch(1)),
    "last dev set": (ParserModule, "validation_step", in_epoch(1)),
    "export": (Parser, "save_pretrained", lambda *_: True),
}


@pytest.mark.parametrize(
    ("point", "number", "code", "word"),
    [*((point, signal.SIGTERM, 143, "terminated") for point in POINTS)]
    + [(point, signal.SIGINT, 130, "interrupted") for point in ("reading", "second epoch")],
)
def test_the_line_says_how_to_go_on(
    tiny_config: Path,
    capsys: Capture,
    monkeypatch: pytest.MonkeyPatch,
    point: str,
    number: signal.Signals,
    code: int,
    word: str,
) -> None:
    owner, name, when = POINTS[point]
    monkeypatch.setattr(owner, name, before(getattr(owner, name), number, when))
    handlers = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    assert main(["train", "--config", str(tiny_config), "-q", "--optimization.epochs=2"]) == code
    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == handlers
    monkeypatch.undo()
    [line] = capsys.readouterr().err.splitlines()
    run = tiny_config.parent / "run"
    assert not list(run.rglob("*.tmp")) and not (run / "model").exists()
    if point in ("reading", "vocabularies"):
        assert line == f"{word}; no run had begun: give the same command again" and not run.exists()
    elif point.startswith("first"):
        assert line == f"{word}; no epoch was complete; start again with: treeparse train --resume {run}"
    else:
        ways = f"treeparse train --resume {run} (the parser so far: treeparse export {run})"
        assert line == f"{word}; go on with: {ways}"
        assert main(["export", str(run), "-q"]) == 0


def test_a_state_half_written(tiny_config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The signal comes between the best weights and the checkpoint of the second epoch, which is repeated."""
    save = fit.save_checkpoint
    monkeypatch.setattr(fit, "save_checkpoint", before(save, signal.SIGTERM, lambda path, _: path.exists()))
    assert main(["train", "--config", str(tiny_config), "-q"]) == 143
    monkeypatch.undo()
    run = RunDirectory(tiny_config.parent / "run")
    state = run.read_state()
    assert state is not None and len(state.history) == 1 and not list(run.path.rglob("*.tmp"))
    assert main(["train", "--resume", str(run.path), "-q"]) == 0


def test_no_thread_outlives_a_run(tiny_config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One makes batches ahead; one sends a signal again whose exception is lost."""
    threads = threading.active_count()
    monkeypatch.setattr(training_run, "batches_ahead", lambda device: 2)
    monkeypatch.setattr(ParserModule, "training_step", before(ParserModule.training_step, signal.SIGTERM, in_epoch(1)))
    assert main(["train", "--config", str(tiny_config), "-q"]) == 143
    assert threading.active_count() == threads


def test_what_fails_on_the_way_out_is_part_of_the_end() -> None:
    """A worker process that got the signal too is missed when the loaders are closed."""
    with pytest.raises(SystemExit) as caught, signals_exit():
        try:
            os.kill(os.getpid(), signal.SIGTERM)
        finally:
            raise RuntimeError("DataLoader worker is killed by signal: Terminated.")
    assert caught.value.code == 143
    with pytest.raises(RuntimeError), signals_exit():
        raise RuntimeError("of its own")


def test_a_terminal_that_closes_ends_it_and_a_folder_with_a_space_is_quoted(
    tiny_config: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ParserModule, "training_step", before(ParserModule.training_step, signal.SIGHUP))
    assert main(["train", "--config", str(tiny_config), "-q", "--output", str(tmp_path / "my run")]) == 129
    resume = f"treeparse train --resume '{tmp_path}/my run'\n"
    assert capsys.readouterr().err == f"hung up; no epoch was complete; start again with: {resume}"


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # Python reports what it drops
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_in_a_finalizer_ends_the_command(number: signal.Signals, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python drops an exception there; the signal comes again, but not while files are cleaned up."""
    monkeypatch.setattr(cli, "PATIENCE", 0.05)
    cleaned = []

    class Finalized:
        def __del__(self) -> None:
            os.kill(os.getpid(), number)

    def work() -> None:
        try:
            Finalized()
            time.sleep(60)
        finally:
            time.sleep(0.2)
            cleaned.append(number)

    begin = time.monotonic()
    with pytest.raises(cli.Stopped) as caught, signals_exit():
        work()
    assert caught.value.exit_code == 128 + number and cleaned == [number]
    assert time.monotonic() - begin < 30
