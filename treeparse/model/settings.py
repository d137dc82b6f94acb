"""Settings as plain data, in config files and model folders: jsonargparse reads them, into the classes that they name.

A part that has several classes, such as the encoder, is a mapping of its ``class_path``, a class's name or path, and
its ``init_args``.
"""

import json
import sys
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, TypeVar

from jsonargparse import ArgumentError, ArgumentParser, set_parsing_settings

from treeparse.errors import TreeparseError
from treeparse.model.parser_config import ParserConfig, ScorerConfig
from treeparse.nn import EncoderConfig

CLASSES = (EncoderConfig, ScorerConfig)
# The classes of a config that names none.
DEFAULT_CLASSES = {"encoder": "BiLSTMConfig", "scorer": "BiaffineConfig"}
T = TypeVar("T")

# Only the classes that the settings are declared as are built: a class_path inside other values stays plain data.
set_parsing_settings(subclasses_enabled=[*CLASSES], instantiate_subclass_spec_in_any=False)


def add_parser_arguments(parser: ArgumentParser, key: str | None = None) -> None:
    """Declare the settings of `ParserConfig`; those of `DEFAULT_CLASSES` have no default."""
    parser.add_class_arguments(ParserConfig, key)
    # With a default, its settings would be those of another class, too, where the names are the same.
    parser.set_defaults({name if key is None else f"{key}.{name}": None for name in DEFAULT_CLASSES})


def read_settings(kind: type[T], data: Any, where: str) -> T:
    """Build a dataclass from what `plain_settings` returned for it, without importing anything.

    Raises:
        TreeparseError: starting with ``where``, for unknown settings and for values of a wrong type or out of range.
    """
    if not isinstance(data, dict):
        raise TreeparseError(f"{where} must be a mapping of settings, got {data!r:.100}.")
    for path in _class_paths(data):
        _check_imported(path, where)
    parser = _parser_of(kind)
    try:
        parsed = parser.parse_object({**DEFAULT_CLASSES, **data} if kind is ParserConfig else data)
        return kind(**parser.instantiate(parsed).as_dict())
    except (ArgumentError, ValueError, TypeError) as error:
        raise TreeparseError(f"{where}: {error}") from error


def plain_settings(settings: Any) -> dict[str, Any]:
    """Return the settings of a dataclass as plain data, which `read_settings` reads back."""
    values = {field.name: getattr(settings, field.name) for field in fields(settings)}
    plain = {name: plain_settings(value) if is_dataclass(value) else value for name, value in values.items()}
    plain = json.loads(json.dumps(plain))
    return {"class_path": class_path(type(settings)), "init_args": plain} if isinstance(settings, CLASSES) else plain


def class_path(kind: type) -> str:
    """Return the name of a class of the package, or the path of any other, under which it can be imported again."""
    if kind.__module__.startswith("treeparse."):
        return kind.__name__
    if kind.__module__ == "__main__" or "." in kind.__qualname__:
        raise TreeparseError(
            f"{kind.__module__}.{kind.__qualname__} must be a class at the top of a module, because a saved model "
            "finds it there."
        )
    return f"{kind.__module__}.{kind.__name__}"


def _check_imported(path: str, where: str) -> None:
    """Raise if a class is given by another path than that of an imported class of settings."""
    module, _, name = path.rpartition(".")
    if module and module not in sys.modules:
        raise TreeparseError(
            f"{where}: the module of {path!r:.100} is not imported, and loading a model imports no code. If you trust "
            f"it: import {module:.100} first; in commands, --import {module:.100}."
        )
    kind = vars(sys.modules[module]).get(name) if module else None  # not getattr, which could run a module's code
    if module and not (isinstance(kind, type) and issubclass(kind, CLASSES)):
        raise TreeparseError(f"{where}: {path!r:.100} must be a subclass of EncoderConfig or ScorerConfig.")


def _class_paths(data: Any) -> Iterator[str]:
    for name, value in data.items() if isinstance(data, dict) else ((None, value) for value in data):
        if name == "class_path" and isinstance(value, str):
            yield value
        if isinstance(value, dict | list):
            yield from _class_paths(value)


@cache
def _parser_of(kind: type) -> ArgumentParser:
    parser = ArgumentParser(exit_on_error=False, add_help=False)
    if kind is ParserConfig:
        add_parser_arguments(parser)
    else:
        parser.add_class_arguments(kind)
    return parser
