"""The folder of a run: its config, its logs, the state to resume from, the best weights and the final model.

The files agree whenever a run is killed, because each is written whole or not at all, and in this order: the best
weights, under a name of their own for each epoch; the state that refers to them; the logs, which the state's history
can write anew. Nothing is unpickled but tensors and plain values.
"""

import io
import pickle
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from treeparse.core import TreeparseError
from treeparse.data.files import atomic_output, atomic_write
from treeparse.training.history import EpochRecord, best_record, write_csv

FORMAT = 1


@dataclass(frozen=True)
class RunState:
    """All that the rest of a run depends on, as it stands after the last epoch of ``history``."""

    identity: Mapping[str, Any]  # the settings and the data that fix a run's outcome
    threads: int
    step: int
    history: Sequence[EpochRecord]
    weights: Mapping[str, Tensor]
    optimizer: Mapping[str, Any]
    average: Mapping[str, Any] | None


class RunDirectory:
    """The files of one run."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.config = self.path / "config.yaml"
        self.metrics = self.path / "metrics.csv"
        self.tensorboard = self.path / "tensorboard"
        self.model = self.path / "model"
        self.checkpoints = self.path / "checkpoints"
        self.state = self.checkpoints / "last.ckpt"

    def holds_run(self) -> bool:
        """Whether a run began here."""
        return any(path.exists() for path in (self.config, self.checkpoints, self.metrics, self.model))

    def begin(self, config: str, *, replace: bool = False) -> None:
        """Make the folders and remove what a killed run left half written; write the config, or ``replace`` it."""
        self.checkpoints.mkdir(parents=True, exist_ok=True)
        for folder in (self.path, self.checkpoints):
            for left in folder.glob(".*.tmp"):
                shutil.rmtree(left) if left.is_dir() else left.unlink()
        if replace or not self.config.exists():
            atomic_write(self.config, config)

    def read_state(self) -> RunState | None:
        """The state after the last completed epoch; None before the first."""
        if not self.state.exists():
            return None
        values = _load(self.state)
        if values.pop("format", None) != FORMAT:
            raise TreeparseError(f"{self.state} was written by another version of treeparse: train anew.")
        history = [EpochRecord(**record) for record in values.pop("history")]
        return RunState(history=history, **values)

    def write_state(self, state: RunState, best_weights: Mapping[str, Tensor]) -> None:
        """Save the state after an epoch, and ``best_weights`` with it if that epoch is the best."""
        best = best_record(state.history).epoch
        if best == state.history[-1].epoch:
            _save(self._best(best), dict(best_weights))
        values = {name: getattr(state, name) for name in RunState.__dataclass_fields__}
        _save(self.state, values | {"format": FORMAT, "history": [asdict(record) for record in state.history]})
        for other in self.checkpoints.glob("best-*.ckpt"):
            if other != self._best(best):
                other.unlink()
        write_csv(self.metrics, state.history)

    def read_best(self, history: Sequence[EpochRecord]) -> dict[str, Tensor]:
        """The weights of the best epoch."""
        return _load(self._best(best_record(history).epoch))

    def _best(self, epoch: int) -> Path:
        return self.checkpoints / f"best-{epoch:04d}.ckpt"


def _save(path: Path, values: dict[str, Any]) -> None:
    buffer = io.BytesIO()
    torch.save(values, buffer)
    with atomic_output(path) as output:
        output.write(buffer.getvalue())


def _load(path: Path) -> dict[str, Any]:
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError as error:
        raise TreeparseError(f"{path} is missing, so the run cannot go on: train anew.") from error
    except (RuntimeError, EOFError, pickle.UnpicklingError) as error:
        raise TreeparseError(f"{path} is no checkpoint of a run, or is damaged: train anew.") from error
