"""Reading the settings of a run: YAML and dotted options, by jsonargparse; what is wrong with them, as one sentence."""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jsonargparse import ArgumentError, ArgumentParser

from treeparse.core import TreeparseError
from treeparse.model import ParserConfig
from treeparse.objectives import Objective
from treeparse.training.config import DEFAULT_OBJECTIVE, DataConfig, OptimizationConfig, TrainConfig, TrainerConfig


def load_config(path: str | Path | None, options: Sequence[str] = ()) -> TrainConfig:
    """Read a config file and then dotted options (``["--optimization.epochs", "3"]``), which win.

    Raises ``TreeparseError`` for unknown keys, wrong types, missing values and files that are no YAML.
    """
    parser = _argument_parser()
    arguments = [] if path is None else ["--config", str(path)]
    if path is not None and not Path(path).is_file():
        raise TreeparseError(f"There is no config file {str(path)!r}; treeparse config lists the shipped ones.")
    try:
        settings = parser.parse_args([*arguments, *options])
        values = parser.instantiate(settings)
    except TreeparseError:
        raise
    except (ArgumentError, ValueError, TypeError) as error:
        raise TreeparseError(_sentence(str(error), path)) from error
    return TrainConfig(
        data=values.data,
        output=values.output,
        seed=values.seed,
        init_from=values.init_from,
        model=values.model,
        objective=settings.objective.as_dict(),
        optimization=values.optimization,
        trainer=values.trainer,
    )


def build_objective(settings: Mapping[str, Any]) -> Objective:
    """The objective that ``class_path`` and ``init_args`` name; any other class is an error."""
    parser = ArgumentParser(exit_on_error=False, add_help=False)
    _add_objective(parser)
    try:
        return parser.instantiate(parser.parse_object({"objective": dict(settings)})).objective
    except (ArgumentError, ValueError, TypeError) as error:
        raise TreeparseError(_sentence(str(error), None)) from error


def describe_settings() -> str:
    """Every key with its meaning, type and default, as text."""
    return _argument_parser().format_help().partition("\n\n")[2]


def differing_settings(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Which values differ between two configs as plain data: ``"optimization.epochs was 3 and is 4"``."""
    flat_before, flat_now = _flatten(before), _flatten(now)
    return [
        f"{key} was {_show(flat_before, key)} and is {_show(flat_now, key)}"
        for key in sorted(flat_before.keys() | flat_now.keys())
        if flat_before.get(key) != flat_now.get(key)
    ]


def _argument_parser() -> ArgumentParser:
    parser = ArgumentParser(prog="treeparse train", exit_on_error=False, add_help=False, allow_abbrev=False)
    parser.add_argument("--config", action="config", help="a YAML file of these keys")
    parser.add_argument("--output", type=str, required=True, help="the folder of the run")
    parser.add_argument("--seed", type=int, default=1, help="seed of first weights, order of the data and dropout")
    parser.add_argument("--init_from", type=str | None, default=None, help="a model, or a run, to start from")
    parser.add_class_arguments(DataConfig, "data")
    parser.add_class_arguments(ParserConfig, "model")
    _add_objective(parser)
    parser.add_class_arguments(OptimizationConfig, "optimization")
    parser.add_class_arguments(TrainerConfig, "trainer")
    return parser


def _add_objective(parser: ArgumentParser) -> None:
    parser.add_subclass_arguments(Objective, "objective", default={"class_path": DEFAULT_OBJECTIVE}, help="the loss")


def _sentence(message: str, path: str | Path | None) -> str:
    """One sentence from jsonargparse's report of several lines."""
    union = re.search(r"Subtypes: \[(?P<types>.*)\].*Given value: (?P<value>.*)", message, re.DOTALL)
    if union:
        types = " or ".join(_type_names(union["types"]).split(", "))
        message = f"{message.splitlines()[0]} expected {types}, got {union['value']}"
    message = re.sub(r'Parser key "([^"]*)":', r"\1:", _type_names(message))
    message = re.sub(r"\s+", " ", message).strip().rstrip(".")
    where = f" (read with {path})" if path is not None else ""
    return f"The settings of the run are not valid{where}: {message}. See treeparse train --help-config."


def _type_names(message: str) -> str:
    return re.sub(r"<class '([^']*)'>", r"\1", message).replace("NoneType", "null").replace("typing.", "")


def _flatten(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, Mapping):
            flat |= _flatten(value, f"{prefix}{key}.")
        else:
            flat[prefix + key] = value
    return flat


def _show(flat: Mapping[str, Any], key: str) -> str:
    return json.dumps(flat[key], ensure_ascii=False) if key in flat else "absent"
