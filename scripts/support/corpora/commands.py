"""Whole commands, each in a process of its own."""

import os
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

TREEPARSE = (sys.executable, "-m", "treeparse")


def seconds(commands: Iterable[Sequence[object]]) -> float:
    """Run commands at the same time; return the seconds until the last one ends."""
    started = time.perf_counter()
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    running = [subprocess.Popen([*map(str, command)], env=environment) for command in commands]
    if any(process.wait() for process in running):
        raise SystemExit("A command failed.")
    return time.perf_counter() - started


def train_briefly(config: str, treebank: Path, run: Path, *options: str) -> None:
    """Train a config for an epoch: speed does not depend on the weights."""
    budget = ["--optimization.epochs=1", "--optimization.steps=0"]
    epochs = ["--learning.epochs=1"] if config.startswith("linear") else budget
    data = ["--data.train", treebank, "--data.dev=null"]
    seconds([[*TREEPARSE, "train", "--config", config, "--output", run, *data, *epochs, *options, "--threads=1", "-q"]])
