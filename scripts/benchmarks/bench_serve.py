"""Words per second of ``treeparse serve`` with many clients at once, beside those of ``predict`` on the same sentences.

    python -m scripts.benchmarks.bench_serve --model runs/fast/model --treebank $EWT-dev.conllu

The clients, in a process of their own, send the sentences in requests of --sentences each, and the next one as soon as
one is answered, for --seconds. ``predict`` reads the same sentences --copies times over and writes them to a file; it
is run before and after, and the figures are the means. By the clock both are disturbed by whatever else the machine
does, the server by its clients, too; words per second of processor time, that of their own processes less what they
need to start, are less so. Memory is what the server holds of the machine's (RSS), at each quarter of the time.
"""

import argparse
import asyncio
import json
import os
import re
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path

from treeparse.data.conllu import ConlluSentence, joinable_texts, read_conllu

BOUNDARY = "a-line-of-no-treebank"
QUARTERS = 4
TICKS = os.sysconf("SC_CLK_TCK")  # a second
AS_CLIENTS = ["--as-clients"]  # how the script calls itself
COMMAND = (sys.executable, "-m", "treeparse")


@dataclass(frozen=True)
class Speed:
    """Words per second, by the clock and of processor time."""

    clock: float
    processor: float


@dataclass
class Served:
    """What the clients got."""

    words: int = 0
    seconds: float = 0.0
    statuses: Counter[int] = field(default_factory=Counter)
    times: list[float] = field(default_factory=list)

    def add(self, later: "Served") -> None:
        """Put together what came one after the other."""
        self.words, self.seconds = self.words + later.words, self.seconds + later.seconds
        self.statuses, self.times = self.statuses + later.statuses, self.times + later.times


def main() -> None:
    """Print the table."""
    if sys.argv[1:] == AS_CLIENTS:
        run_clients()
        return
    options = _options()
    sentences = list(read_conllu(options.treebank))
    requests = [sentences[at : at + options.sentences] for at in range(0, len(sentences), options.sentences)]
    before = _predict(options, sentences)
    with _server(options) as (process, address):
        _clients(address, requests, options.clients, options.seconds / 10)
        started, memory, served = _processor_seconds(process.pid), [_memory(process.pid)], Served()
        for _ in range(QUARTERS):
            served.add(_clients(address, requests, options.clients, options.seconds / QUARTERS))
            memory.append(_memory(process.pid))
        used = _processor_seconds(process.pid) - started
    predicted = [before, _predict(options, sentences)]
    _print(options, predicted, served, used, memory)


def _predict(options: argparse.Namespace, sentences: Sequence[ConlluSentence]) -> Speed:
    """The speed of the command, as it says itself, and of its process."""
    _, _, start = _run_predict(options, sentences[:1])
    speed, words, used = _run_predict(options, [*sentences] * options.copies)
    return Speed(speed, words / (used - start))


def _run_predict(options: argparse.Namespace, sentences: Sequence[ConlluSentence]) -> tuple[int, int, float]:
    """Words per second, words, and seconds of processor time."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "in.conllu"
        source.write_text("".join(joinable_texts(s.text for s in sentences)), encoding="utf-8")
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [*COMMAND, "predict", options.model, source, "-o", source.with_suffix(".out"), *_common(options)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    found = re.search(r"([\d,]+) words, ([\d,]+) words/s", done.stderr)
    if found is None:
        raise SystemExit(f"predict did not say how fast it was: {done.stderr}")
    words, speed = (int(figure.replace(",", "")) for figure in found.groups())
    return speed, words, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@contextmanager
def _server(options: argparse.Namespace) -> "Iterator[tuple[subprocess.Popen[str], str]]":
    """The server and its address; it is told to stop in the end, and must end well."""
    command = [*COMMAND, "serve", options.model, "--port", "0", *_common(options)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        try:
            yield process, line.rsplit(" at ", 1)[1].strip()
        finally:
            process.send_signal(signal.SIGTERM)
            said = process.stderr.read()
        if process.wait() or said:
            print(f"the server ended with {process.returncode}: {said}")


def _common(options: argparse.Namespace) -> list[str]:
    return ["--threads", str(options.threads), "--precision", options.precision]


def _clients(address: str, requests: Sequence[Sequence[ConlluSentence]], clients: int, seconds: float) -> Served:
    """Run the clients in a process of their own."""
    host, port = address.removeprefix("http://").removesuffix("/process").rsplit(":", 1)
    asked = [
        (sum(len(s.words) for s in sentences), "".join(joinable_texts(s.text for s in sentences)))
        for sentences in requests
    ]
    task = {"host": host, "port": int(port), "requests": asked, "clients": clients, "seconds": seconds}
    command = [sys.executable, "-m", "scripts.benchmarks.bench_serve", *AS_CLIENTS]
    done = subprocess.run(command, input=json.dumps(task), capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    statuses = Counter({int(status): n for status, n in found.pop("statuses").items()})
    return Served(**found, statuses=statuses)


def run_clients() -> None:
    """Be the clients: read what to do from standard input, write what came of it to standard output."""
    task = json.load(sys.stdin)
    served = asyncio.run(_send_all(task))
    json.dump(vars(served), sys.stdout)


async def _send_all(task: dict) -> Served:
    served, requests = Served(), cycle([(words, _request(text)) for words, text in task["requests"]])
    started = time.perf_counter()
    end = started + task["seconds"]

    async def client() -> None:
        reader, writer = await asyncio.open_connection(task["host"], task["port"], limit=1 << 24)
        while (now := time.perf_counter()) < end:
            words, data = next(requests)
            writer.write(data)
            head = await reader.readuntil(b"\r\n\r\n")
            size = re.search(rb"(?i)content-length: (\d+)", head)
            await reader.readexactly(int(size[1]) if size else 0)
            status = int(head.split(b" ", 2)[1])
            served.statuses[status] += 1
            served.times.append(time.perf_counter() - now)
            served.words += words * (status == 200)
        writer.close()

    await asyncio.gather(*(client() for _ in range(task["clients"])))
    served.seconds = time.perf_counter() - started
    return served


def _request(text: str) -> bytes:
    """A request as UDPipe's client sends it, with all line ends of HTTP."""
    part = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="data"\r\n\r\n'
    body = f"{part}{text}\r\n--{BOUNDARY}--\r\n".encode()
    head = (
        "POST /process HTTP/1.1\r\nHost: bench\r\n"
        f"Content-Type: multipart/form-data; boundary={BOUNDARY}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def _memory(process: int) -> float:
    """What a process holds, in MB."""
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{process}/status").read_text(encoding="utf-8"))
    assert found is not None
    return int(found[1]) / 1024


def _processor_seconds(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def _print(
    options: argparse.Namespace, predicted: Sequence[Speed], served: Served, used: float, memory: Sequence[float]
) -> None:
    clock, processor = (statistics.mean(speeds) for speeds in zip(*map(_figures, predicted), strict=True))
    speed = Speed(served.words / served.seconds, served.words / used)
    times = statistics.quantiles(served.times, n=20)
    faults = {status: n for status, n in served.statuses.items() if status != 200}
    print(
        f"{options.model}, {options.clients} clients, {options.sentences} sentences a request, "
        f"{options.threads} threads, load of the machine {os.getloadavg()[0]:.1f}\n"
        f"predict   {clock:10,.0f} words/s   {processor:10,.0f} words/s of processor time\n"
        f"serve     {speed.clock:10,.0f} words/s   {speed.processor:10,.0f} words/s of processor time\n"
        f"serve over predict   {speed.clock / clock:.2f}   {speed.processor / processor:.2f}\n"
        f"{sum(served.statuses.values()):,} requests, not answered well: {faults or 'none'}; "
        f"seconds of an answer: median {times[9]:.3f}, 95% within {times[18]:.3f}\n"
        f"memory, MB: {', '.join(f'{held:,.0f}' for held in memory)}"
    )


def _figures(speed: Speed) -> tuple[float, float]:
    return speed.clock, speed.processor


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, help="the folder of a model")
    parser.add_argument("--treebank", required=True, help="CoNLL-U")
    parser.add_argument("--clients", type=int, default=32, metavar="N", help="requests at once (default: 32)")
    parser.add_argument("--seconds", type=float, default=30, metavar="S", help="of the clients (default: 30)")
    parser.add_argument("--sentences", type=int, default=20, metavar="N", help="of a request (default: 20)")
    parser.add_argument("--copies", type=int, default=5, metavar="N", help="of the treebank for predict (default: 5)")
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="of both (default: 1)")
    parser.add_argument("--precision", default="32", help="of both (default: 32)")
    return parser.parse_args()


if __name__ == "__main__":
    main()
