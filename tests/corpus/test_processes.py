"""A corpus parsed by several processes: the bytes of one process, whatever happens to the processes."""

import errno
import fcntl
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import threading
import time
import tracemalloc
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, TextIO

import pytest
from helpers.waiting import wait_until

from treeparse import Parser
from treeparse.corpus import CorpusObserver, CorpusRequest, TreeRequest, list_parts, parse_corpus
from treeparse.corpus.processes import parse_with_jobs
from treeparse.data.conllu import read_conllu
from treeparse.data.outputs import Output
from treeparse.errors import DataError, TreeparseError
from treeparse.rules import AtMostOne, LabelSet, Rules, RuleSearch

pytestmark = pytest.mark.usefixtures("one_thread")
SENTENCES = 300


def conllu(first: int, count: int, seed: int) -> str:
    """Sentences with and without an id, the last one without a blank line after it."""
    stream, blocks = random.Random(seed), []
    for number in range(first, first + count):
        rows = [f"{i}\tw{stream.randint(1, 30)}\t_\tX\t_\t_\t_\t_\t_\t_" for i in range(1, stream.randint(2, 12))]
        blocks.append("\n".join([f"# sent_id = s{number}"] * (number % 3 > 0) + rows) + "\n")
    return "\n".join(blocks)


@pytest.fixture
def folder(parser: Parser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a model and three files, of which the last one has a faulty sentence."""
    monkeypatch.chdir(tmp_path)
    parser.save_pretrained("model")
    Path("a.conllu").write_text("\ufeff" + conllu(0, SENTENCES, 1), encoding="utf-8")
    Path("b.conllu").write_text("\ufeff" + conllu(SENTENCES, 7, 2), encoding="utf-8")
    Path("c.conllu").write_text(conllu(400, 40, 3) + "\n1\tno columns\n\n" + conllu(500, 5, 4), encoding="utf-8")
    Path("text.txt").write_text("".join(f"w{i} w{i % 7} .\n" for i in range(50)), encoding="utf-8")
    return tmp_path


def load() -> Parser:
    return Parser.from_pretrained("model", mapped=True)


def parse_both(request: dict[str, Any], output: str) -> None:
    """Parse in this process into ``one/`` and in two into ``two/``; compare counts."""
    summaries = []
    for folder in ("one", "two"):
        Path(folder).mkdir(exist_ok=True)
        own = CorpusRequest(output=f"{folder}/{output}", chunk=20, **request)
        if folder == "one":
            summaries.append(parse_corpus(load(), own))
        else:
            summaries.append(parse_with_jobs(load, own, list_parts(own), 2))
    for summary in summaries:
        summary.seconds = 0.0
    assert summaries[0] == summaries[1]
    files = [sorted(path.relative_to(folder) for path in Path(folder).rglob("*")) for folder in ("one", "two")]
    assert files[0] == files[1] and files[0]
    for name in files[0]:
        if (Path("one") / name).is_file():
            assert (Path("one") / name).read_bytes() == (Path("two") / name).read_bytes()


CONLLU = {"inputs": ["*.conllu"], "skip_invalid": True, "max_words": 9}


@pytest.mark.parametrize(
    ("request_", "output"),
    [
        (CONLLU, "all.conllu"),
        (CONLLU, "all.conllu.gz"),
        (CONLLU | {"trees": TreeRequest(probabilities=True)}, "files/"),
        (CONLLU | {"trees": TreeRequest("sample", 3, seed=5)}, "all.jsonl"),
        ({"inputs": ["text.txt"], "format": "text"}, "text.conllu"),
    ],
    ids=["one file", "compressed", "folder", "samples", "text"],
)
def test_two_processes_write_the_bytes_of_one(folder: Path, request_: dict[str, Any], output: str) -> None:
    parse_both(request_, output)


class Counting(CorpusObserver):
    """Counts the sentences and bytes that are reported."""

    sentences = size = 0

    def advance(self, sentences: int, words: int, size: int) -> None:
        self.sentences += sentences
        self.size += size


def test_rules_and_each_sentence_are_counted_once(folder: Path) -> None:
    observer = Counting()
    searches = [RuleSearch(Rules((AtMostOne(LabelSet(("nsubj", "dep", "root"))),)), opened=20) for _ in range(2)]
    one, two = (
        CorpusRequest(["a.conllu"], f"{name}.conllu", TreeRequest(rules=search), chunk=20)
        for name, search in zip(("one", "two"), searches, strict=True)
    )
    parse_corpus(load(), one)
    parse_with_jobs(load, two, list_parts(two), 2, observer=observer)
    assert (observer.sentences, observer.size) == (SENTENCES, Path("a.conllu").stat().st_size)
    assert Path("one.conllu").read_bytes() == Path("two.conllu").read_bytes()
    assert searches[0].tally == searches[1].tally and searches[0].tally.sentences == SENTENCES


def test_a_faulty_sentence_is_named_and_whole_outputs_stay(folder: Path) -> None:
    request = CorpusRequest(["*.conllu"], "out/", chunk=20)
    with pytest.raises(DataError, match=r"c\.conllu:\d+: a line must have 10 columns, got 2"):
        parse_with_jobs(load, request, list_parts(request), 2)
    assert sorted(os.listdir("out")) == ["a.conllu", "b.conllu"]
    again = CorpusRequest(["*.conllu"], "out/", chunk=20, skip_existing=True, skip_invalid=True)
    summary = parse_with_jobs(load, again, list_parts(again), 2)
    assert (summary.existing_outputs, summary.outputs, summary.sentences) == (2, 1, 45)


def test_a_model_that_does_not_load(folder: Path) -> None:
    request = CorpusRequest(["a.conllu"], "out.conllu")
    missing = partial(Parser.from_pretrained, "missing")
    with pytest.raises(TreeparseError, match="missing"):
        parse_with_jobs(missing, request, list_parts(request), 2)
    assert not Path("out.conllu").exists()


def die(parser: Parser, *given: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def load_deadly() -> Parser:
    """A parser that kills its process, as the system does for want of memory."""
    parser = load()
    parser.check = partial(die, parser)  # type: ignore[method-assign]
    return parser


def test_sentences_that_kill_a_process_are_named(folder: Path) -> None:
    request = CorpusRequest(["a.conllu"], "out.conllu", chunk=20)
    with pytest.raises(TreeparseError, match=r"from a\.conllu:1 on.*--skip-existing"):
        parse_with_jobs(load_deadly, request, list_parts(request), 2)
    assert not Path("out.conllu").exists()


class Killing(CorpusObserver):
    """Kills a worker once a chunk is parsed."""

    def advance(self, sentences: int, words: int, size: int) -> None:
        multiprocessing.active_children()[0].kill()


def test_a_killed_worker_ends_the_work(folder: Path) -> None:
    """Whether it parses or waits; what is complete stays, and the same call with skip_existing does the rest."""
    inputs = ["a.conllu", "b.conllu"]
    lines = [sentence.line for path in inputs for sentence in read_conllu(path)]
    starts = {f"{inputs[index >= SENTENCES]}:{lines[index]}" for index in range(0, len(lines), 20)}
    request = CorpusRequest(inputs, "out/", chunk=20, skip_existing=True)
    with pytest.raises(TreeparseError, match=r"from [ab]\.conllu:\d+ on") as caught:
        parse_with_jobs(load, request, list_parts(request), 2, observer=Killing())
    assert str(caught.value).partition(" from ")[2].partition(" on ")[0] in starts
    assert not multiprocessing.active_children() and not [*Path("out").glob(".*")]
    summary = parse_with_jobs(load, request, list_parts(request), 2)
    assert summary.outputs + summary.existing_outputs == 2
    assert len([*read_conllu("out/a.conllu")]) == SENTENCES


class Stopping(CorpusObserver):
    """Raises once a chunk is parsed, and another chunk's result is on its way."""

    def advance(self, sentences: int, words: int, size: int) -> None:
        end = time.monotonic() + 0.3
        while time.monotonic() < end:  # holds the GIL for most of the time, so that the next result arrives slowly
            pass
        raise InterruptedError


def test_an_error_while_workers_send_results(folder: Path) -> None:
    """The workers send their results to the end; a part of a message would let its reader wait for ever."""
    note = f"# note = {'x' * 8_000_000}\n"
    Path("long.conllu").write_text(conllu(0, 16, 1).replace("\n1\t", f"\n{note}1\t"), encoding="utf-8")
    request = CorpusRequest(["long.conllu"], "out/", chunk=4)

    def parse() -> None:
        with pytest.raises(InterruptedError):
            parse_with_jobs(load, request, list_parts(request), 2, observer=Stopping())

    thread = threading.Thread(target=parse, daemon=True)
    thread.start()
    thread.join(60)
    assert not thread.is_alive() and os.listdir("out") == []


PROGRAM = """
import fcntl, os, signal
from treeparse import Parser
from treeparse.corpus import CorpusRequest, list_parts, parse_with_jobs

locks = []

def load():
    locks.append(open(f"new-{os.getpid()}", "w"))
    fcntl.flock(locks[0], fcntl.LOCK_EX)
    os.rename(f"new-{os.getpid()}", f"worker-{os.getpid()}")  # once it is locked
    return Parser.from_pretrained("model", mapped=True)

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    request = CorpusRequest(["pipe.conllu"], "out.conllu", chunk=1)
    parse_with_jobs(load, request, list_parts(request), 2)
"""


@pytest.fixture
def waiting(folder: Path) -> Iterator[tuple[subprocess.Popen[bytes], TextIO, list[Path]]]:
    """A process with two workers, the pipe from which it reads, and a file that each worker locks."""
    Path("program.py").write_text(PROGRAM, encoding="utf-8")
    os.mkfifo("pipe.conllu")
    process = subprocess.Popen([sys.executable, "program.py"])
    try:
        with open("pipe.conllu", "w", encoding="utf-8") as pipe:
            pipe.write(conllu(0, 4, 1) + "\n")
            pipe.flush()
            wait_until(lambda: len([*Path().glob("worker-*")]) == 2, seconds=60)
            yield process, pipe, [*Path().glob("worker-*")]
    finally:
        process.kill()
        process.wait()


def has_ended(lock: Path) -> bool:
    """Whether the process that has locked a file has ended."""
    with lock.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_workers_end_with_their_parent(
    waiting: tuple[subprocess.Popen[bytes], TextIO, list[Path]], number: signal.Signals
) -> None:
    """Though they wait for a chunk, while the parent waits for its input."""
    process, _, locks = waiting
    assert not any(map(has_ended, locks))
    process.send_signal(number)
    assert process.wait(20) == -number
    wait_until(lambda: all(map(has_ended, locks)))


@pytest.mark.slow
def test_workers_ignore_ctrl_c(waiting: tuple[subprocess.Popen[bytes], TextIO, list[Path]]) -> None:
    """Which a terminal sends to all processes: the parent ends the others."""
    process, pipe, locks = waiting
    for lock in locks:
        os.kill(int(lock.name.removeprefix("worker-")), signal.SIGINT)
    pipe.write(conllu(4, 3, 1))
    pipe.close()
    assert process.wait(60) == 0
    assert len([*read_conllu("out.conllu")]) == 7


@pytest.mark.slow
def test_memory_does_not_grow_with_the_input(folder: Path) -> None:
    peaks = list[int]()
    for chunks in (2, 20, 200):  # the first imports modules
        Path("long.conllu").write_text(conllu(0, chunks * 20, 1), encoding="utf-8")
        request = CorpusRequest(["long.conllu"], "out.conllu", chunk=20)
        tracemalloc.start()
        parse_with_jobs(load, request, list_parts(request), 2)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[2] < 1.5 * peaks[1], peaks


def test_a_full_disk_leaves_nothing_half_written(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same call then does what is left."""
    written, write = [0], Output.write

    def until_full(self: Output, data: str | bytes) -> int:
        written[0] += len(data)
        if written[0] > 12_000:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(self, data)

    request = CorpusRequest(["a.conllu", "b.conllu"], "out/", chunk=20, skip_existing=True)
    with monkeypatch.context() as patch:
        patch.setattr(Output, "write", until_full)
        with pytest.raises(OSError, match="No space left"):
            parse_with_jobs(load, request, list_parts(request), 2)
    assert os.listdir("out") == []
    assert parse_with_jobs(load, request, list_parts(request), 2).outputs == 2
    assert len([*read_conllu("out/a.conllu")]) == SENTENCES


@pytest.mark.slow
def test_a_stopped_command_starts_again(folder: Path) -> None:
    """What was finished stays, and nothing else is there."""
    for number in range(30):
        Path(f"part{number:02}.conllu").write_text(conllu(number * 200, 200, number), encoding="utf-8")
    command = [sys.executable, "-m", "treeparse", "predict", "model", "part*.conllu", "-o", "out/", "--jobs", "2", "-q"]
    command += ["--threads", "1", "--chunk", "100", "--skip-existing"]
    process = subprocess.Popen(command)
    while not Path("out").exists() or len(os.listdir("out")) < 5:
        assert process.poll() is None
        time.sleep(0.01)
    process.terminate()
    assert process.wait(60) == 143
    before = {path: path.read_bytes() for path in Path("out").iterdir() if path.suffix == ".conllu"}
    assert 1 <= len(before) < 30
    assert subprocess.run(command, check=False, timeout=300).returncode == 0
    assert sorted(os.listdir("out")) == [f"part{number:02}.conllu" for number in range(30)]
    assert all(path.read_bytes() == content for path, content in before.items())
    assert all(len([*read_conllu(path)]) == 200 for path in Path("out").iterdir())
