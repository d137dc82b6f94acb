"""The epochs of a run in Lightning's Trainer, with state and logs that survive a kill."""

import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
import torch
from pytorch_lightning.callbacks import ModelCheckpoint
from pytorch_lightning.loggers import TensorBoardLogger
from pytorch_lightning.plugins.io import TorchCheckpointIO
from pytorch_lightning.utilities.exceptions import SIGTERMException

from treeparse.progress import Console
from treeparse.training.loop.parser_module import Training
from treeparse.training.loop.table import EpochTable
from treeparse.training.settings.trainer import new_trainer
from treeparse.training.state.run_directory import EpochRecord, RunDirectory, RunState, save_checkpoint

TERMINATED = 128 + signal.SIGTERM


def fit(training: Training, run: RunDirectory, state: RunState | None, console: Console) -> Sequence[EpochRecord]:
    """Train the remaining epochs and return the history of all."""
    table = EpochTable(training, run, [] if state is None else state.history, console)
    if table.is_finished:
        console.say(f"the run in {run.path} is finished; nothing is left to train")
        return table.history
    if state is not None:
        console.say(f"resuming after epoch {table.history[-1].epoch}")
        for what, before, now in (
            ("threads", state.threads, torch.get_num_threads()),
            ("processes", state.processes, training.processes.count),
        ):
            if before != now:
                console.say(f"the run had {before} {what}: another number may change the last bits")
    trainer = _trainer(training, run, table, console)
    with _signals():
        checkpoint = None if state is None else run.state
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
        given = arguments.get(name) or []
        arguments[name] = [*objects, *(given if isinstance(given, list) else [given])]
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
    flags = torch.are_deterministic_algorithms_enabled(), settings.fill_uninitialized_memory
    if device.type == "cpu":
        torch.use_deterministic_algorithms(True)
        settings.fill_uninitialized_memory = False  # filling costs time, and nothing reads uninitialised memory
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(flags[0])
        settings.fill_uninitialized_memory = flags[1]
