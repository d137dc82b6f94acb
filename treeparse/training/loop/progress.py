"""Output of a run: its size, a progress bar and lines of text."""

import logging
import math
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytorch_lightning as pl
import torch

from treeparse.data.batches.steps import ShareOfStep
from treeparse.progress import Bar, Console
from treeparse.training.settings.resolve import Workload

SHOWN_EVERY = 1.0  # seconds, because showing the loss is a device sync
PARSING_SPEED = 2.5  # words a second of parsing, as a multiple of training's


class RunBar(pl.Callback):
    """A progress bar over all steps of the run, with the remaining time; training removes it at its end."""

    work: Workload

    def __init__(self, work: Workload) -> None:
        self.work, self.shown = work, -math.inf

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        done = self.work.steps_per_epoch * trainer.current_epoch
        self.bar: Bar = Bar(self.work.steps, stream=sys.stdout, hidden=False, initial=done, unit="step")

    def on_train_epoch_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        epochs_left = self.work.epochs - trainer.current_epoch
        self.bar.total = self.bar.n + epochs_left * trainer.num_training_batches

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: Any, batch: ShareOfStep, batch_idx: int
    ) -> None:
        self.bar.set_description(f"epoch {trainer.current_epoch + 1}/{self.work.epochs}", refresh=False)
        if time.monotonic() - self.shown >= SHOWN_EVERY:
            self.bar.set_postfix(loss=f"{float(outputs['loss']):.3f}", refresh=False)
            self.shown: float = time.monotonic()
        self.bar.update()

    def on_validation_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self.bar.set_description(f"epoch {trainer.current_epoch + 1}/{self.work.epochs}, measuring dev")

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self.bar.close()

    def on_exception(self, trainer: pl.Trainer, pl_module: pl.LightningModule, exception: BaseException) -> None:
        self.bar.close()


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
