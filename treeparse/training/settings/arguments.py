"""The config file and the options of a run, as arguments for jsonargparse."""

import json
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from jsonargparse import Namespace, get_loader

from treeparse.data.yaml import UniqueKeyLoader
from treeparse.errors import TreeparseError

HELP = "treeparse train --help-config lists all settings"
FILES = ("data.train", "data.dev", "data.unlabelled")  # options that take several values, separated by spaces
LENGTHS = ("optimization.epochs", "optimization.steps")  # of a run, each a minimum


def load_yaml(text: str) -> Any:
    """Read a text as jsonargparse reads YAML; raise ``yaml.YAMLError`` also for a repeated key."""
    yaml.compose(text, Loader=UniqueKeyLoader)
    return get_loader("yaml")(text)


class Option(NamedTuple):
    """An option with its values, such as ``--data.train a.conllu b.conllu``.

    Attributes:
        name: the key of a setting; with a "+" at its end, the option adds to a list.
        values: the texts of the values.
    """

    name: str
    values: list[str]

    @property
    def key(self) -> str:
        """The key of the setting."""
        return self.name.removesuffix("+")


def read_options(texts: Sequence[str]) -> list[Option]:
    """Divide dotted options into names and values."""
    options: list[Option] = []
    for text in texts:
        if text.startswith("--"):
            name, equals, value = text.removeprefix("--").partition("=")
            options.append(Option(name, [value] if equals else []))
        elif options:
            options[-1].values.append(text)
        else:
            raise TreeparseError(f"Unrecognized argument {text!r}: options begin with --; {HELP}.")
    return options


def file_settings(path: str | Path) -> dict[Any, Any]:
    """Read the settings of a file.

    Raises:
        TreeparseError: the file does not exist or holds no settings.
        yaml.YAMLError: the file is no YAML, or repeats a key.
    """
    if not Path(path).is_file():
        raise TreeparseError(f"There is no config file {str(path)!r}; treeparse config lists the shipped ones.")
    try:
        settings = load_yaml(Path(path).read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise TreeparseError(f"{path} is no config file: it is not text in UTF-8.") from error
    if not isinstance(settings, dict):
        raise TreeparseError(f"{path} is no config file: it holds no settings, such as 'output: runs/mine'.")
    return settings


def without_replaced_length(settings: dict[Any, Any], options: Sequence[Option]) -> dict[Any, Any]:
    """Leave out a file's epochs and steps if the options set one of the two, which then counts alone."""
    replaced = {option.key for option in options if option.key in LENGTHS and option.values != ["auto"]}
    optimization = settings.get("optimization")
    if not isinstance(optimization, Mapping) or len(replaced) != 1:
        return settings
    others = {name: value for name, value in optimization.items() if f"optimization.{name}" not in LENGTHS}
    return {**settings, "optimization": others}


def option_arguments(options: Sequence[Option]) -> list[str]:
    """Return options as arguments; several files become a list, as the shell expands a glob."""
    arguments: list[str] = []
    for option in options:
        values = option.values
        if option.name in FILES and len(values) > 1:
            values = [json.dumps(values, ensure_ascii=False)]
        arguments += ["=".join([f"--{option.name}", *values[:1]]), *values[1:]]
    return arguments


def suggestion(settings: Mapping[Any, Any], options: Sequence[Option], defaults: Namespace) -> str:
    """Return the setting that is most like an unknown one of a file or of options; "" if there is none.

    What is within the value of a setting is left to its type.
    """
    leaves, known = {*defaults.keys()}, [key for key in defaults.keys(branches=True) if key != "config"]
    last_parts = {key.rpartition(".")[2]: key for key in reversed(known)}
    for key, dashes in [*((key, "") for key in _keys_of(settings)), *((option.key, "--") for option in options)]:
        parts = key.replace("-", "_").split(".")
        outer = {".".join(parts[:end]) for end in range(1, len(parts))}
        if key in known or outer & leaves or parts[0] == "objective":
            continue
        whole = [] if parts[-1] in last_parts else get_close_matches(".".join(parts), known, n=1)
        if close := whole or [last_parts[part] for part in get_close_matches(parts[-1], last_parts, n=1)]:
            return f" Did you mean {dashes}{close[0]}?"
    return ""


def _keys_of(settings: Mapping[Any, Any], prefix: str = "") -> Iterator[str]:
    for name, value in settings.items():
        yield f"{prefix}{name}"
        if isinstance(value, Mapping):
            yield from _keys_of(value, f"{prefix}{name}.")
