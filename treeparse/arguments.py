"""Checks of the types of arguments, by a function's own annotations: a wrong type raises a sentence, as values do."""

import inspect
import typing
from collections import abc
from collections.abc import Callable, Mapping, Sequence
from functools import cache, wraps
from types import NoneType, UnionType
from typing import Any, NamedTuple, TypeGuard, TypeVar

import numpy as np
import torch
from torch import Tensor
from torch.compiler import is_compiling

from treeparse.errors import TreeparseError

F = TypeVar("F", bound=Callable[..., Any])
LARGEST = 2**63 - 1  # of an integer
MOST_SHOWN = 60  # characters of a wrong value
DenseOrSparse = typing.Annotated[Tensor, torch.sparse_coo]  # where others must be dense


class Kind(NamedTuple):
    """What an argument may be: the test of a value, and what an error calls it."""

    accepts: Callable[[Any], bool]
    words: str


def checked(function: F) -> F:
    """Check the arguments of a function before every call, except in programs that torch.compile traces.

    A parameter is checked if its annotation is made of tensors, numbers, strings, functions, classes, and sequences.
    What a sequence holds is checked where these are numbers or classes.
    """
    names = [*inspect.signature(function).parameters]

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not is_compiling():
            by_place, by_name = _tests_of(function)
            for test, value in zip(by_place, args, strict=False):  # the function refuses what is left over
                if not test(value):
                    raise _refusal(function, names, args, kwargs)
            for name in kwargs:
                if name in by_name and not by_name[name](kwargs[name]):
                    raise _refusal(function, names, args, kwargs)
        return function(*args, **kwargs)

    return call  # pyright: ignore[reportReturnType]


@cache
def _tests_of(function: Callable[..., Any]) -> tuple[list[Callable[[Any], bool]], dict[str, Callable[[Any], bool]]]:
    """Return the tests of all arguments by place, and of those that have one by name."""
    kinds = _kinds_of(function)
    by_name = {name: kind.accepts for name, kind in kinds.items()}
    return [by_name.get(name, _anything) for name in inspect.signature(function).parameters], by_name


def _anything(value: Any) -> bool:
    return True


@cache
def _kinds_of(function: Callable[..., Any]) -> dict[str, Kind]:
    """Return the kind of every parameter that has one, by name."""
    places, kinds = inspect.getmodule(function), {}
    for name, parameter in inspect.signature(function).parameters.items():
        hint = parameter.annotation
        if isinstance(hint, str):
            hint = vars(places).get(hint, Any)  # a name of the function's own module, or unknown
        kind = _kind_of(hint)
        if kind is not None and hint is not parameter.empty:
            kinds[name] = kind
    return kinds


def _kind_of(hint: Any) -> Kind | None:
    """Return the kind that an annotation stands for; None where it allows anything, or cannot be tested."""
    if isinstance(hint, str):  # a name that is known later only
        return None
    if hint in SIMPLE:
        return SIMPLE[hint]
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        return Kind(lambda value: is_dense(value) or _is_sparse(value), "a tensor")
    if origin is typing.Literal:
        return SIMPLE[str]  # the function knows the names
    if origin in (typing.Union, UnionType):
        kinds = [_kind_of(part) for part in parts]
        if None in kinds:
            return None
        words = " or ".join(dict.fromkeys(kind.words for kind in kinds if kind))
        return Kind(_any_of([kind.accepts for kind in kinds if kind]), words)
    if origin is abc.Callable:
        return Kind(callable, "a function")
    if origin in (Sequence, list):
        return _sequence_of(ANY_INTEGER if parts[0] is int else _kind_of(parts[0]))
    if origin is abc.Iterable:
        return Kind(lambda value: isinstance(value, abc.Iterable) and getattr(value, "ndim", 1) == 1, "a sequence")
    if origin is tuple:
        return Kind(lambda value: isinstance(value, abc.Iterable) and not isinstance(value, str | bytes), "a sequence")
    if getattr(hint, "_is_runtime_protocol", False):  # nested tensors raise where a protocol asks for their shape
        return Kind(lambda value: not isinstance(value, Tensor) and isinstance(value, hint), f"a {hint.__name__}")
    if inspect.isclass(hint) and not getattr(hint, "_is_protocol", False):
        return Kind(lambda value: isinstance(value, hint), f"a {hint.__name__}")
    return None


def _any_of(tests: list[Callable[[Any], bool]]) -> Callable[[Any], bool]:
    """Return the test whether one of some tests is passed; of two, as most unions are, a fast one."""
    if len(tests) != 2:
        return lambda value: any(test(value) for test in tests)
    first, second = tests
    return lambda value: first(value) or second(value)


def _sequence_of(kind: Kind | None) -> Kind:
    words = "a sequence" if kind is None else f"a sequence (each item {kind.words})"

    def accepts(values: Any) -> bool:
        if not isinstance(values, Sequence) or isinstance(values, str | bytes):
            return False
        return kind is None or all(map(kind.accepts, values))

    return Kind(accepts, words)


def is_dense(value: Any) -> TypeGuard[Tensor]:
    """Whether a value is a tensor whose entries all stand in memory, and are plain numbers."""
    return (
        isinstance(value, Tensor) and value.layout is torch.strided and not value.is_nested and not value.is_quantized
    )


def _is_sparse(value: Any) -> bool:
    return isinstance(value, Tensor) and value.layout is torch.sparse_coo


def _is_whole(value: Any) -> bool:
    return _is_integer(value) and -LARGEST <= value <= LARGEST


def _is_integer(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, float) or _is_whole(value)


SIMPLE: dict[Any, Kind | None] = {
    Any: None,
    NoneType: Kind(lambda value: value is None, "None"),
    Tensor: Kind(is_dense, "a dense tensor"),
    int: Kind(_is_whole, "an integer"),
    float: Kind(_is_number, "a number"),
    bool: Kind(lambda value: value is True or value is False, "True or False"),
    str: Kind(lambda value: isinstance(value, str), "a string"),
}
SIMPLE[torch.Size] = _sequence_of(SIMPLE[int])
ANY_INTEGER = Kind(_is_integer, "an integer")  # however large: ordinals of sentences are


def _refusal(
    function: Callable[..., Any], names: Sequence[str], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> TreeparseError:
    """Return the error for the first argument that is refused."""
    kinds, given = _kinds_of(function), {**dict(zip(names, args, strict=False)), **kwargs}
    name = next(name for name in given if name in kinds and not kinds[name].accepts(given[name]))
    kind, value, remedy = kinds[name], given[name], ""
    owner = function.__qualname__
    if names[0] == "self":  # of a class below, perhaps
        owner = f"{type(args[0]).__name__}.{function.__name__}".removesuffix(".__init__")
    if "tensor" in kind.words and not isinstance(value, Tensor) and hasattr(value, "__len__"):
        remedy = "; torch.as_tensor makes a tensor"
    elif "sequence" in kind.words and _is_whole(value):
        remedy = f"; a sequence of one is ({value},)"
    return TreeparseError(f"The argument {name!r} of {owner} must be {kind.words}, got {shown(value)}{remedy}.")


def shown(value: Any) -> str:
    """Return a value as an error shows it: a short one itself, of others their type."""
    if value is None or isinstance(value, bool | int | float | str | bytes):
        text = repr(value)
        return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}..."
    if isinstance(value, Tensor):
        layout = "nested" if value.is_nested else "quantized" if value.is_quantized else str(value.layout)
        kind = "a tensor" if is_dense(value) else f"a tensor that is {layout.removeprefix('torch.')}"
        return f"{kind}, of the type {value.dtype}"
    if isinstance(value, list | tuple) and len(repr(value)) <= MOST_SHOWN:
        return repr(value)
    return f"a value of the type {type(value).__name__}"
