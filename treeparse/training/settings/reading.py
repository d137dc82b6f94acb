"""Settings of a run, read by jsonargparse from YAML and dotted options."""

import json
from collections.abc import Mapping, Sequence
from copy import deepcopy
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import yaml
from jsonargparse import ArgumentError, ArgumentParser

from treeparse.data.files import expand_paths
from treeparse.errors import TreeparseError
from treeparse.model.config import ENCODERS, LinearConfig, ParserConfig
from treeparse.model.folder.hub import check_local_model
from treeparse.nn.config import TransformerConfig, no_adapters
from treeparse.objectives import Objective
from treeparse.training.settings.arguments import (
    Option,
    file_settings,
    option_arguments,
    read_options,
    suggestion,
    without_replaced_length,
)
from treeparse.training.settings.components import COMPONENTS, Names, are_shipped, chosen_components
from treeparse.training.settings.config import DEFAULT_OBJECTIVE, SECTIONS, LinearLearningConfig, TrainConfig
from treeparse.training.settings.trainer import add_trainer_arguments, trainer_settings
from treeparse.user_code import import_code

OTHER_ENCODERS = f"""
The encoders are {", ".join(ENCODERS)}. The settings above are those of one: --help-config --model.encoder.type NAME
lists another's.

A custom encoder or scorer is a subclass of treeparse.model.OwnEncoder or treeparse.model.OwnScorer, named by its class,
with its settings as init_args: --help-config --model.encoder.class_path mymodule.MyEncoder lists them.
"""


def load_config(path: str | Path | None, options: Sequence[str] = (), *, of_run: bool = False) -> TrainConfig:
    """Read a config file and then dotted options (``["--optimization.epochs", "3"]``), which win.

    An option for epochs or steps alone replaces both of the file's. Reading imports the module of a custom encoder.

    Args:
        path: the config file; None for options alone.
        options: dotted options.
        of_run: whether a run wrote the file. An option for epochs or steps then replaces this one alone.

    Raises:
        TreeparseError: a key is unknown, a value has a wrong type or is missing, or the file is no YAML.
    """
    every = read_options(options)
    where = "" if path is None else f" (read with {path})"
    try:
        names, settings = chosen_components({} if path is None else file_settings(path), every)
    except yaml.YAMLError as error:
        raise TreeparseError(f"{path} is no config file: {error}") from error
    _check_sections(names, settings, every)
    settings = settings if of_run else without_replaced_length(settings, every)
    parser = (_cached_parser if are_shipped(names) else _build_parser)(names)
    # As JSON, because its strings are quoted: YAML 1.1 and jsonargparse differ on the type of 1e5.
    in_file = {key: value for key, value in settings.items() if value is not None or key == "seed"}
    arguments = ["--config", json.dumps(in_file, ensure_ascii=False), *option_arguments(every)]
    try:
        parsed = parser.parse_args(arguments)
        values = parser.instantiate(parsed)
        model = values.model.as_dict()
        config = TrainConfig(
            data=values.data,
            output=values.output,
            seed=values.seed,
            init_from=values.init_from,
            model=ParserConfig(**{**model, **{each.name: each.config(model[each.name]) for each in COMPONENTS}}),
            objective=parsed.objective.as_dict(),
            optimization=values.optimization,
            trainer=trainer_settings(parsed.trainer),
            learning=values.learning,
        )
    except TreeparseError:
        raise
    except (ArgumentError, ValueError, TypeError) as error:
        hint = suggestion(settings, every, parser.get_defaults())
        raise TreeparseError(f"The settings of the run are not valid{where}: {error}{hint}") from error
    scorer = config.model.scorer
    if isinstance(scorer, LinearConfig) and scorer.attributes is not None:
        import_code(scorer.attributes.rpartition(".")[0])
    return config


def _check_sections(names: Names, settings: Mapping[Any, Any], options: Sequence[Option]) -> None:
    """Raise for settings of learning or optimization that the model has no use for."""
    of_options = {option.key.partition(".")[0] for option in options}
    if "linear" in names and "optimization" in of_options:
        raise TreeparseError(
            "A linear model is trained by learning, not by optimization: set learning.epochs and so on."
        )
    if "linear" not in names and "learning" in of_options | settings.keys():
        raise TreeparseError(
            "learning trains linear models alone: set optimization instead, or set model.scorer.type to linear."
        )


def check_inputs(config: TrainConfig) -> None:
    """Raise for files, models and libraries that a run needs and that do not exist."""
    for patterns in (config.data.train, config.data.dev, config.data.unlabelled):
        expand_paths([patterns] if isinstance(patterns, str) else patterns or [])
    if config.data.vectors is not None and not Path(config.data.vectors).exists():
        raise TreeparseError(f"data.vectors names {config.data.vectors}, which does not exist.")
    if config.init_from is not None:
        check_local_model(config.init_from)
    encoder = config.model.encoder
    if isinstance(encoder, TransformerConfig) and encoder.lora_rank and find_spec("peft") is None:
        raise no_adapters(encoder, "No module named 'peft'")


def build_objective(settings: Mapping[str, Any]) -> Objective:
    """Build the objective that ``class_path`` and ``init_args`` name; raise for any other class."""
    parser = _objective_parser()
    try:
        # A copy, because jsonargparse changes nested settings in place.
        return parser.instantiate(parser.parse_object({"objective": deepcopy(dict(settings))})).objective
    except TreeparseError:
        raise
    except (ArgumentError, ValueError, TypeError) as error:
        raise TreeparseError(f"The objective is not valid: {error}") from error


def describe_settings(options: Sequence[str] = ()) -> str:
    """Return a text that lists every key with its meaning, type and default, for the encoder that the options name."""
    names, _ = chosen_components({}, read_options(options))
    return _build_parser(names).format_help().partition("\n\n")[2] + OTHER_ENCODERS


def differing_settings(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Describe the values that differ between two configs as plain data: ``"optimization.epochs was 3 and is 4"``."""
    flat_before, flat_now = flattened(before), flattened(now)
    return [
        f"{key} was {_shown(flat_before, key)} and is {_shown(flat_now, key)}"
        for key in sorted(flat_before.keys() | flat_now.keys())
        if flat_before.get(key) != flat_now.get(key)
    ]


def flattened(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested settings by their dotted keys."""
    flat: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, Mapping):
            flat |= flattened(value, f"{prefix}{key}.")
        else:
            flat[prefix + key] = value
    return flat


def _shown(flat: Mapping[str, Any], key: str) -> str:
    return json.dumps(flat[key], ensure_ascii=False) if key in flat else "absent"


def _build_parser(names: Names) -> ArgumentParser:
    """Build a parser of all settings."""
    parser = ArgumentParser(prog="treeparse train", exit_on_error=False, add_help=False, allow_abbrev=False)
    parser.add_argument("--config", action="config", help="a YAML file of these keys")
    parser.add_argument("--output", type=str, required=True, help="the folder of the run")
    parser.add_argument("--seed", type=int, default=1, help="seed of the first weights, data order and dropout")
    parser.add_argument("--init_from", type=str | None, default=None, help="a model, or a run, to start from")
    parser.add_class_arguments(SECTIONS["data"], "data")
    parser.add_class_arguments(ParserConfig, "model", skip={each.name for each in COMPONENTS}, instantiate=False)
    for component, kind in zip(COMPONENTS, names, strict=True):
        component.add_arguments(parser, kind)
    parser.add_class_arguments(SECTIONS["optimization"], "optimization")
    add_trainer_arguments(parser)
    parser.add_class_arguments(LinearLearningConfig, "learning")
    _add_objective(parser)
    return parser


_cached_parser = cache(_build_parser)  # for components of the package: building a parser takes longer than reading


@cache
def _objective_parser() -> ArgumentParser:
    parser = ArgumentParser(exit_on_error=False, add_help=False, allow_abbrev=False)
    _add_objective(parser)
    return parser


def _add_objective(parser: ArgumentParser) -> None:
    parser.add_subclass_arguments(Objective, "objective", default={"class_path": DEFAULT_OBJECTIVE}, help="the loss")
