"""The folder of a run: its config, its logs, the checkpoint to resume from, the best weights and the final model.

A run may be killed at any time, because each file is written whole or not at all, and in this order: the parser's
settings and vocabularies; after each epoch the best weights with the record of their epoch; the checkpoint; the logs,
which the checkpoint's history can write again. A run that was killed before the checkpoint repeats the epoch, with the
same bits. So the best parser can be exported at any time, without the treebank. Only tensors and plain values are
unpickled.
"""

import csv
import io
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Protocol, TypeVar

import torch
import yaml
from torch import Tensor

from treeparse.data.features.indexer import Indexer
from treeparse.data.outputs import atomic_output, atomic_write
from treeparse.errors import TreeparseError
from treeparse.json_files import from_json
from treeparse.metrics.tags import TAG_SCORES
from treeparse.model import Parser, ParserConfig
from treeparse.model.folder import RUN_CHECKPOINTS, RUN_MODEL, file_header, without_header
from treeparse.model.settings import plain_settings, read_settings

REMEDY = "train anew under another --output"
RUN = "run"  # the key of the `RunState` in a checkpoint


@dataclass(frozen=True)
class EpochRecord:
    """One or more epochs of training and the dev set after them.

    Attributes:
        epoch: the last of these epochs, counted from 1.
        loss: mean over their words in nats.
        learning_rate: the rate of the last step.
        dev_uas: UAS in [0, 1]; None without a dev set. If several treebanks have one, it is their mean, or the UAS of
            data.dev_choice.
        dev_las: LAS in [0, 1], of the same treebanks; None without a dev set, or if it has no labels.
        words_per_second: speed of training alone.
        seconds: time with the dev set.
        dev_loss: nats a word; None without a dev set.
        terms: means of the loss's terms by name, without their weights, if there are several.
        dev_tags: scores of predicted tags in [0, 1], by ``upos`` and so on.
        dev_treebanks: UAS and LAS of each treebank in [0, 1], as ``uas/NAME`` and ``las/NAME``, if they have names.
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
    dev_treebanks: Mapping[str, float] = field(default_factory=dict)

    def __str__(self) -> str:
        columns = [f"epoch {self.epoch:3d}", f"loss {self.loss:7.4f}"]
        columns += [f"{name} {value:.4f}" for name, value in self.terms.items()]
        scores = {"dev UAS": self.dev_uas, "LAS": self.dev_las}
        columns += [f"{name} {value:6.2%}" for name, value in scores.items() if value is not None]
        scores_by_name = ((*key.split("/"), value) for key, value in self.dev_treebanks.items())
        columns += [f"{name} {kind.upper()} {value:6.2%}" for kind, name, value in scores_by_name]
        columns += [f"{TAG_SCORES[name]} {value:6.2%}" for name, value in self.dev_tags.items()]
        if self.dev_loss is not None:
            columns.append(f"dev loss {self.dev_loss:7.4f}")
        columns += [f"rate {self.learning_rate:.1e}", f"{self.words_per_second:,.0f} words/s", f"{self.seconds:.0f} s"]
        return "   ".join(columns)

    def columns(self) -> dict[str, Any]:
        """Return the record as a row of a table: terms as ``term/NAME``, scores of tags and treebanks as ``dev_...``.

        The name of a treebank's score is ``las/NAME``.
        """
        values = asdict(self)
        terms, scores = values.pop("terms"), values.pop("dev_tags") | values.pop("dev_treebanks")
        values |= {f"dev_{name}": value for name, value in scores.items()}
        return values | {f"term/{name}": value for name, value in terms.items()}


class HasDevScores(Protocol):
    """The scores on a dev set by which `best_record` chooses."""

    @property
    def dev_uas(self) -> float | None: ...

    @property
    def dev_las(self) -> float | None: ...


M = TypeVar("M", bound=HasDevScores)


def best_record(history: Sequence[M]) -> M:
    """Return the record of the highest dev LAS, the first of equals; without a dev set the last one.

    A dev set without labels chooses by UAS.
    """
    if history[-1].dev_uas is None:
        return history[-1]
    return max(history, key=lambda record: (record.dev_uas if record.dev_las is None else record.dev_las) or 0.0)


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
    names = [column.name for column in fields(EpochRecord) if column.name not in ("terms", "dev_tags", "dev_treebanks")]
    names += sorted({name for row in rows for name in row} - set(names))
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    atomic_write(path, text.getvalue())


def read_csv(path: Path) -> list[EpochRecord]:
    """Read the history that `write_csv` wrote.

    Raises:
        TreeparseError: the file holds something else.
        OSError: it cannot be read.
    """
    try:
        return [_record(row) for row in csv.DictReader(path.read_text(encoding="utf-8").splitlines())]
    except (KeyError, TypeError, ValueError) as error:
        raise TreeparseError(f"{path} is no history of a run: {type(error).__name__} {error}.") from error


def _record(row: Mapping[str, str]) -> EpochRecord:
    """Return the record of a row; empty cells are None or absent."""
    values = {name: float(text) for name, text in row.items() if text}
    terms = {name.removeprefix("term/"): value for name, value in values.items() if name.startswith("term/")}
    tags = {name: values[f"dev_{name}"] for name in TAG_SCORES if f"dev_{name}" in values}
    treebanks = {
        name.removeprefix("dev_"): value for name, value in values.items() if name.startswith("dev_") and "/" in name
    }
    known = {column.name for column in fields(EpochRecord)} & row.keys()
    columns: dict[str, Any] = {name: values.get(name) for name in known}
    return EpochRecord(
        **columns | {"epoch": int(row["epoch"]), "terms": terms, "dev_tags": tags, "dev_treebanks": treebanks}
    )


@dataclass(frozen=True)
class RunState:
    """What a checkpoint says about its run, besides weights and the state of the optimiser.

    Attributes:
        identity: the settings and the data that the run's outcome depends on.
        history: the records of the completed epochs.
        threads: number of torch's threads, of each process.
        processes: number of processes that train together.
    """

    identity: Mapping[str, Any]
    history: Sequence[EpochRecord]
    threads: int
    processes: int = 1

    def to_plain(self) -> dict[str, Any]:
        """Return the part of a checkpoint that `RunDirectory.read_state` reads."""
        return {RUN: asdict(self)}


class RunDirectory:
    """The files of one run."""

    def __init__(self, path: str | Path) -> None:
        self.path: Path = Path(path)
        self.config: Path = self.path / "config.yaml"
        self.metrics: Path = self.path / "metrics.csv"
        self.model: Path = self.path / RUN_MODEL
        self.checkpoints: Path = self.path / RUN_CHECKPOINTS
        self.parser: Path = self.path / "parser.json"
        self.state: Path = self.checkpoints / "last.ckpt"
        self.best: Path = self.checkpoints / "best.ckpt"
        self.provenance: Path = self.path / "origin.json"

    def holds_run(self) -> bool:
        """Return whether a run began here."""
        return any(path.exists() for path in (self.config, self.checkpoints, self.metrics, self.model))

    def begin(self, config: str, *, replace: bool = False) -> None:
        """Make the folders, and write the config, or ``replace`` it."""
        self.checkpoints.mkdir(parents=True, exist_ok=True)
        if replace or not self.config.exists():
            atomic_write(self.config, config)

    def read_settings(self) -> dict[str, Any]:
        """Read the config file as plain data."""
        try:
            settings = yaml.safe_load(self.config.read_text(encoding="utf-8"))
        except (OSError, ValueError, yaml.YAMLError) as error:
            raise TreeparseError(f"{self.config} cannot be read ({error}).") from error
        if not isinstance(settings, dict) or not isinstance(settings.get("data"), dict):
            raise TreeparseError(f"{self.config} holds no settings of a run.")
        return settings

    def write_parser(self, parser: Parser) -> None:
        """Save the parser's settings and vocabularies, before the first state."""
        values = {**file_header(), "config": plain_settings(parser.config), "vocabulary": parser.indexer.to_json()}
        atomic_write(self.parser, json.dumps(values, ensure_ascii=False))

    def read_parser(self) -> Parser:
        """Build the parser, with arbitrary weights."""
        if not self.parser.exists():
            raise TreeparseError(
                f"{self.parser} is missing: treeparse train --resume {self.path} writes it, and the model at its end."
            )
        try:
            values = without_header(from_json(self.parser.read_bytes()), str(self.parser))
            config = read_settings(ParserConfig, values["config"], f"{self.parser}, config")
            with torch.random.fork_rng(devices=[]):
                return Parser(config, Indexer.from_json(values["vocabulary"], config.reader.restored))
        except TreeparseError:
            raise
        except ValueError as error:
            raise TreeparseError(
                f"{self.parser} is damaged ({error}): treeparse train --resume {self.path} writes it again."
            ) from error

    def read_state(self) -> RunState | None:
        """Read the state after the last completed epoch; None before the first."""
        if not self.state.exists():
            return None
        try:
            plain = load_checkpoint(self.state, mapped=True)[RUN]
            history = [EpochRecord(**record) for record in plain["history"]]
            return RunState(**{**plain, "history": history})
        except (KeyError, TypeError) as error:
            raise TreeparseError(f"{self.state} was written by another version of treeparse: {REMEDY}.") from error

    def write_best(self, record: EpochRecord, weights: Mapping[str, Tensor]) -> None:
        """Save the weights of the best epoch so far, and its record."""
        save_checkpoint(self.best, {"record": asdict(record), "weights": dict(weights)})

    def load_best(self, parser: Parser) -> Sequence[EpochRecord]:
        """Load the best weights so far into a parser, also while a process trains; return the completed epochs."""
        history = self.read_history()
        parser.load_state_dict(load_checkpoint(self.best)["weights"])
        return history

    def read_history(self) -> Sequence[EpochRecord]:
        """Read the records of the completed epochs, whose best one the best weights are of; raise before the first."""
        if not self.best.exists() and not self.state.exists():
            raise TreeparseError(
                f"No epoch of the run in {self.path} is complete yet, so there is no parser: wait for the first one, "
                f"or resume the run with treeparse train --resume {self.path}."
            )
        best = EpochRecord(**load_checkpoint(self.best, mapped=True)["record"])
        state = self.read_state()
        history = [] if state is None else state.history
        # The best weights are written first: a kill may have come between.
        return history if history and history[-1].epoch >= best.epoch else [*history, best]


def save_checkpoint(path: Path, values: dict[str, Any]) -> None:
    """Write tensors and plain values to a file, whole or not at all, through to the disk."""
    buffer = io.BytesIO()
    torch.save(values, buffer)
    with atomic_output(path) as output:
        output.write(buffer.getvalue())


def load_checkpoint(path: Path, *, mapped: bool = False) -> dict[str, Any]:
    """Read the mapping in a file, with tensors on the CPU or ``mapped`` to the file; nothing in it is executed.

    Tensors that are mapped are read from the file when they are used.
    """
    if not path.exists():
        raise TreeparseError(f"{path} is missing, so the run cannot resume: {REMEDY}.")
    path.open("rb").close()  # an error of the system names the file
    try:
        return torch.load(path, map_location="cpu", weights_only=True, mmap=mapped)
    except MemoryError:
        raise
    except Exception as error:  # a file that is cut off may raise anything, OSError too
        raise TreeparseError(f"{path} is no checkpoint of a run, or is damaged: {REMEDY}.") from error


def begin_runs(path: Path, settings: Mapping[str, Any], what: str, *, replaceable: Collection[str] = ()) -> None:
    """Write the settings of all runs of a folder to a file in it, or compare them with the settings in that file.

    The function creates the folder. It raises if the folder was begun with other settings, or holds other files.

    Args:
        path: the file.
        settings: plain data.
        what: the purpose of the runs in messages: "cross-parsing".
        replaceable: settings that may change, because nothing in the folder depends on them yet.
    """
    if path.is_file():
        recorded = json.loads(path.read_bytes())
        differing = [name for name in settings if recorded.get(name) != settings[name]]
        if fixed := [name for name in differing if name not in replaceable]:
            raise TreeparseError(
                f"{what.capitalize()} with other settings was begun in {path.parent}, {', '.join(fixed)} differ: name "
                "another folder, or give the same settings."
            )
        if not differing:
            return
    elif path.parent.is_dir() and any(path.parent.iterdir()):
        raise TreeparseError(f"{path.parent} holds other things than {what}'s: name a new folder.")
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic_write(path, json.dumps(settings, ensure_ascii=False, indent=2) + "\n")
