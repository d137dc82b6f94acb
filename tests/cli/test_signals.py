"""Commands that a signal ends leave nothing half-written."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from helpers.commands import Capture
from helpers.forked import COMMAND, ForkedProcess, Forks
from helpers.parsed_files import trees_as_text
from helpers.sentences import learnable_sentences
from helpers.waiting import wait_until

from treeparse.cli.main import main
from treeparse.data.outputs import Output
from treeparse.model import Parser

if sys.platform == "win32":
    pytest.skip("Windows has no such signals", allow_module_level=True)

CODES = {signal.SIGINT: (130, "interrupted"), signal.SIGTERM: (143, "terminated"), signal.SIGHUP: (129, "hung up")}
TREES = "# sent_id = s1\n1\ta\t_\tDET\t_\t_\t2\tdet\t_\t_\n2\tb\t_\tNOUN\t_\t_\t0\troot\t_\t_\n\n"
LIST = TREES.replace("s1\n", "s1.1\n# rank = 1\n# log_prob = -0.5\n# score = 1\n")
COMMANDS = {
    "predict": ["predict", "MODEL", "in.conllu", "-o", "out"],
    "predict, compressed": ["predict", "MODEL", "in.conllu", "-o", "out.gz"],
    "predict, several files": ["predict", "MODEL", "in.conllu", "-o", "out/"],
    "kbest": ["kbest", "MODEL", "in.conllu", "-k", "2", "-o", "out"],
    "sample": ["sample", "MODEL", "in.conllu", "-k", "2", "-o", "out"],
    "rank": ["rank", "MODEL", "in.conllu", "-o", "out"],
    "suspects": ["suspects", "MODEL", "in.conllu", "-o", "out"],
    "rerank": ["rerank", "list.conllu", "-o", "out"],
    "evaluate": ["evaluate", "in.conllu", "in.conllu", "--output", "out"],
    "evaluate, a page": ["evaluate", "in.conllu", "in.conllu", "--html", "out"],
    "render": ["render", "in.conllu", "-o", "out"],
    "constraints extract": ["constraints", "extract", "in.conllu", "-o", "out"],
    "check": ["check", "in.conllu", "--output", "out"],
    "calibrate, a folder": ["calibrate", "MODEL", "dev.conllu", "-o", "out"],
}
# As from a shell's foreground, whatever pytest itself was started from.
FOREGROUND = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
FOREGROUND += "signal.signal(signal.SIGTERM, signal.SIG_DFL); signal.signal(signal.SIGHUP, signal.SIG_DFL)\n"
INPUTS = ["dev.conllu", "in.conllu", "list.conllu"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The current folder, with inputs; Ctrl-C raises, and SIGHUP is not ignored."""
    monkeypatch.chdir(tmp_path)
    Path("in.conllu").write_text(TREES)
    Path("dev.conllu").write_text(trees_as_text(learnable_sentences(4, seed=7)))
    Path("list.conllu").write_text(LIST)
    before = {number: signal.getsignal(number) for number in CODES}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield tmp_path
    for number, handler in before.items():
        signal.signal(number, handler)


def files() -> list[str]:
    return sorted(str(path) for path in Path().rglob("*") if path.is_file())


def threads() -> list[threading.Thread]:
    """All threads but tqdm's, which an exit handler ends."""
    return [thread for thread in threading.enumerate() if thread.name != "tqdm_monitor"]


def filled(name: str, model: str) -> list[str]:
    return [model if word == "MODEL" else word for word in COMMANDS[name]]


def signal_at_first_call(monkeypatch: pytest.MonkeyPatch, name: str, number: signal.Signals) -> list[Path]:
    """Have a function of ``os`` send a signal first; what is temporary then."""
    function, seen = getattr(os, name), list[Path]()

    def signalled(*arguments: object) -> object:
        if not seen:
            seen.extend(Path().rglob("*.tmp"))
            os.kill(os.getpid(), number)
        return function(*arguments)

    monkeypatch.setattr(os, name, signalled)
    return seen


@pytest.mark.parametrize("name", COMMANDS)
def test_a_signal_while_the_output_is_written(
    model: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """When all of it is in the temporary file, or in the folder that is about to get its name."""
    step = "rename" if "folder" in name else "fsync"
    for number in CODES if name == "predict" else [signal.SIGTERM]:
        code, word = CODES[number]
        with monkeypatch.context() as patched:
            seen = signal_at_first_call(patched, step, number)
            assert main([*filled(name, model), "-q"]) == code
        assert seen and files() == INPUTS
        assert capsys.readouterr().err == f"treeparse: error: {word}\n"


def test_no_thread_outlives_a_command(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread inside torch that the end of the interpreter interrupts ends the process by SIGABRT."""
    Path("in.conllu").write_text(TREES * 3)
    find, before = Parser.find_trees, threads()
    for number, (code, _) in CODES.items():
        calls, second = list[object](), threading.Event()

        def slow(
            *arguments: Any, calls: list[object] = calls, second: threading.Event = second, **options: Any
        ) -> object:
            calls.append(arguments)
            if len(calls) > 1:
                second.set()
                time.sleep(0.5)
            return find(*arguments, **options)

        def signalled(*_: object, second: threading.Event = second, number: int = number) -> None:
            assert second.wait(20)
            os.kill(os.getpid(), number)

        with monkeypatch.context() as patched:
            patched.setattr(Parser, "find_trees", slow)
            patched.setattr(Output, "write", signalled)
            assert main([*filled("predict", model), "--chunk", "1", "-q"]) == code
        assert threads() == before


def test_a_second_signal_does_not_break_the_cleaning(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal that closes sends SIGHUP twice: the system to the command, and the shell, too."""
    unlink, calls = Path.unlink, []

    def signalled(path: Path, missing_ok: bool = False) -> None:
        os.kill(os.getpid(), signal.SIGHUP)
        calls.append(path)
        unlink(path, missing_ok)

    monkeypatch.setattr(os, "fsync", lambda descriptor: os.kill(os.getpid(), signal.SIGHUP))
    monkeypatch.setattr(Path, "unlink", signalled)
    assert main(COMMANDS["check"]) == 129
    assert calls and files() == INPUTS


# ---------------------------------------------------------------- in processes of their own


@contextmanager
def waiting_for_input(
    forks: Forks, model: str, output: str, first: str = FOREGROUND
) -> Iterator[tuple[ForkedProcess, int]]:
    """A command that has begun to write and waits for the end of a sentence, in another thread; the pipe to it."""
    os.mkfifo("pipe.conllu")
    with forks.begin(first + COMMAND, "predict", model, "pipe.conllu", "-o", output, "--device", "cpu") as process:
        wait_until(lambda: any(Path().rglob("*.tmp")))
        pipe = os.open("pipe.conllu", os.O_WRONLY)
        try:
            os.write(pipe, TREES.encode()[:20])
            yield process, pipe
        finally:
            os.close(pipe)
            os.unlink("pipe.conllu")


def end(pipe: int) -> None:
    """Let the input of a pipe end, whose number stays in use."""
    with open(os.devnull, "wb") as nothing:
        os.dup2(nothing.fileno(), pipe)


@pytest.mark.parametrize(
    ("number", "output"), [*((number, "out") for number in CODES), (signal.SIGTERM, "out.gz"), (signal.SIGTERM, "out/")]
)
def test_a_signal_while_the_input_is_read_ahead(forks: Forks, model: str, number: signal.Signals, output: str) -> None:
    old = Path(output) / "pipe.conllu" if output == "out/" else Path(output)
    old.parent.mkdir(exist_ok=True)
    old.write_text("old")
    with waiting_for_input(forks, model, output) as (process, _):
        os.kill(process.pid, number)
        assert (process.wait(), process.stderr().splitlines()[-1]) == (
            CODES[number][0],
            f"treeparse: error: {CODES[number][1]}",
        )
    assert files() == sorted([*INPUTS, str(old)]) and old.read_text() == "old"


def test_what_ignores_sighup_goes_on(forks: Forks, model: str) -> None:
    """As after nohup."""
    ignoring = "import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
    with waiting_for_input(forks, model, "out", ignoring) as (process, pipe):
        os.kill(process.pid, signal.SIGHUP)
        os.write(pipe, TREES.encode()[20:])
        end(pipe)
        assert process.wait() == 0, process.stderr()
    assert "root" in Path("out").read_text()


@pytest.mark.slow
def test_an_interpreter_that_reads_ahead_ends_well(model: str) -> None:
    """With a thread that waits for standard input when the interpreter is shut down."""
    command = [sys.executable, "-c", FOREGROUND + COMMAND, "predict", model, "-", "-o", "out", "--device", "cpu"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdin is not None and process.stderr is not None
    wait_until(lambda: any(Path().glob(".out.*.tmp")), seconds=60)
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 143
    process.stdin.close()
    assert process.stderr.read() == "treeparse: error: terminated\n"
    process.stderr.close()
    assert files() == INPUTS
