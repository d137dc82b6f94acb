"""What a run shows: Lightning's progress bar without its notices, and lines of text."""

import logging
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lightning_fabric.utilities.warnings import PossibleUserWarning
from pytorch_lightning import LightningModule, Trainer
from pytorch_lightning.callbacks import TQDMProgressBar
from tqdm import tqdm


class EpochProgressBar(TQDMProgressBar):
    """A bar for each epoch, gone when it ends: a line of text stays instead."""

    def on_train_epoch_start(self, trainer: Trainer, *args: Any) -> None:
        super().on_train_epoch_start(trainer, *args)
        self.train_progress_bar.leave = False
        self.train_progress_bar.set_description(f"epoch {trainer.current_epoch + 1}/{trainer.max_epochs}")

    def get_metrics(
        self, trainer: Trainer, pl_module: LightningModule
    ) -> dict[str, int | str | float | dict[str, float]]:
        return {"loss": f"{pl_module.mean_loss:.3f}"}


class Console:
    """Writes lines above the progress bar; a quiet one writes nothing."""

    def __init__(self, *, quiet: bool = False) -> None:
        self.quiet = quiet
        self.bar = EpochProgressBar() if not quiet and sys.stdout.isatty() else None

    def say(self, line: str) -> None:
        """Write a line to standard output."""
        if not self.quiet:
            tqdm.write(line)
            sys.stdout.flush()


@contextmanager
def without_notices() -> Iterator[None]:
    """Lightning without its notices on hardware and products, and without advice that does not apply here."""
    loggers = [logging.getLogger(name) for name in ("pytorch_lightning", "lightning_fabric")]
    levels = [logger.level for logger in loggers]
    with warnings.catch_warnings():
        # Lightning advises as many workers as cores; making batches takes no noticeable time beside training.
        warnings.filterwarnings("ignore", category=PossibleUserWarning, module="pytorch_lightning")
        # Lightning's own use of a class that torch is about to rename.
        warnings.filterwarnings("ignore", ".*LeafSpec", category=FutureWarning, module="pytorch_lightning")
        for logger in loggers:
            logger.setLevel(logging.ERROR)
        try:
            yield
        finally:
            for logger, level in zip(loggers, levels, strict=True):
                logger.setLevel(level)
