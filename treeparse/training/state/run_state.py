"""The state that a run resumes from."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from torch import Tensor

from treeparse.errors import TreeparseError
from treeparse.model.folder.storage import VERSION, file_writer
from treeparse.training.state.history import EpochRecord
from treeparse.version import installed_version

STATE_FORMAT = 1
REMEDY = "train anew under another --output"


@dataclass(frozen=True)
class RunState:
    """Everything that the rest of a run depends on, after the last epoch of ``history``.

    Attributes:
        identity: the settings and the data that the run's outcome depends on.
        threads: number of torch's threads, of each process.
        step: number of completed steps.
        history: the completed epochs.
        weights: the parser's weights.
        optimizer: the optimiser's state.
        average: the averaged weights; None for no average.
        objective: the objective's weights.
        processes: number of processes that train together.
    """

    identity: Mapping[str, Any]
    threads: int
    step: int
    history: Sequence[EpochRecord]
    weights: Mapping[str, Tensor]
    optimizer: Mapping[str, Any]
    average: Mapping[str, Any] | None
    objective: Mapping[str, Tensor] = field(default_factory=dict)
    processes: int = 1

    def to_plain(self) -> dict[str, Any]:
        """Return the state as tensors and plain values, which `from_plain` reads."""
        header = {"format": STATE_FORMAT, VERSION: installed_version()}
        return header | vars(self) | {"history": [asdict(record) for record in self.history]}

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any], source: str) -> Self:
        """Build the state that `to_plain` wrote to the file ``source``; raise for the file of another version."""
        if plain.get("format") != STATE_FORMAT:
            raise TreeparseError(
                f"{source} was written by another version of treeparse than {installed_version()}, "
                f"{file_writer(plain)}: resume with that version, or {REMEDY}."
            )
        values: dict[str, Any] = {name: plain[name] for name in plain if name not in ("format", VERSION)}
        values["history"] = [EpochRecord(**record) for record in values["history"]]
        return cls(**values)
