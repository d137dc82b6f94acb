"""Lines of text about the size and the time of a run."""

import logging
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytorch_lightning as pl
import torch

from treeparse.data.batches.steps import ShareOfStep
from treeparse.progress import Console
from treeparse.training.settings.resolve import Workload

PARSING_SPEED = 2.5  # words a second of parsing, as a multiple of training's


class Announcement(pl.Callback):
    """Announces the size of the run, and about how long it will take, after a few timed steps."""

    work: Workload
    console: Console

    FIRST, LAST = 3, 13  # the timed steps: the first steps compile kernels

    def __init__(self, work: Workload, console: Console) -> None:
        self.work, self.console = work, console
        self.steps: int = 0
        self.words: int = 0
        self.started = 0.0

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: Any, batch: ShareOfStep, batch_idx: int
    ) -> None:
        self.steps += 1
        if self.steps in (self.FIRST, self.LAST) and pl_module.device.type == "cuda":
            torch.cuda.synchronize(pl_module.device)
        if self.steps == self.FIRST:
            self.started: float = time.perf_counter()
        elif self.FIRST < self.steps <= self.LAST:
            self.words += batch.num_words * self.work.processes
        if self.steps == self.LAST:
            self.console.say(workload_line(self.work, self.words / (time.perf_counter() - self.started)))

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        if self.steps < self.LAST:
            self.console.say(workload_line(self.work, None))


def workload_line(work: Workload, words_per_second: float | None) -> str:
    """Describe a run in one line, with its time if the speed of training is known."""
    parts = [f"{work.steps:,} steps", f"{work.epochs:,} epoch{'s' * (work.epochs != 1)}"]
    if words_per_second is not None:
        words = (work.words + work.unlabelled_words) * work.epochs
        words += work.dev_words * work.evaluations / PARSING_SPEED
        parts.append(f"about {spoken_time(words / words_per_second)}")
    size = f"{work.sentences:,} sentences, {work.words:,} words"
    size += f", and {work.unlabelled_words:,} unlabelled ones an epoch" if work.unlabelled_words else ""
    return f"{size}: {', '.join(parts)}"


def spoken_time(seconds: float) -> str:
    """Return a time in words: 40 seconds, 6 minutes, 2.5 hours."""
    if seconds < 90:
        return f"{max(2, round(seconds))} seconds"
    return f"{round(seconds / 60)} minutes" if seconds < 90 * 60 else f"{seconds / 3600:.1f} hours"


@contextmanager
def without_notices(*, quiet: bool) -> Iterator[None]:
    """Show no notices and no warnings of Lightning's if ``quiet``."""
    loggers = [logging.getLogger(name) for name in ("pytorch_lightning", "lightning_fabric") if quiet]
    levels = [logger.level for logger in loggers]
    with warnings.catch_warnings():
        if quiet:
            warnings.filterwarnings("ignore", module="pytorch_lightning")
        for logger in loggers:
            logger.setLevel(logging.ERROR)
        try:
            yield
        finally:
            for logger, level in zip(loggers, levels, strict=True):
                logger.setLevel(level)
