"""The config file and the options of a run, checked and spelled for jsonargparse."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
# Names of settings in other tools.
_SYNONYMS = {"lr": "learning_rate", "batch_size": "batch_words"}


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


class Keys:
    """The keys of all settings, with suggestions for misspelt ones.

    ``lists`` holds the keys of settings that take a list, which may be written as one value or separated by commas.
    """

    def __init__(self, defaults: Namespace, lists: Iterable[str] = ()) -> None:
        self.lists: set[str] = set(lists)
        self.leaves: set[str] = set(defaults.keys()) - {"config"}
        self.numbers: set[str] = {
            key for key, value in defaults.items() if type(value) in (bool, int, float) or value == "auto"
        }
        self.sections: set[str] = set(defaults.keys(branches=True)) - self.leaves - {"config"} | {"objective"}

    def check(self, key: str, *, dashes: str = "") -> None:
        """Raise for a key that does not exist; keys within the value of a setting are left to its type."""
        parts = key.split(".")
        outer = {".".join(parts[:end]) for end in range(1, len(parts))}
        if key in self.leaves | self.sections or outer & self.leaves or parts[0] == "objective":
            return
        problem = f"Unknown setting {dashes}{key} ({HELP})"
        close = self._closest(key.replace("-", "_").lower())
        raise TreeparseError(problem + (f"; did you mean {dashes}{close[0]}?" if close else "."))

    def spelled(self, key: str, value: Any) -> Any:
        """Return the value of a setting in the spelling of jsonargparse.

        Raise for a value instead of a whole section, which jsonargparse would take for a file to read.
        """
        if key == "objective" and not re.fullmatch(r"\w+(\.\w+)*", str(value)):
            raise TreeparseError(f"objective must be the name or dotted path of a class, got {value!r:.100}.")
        if key in self.sections - {"objective"}:
            example = min(leaf for leaf in self.leaves if leaf.startswith(f"{key}."))
            raise TreeparseError(
                f"{key} is a section of settings, got {value!r:.100}: set its keys, such as {example}."
            )
        if key in self.lists and isinstance(value, int | str) and not str(value).startswith("["):
            return f"[{value}]"
        return value.replace("-", "_") if key == "model.decoder" and isinstance(value, str) else value

    def _closest(self, key: str) -> list[str]:
        """Return the key most similar to another, by its last part or as a whole; empty if none is."""
        keys = sorted(self.leaves | self.sections)
        last = key.rpartition(".")[2]
        last = _SYNONYMS.get(last, last)
        names = {each: each.rpartition(".")[2] for each in keys}
        namesakes = [each for each in keys if names[each] == last]
        if not key.startswith("learning"):  # most models are neural
            namesakes = [each for each in namesakes if not each.startswith("learning")] or namesakes
        alike = get_close_matches(last, names.values(), n=1)
        return (
            get_close_matches(key, namesakes, n=1, cutoff=0)
            or get_close_matches(key, keys, n=1)
            or [each for each in keys if [names[each]] == alike][:1]
        )


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


def file_arguments(settings: Mapping[Any, Any], keys: Keys) -> list[str]:
    """Return the settings of a file as the arguments ``--config TEXT``; raise ``TreeparseError`` for unknown keys.

    Empty numbers are given as options as well, because jsonargparse refuses an empty option, but no empty number of a
    config.
    """
    spelled = _spelled(settings, keys)
    # As JSON, because its strings are quoted: YAML 1.1 and jsonargparse differ on the type of 1e5.
    config = ["--config", json.dumps(spelled, ensure_ascii=False)]
    return config + [part for key in _empty_settings(spelled) if key in keys.numbers for part in (f"--{key}", "null")]


def _empty_settings(settings: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    for name, value in settings.items():
        if isinstance(value, Mapping):
            yield from _empty_settings(value, f"{prefix}{name}.")
        elif value is None:
            yield f"{prefix}{name}"


def _spelled(settings: Mapping[Any, Any], keys: Keys, prefix: str = "") -> dict[Any, Any]:
    """Check the keys and return the settings in the spelling of jsonargparse, without empty sections."""
    spelled: dict[Any, Any] = {}
    for name, value in settings.items():
        key = f"{prefix}{name}"
        keys.check(key)
        if isinstance(value, Mapping):
            spelled[name] = _spelled(value, keys, f"{key}.")
        elif key not in keys.sections or value is not None:
            spelled[name] = keys.spelled(key, value)
    return spelled


def without_replaced_length(settings: dict[Any, Any], options: Sequence[Option]) -> dict[Any, Any]:
    """Leave out a file's epochs and steps if the options set one of the two, which then counts alone."""
    replaced = {option.key for option in options if option.key in LENGTHS and option.values != ["auto"]}
    optimization = settings.get("optimization")
    if not isinstance(optimization, Mapping) or len(replaced) != 1:
        return settings
    others = {name: value for name, value in optimization.items() if f"optimization.{name}" not in LENGTHS}
    return {**settings, "optimization": others}


def option_arguments(options: Sequence[Option], keys: Keys) -> list[str]:
    """Return options as arguments; raise ``TreeparseError`` for unknown keys."""
    arguments: list[str] = []
    for option in options:
        keys.check(option.key, dashes="--")
        values = option.values
        if option.name in FILES and len(values) > 1:  # as shells expand a glob
            values = [json.dumps(values, ensure_ascii=False)]
        values = [value if value.startswith(("{", "[")) else keys.spelled(option.key, value) for value in values]
        arguments += ["=".join([f"--{option.name}", *values[:1]]), *values[1:]]
    return arguments
