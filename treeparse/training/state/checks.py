"""Whether what a file of a run holds is what such a file should: names, types, shapes and values."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, fields
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import torch
from torch import Tensor

from treeparse.errors import TreeparseError

REMEDY = "train anew under another --output"
MOST_VALUES, MOST_DEPTH = 10_000, 20  # of settings; there are about a hundred, three deep
MOST_BITS = 64  # of whole numbers


class MisfitError(Exception):
    """What is wrong, as a part of a sentence."""


@contextmanager
def misfits_of(source: str) -> Iterator[None]:
    """Turn misfits into a ``TreeparseError`` that names the file and says what to do."""
    try:
        yield
    except MisfitError as error:
        message = f"{source} is no checkpoint of this run, or is damaged ({error}): {REMEDY}."
        raise TreeparseError(message) from None


def check(holds: object, problem: str) -> None:
    """Raise where something does not hold."""
    if not holds:
        raise MisfitError(problem)


def mapping(value: object, what: str) -> Mapping[Any, Any]:
    """The value, which must be a mapping."""
    if not isinstance(value, Mapping):
        raise MisfitError(f"{what} should be a mapping and is of type {type(value).__name__}")
    return value


def check_fields(kind: type, values: Mapping[Any, Any], what: str) -> None:
    """Check the names that a dataclass is made from and, as far as its annotations say them, the types.

    Fields with a default may be missing.
    """
    known = {field.name for field in fields(kind)}
    needed = {each.name for each in fields(kind) if each.default is MISSING and each.default_factory is MISSING}
    check(needed <= values.keys(), f"{what} lacks {_names(needed - values.keys())}")
    check(values.keys() <= known, f"{what} holds {_names(values.keys() - known)}, which this version does not know")
    for name, hint in get_type_hints(kind).items():
        if name in values:
            found = type(values[name]).__name__
            check(_is_of(values[name], hint), f"{name} of {what} is of type {found}, or out of its range")


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


def check_plain(settings: Mapping[Any, Any], what: str) -> None:
    """Check that there are only mappings, lists and plain values, not too many of them, nor themselves in them."""
    waiting: list[tuple[Any, int]] = [(settings, 0)]
    for _ in range(MOST_VALUES):
        if not waiting:
            return
        value, depth = waiting.pop()
        check(depth < MOST_DEPTH, f"{what} is too deep")
        if isinstance(value, Mapping):
            check(all(type(name) is str for name in value), f"{what} has names that are no text")
            value = list(value.values())
        if isinstance(value, list):
            waiting += [(item, depth + 1) for item in value]
        else:
            check(type(value) is float or _is_of(value, bool | int | str | None), f"{what} holds other than plain data")
    raise MisfitError(f"{what} is too long")


def check_tensors(found: object, expected: Mapping[str, Tensor], what: str) -> None:
    """Check names, types, shapes and values of tensors against those of a model."""
    tensors = mapping(found, what)
    odd = tensors.keys() ^ expected.keys()
    check(not odd, f"{what} have other names than the model's, see {_names(odd)}")
    for name, own in expected.items():
        kind, wanted = _kind(tensors[name]), _kind(own)
        check(kind == wanted, f"{name} of {what} is {kind}, not {wanted}")
        check(torch.isfinite(tensors[name]).all(), f"{name} of {what} holds NaN or infinity")
        check(own.is_floating_point() or (tensors[name] >= 0).all(), f"{name} of {what} is negative")


def _kind(value: object) -> str:
    """An ordinary tensor's type and shape, or what the value is instead."""
    if not isinstance(value, Tensor):
        return f"of type {type(value).__name__}"
    if value.layout is not torch.strided or value.is_quantized or value.is_meta:
        return "a tensor of another kind"
    return f"{str(value.dtype).removeprefix('torch.')} of shape {tuple(value.shape)}"


def _names(names: Iterable[object]) -> str:
    """A few names; those that are no text by their type."""
    shown = sorted(name if isinstance(name, str) else type(name).__name__ for name in names)
    return ", ".join(shown[:3]) + (", ..." if len(shown) > 3 else "")
