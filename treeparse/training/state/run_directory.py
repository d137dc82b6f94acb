"""The folder of a run: its config, its logs, the state to resume from, the best weights and the final model.

The files agree whenever a run is killed, because each is written whole or not at all, and in this order: the parser's
settings and vocabularies; after each epoch the best weights, under a name of their own; the state that refers to them;
the logs, which the state's history can write anew. So the parser so far can be had at any time, and without the
treebank. Nothing is unpickled but tensors and plain values.
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
from treeparse.data.leftovers import remove_all_leftovers
from treeparse.data.outputs import atomic_output, atomic_write
from treeparse.errors import TreeparseError
from treeparse.model import Parser, ParserConfig
from treeparse.model.encoders import encoder_kind
from treeparse.model.folders import RUN_CHECKPOINTS, RUN_MODEL
from treeparse.model.storage import file_header, from_plain, upgraded
from treeparse.training.state.checks import REMEDY, check_tensors, mapping, misfits_of
from treeparse.training.state.history import EpochRecord, best_record, write_csv
from treeparse.training.state.provenance import Origin
from treeparse.training.state.run_state import RunState as RunState
from treeparse.training.state.run_state import state_from_plain, state_to_plain


class RunDirectory:
    """The files of one run."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.config = self.path / "config.yaml"
        self.metrics = self.path / "metrics.csv"
        self.tensorboard = self.path / "tensorboard"
        self.model = self.path / RUN_MODEL
        self.checkpoints = self.path / RUN_CHECKPOINTS
        self.parser = self.checkpoints / "parser.json"
        self.state = self.checkpoints / "last.ckpt"
        self.origin = self.path / "origin.json"
        self._history_of: tuple[object, Sequence[EpochRecord]] = (None, ())  # a state's file and what was read of it

    def holds_run(self) -> bool:
        """Whether a run began here."""
        return any(path.exists() for path in (self.config, self.checkpoints, self.metrics, self.model))

    def begin(self, config: str, *, replace: bool = False) -> None:
        """Make the folders and remove what a killed run left half written; write the config, or ``replace`` it."""
        self.checkpoints.mkdir(parents=True, exist_ok=True)
        for folder in (self.path, self.checkpoints):
            remove_all_leftovers(folder)
        if replace or not self.config.exists():
            atomic_write(self.config, config)

    def read_settings(self) -> dict[str, Any]:
        """The settings in the config file, as plain data."""
        try:
            settings = yaml.safe_load(self.config.read_text(encoding="utf-8"))
        except (OSError, ValueError, yaml.YAMLError) as error:
            raise TreeparseError(f"{self.config} cannot be read ({error}).") from error
        if not isinstance(settings, dict) or not isinstance(settings.get("data"), dict):
            raise TreeparseError(f"{self.config} holds no settings of a run.")
        return settings

    def write_origin(self, origin: Origin) -> None:
        """Save what the run's model comes from; of a run that goes on, that of its beginning stays."""
        if not self.origin.exists():
            atomic_write(self.origin, origin.to_json())

    def read_origin(self) -> Origin | None:
        """What the run's model comes from; None for runs of versions that did not say it."""
        if not self.origin.exists():
            return None
        return Origin.from_json(self.origin.read_text(encoding="utf-8", errors="replace"), str(self.origin))

    def write_parser(self, parser: Parser) -> None:
        """Save all of the parser but its weights; before the first state."""
        values = {**file_header(), "config": asdict(parser.config), "vocabulary": parser.indexer.to_json()}
        atomic_write(self.parser, json.dumps(values, ensure_ascii=False))

    def read_parser(self) -> Parser:
        """The parser, with weights of no meaning."""
        if not self.parser.exists():
            raise TreeparseError(
                f"{self.parser} is missing, as in runs of earlier versions: "
                f"treeparse train --resume {self.path} writes it, and the model at its end."
            )
        try:
            values = json.loads(self.parser.read_bytes())
            # The first runs wrote no header; what they wrote is of the first format.
            header = {"format": 1} | {name: values[name] for name in file_header() if name in values}
            where = f"{self.parser}, config"
            config = from_plain(ParserConfig, upgraded({**values["config"], **header}, where), where)
            return Parser(config, Indexer.from_json(values["vocabulary"], encoder_kind(config.encoder).restored))
        except TreeparseError:
            raise
        except (AttributeError, LookupError, OverflowError, RuntimeError, TypeError, ValueError) as error:
            raise TreeparseError(
                f"{self.parser} is damaged ({error}): treeparse train --resume {self.path} writes it anew."
            ) from error

    def read_state(self, *, mapped: bool = False) -> RunState | None:
        """The state after the last completed epoch; None before the first.

        If ``mapped``, its tensors stay in the file until they are looked at: of a large model, most of the reading.
        """
        if not self.state.exists():
            return None
        return state_from_plain(_load(self.state, mapped=mapped), str(self.state))

    def write_state(self, state: RunState, best_weights: Mapping[str, Tensor]) -> None:
        """Save the state after an epoch, and ``best_weights`` with it if that epoch is the best."""
        best = best_record(state.history)
        if best is state.history[-1]:
            _save(self._best(best), dict(best_weights))
        _save(self.state, state_to_plain(state))
        for other in self.checkpoints.glob("best-*.ckpt"):
            if other != self._best(best):
                with suppress(PermissionError):  # where a file that is being read cannot be removed: next time
                    other.unlink()
        write_csv(self.metrics, state.history)

    def read_best(self, history: Sequence[EpochRecord]) -> dict[str, Tensor]:
        """The weights of the best epoch."""
        return _load(self._best(best_record(history)))

    def load_best(self, parser: Parser) -> Sequence[EpochRecord]:
        """Give a parser the weights of the best epoch so far, also while a process trains; returns the history."""
        history = self.read_history()
        while True:
            try:
                weights = self.read_best(history)
                break
            except TreeparseError:
                before, history = history, self.read_history()
                if best_record(history) == best_record(before):
                    raise  # no better epoch has taken its place
        with misfits_of(str(self._best(best_record(history)))):
            check_tensors(weights, parser.state_dict(), "its weights")
        parser.load_state_dict(weights)
        return history

    def read_history(self) -> Sequence[EpochRecord]:
        """The completed epochs; raises before the first."""
        file = self._state_file()
        if file is None or file != self._history_of[0]:
            state = self.read_state(mapped=True)
            if state is None:
                raise TreeparseError(
                    f"No epoch of the run in {self.path} is complete yet, so there is no parser: wait for the first "
                    f"one, or go on with treeparse train --resume {self.path}."
                )
            self._history_of = file, state.history
        return self._history_of[1]

    def _state_file(self) -> object:
        """What tells the state's file from any other that may take its place; None if there is none."""
        try:
            found = self.state.stat()
        except FileNotFoundError:
            return None
        return found.st_ino, found.st_mtime_ns, found.st_size

    def _best(self, record: EpochRecord) -> Path:
        return self.checkpoints / f"best-{record.epoch:04d}.ckpt"


def _save(path: Path, values: dict[str, Any]) -> None:
    buffer = io.BytesIO()
    torch.save(values, buffer)
    with atomic_output(path) as output:
        output.write(buffer.getvalue())


def _load(path: Path, *, mapped: bool = False) -> dict[str, Any]:
    """The mapping in a file, tensors on the CPU, or ``mapped`` to the file; nothing in it is run."""
    try:
        values = torch.load(path, map_location="cpu", weights_only=True, mmap=mapped)
    except FileNotFoundError as error:
        raise TreeparseError(f"{path} is missing, so the run cannot go on: {REMEDY}.") from error
    except (OSError, MemoryError):
        raise
    except Exception as error:  # of what is no checkpoint: there are as many kinds as there are mistakes
        raise TreeparseError(f"{path} is no checkpoint of a run, or is damaged: {REMEDY}.") from error
    with misfits_of(str(path)):
        return dict(mapping(values, "what it holds"))
