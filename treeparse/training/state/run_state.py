"""What a run goes on from: as it is kept in a file, and fitted to a parser and its optimiser."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import AdamW

from treeparse.errors import TreeparseError
from treeparse.metrics.tags import TAG_SCORES
from treeparse.model.storage import VERSION, file_writer
from treeparse.training.state.checks import (
    REMEDY,
    MisfitError,
    check,
    check_fields,
    check_plain,
    check_tensors,
    mapping,
    misfits_of,
)
from treeparse.training.state.history import EpochRecord
from treeparse.version import installed_version

FORMAT = 1


@dataclass(frozen=True)
class RunState:
    """All that the rest of a run depends on, as it stands after the last epoch of ``history``.

    ``source`` is the file that it was read from.
    """

    identity: Mapping[str, Any]  # the settings and the data that fix a run's outcome
    threads: int
    step: int
    history: Sequence[EpochRecord]
    weights: Mapping[str, Tensor]
    optimizer: Mapping[str, Any]
    average: Mapping[str, Any] | None
    objective: Mapping[str, Tensor] = field(default_factory=dict)
    source: str = field(default="the state of the run", compare=False)


def state_to_plain(state: RunState) -> dict[str, Any]:
    """Tensors and plain values that :func:`state_from_plain` turns back into the state."""
    values = {field.name: getattr(state, field.name) for field in fields(RunState) if field.name != "source"}
    header = {"format": FORMAT, VERSION: installed_version()}
    return header | values | {"history": [asdict(record) for record in state.history]}


def state_from_plain(plain: Mapping[str, Any], source: str) -> RunState:
    """The state that :func:`state_to_plain` made; fields with a default may be missing.

    Raises a ``TreeparseError`` for anything else, but does not look at the tensors: see :func:`fitting`.
    """
    number = plain.get("format")
    if type(number) is not int or number != FORMAT:
        raise TreeparseError(
            f"{source} was written by another version of treeparse than {installed_version()}, {file_writer(plain)}: "
            f"go on with that one, or {REMEDY}."
        )
    values: dict[str, Any] = {name: value for name, value in plain.items() if name not in ("format", VERSION)}
    values["source"] = source
    with misfits_of(source):
        check_fields(RunState, values, f"it, written by {file_writer(plain)},")
        check(values["step"] >= 0 and values["threads"] >= 1, "its numbers of steps or threads cannot be")
        for name in ("settings", "digests"):
            check_plain(mapping(values["identity"].get(name), f"its {name}"), f"its {name}")
        values["history"] = _history(values["history"])
    return RunState(**values)


def _history(records: Sequence[Any]) -> list[EpochRecord]:
    for place, record in enumerate(records, 1):
        what = f"record {place} of its history"
        check_fields(EpochRecord, mapping(record, what), what)
        for name in ("terms", "dev_tags"):
            numbers = mapping(record.get(name, {}), f"the {name} of {what}")
            check_plain(numbers, f"the {name} of {what}")
            check(all(type(value) is float for value in numbers.values()), f"the {name} of {what} are no numbers")
        check(record.get("dev_tags", {}).keys() <= TAG_SCORES.keys(), f"the dev_tags of {what} are none")
    history = [EpochRecord(**record) for record in records]
    epochs = [record.epoch for record in history]
    check(epochs and epochs[0] >= 1 and epochs == sorted(set(epochs)), "the epochs of its history are out of order")
    return history


def fitting(
    state: RunState, parser: nn.Module, objective: nn.Module, average: nn.Module | None, optimizer: AdamW
) -> RunState:
    """The state for these modules and this optimiser, whose settings win; raises where its tensors do not fit."""
    with misfits_of(state.source):
        check_tensors(state.weights, parser.state_dict(), "its weights")
        check_tensors(state.objective, objective.state_dict(), "the weights of its objective")
        check((state.average is None) == (average is None), "it has no averaged weights, or has them without need")
        if average is not None:
            check_tensors(state.average, average.state_dict(), "its averaged weights")
        return replace(state, optimizer=_optimizer_state(state.optimizer, optimizer))


def _optimizer_state(found: Mapping[str, Any], optimizer: AdamW) -> dict[str, Any]:
    """The averages that were found for the parameters of the optimiser; its settings are its own."""
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    states = mapping(found.get("state"), "its optimiser's state")
    check(
        _places(found.get("param_groups")) == _places(optimizer.state_dict()["param_groups"]),
        "its optimiser is one of other parameters",
    )
    # A parameter on which no loss depends has no averages.
    check(states and set(states) <= set(range(len(parameters))), "its optimiser has averages of other parameters")
    what = "the averages of parameter {} of its optimiser"
    return {"state": {place: _averages(states[place], parameters[place], what.format(place)) for place in states}}


def _places(groups: object) -> list[list[int]]:
    """The parameters of each group of an optimiser's state, by their places."""
    if not isinstance(groups, list):
        raise MisfitError("its optimiser has no groups of parameters")
    places: list[Any] = [mapping(group, "a group of its optimiser").get("params") for group in groups]
    check(
        all(type(group) is list and all(type(place) is int for place in group) for group in places),
        "a group of its optimiser has no parameters",
    )
    return places


def _averages(found: object, parameter: Tensor, what: str) -> dict[str, Tensor]:
    averages = dict(mapping(found, what))
    step = torch.zeros((), dtype=torch.get_default_dtype())
    check_tensors(averages, {"step": step, "exp_avg": parameter, "exp_avg_sq": parameter}, what)
    check(averages["step"] >= 1 and (averages["exp_avg_sq"] >= 0).all(), f"{what} are out of their range")
    # Tensors of their own, whatever they shared in the file.
    return {name: tensor.detach().clone(memory_format=torch.contiguous_format) for name, tensor in averages.items()}
