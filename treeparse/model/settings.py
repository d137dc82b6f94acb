"""Settings as plain data, in config files and model folders: jsonargparse reads them, into the classes that they name.

A part that has several classes, such as the encoder, is a mapping of its ``class_path``, a class's name or path, and
its ``init_args``.
"""

import json
import sys
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, TypeVar, get_type_hints

from jsonargparse import ArgumentError, ArgumentParser, set_loader, set_parsing_settings

from treeparse import nn
from treeparse.errors import TreeparseError
from treeparse.model import parser_config
from treeparse.model.parser_config import ParserConfig, ScorerConfig
from treeparse.nn import EncoderConfig
from treeparse.trees import TreeCRF

CLASSES = (EncoderConfig, ScorerConfig)
# The classes of a config that names none.
DEFAULT_CLASSES = {"encoder": "BiLSTMConfig", "scorer": "BiaffineConfig"}
T = TypeVar("T")

# Only the classes that the settings are declared as are built: a class_path inside other values stays plain data.
set_parsing_settings(subclasses_enabled=[*CLASSES], instantiate_subclass_spec_in_any=False)
# A mode of parsers in which texts stay texts. Others read them as YAML, which may name classes anywhere.
VERBATIM = "verbatim"
set_loader(VERBATIM, lambda text: text)


def add_parser_arguments(parser: ArgumentParser, key: str) -> None:
    """Declare the settings of `ParserConfig` under a key; those of `DEFAULT_CLASSES` have no default."""
    parser.add_class_arguments(ParserConfig, key)
    # With a default, its settings would be those of another class, too, where the names are the same.
    parser.set_defaults({f"{key}.{name}": None for name in DEFAULT_CLASSES})


def read_settings(kind: type[T], data: Any, where: str) -> T:
    """Build a dataclass from what `plain_settings` returned for it, without importing anything.

    Here jsonargparse reads values alone, because it imports what a ``class_path`` names, wherever that is.

    Raises:
        TreeparseError: starting with ``where``, for unknown settings and for values of a wrong type or out of range.
    """
    hints = get_type_hints(kind)
    if not isinstance(data, dict):
        raise TreeparseError(f"{where} must be a mapping of settings, got {data!r:.100}.")
    if unknown := sorted(data.keys() - hints.keys()):
        raise TreeparseError(f"{where} has settings that {kind.__name__} does not have: {', '.join(unknown):.200}.")
    parts = {name for name, hint in hints.items() if is_dataclass(hint)} & data.keys()
    values = {name: value for name, value in data.items() if name not in parts}
    trees = values.get("trees")
    if kind is ParserConfig and isinstance(trees, str) and "." in trees:
        _imported_class(TreeCRF, trees, f"{where}, trees")
    if _names_class(values):
        raise TreeparseError(f"{where} has a class_path in a setting that is no part of a parser.")
    read = {name: _read_part(hints[name], data[name], f"{where}, {name}") for name in parts}
    try:
        return kind(**_parser_of(kind).parse_object(values).as_dict() | read)
    except (ArgumentError, ValueError, TypeError) as error:
        raise TreeparseError(f"{where}: {error}") from error


def _read_part(kind: Any, data: Any, where: str) -> Any:
    """Read the settings of a part: of a dataclass, or of the class that the data names."""
    if kind not in CLASSES:
        return read_settings(kind, data, where)
    if not isinstance(data, dict) or not data.keys() <= {"class_path", "init_args"}:
        raise TreeparseError(f"{where} must be a mapping of class_path and init_args, got {data!r:.100}.")
    return read_settings(_imported_class(kind, data.get("class_path"), where), data.get("init_args", {}), where)


def _imported_class(base: type[T], path: Any, where: str) -> type[T]:
    """Return the subclass of a base of a name or a path, among imported classes."""
    module, _, name = str(path).rpartition(".")
    if module and module not in sys.modules:
        raise TreeparseError(
            f"{where}: the module of {path!r:.100} is not imported, and loading a model imports no code. If you trust "
            f"it: import {module:.100} first; in commands, --import {module:.100}."
        )
    # Not getattr, which could run a module's code.
    kind = vars(sys.modules[module]).get(name) if module else _named_class(name)
    if not (isinstance(kind, type) and issubclass(kind, base)):
        raise TreeparseError(f"{where}: {path!r:.100} must be a subclass of {base.__name__}.")
    return kind


def _named_class(name: str) -> Any:
    """Return the class that needs no path; None if there is none."""
    return vars(nn).get(name, vars(parser_config).get(name))


def _names_class(data: Any) -> bool:
    if isinstance(data, dict):
        return "class_path" in data or any(map(_names_class, data.values()))
    return isinstance(data, list) and any(map(_names_class, data))


def plain_settings(settings: Any) -> dict[str, Any]:
    """Return the settings of a dataclass as plain data, which `read_settings` reads back."""
    return json.loads(json.dumps(_mapping(settings)))  # lists for tuples


def _mapping(settings: Any) -> dict[str, Any]:
    values = {field.name: getattr(settings, field.name) for field in fields(settings)}
    mapping = {name: _plain(value) for name, value in values.items()}
    if not isinstance(settings, CLASSES):
        return mapping
    return {"class_path": class_path(type(settings)), "init_args": mapping}


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _plain(inner) for name, inner in value.items()}
    return _mapping(value) if is_dataclass(value) else value


def class_path(kind: type) -> str:
    """Return the name of a class that has one here, or the path of any other, under which it can be imported again."""
    if _named_class(kind.__name__) is kind:
        return kind.__name__
    if kind.__module__ == "__main__" or "." in kind.__qualname__:
        raise TreeparseError(
            f"{kind.__module__}.{kind.__qualname__} must be a class at the top of a module, because a saved model "
            "finds it there."
        )
    return f"{kind.__module__}.{kind.__name__}"


@cache
def _parser_of(kind: type) -> ArgumentParser:
    """Return the parser of a dataclass's settings that are no dataclasses."""
    parser = ArgumentParser(exit_on_error=False, add_help=False, parser_mode=VERBATIM)
    parts: set[str | int] = {name for name, hint in get_type_hints(kind).items() if is_dataclass(hint)}
    parser.add_class_arguments(kind, skip=parts)
    return parser
