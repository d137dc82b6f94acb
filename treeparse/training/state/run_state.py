"""The state that a run resumes from, and the checks of a file that should hold it: names, types, shapes and values."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, asdict, dataclass, field, fields, replace
from functools import cache
from types import NoneType, UnionType
from typing import Any, Self, Union, get_args, get_origin, get_type_hints

import torch
from torch import Tensor, nn
from torch.optim import AdamW

from treeparse.errors import TreeparseError
from treeparse.metrics.tags import TAG_SCORES
from treeparse.model.folder.storage import VERSION, file_writer
from treeparse.training.state.history import EpochRecord
from treeparse.version import installed_version

STATE_FORMAT = 1
REMEDY = "train anew under another --output"
MOST_VALUES, MOST_DEPTH = 10_000, 20  # of settings, which have about a hundred values, three deep
MOST_BITS = 64  # of whole numbers
MOST_SECONDS = 1e9  # of an epoch, some thirty years


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
    processes: int = 1
    source: str = field(default="the state of the run", compare=False)

    def to_plain(self) -> dict[str, Any]:
        """Return the state as tensors and plain values, which `from_plain` reads."""
        values = {name: value for name, value in vars(self).items() if name != "source"}
        header = {"format": STATE_FORMAT, VERSION: installed_version()}
        return header | values | {"history": [asdict(record) for record in self.history]}

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any], source: str) -> Self:
        """Build the state that `to_plain` wrote; fields with a default may be missing.

        Raises a ``TreeparseError`` for anything else, but does not read the tensors, which `fitted` does.
        """
        number = plain.get("format")
        if type(number) is not int or number != STATE_FORMAT:
            raise TreeparseError(
                f"{source} was written by another version of treeparse than {installed_version()}, "
                f"{file_writer(plain)}: resume with that version, or {REMEDY}."
            )
        values: dict[str, Any] = {name: value for name, value in plain.items() if name not in ("format", VERSION)}
        values["source"] = source
        with misfits_of(source):
            _check_fields(cls, values, f"it, written by {file_writer(plain)},")
            _check(values["step"] >= 0 and values["threads"] >= 1, "its numbers of steps or threads cannot be")
            _check(values.get("processes", 1) >= 1, "its number of processes cannot be")
            for name in ("settings", "digests"):
                _check_plain(values["identity"].get(name), f"its {name}")
            values["history"] = _history(values["history"])
        return cls(**values)

    def fitted(self, parser: nn.Module, objective: nn.Module, average: nn.Module | None, optimizer: AdamW) -> Self:
        """Return the state for these modules and this optimiser, whose settings stay; raise if tensors do not fit."""
        with misfits_of(self.source):
            check_tensors(self.weights, parser.state_dict(), "its weights")
            check_tensors(self.objective, objective.state_dict(), "the weights of its objective")
            _check((self.average is None) == (average is None), "it has no averaged weights, or has them without need")
            if average is not None:
                check_tensors(self.average, average.state_dict(), "its averaged weights")
            return replace(self, optimizer={"state": _optimizer_averages(self.optimizer, optimizer)})


class MisfitError(Exception):
    """A fault, as a part of a sentence."""


@contextmanager
def misfits_of(source: str) -> Iterator[None]:
    """Turn misfits into a ``TreeparseError`` that names the file and the remedy."""
    try:
        yield
    except MisfitError as error:
        message = f"{source} is no checkpoint of this run, or is damaged ({error}): {REMEDY}."
        raise TreeparseError(message) from None


def as_mapping(value: object, what: str) -> Mapping[Any, Any]:
    """Return the value, which must be a mapping."""
    if not isinstance(value, Mapping):
        raise MisfitError(f"{what} should be a mapping and is of type {type(value).__name__}")
    return value


def check_tensors(tensors: object, expected: Mapping[str, Tensor], what: str) -> None:
    """Check names, types, shapes and values of tensors against a model's."""
    tensors = as_mapping(tensors, what)
    odd = tensors.keys() ^ expected.keys()
    _check(not odd, f"{what} have other names than the model's, see {_names(odd)}")
    for name, own in expected.items():
        kind, own_kind = _kind(tensors[name]), _kind(own)
        _check(kind == own_kind, f"{name} of {what} is {kind}, not {own_kind}")
        values = tensors[name] if own.element_size() > 1 else tensors[name].float()  # torch tests no float8
        _check(torch.isfinite(values).all(), f"{name} of {what} holds NaN or infinity")
        _check(own.is_floating_point() or (tensors[name] >= 0).all(), f"{name} of {what} is negative")


def _check(holds: object, problem: str) -> None:
    if not holds:
        raise MisfitError(problem)


def _history(records: Sequence[Any]) -> list[EpochRecord]:
    for number, record in enumerate(records, 1):
        what = f"record {number} of its history"
        _check_fields(EpochRecord, as_mapping(record, what), what)
        for name in ("terms", "dev_tags"):
            numbers = record.get(name, {})
            _check_plain(numbers, f"the {name} of {what}")
            _check(all(type(value) is float for value in numbers.values()), f"the {name} of {what} are no numbers")
        _check(record.get("dev_tags", {}).keys() <= TAG_SCORES.keys(), f"the dev_tags of {what} are none")
        _check(0 <= record["seconds"] < MOST_SECONDS, f"the seconds of {what} cannot be")
    history = [EpochRecord(**record) for record in records]
    epochs = [record.epoch for record in history]
    _check(epochs and epochs[0] >= 1 and epochs == sorted(set(epochs)), "the epochs of its history are out of order")
    return history


def _optimizer_averages(state: Mapping[str, Any], optimizer: AdamW) -> dict[int, dict[str, Tensor]]:
    """Return Adam's averages in a state, by the indices of the parameters of the optimiser."""
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    expected = [group["params"] for group in optimizer.state_dict()["param_groups"]]
    groups = state.get("param_groups")
    _check(type(groups) is list, "its optimiser has no groups of parameters")
    indices: list[Any] = [as_mapping(group, "a group of its optimiser").get("params") for group in groups or ()]
    is_plain = all(type(each) is list and set(map(type, each)) <= {int} for each in indices)
    _check(is_plain and indices == expected, "its optimiser is one of other parameters")
    averages = as_mapping(state.get("state"), "its optimiser's state")
    # A parameter that no loss depends on has no averages.
    _check(averages and set(averages) <= set(range(len(parameters))), "its optimiser has averages of other parameters")
    step, copies = torch.zeros((), dtype=torch.get_default_dtype()), {}
    for index, tensors in averages.items():
        what, own = f"the averages of parameter {index} of its optimiser", parameters[index]
        check_tensors(tensors, {"step": step, "exp_avg": own, "exp_avg_sq": own}, what)
        _check(tensors["step"] >= 1 and (tensors["exp_avg_sq"] >= 0).all(), f"{what} are out of their range")
        # Copies, because tensors of a file may share memory.
        contiguous = torch.contiguous_format
        copies[index] = {name: each.detach().clone(memory_format=contiguous) for name, each in tensors.items()}
    return copies


def _check_fields(kind: type, values: Mapping[Any, Any], what: str) -> None:
    """Check names and types of values against the fields of a dataclass; fields with a default may be missing."""
    hints, needed = _fields_of(kind)
    _check(needed <= values.keys(), f"{what} lacks {_names(needed - values.keys())}")
    unknown = values.keys() - hints.keys()
    _check(not unknown, f"{what} holds {_names(unknown)}, which this version does not know")
    for name, hint in hints.items():
        if name in values:
            actual = type(values[name]).__name__
            _check(_is_of(values[name], hint), f"{name} of {what} is of type {actual}, or out of its range")


@cache  # a long history has many records
def _fields_of(kind: type) -> tuple[dict[str, Any], set[str]]:
    """Return the types of a dataclass's fields by name, and the fields without a default."""
    hints, every = get_type_hints(kind), fields(kind)
    needed = {each.name for each in every if each.default is MISSING and each.default_factory is MISSING}
    return {each.name: hints[each.name] for each in every}, needed


def _is_of(value: object, hint: Any) -> bool:
    if get_origin(hint) in (Union, UnionType):
        return any(_is_of(value, option) for option in get_args(hint))
    if hint is int:
        return type(value) is int and value.bit_length() < MOST_BITS
    if hint is float:
        return _is_of(value, int) or (type(value) is float and value == value)
    if hint in (str, bool, NoneType):
        return type(value) is hint
    return isinstance(value, get_origin(hint))


def _check_plain(settings: object, what: str) -> None:
    """Check that a mapping holds only mappings, lists and plain values, in a limited number and depth."""
    waiting: list[tuple[Any, int]] = [(as_mapping(settings, what), 0)]
    for _ in range(MOST_VALUES):
        if not waiting:
            return
        value, depth = waiting.pop()
        _check(depth < MOST_DEPTH, f"{what} is too deep")
        if isinstance(value, Mapping):
            _check(all(type(name) is str for name in value), f"{what} has names that are no text")
            value = list(value.values())
        if isinstance(value, list):
            waiting += [(item, depth + 1) for item in value]
        else:
            _check(
                type(value) is float or _is_of(value, bool | int | str | None), f"{what} holds other than plain data"
            )
    raise MisfitError(f"{what} is too long")


def _kind(value: object) -> str:
    """Return an ordinary tensor's type and shape, or a description of any other value."""
    if not isinstance(value, Tensor):
        return f"of type {type(value).__name__}"
    if value.layout is not torch.strided or value.is_quantized or value.is_meta:
        return "a tensor of another kind"
    return f"{str(value.dtype).removeprefix('torch.')} of shape {tuple(value.shape)}"


def _names(names: Iterable[object]) -> str:
    """List a few names; a name that is no text by its type."""
    shown = sorted(name if isinstance(name, str) else type(name).__name__ for name in names)
    return ", ".join(shown[:3]) + (", ..." if len(shown) > 3 else "")
