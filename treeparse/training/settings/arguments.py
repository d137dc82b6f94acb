"""The config file and the options of a run, checked and spelled for jsonargparse."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import yaml
from jsonargparse import Namespace, get_loader, set_loader

from treeparse.data.yaml.bounds import LONGEST, OutOfBoundsError, check_yaml
from treeparse.errors import TreeparseError
from treeparse.upgrades import SETTING_KEYS, present_class_paths, upgraded_settings

HELP = "treeparse train --help-config lists all settings"
FILES = ("--data.train", "--data.dev", "--data.unlabelled")  # options that take several values, separated by spaces
LENGTH = ("epochs", "steps")  # of a run, each a minimum
MODE = "bounded_yaml"  # jsonargparse's name for how it reads values


def load_yaml(text: str) -> Any:
    """Read a text as jsonargparse reads YAML; raise ``yaml.YAMLError``, also beyond the bounds of `check_yaml`."""
    check_yaml(text)
    return get_loader("yaml")(text)


set_loader(MODE, load_yaml, (yaml.YAMLError,))


def _in_brackets(value: Any) -> Any:
    """Return the text of a list for one value, or for several that are separated by commas."""
    text = str(value) if isinstance(value, int) else value
    return f"[{text}]" if isinstance(text, str) and not text.startswith("[") else text


def _with_underscores(value: Any) -> Any:
    return value.replace("-", "_") if isinstance(value, str) else value


# Names of settings in other tools.
_SYNONYMS = {"lr": "learning_rate", "batch_size": "batch_words"}

_SPELLINGS: Mapping[str, Callable[[Any], Any]] = {"model.decoder": _with_underscores}


class Keys:
    """The keys of all settings, with suggestions for misspelt ones.

    ``lists`` holds the keys of settings that take a list, which may be written as one value or separated by commas.
    """

    def __init__(self, defaults: Namespace, lists: Iterable[str] = ()) -> None:
        self._spellings = {**_SPELLINGS, **dict.fromkeys(lists, _in_brackets)}
        self.leaves = set(defaults.keys()) - {"config"}
        self.sections = set(defaults.keys(branches=True)) - self.leaves - {"config"} | {"objective"}

    def check(self, key: str, *, dashes: str = "") -> None:
        """Raise for a key that does not exist; keys within the value of a setting are left to its type."""
        parts = key.split(".")
        outer = {".".join(parts[:end]) for end in range(1, len(parts))}
        if key in self.leaves | self.sections or outer & self.leaves or parts[0] == "objective":
            return
        problem = f"There is no setting {dashes}{key} ({HELP})"
        close = self._closest(key.replace("-", "_").lower())
        raise TreeparseError(problem + (f"; did you mean {dashes}{close[0]}?" if close else "."))

    def check_value(self, key: str, value: Any) -> None:
        """Raise for a value instead of a whole section, which jsonargparse would take for a file to read."""
        if key == "objective" and not re.fullmatch(r"\w+(\.\w+)*", str(value)):
            raise TreeparseError(f"objective must be the name or dotted path of a class, got {value!r:.100}.")
        if key in self.sections - {"objective"}:
            example = min(leaf for leaf in self.leaves if leaf.startswith(f"{key}."))
            raise TreeparseError(
                f"{key} is a section of settings, got {value!r:.100}: set its keys, such as {example}."
            )

    def spelled(self, key: str, value: Any) -> Any:
        """Return the value of a setting in the spelling of jsonargparse."""
        return self._spellings[key](value) if key in self._spellings else value

    def _closest(self, key: str) -> list[str]:
        """Return the key most similar to another, by its last part or as a whole; empty if none is."""
        keys = sorted(self.leaves | self.sections)
        last = key.rpartition(".")[2]
        last = _SYNONYMS.get(last, last)
        names = {each: each.rpartition(".")[2] for each in keys}
        namesakes = [each for each in keys if names[each] == last]
        alike = get_close_matches(last, names.values(), n=1)
        return (
            get_close_matches(key, namesakes, n=1, cutoff=0)
            or get_close_matches(key, keys, n=1)
            or [each for each in keys if [names[each]] == alike][:1]
        )


def file_settings(path: str | Path) -> dict[Any, Any]:
    """Read the settings of a file, with the present names of settings and of the package's classes.

    Raises:
        TreeparseError: the file does not exist or holds no settings.
        yaml.YAMLError: the file is no YAML, or beyond the bounds of `check_yaml`.
    """
    if not Path(path).is_file():
        raise TreeparseError(f"There is no config file {str(path)!r}; treeparse config lists the shipped ones.")
    if Path(path).stat().st_size > LONGEST:
        raise TreeparseError(f"{path} is no config file: it has more than {LONGEST:,} bytes.")
    try:
        settings = load_yaml(Path(path).read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise TreeparseError(f"{path} is no config file: it is not text in UTF-8.") from error
    if not isinstance(settings, dict):
        raise TreeparseError(f"{path} is no config file: it holds no settings, such as 'output: runs/mine'.")
    return upgraded_settings(settings)


def present_options(options: Sequence[str]) -> list[str]:
    """Return dotted options with the present names of settings and of the package's classes."""
    present: list[str] = []
    for option in options:
        name, equals, value = option.partition("=") if option.startswith("--") else ("", "", option)
        key = name.removeprefix("--").removesuffix("+")
        present.append(name.replace(key, SETTING_KEYS.get(key, key)) + equals + present_class_paths(value))
    return present


def file_arguments(settings: Mapping[Any, Any], keys: Keys) -> list[str]:
    """Return the settings of a file as the arguments ``--config TEXT``; raise ``TreeparseError`` for unknown keys."""
    # As JSON, because its strings are quoted: YAML 1.1 and jsonargparse differ on the type of 1e5.
    return ["--config", json.dumps(_spelled(settings, keys), ensure_ascii=False)]


def _spelled(settings: Mapping[Any, Any], keys: Keys, prefix: str = "") -> dict[Any, Any]:
    """Check the keys and return the settings in the spelling of jsonargparse, without empty sections."""
    spelled: dict[Any, Any] = {}
    for name, value in settings.items():
        key = f"{prefix}{name}"
        keys.check(key)
        if isinstance(value, Mapping):
            spelled[name] = _spelled(value, keys, f"{key}.")
        elif key not in keys.sections or value is not None:
            keys.check_value(key, value)
            spelled[name] = keys.spelled(key, value)
    return spelled


def without_replaced_length(settings: dict[Any, Any], options: Sequence[str]) -> dict[Any, Any]:
    """Leave out a file's epochs and steps if the options set one of the two, which then counts alone."""
    named = {key for key, text in option_values(options) if text != "auto"}
    optimization = settings.get("optimization")
    if not isinstance(optimization, Mapping) or len(named & {f"optimization.{name}" for name in LENGTH}) != 1:
        return settings
    return {**settings, "optimization": {name: each for name, each in optimization.items() if name not in LENGTH}}


def option_arguments(options: Sequence[str], keys: Keys) -> list[str]:
    """Return dotted options as arguments; raise ``TreeparseError`` for unknown keys and texts beyond all bounds."""
    arguments: list[str] = []
    key = ""
    for option in _with_lists_of_files(options):
        if option.startswith("--"):
            name, equals, value = option.partition("=")
            key = name.removeprefix("--").removesuffix("+")
            keys.check(key, dashes="--")
            arguments.append(name + equals + (_option_value(key, value, keys) if equals else ""))
        else:
            arguments.append(_option_value(key, option, keys))
    return arguments


def _with_lists_of_files(options: Sequence[str]) -> list[str]:
    """Join several files after one option, as shells expand a glob, into the text of a list."""
    groups: list[list[str]] = []
    for option in options:
        if option.startswith("--") or not groups or groups[-1][0].partition("=")[0] not in FILES:
            groups.append([option])
        else:
            groups[-1].append(option)
    return [argument for group in groups for argument in _with_one_value(group)]


def _with_one_value(group: Sequence[str]) -> list[str]:
    option, equals, first = group[0].partition("=")
    values = [*([first] if equals else []), *group[1:]]
    return list(group) if len(values) < 2 else [option, json.dumps(values, ensure_ascii=False)]


def _option_value(key: str, text: str, keys: Keys) -> str:
    if not text.startswith(("{", "[")):
        keys.check_value(key, text)
    else:
        try:
            check_yaml(text)
        except OutOfBoundsError as error:
            raise TreeparseError(f"The value of --{key} cannot be read: {error}.") from error
        except yaml.YAMLError:
            pass  # jsonargparse reports it if it is a fault: the name of a file may start so
    return keys.spelled(key, text)


def split_options(section: str, options: Sequence[str]) -> tuple[list[str], list[str]]:
    """Divide dotted options with their values into the options of a section and all others."""
    parts: tuple[list[str], list[str]] = ([], [])
    is_other = True
    for option in options:
        if option.startswith("--"):
            is_other = re.split(r"[.=+]", option.removeprefix("--"), maxsplit=1)[0] != section
        parts[is_other].append(option)
    return parts


def option_values(options: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the keys and the texts of dotted options, in order."""
    key = ""
    for option in options:
        if option.startswith("--"):
            name, equals, value = option.partition("=")
            key = name.removeprefix("--").removesuffix("+")
            if equals:
                yield key, value
        else:
            yield key, option
