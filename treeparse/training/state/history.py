"""The log of a run: a record for each evaluation on the dev set, as CSV and as a line of text."""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from treeparse.data.outputs import atomic_write
from treeparse.metrics.tags import TAG_SCORES


@dataclass(frozen=True)
class EpochRecord:
    """One or more epochs of training and the dev set after them.

    Attributes:
        epoch: the last of these epochs, counted from 1.
        loss: mean over their words in nats.
        learning_rate: the rate of the last step.
        dev_uas: UAS in [0, 1]; None without a dev set.
        dev_las: LAS in [0, 1]; None without a dev set.
        words_per_second: speed of training alone.
        seconds: time with the dev set.
        dev_loss: nats a word; None without a dev set.
        terms: means of the loss's terms by name, without their weights, if there are several.
        dev_tags: scores of predicted tags in [0, 1], by ``upos`` and so on.
    """

    epoch: int
    loss: float
    learning_rate: float
    dev_uas: float | None
    dev_las: float | None
    words_per_second: float
    seconds: float
    dev_loss: float | None = None
    terms: Mapping[str, float] = field(default_factory=dict)
    dev_tags: Mapping[str, float] = field(default_factory=dict)

    def __str__(self) -> str:
        columns = [f"epoch {self.epoch:3d}", f"loss {self.loss:7.4f}"]
        columns += [f"{name} {value:.4f}" for name, value in self.terms.items()]
        if self.dev_uas is not None and self.dev_las is not None:
            columns += [f"dev UAS {self.dev_uas:6.2%}", f"LAS {self.dev_las:6.2%}"]
        columns += [f"{TAG_SCORES[name]} {value:6.2%}" for name, value in self.dev_tags.items()]
        if self.dev_loss is not None:
            columns.append(f"dev loss {self.dev_loss:7.4f}")
        columns += [f"rate {self.learning_rate:.1e}", f"{self.words_per_second:,.0f} words/s", f"{self.seconds:.0f} s"]
        return "   ".join(columns)

    def columns(self) -> dict[str, Any]:
        """Return the record as a row of a table: terms as ``term/NAME``, and scores of tags as ``dev_NAME``."""
        values = asdict(self)
        terms, tags = values.pop("terms"), values.pop("dev_tags")
        values |= {f"dev_{name}": value for name, value in tags.items()}
        return values | {f"term/{name}": value for name, value in terms.items()}


def best_record(history: Sequence[EpochRecord]) -> EpochRecord:
    """Return the record of the highest dev LAS, the first of equals; without a dev set the last one."""
    if history[-1].dev_las is None:
        return history[-1]
    return max(history, key=lambda record: record.dev_las or 0.0)


def clock(seconds: float) -> str:
    """Return a time of training as hours, minutes and seconds; the hours of several days, too."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60:02}:{minutes % 60:02}:{rest:02}"


def is_finished(history: Sequence[EpochRecord], *, epochs: int, patience: int | None) -> bool:
    """Return whether a run is over: all epochs are done, or ``patience`` epochs brought no better one."""
    if not history:
        return False
    last = history[-1].epoch
    return last >= epochs or (patience is not None and last - best_record(history).epoch >= patience)


def write_csv(path: Path, history: Sequence[EpochRecord]) -> None:
    """Write the whole history as CSV; it replaces the file."""
    text, rows = io.StringIO(), [record.columns() for record in history]
    names = [each.name for each in fields(EpochRecord) if each.name not in ("terms", "dev_tags")]
    names += sorted({name for row in rows for name in row} - set(names))
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    atomic_write(path, text.getvalue())
