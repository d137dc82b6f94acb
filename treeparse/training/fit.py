"""The epochs of a run in Lightning's Trainer: announced, recorded, and with state and logs that survive a kill."""

import logging
import signal
import threading
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
import torch
from pytorch_lightning.callbacks import ModelCheckpoint
from pytorch_lightning.loggers import TensorBoardLogger
from pytorch_lightning.plugins.io import TorchCheckpointIO
from pytorch_lightning.utilities.exceptions import SIGTERMException

from treeparse.data.batches.steps import ShareOfStep
from treeparse.metrics.tags import TAG_SCORES
from treeparse.progress import Console
from treeparse.training.parser_module import TERM, ParserModule, Training, rate_share
from treeparse.training.resolve import Workload
from treeparse.training.run_directory import (
    EpochRecord,
    RunDirectory,
    RunState,
    best_record,
    is_finished,
    save_checkpoint,
    write_csv,
)
from treeparse.training.trainer import new_trainer

TERMINATED = 128 + signal.SIGTERM
PARSING_SPEED = 2.5  # words a second of parsing, as a multiple of training's
FIRST, LAST = 3, 13  # steps that are timed for the announcement: the first steps compile kernels


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


class EpochTable(pl.Callback):
    """Announces a run, records measurements of the dev set, saves the best parser, and ends the run by its patience.

    All processes hold the same history, and so stop together; the first one writes.
    """

    def __init__(self, training: Training, run: RunDirectory, history: Sequence[EpochRecord], console: Console) -> None:
        self.training, self.run, self.history, self.console = training, run, [*history], console

    def on_save_checkpoint(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, checkpoint: dict[str, Any]
    ) -> None:
        threads, processes = torch.get_num_threads(), self.training.processes.count
        checkpoint |= RunState(self.training.identity, self.history, threads, processes).to_plain()

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self.steps, self.words, self.seconds = 0, 0, 0.0  # of this process, without the dev set
        self._start_record()

    def _start_record(self) -> None:
        self.record_start: tuple[int, float, float] = self.words, self.seconds, time.perf_counter()
        self.losses: dict[str, float] = {}  # sums over the words of epochs, by the names of means
        self.weight = 0

    def on_train_epoch_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self.batch_started: float = time.perf_counter()
        self.words_before: int = self.words

    def on_validation_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self.batch_started = time.perf_counter()

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: Any, batch: ShareOfStep, batch_idx: int
    ) -> None:
        self.steps += 1
        is_timed = self.steps in (FIRST, LAST) or batch_idx + 1 == trainer.num_training_batches
        if is_timed and pl_module.device.type == "cuda":
            torch.cuda.synchronize(pl_module.device)
        now = time.perf_counter()
        self.words += batch.num_words * trainer.world_size
        self.seconds += now - self.batch_started
        self.batch_started = now
        if self.steps == FIRST:
            self.first: tuple[int, float] = self.words, self.seconds
        elif self.steps == LAST:
            words, seconds = self.first
            speed = (self.words - words) / (self.seconds - seconds)
            self.console.say(workload_line(self.training.work, speed))

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        if self.steps < LAST:
            self.console.say(workload_line(self.training.work, None))

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        assert isinstance(pl_module, ParserModule)
        metrics = {name: float(value) for name, value in trainer.callback_metrics.items() if not value.isnan()}
        weight = max(self.words - self.words_before, 1)  # a device may have no batch that counts
        self.weight += weight
        for name, mean in metrics.items():
            if name == "loss" or name.startswith(TERM):
                self.losses[name] = self.losses.get(name, 0.0) + mean * weight
        is_tried_out = bool(trainer.fast_dev_run)  # pyright: ignore[reportAttributeAccessIssue]
        config = self.training.config.optimization
        if is_tried_out or (trainer.current_epoch + 1) % config.dev_every:
            return
        pl_module.check_finite()
        rate = config.learning_rate * rate_share(config, trainer.global_step - 1)  # of the last step
        record = self._record(trainer.current_epoch + 1, metrics, rate)
        self.history.append(record)
        is_best = best_record(self.history) is record
        if trainer.is_global_zero:
            if is_best:
                self.run.write_best(record, pl_module.best_weights())
            write_csv(self.run.metrics, self.history)
        epochs_left = config.epochs - record.epoch
        left = sum(epoch.seconds for epoch in self.history) / record.epoch * epochs_left
        said = f"   about {spoken_time(left)} left" if epochs_left else ""
        said += "   best so far" if is_best and record.dev_uas is not None else ""
        self.console.say(f"{record}{said}")
        trainer.should_stop |= is_finished(self.history, epochs=config.epochs, patience=config.patience)
        self._start_record()

    def _record(self, epoch: int, metrics: Mapping[str, float], rate: float) -> EpochRecord:
        losses = {name: total / self.weight for name, total in self.losses.items()}
        words, seconds, started = self.record_start
        return EpochRecord(
            epoch=epoch,
            loss=losses["loss"],
            learning_rate=rate,
            dev_uas=metrics.get("uas"),
            dev_las=metrics.get("las"),
            words_per_second=(self.words - words) / (self.seconds - seconds),
            seconds=time.perf_counter() - started,
            dev_loss=metrics.get("dev_loss"),
            terms={name.removeprefix(TERM): value for name, value in losses.items() if name.startswith(TERM)},
            dev_tags={name: metrics[name] for name in TAG_SCORES if name in metrics},
            dev_treebanks={name: value for name, value in metrics.items() if name.startswith(("uas/", "las/"))},
        )


def fit(training: Training, run: RunDirectory, history: list[EpochRecord], console: Console) -> list[EpochRecord]:
    """Train the epochs after a history and return the history of all."""
    table = EpochTable(training, run, history, console)
    trainer = _trainer(training, run, table, console)
    with _signals():
        checkpoint = run.state if history else None
        trainer.fit(training.module, datamodule=training.data, ckpt_path=checkpoint, weights_only=True)
    return table.history


def _trainer(training: Training, run: RunDirectory, table: EpochTable, console: Console) -> pl.Trainer:
    """Return the Trainer that the settings describe, with what every run has."""
    last = LastCheckpoint(
        run.checkpoints,
        run.state.stem,
        every_n_epochs=training.config.optimization.dev_every,
        save_on_train_epoch_end=True,
        enable_version_counter=False,
    )
    display = {"enable_progress_bar": console.shows_bars, "enable_model_summary": False}
    arguments = {"logger": None, **display, **training.trainer_options}
    own = {"callbacks": [table, last], "plugins": [WholeFiles()]}
    for name, objects in own.items():
        chosen = arguments.get(name) or []
        arguments[name] = [*objects, *(chosen if isinstance(chosen, list) else [chosen])]
    if arguments["logger"] is None:
        arguments["logger"] = TensorBoardLogger(run.path, name="tensorboard", version="")
    arguments.setdefault("default_root_dir", run.path)
    return new_trainer(**arguments)


class LastCheckpoint(ModelCheckpoint):
    """The checkpoint of the last epoch, in a folder that may be moved: its path is no part of it."""

    def state_dict(self) -> dict[str, Any]:
        return {name: value for name, value in super().state_dict().items() if name != "dirpath"}


class WholeFiles(TorchCheckpointIO):
    """Checkpoints that are whole whenever a run is killed; Lightning's own may be copied from another disk."""

    def save_checkpoint(self, checkpoint: dict[str, Any], path: str | Path, storage_options: Any = None) -> None:
        save_checkpoint(Path(path), checkpoint)


@contextmanager
def _signals() -> Iterator[None]:
    """Turn the exits by which Lightning ends on signals, with code 1 or 0, into those that callers expect."""
    main_thread = threading.current_thread() is threading.main_thread()
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    except SIGTERMException:
        raise SystemExit(TERMINATED) from None
    except SystemExit as error:
        if isinstance(error.code, int) and error.code > 128:  # a handler of the caller's
            raise
        raise KeyboardInterrupt from error
    finally:
        if main_thread:
            signal.signal(signal.SIGINT, handler)  # Lightning leaves it ignored


@contextmanager
def repeatable(device: torch.device) -> Iterator[None]:
    """Use torch's deterministic algorithms on the CPU, where every operation of training has one; restore the flags."""
    settings: Any = torch.utils.deterministic
    before = torch.get_deterministic_debug_mode(), settings.fill_uninitialized_memory
    if device.type == "cpu":
        torch.use_deterministic_algorithms(True)
        settings.fill_uninitialized_memory = False  # filling costs time, and nothing reads uninitialised memory
    try:
        yield
    finally:
        torch.set_deterministic_debug_mode(before[0])
        settings.fill_uninitialized_memory = before[1]
