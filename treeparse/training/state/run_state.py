"""The state that a run resumes from."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from torch import Tensor

from treeparse.model.folder.storage import VERSION
from treeparse.training.state.history import EpochRecord
from treeparse.version import installed_version

STATE_FORMAT = 1


@dataclass(frozen=True)
class RunState:
    """Everything that the rest of a run depends on, after the last epoch of ``history``.

    Attributes:
        identity: the settings and the data that the run's outcome depends on.
        threads: number of torch's threads.
        step: number of completed steps.
        history: the completed epochs.
        weights: the parser's weights.
        optimizer: the optimiser's state.
        average: the averaged weights; None for no average.
        objective: the objective's weights.
        source: the file that held the state.
    """

    identity: Mapping[str, Any]
    threads: int
    step: int
    history: Sequence[EpochRecord]
    weights: Mapping[str, Tensor]
    optimizer: Mapping[str, Any]
    average: Mapping[str, Any] | None
    objective: Mapping[str, Tensor] = field(default_factory=dict)
    source: str = field(default="the state of the run", compare=False)


def state_to_plain(state: RunState) -> dict[str, Any]:
    """Return the state as tensors and plain values, which `validation.state_from_plain` reads."""
    values = {field.name: getattr(state, field.name) for field in fields(RunState) if field.name != "source"}
    header = {"format": STATE_FORMAT, VERSION: installed_version()}
    return header | values | {"history": [asdict(record) for record in state.history]}
