"""Trains in a process of its own that kills itself at the point named: ``python killed_run.py CONFIG POINT``."""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from treeparse.data import outputs
from treeparse.data.batches.steps import ShareOfStep
from treeparse.model import Parser
from treeparse.training import fit, load_config, run_directory, self_training, train
from treeparse.training.parser_module import ParserModule


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def in_epoch(epoch: int) -> None:
    """In the third batch of an epoch."""
    take = ParserModule.training_step

    def training_step(self: ParserModule, share: ShareOfStep, number: int) -> Any:
        if (self.current_epoch, number) == (epoch, 2):
            die()
        return take(self, share, number)

    ParserModule.training_step = training_step


def while_writing(prefix: str) -> None:
    """With half of the bytes of a checkpoint on the disk."""

    @contextmanager
    def atomic_output(path: Path) -> Iterator[Any]:
        with outputs.atomic_output(path) as output:
            if path.name.startswith(prefix):
                output.write = half_of(output)  # type: ignore[method-assign]
            yield output

    def half_of(output: outputs.Output) -> Callable[[bytes], int]:
        def write(data: bytes) -> int:
            output._stream.write(data[: len(data) // 2])
            output._stream.flush()
            die()
            return 0

        return write

    run_directory.atomic_output = atomic_output


def after_saving(prefix: str, epoch: int) -> None:
    """When a checkpoint is in its place, and nothing that follows it."""
    save = run_directory.save_checkpoint

    def save_and_die(path: Path, values: dict[str, Any]) -> None:
        save(path, values)
        record = values["record"] if "record" in values else values["run"]["history"][-1]
        if path.name.startswith(prefix) and record["epoch"] == epoch:
            die()

    run_directory.save_checkpoint = fit.save_checkpoint = save_and_die


def before_parser() -> None:
    """With nothing but a config in the run."""

    def write_parser(self: run_directory.RunDirectory, parser: Parser) -> None:
        die()

    run_directory.RunDirectory.write_parser = write_parser


def before_export() -> None:
    """After the last epoch, before there is a model."""

    def save_pretrained(self: Parser, directory: str | Path) -> None:
        die()

    Parser.save_pretrained = save_pretrained


def in_round_1() -> None:
    """In the third batch of the second epoch of a round of self-training."""

    def train_and_die(config: Any, **options: Any) -> Path:
        if config.output.endswith("round-1"):
            in_epoch(1)
        return train(config, **options)

    self_training.train = train_and_die


def in_selection() -> None:
    """With a part of the silver sentences on the disk."""
    write = self_training.write_conllu

    def write_some(path: Path, sentences: Iterator[Any]) -> None:
        def some() -> Iterator[Any]:
            yield next(sentences)
            die()

        write(path, some())

    self_training.write_conllu = write_some


def before_table() -> None:
    """With a finished round 1 of which nothing is written down."""
    write = self_training.atomic_write

    def write_round_0(path: Path, text: str) -> None:
        if '"number": 1' in text:
            die()
        write(path, text)

    self_training.atomic_write = write_round_0


POINTS: dict[str, Callable[[], None]] = {
    "beginning": before_parser,
    "first epoch": lambda: in_epoch(0),
    "second epoch": lambda: in_epoch(1),
    "third epoch": lambda: in_epoch(2),
    "writing the state": lambda: while_writing("last"),
    "between best weights and state": lambda: after_saving("best", 2),
    "between state and logs": lambda: after_saving("last", 1),
    "export": before_export,
}

ROUNDS: dict[str, Callable[[], None]] = {"selection": in_selection, "round 1": in_round_1, "table": before_table}

if __name__ == "__main__":
    torch.set_num_threads(1)
    {**POINTS, **ROUNDS}[sys.argv[2]]()
    config = load_config(sys.argv[1])
    if sys.argv[2] in ROUNDS:
        self_training.self_train(config, 1, least_log_prob=-1.2, quiet=True)
    else:
        train(config, quiet=True)
