"""The epochs of a run in Lightning's Trainer, with state and logs that survive a kill."""

import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytorch_lightning as pl
import torch
from pytorch_lightning.utilities.exceptions import SIGTERMException

from treeparse.batch import pick_device
from treeparse.data.batches.module import TreebankModule
from treeparse.progress import Console
from treeparse.training.loop.module import ParserModule
from treeparse.training.loop.processes import Processes, finds_unused_weights, trainer_options
from treeparse.training.loop.progress import Announcement, RunBar
from treeparse.training.settings.config import ResolvedConfig
from treeparse.training.settings.resolve import Workload
from treeparse.training.state.history import EpochRecord, TensorBoardLog, best_record, is_finished, write_csv
from treeparse.training.state.run_directory import RunDirectory, RunState

TERMINATED = 128 + signal.SIGTERM


@dataclass(frozen=True)
class Training:
    """Everything that the epochs of a run need."""

    config: ResolvedConfig
    work: Workload
    module: ParserModule
    data: TreebankModule
    identity: Mapping[str, Any]
    processes: Processes

    @property
    def trainer_options(self) -> dict[str, Any]:
        """The arguments that Lightning's Trainer needs for this run: devices, epochs and precision.

        The batches of an epoch are made when the trainer asks for its loader.
        """
        trainer = self.config.trainer
        return {
            **trainer_options(trainer),
            # With 64-true the weights are float64 from the start; Lightning would convert batches, too.
            "precision": "32-true" if trainer.precision == "64-true" else trainer.precision,
            "max_epochs": self.work.epochs,
            "check_val_every_n_epoch": self.config.optimization.dev_every,
            "limit_val_batches": 1.0 if self.work.dev_words else 0,
            "num_sanity_val_steps": 0,
            "reload_dataloaders_every_n_epochs": 1,
        }


def fit(training: Training, run: RunDirectory, state: RunState | None, console: Console) -> list[EpochRecord]:
    """Train the remaining epochs and return the history of all."""
    epochs, patience = training.work.epochs, training.config.optimization.patience
    history = [] if state is None else list(state.history)
    if training.processes.is_first:
        write_csv(run.metrics, history)
    recorder = _Recorder(training, run, history, console)
    try:
        if is_finished(history, epochs=epochs, patience=patience):
            console.say(f"the run in {run.path} is finished; nothing is left to train")
            return history
        done = history[-1].epoch if history else 0
        if state is not None:
            console.say(f"resuming after epoch {done}")
            for what, before, now in (
                ("threads", state.threads, torch.get_num_threads()),
                ("processes", state.processes, training.processes.count),
            ):
                if before != now:
                    console.say(f"the run had {before} {what}: another number may change the last bits")
        trainer = _trainer(training, recorder, console)
        if finds_unused_weights(training.config.trainer):  # DDP warns of every run in which there is none
            training.module.register_parameter("unused", torch.nn.Parameter(torch.zeros(1)))
        counts = dict.fromkeys(("ready", "started", "processed", "completed"), done)
        trainer.fit_loop.epoch_progress.current.load_state_dict(counts)
        with _signals():
            trainer.fit(training.module, datamodule=training.data)
    finally:
        recorder.close()
    return history


def _trainer(training: Training, recorder: "_Recorder", console: Console) -> pl.Trainer:
    bars = [RunBar(training.work)] if console.shows_bars else []
    return pl.Trainer(
        **training.trainer_options,
        callbacks=[Announcement(training.work, console), recorder, *bars],
        enable_progress_bar=False,
        # Lightning's own logs and checkpoints do not survive a kill: see _Recorder.
        logger=False,
        enable_checkpointing=False,
        enable_model_summary=False,
    )


class _Recorder(pl.Callback):
    """Writes the state and the logs after each evaluation on the dev set, and stops training when patience ends.

    Of several processes the first one writes; all hold the same history, and so stop together.

    Lightning's checkpoints lack the state of a custom sampler and pass through the system's temporary folder, and its
    CSV logger deletes the old log. Here every file is a function of one history that the state holds.
    """

    def __init__(self, training: Training, run: RunDirectory, history: list[EpochRecord], console: Console) -> None:
        self.training, self.run, self.history, self.console = training, run, history, console
        self.tensorboard = TensorBoardLog(run.tensorboard, history) if training.processes.is_first else None

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        module, optimization = self.training.module, self.training.config.optimization
        if (trainer.current_epoch + 1) % optimization.dev_every:
            return
        record = module.record()
        self.history.append(record)
        if self.tensorboard is not None:
            self.run.write_state(module.state(self.training.identity, self.history), module.best_weights())
            self.tensorboard.add(record)
        best = record.dev_las is not None and best_record(self.history) is record
        self.console.say(f"{record}{'   best so far' if best else ''}")
        patience = optimization.patience
        trainer.should_stop = is_finished(self.history, epochs=self.training.work.epochs, patience=patience)

    def close(self) -> None:
        if self.tensorboard is not None:
            self.tensorboard.close()


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
def repeatable(device: str) -> Iterator[None]:
    """Use torch's deterministic algorithms on the CPU, where every operation of training has one; restore the flags."""
    settings: Any = torch.utils.deterministic
    flags = torch.are_deterministic_algorithms_enabled(), settings.fill_uninitialized_memory
    if pick_device(device).type == "cpu":
        torch.use_deterministic_algorithms(True)
        settings.fill_uninitialized_memory = False  # filling costs time, and nothing reads uninitialised memory
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(flags[0])
        settings.fill_uninitialized_memory = flags[1]
