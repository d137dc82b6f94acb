"""Large corpora from small ones, and whole commands that parse them."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import count, islice
from pathlib import Path

from treeparse.data.conllu import ConlluSentence

TREEPARSE = (sys.executable, "-m", "treeparse")


def distinct(sentences: Sequence[ConlluSentence], total: int) -> Iterator[str]:
    """Yield so many sentences' texts, no two of which have the same words."""
    for turn, sentence in islice(((turn, each) for turn in count() for each in sentences), total):
        rows = re.findall(r"^\d+\t.*$", sentence.text, re.MULTILINE)
        place = turn % len(rows)
        columns = rows[place].split("\t")
        rows[place] = "\t".join([columns[0], f"{columns[1]}{turn}" if turn else columns[1], *columns[2:]])
        yield "\n".join([*rows, "", ""])


def seconds(commands: Iterable[Sequence[object]]) -> float:
    """Run commands at the same time; return the seconds until the last one ends."""
    started = time.perf_counter()
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    running = [subprocess.Popen([*map(str, command)], env=environment) for command in commands]
    if any(process.wait() for process in running):
        raise SystemExit("A command failed.")
    return time.perf_counter() - started


def train_briefly(config: str, treebank: Path, run: Path) -> None:
    """Train a config for an epoch: speed does not depend on the weights."""
    budget = ["--optimization.epochs=1", "--optimization.steps=0"]
    options = ["--learning.epochs=1"] if config.startswith("linear") else budget
    data = ["--data.train", treebank, "--data.dev=null"]
    seconds([[*TREEPARSE, "train", "--config", config, "--output", run, *data, *options, "--threads=1", "-q"]])
