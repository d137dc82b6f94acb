"""The folder of a run: its config, its logs, the state to resume from, the best weights and the final model.

The files agree whenever a run is killed, because each is written whole or not at all, and in this order: the parser's
settings and vocabularies; after each epoch the best weights, in a file of that epoch; the state that refers to them;
the logs, which the state's history can write again. So the best parser can be exported at any time, without the
treebank. Only tensors and plain values are unpickled.
"""

import io
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
import yaml
from torch import Tensor

from treeparse.data.features.indexer import Indexer
from treeparse.data.outputs import atomic_output, atomic_write
from treeparse.errors import TreeparseError
from treeparse.json_files import from_json
from treeparse.model import Parser, ParserConfig
from treeparse.model.folder.files import RUN_CHECKPOINTS, RUN_MODEL
from treeparse.model.folder.storage import file_header, from_plain, without_header
from treeparse.model.scorers import scorer_kind
from treeparse.training.state.history import EpochRecord, best_record, write_csv
from treeparse.training.state.provenance import Provenance
from treeparse.training.state.run_state import REMEDY
from treeparse.training.state.run_state import RunState as RunState


class RunDirectory:
    """The files of one run."""

    def __init__(self, path: str | Path) -> None:
        self.path: Path = Path(path)
        self.config: Path = self.path / "config.yaml"
        self.metrics: Path = self.path / "metrics.csv"
        self.tensorboard: Path = self.path / "tensorboard"
        self.model: Path = self.path / RUN_MODEL
        self.checkpoints: Path = self.path / RUN_CHECKPOINTS
        self.parser: Path = self.checkpoints / "parser.json"
        self.state: Path = self.checkpoints / "last.ckpt"
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

    def write_provenance(self, provenance: Provenance) -> None:
        """Save the provenance of the run's model; a resumed run does not replace it."""
        if not self.provenance.exists():
            atomic_write(self.provenance, provenance.to_json())

    def read_provenance(self) -> Provenance | None:
        """Read the provenance of the run's model; None if its file is missing."""
        if not self.provenance.exists():
            return None
        return Provenance.from_json(self.provenance.read_text(encoding="utf-8"), str(self.provenance))

    def write_parser(self, parser: Parser) -> None:
        """Save the parser's settings and vocabularies, before the first state."""
        values = {**file_header(), "config": asdict(parser.config), "vocabulary": parser.indexer.to_json()}
        atomic_write(self.parser, json.dumps(values, ensure_ascii=False))

    def read_parser(self) -> Parser:
        """Build the parser, with arbitrary weights."""
        if not self.parser.exists():
            raise TreeparseError(
                f"{self.parser} is missing: treeparse train --resume {self.path} writes it, and the model at its end."
            )
        try:
            values = without_header(from_json(self.parser.read_bytes()), str(self.parser))
            config = from_plain(ParserConfig, values["config"], f"{self.parser}, config")
            return Parser(config, Indexer.from_json(values["vocabulary"], scorer_kind(config).restored))
        except TreeparseError:
            raise
        except ValueError as error:
            raise TreeparseError(
                f"{self.parser} is damaged ({error}): treeparse train --resume {self.path} writes it again."
            ) from error

    def read_state(self, *, mapped: bool = False) -> RunState | None:
        """Read the state after the last completed epoch; None before the first.

        If ``mapped``, its tensors are read from the file when they are used, which saves most of the time for large
        models.
        """
        if not self.state.exists():
            return None
        return RunState.from_plain(_load(self.state, mapped=mapped), str(self.state))

    def write_state(self, state: RunState, best_weights: Mapping[str, Tensor]) -> None:
        """Save the state after an epoch, and ``best_weights`` if that epoch is the best."""
        best = best_record(state.history)
        if best is state.history[-1]:
            _save(self._best(best), dict(best_weights))
        _save(self.state, state.to_plain())
        for other in self.checkpoints.glob("best-*.ckpt"):
            if other != self._best(best):
                with suppress(PermissionError):  # where a file that is being read cannot be removed: next time
                    other.unlink()
        write_csv(self.metrics, state.history)

    def read_best(self, history: Sequence[EpochRecord]) -> dict[str, Tensor]:
        """Read the weights of the best epoch."""
        return _load(self._best(best_record(history)))

    def load_best(self, parser: Parser) -> Sequence[EpochRecord]:
        """Load the weights of the best epoch so far into a parser, also while a process trains; return the history."""
        history = self.read_history()
        while True:
            try:
                weights = self.read_best(history)
                break
            except TreeparseError:
                previous, history = history, self.read_history()
                if best_record(history) == best_record(previous):
                    raise  # no better epoch has replaced it
        parser.load_state_dict(weights)
        return history

    def read_history(self) -> Sequence[EpochRecord]:
        """Read the completed epochs; raise before the first."""
        state = self.read_state(mapped=True)
        if state is None:
            raise TreeparseError(
                f"No epoch of the run in {self.path} is complete yet, so there is no parser: wait for the first one, "
                f"or resume the run with treeparse train --resume {self.path}."
            )
        return state.history

    def _best(self, record: EpochRecord) -> Path:
        return self.checkpoints / f"best-{record.epoch:04d}.ckpt"


def _save(path: Path, values: dict[str, Any]) -> None:
    buffer = io.BytesIO()
    torch.save(values, buffer)
    with atomic_output(path) as output:
        output.write(buffer.getvalue())


def _load(path: Path, *, mapped: bool = False) -> dict[str, Any]:
    """Read the mapping in a file, with tensors on the CPU or ``mapped`` to the file; nothing in it is executed."""
    if not path.exists():
        raise TreeparseError(f"{path} is missing, so the run cannot resume: {REMEDY}.")
    path.open("rb").close()  # an error of the system names the file
    try:
        return torch.load(path, map_location="cpu", weights_only=True, mmap=mapped)
    except MemoryError:
        raise
    except Exception as error:  # a file that is cut off may raise anything, OSError too
        raise TreeparseError(f"{path} is no checkpoint of a run, or is damaged: {REMEDY}.") from error
