"""The memory of the processes that this one has started, what they share counted once (Linux)."""

import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

SECONDS = 2.0  # between two samples
MAPPING = re.compile(r"^[0-9a-f]+-[0-9a-f]+ \S+ \S+ \S+ \d+ *(.*)$")


class Memory(NamedTuple):
    """Bytes of all processes, and of a file that they map, at one moment."""

    all: int
    file: int


@contextmanager
def watched_memory(name: str) -> Iterator[list[Memory]]:
    """Yield a list that is filled with samples; a file's name says which file's mappings are summed on their own."""
    samples, ended = list[Memory](), threading.Event()

    def watch() -> None:
        while not ended.wait(SECONDS):
            samples.append(_memory(name))

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield samples
    finally:
        ended.set()
        thread.join()


def _memory(name: str) -> Memory:
    total, of_file = 0, 0
    for process in _descendants(os.getpid()):
        try:
            lines = Path(f"/proc/{process}/smaps").read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:  # it has ended
            continue
        mapped = ""
        for line in lines:
            if found := MAPPING.match(line):
                mapped = found[1]
            elif line.startswith("Pss:"):
                size = int(line.split()[1]) * 1024
                total += size
                of_file += size if mapped.endswith(name) else 0
    return Memory(total, of_file)


def _descendants(process: int) -> Iterator[int]:
    for children in Path(f"/proc/{process}/task").glob("*/children"):
        try:
            own = [*map(int, children.read_text().split())]
        except OSError:  # the thread has ended
            continue
        for child in own:
            yield child
            yield from _descendants(child)
