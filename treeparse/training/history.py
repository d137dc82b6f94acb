"""What a run logs: one record an epoch, as CSV, in TensorBoard and as a line of text."""

import csv
import io
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from treeparse.data.files import atomic_write


@dataclass(frozen=True)
class EpochRecord:
    """One epoch of training; ``epoch`` counts from 1.

    ``loss`` is the mean over the epoch's words in nats, ``learning_rate`` that of the last step, ``dev_uas`` and
    ``dev_las`` are in [0, 1], ``words_per_second`` is that of training alone, ``seconds`` include the dev set.
    """

    epoch: int
    loss: float
    learning_rate: float
    dev_uas: float
    dev_las: float
    words_per_second: float
    seconds: float

    def __str__(self) -> str:
        return (
            f"epoch {self.epoch:3d}   loss {self.loss:7.4f}   dev UAS {self.dev_uas:6.2%}   LAS {self.dev_las:6.2%}   "
            f"{self.words_per_second:,.0f} words/s   {self.seconds:.0f} s"
        )


def best_record(history: Sequence[EpochRecord]) -> EpochRecord:
    """The epoch of the highest dev LAS, the first of equals."""
    return max(history, key=lambda record: record.dev_las)


def is_finished(history: Sequence[EpochRecord], *, epochs: int, patience: int | None) -> bool:
    """Whether a run with this history is over: all epochs done, or ``patience`` epochs without a better one."""
    if not history:
        return False
    waited = len(history) - best_record(history).epoch
    return len(history) >= epochs or (patience is not None and waited >= patience)


def write_csv(path: Path, history: Sequence[EpochRecord]) -> None:
    """The whole history as CSV, in place of what stood there."""
    text = io.StringIO()
    writer = csv.DictWriter(text, [field.name for field in fields(EpochRecord)], lineterminator="\n")
    writer.writeheader()
    writer.writerows(asdict(record) for record in history)
    atomic_write(path, text.getvalue())


class TensorBoardLog:
    """Event files that hold each epoch once: earlier files give way to the history, then epochs are added."""

    def __init__(self, directory: Path, history: Sequence[EpochRecord]) -> None:
        from torch.utils.tensorboard import SummaryWriter  # slow to import

        shutil.rmtree(directory, ignore_errors=True)
        self._writer = SummaryWriter(str(directory))
        for record in history:
            self.add(record)

    def add(self, record: EpochRecord) -> None:
        """Write one epoch through to the file."""
        values = asdict(record)
        epoch = values.pop("epoch")
        for name, value in values.items():
            self._writer.add_scalar(name.replace("dev_", "dev/"), value, epoch)
        self._writer.flush()

    def close(self) -> None:
        self._writer.close()
