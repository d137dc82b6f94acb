"""Settings of a run, read by jsonargparse from YAML and dotted options; each fault is one sentence."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import yaml
from jsonargparse import ArgumentError, ArgumentParser

from treeparse import objectives
from treeparse.data.files import expand_paths
from treeparse.errors import TreeparseError, did_you_mean
from treeparse.model.config import ENCODERS, LinearConfig, ParserConfig
from treeparse.model.folder.hub import check_local_model
from treeparse.nn.config import TransformerConfig, no_adapters
from treeparse.objectives import Objective
from treeparse.training.settings.arguments import (
    Keys,
    Option,
    file_arguments,
    file_settings,
    option_arguments,
    read_options,
    without_replaced_length,
)
from treeparse.training.settings.components import COMPONENTS, Names, are_shipped, chosen_components, list_settings
from treeparse.training.settings.config import DEFAULT_OBJECTIVE, SECTIONS, LinearLearningConfig, TrainConfig
from treeparse.training.settings.trainer import add_trainer_arguments, trainer_settings
from treeparse.user_code import import_code

OTHER_ENCODERS = f"""
The encoders are {", ".join(ENCODERS)}. The settings above are those of one: --help-config --model.encoder.type NAME
lists another's.

A custom encoder or scorer is a subclass of treeparse.model.OwnEncoder or treeparse.model.OwnScorer, named by its class,
with its settings as init_args: --help-config --model.encoder.class_path mymodule.MyEncoder lists them.
"""
SEE = ". See treeparse train --help-config."
_WRONG_TYPE = re.compile(
    r'Parser key "(?P<key>[^"]*)":\s.*?'
    r"(Subtypes: \[(?P<union>.*?)\]\n.*Given value: |Expected an? (?P<type>[^\n]*)\. Got value: )(?P<value>.*)",
    re.DOTALL,
)
# What jsonargparse says of a class, too: that no file of settings has its name.
_NO_PATH = re.compile(r"\s*- Expected a path but \S+ either not accessible or invalid\s*(- )?")
_NO_CLASS = re.compile(
    r"(Expected a dot import path string: |module 'treeparse\.objectives' has no attribute ')(?P<name>\w+)"
)


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
    with _faults_as_sentences(path):
        names, settings = chosen_components({} if path is None else file_settings(path), every)
        _check_sections(names, settings, every)
        settings = settings if of_run else without_replaced_length(settings, every)
        parser, keys = (_cached_parser if are_shipped(names) else _parser_and_keys)(names)
        parsed = parser.parse_args(file_arguments(settings, keys) + option_arguments(every, keys))
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
    with _faults_as_sentences(None):
        # A copy, because jsonargparse changes nested settings in place.
        return parser.instantiate(parser.parse_object({"objective": deepcopy(dict(settings))})).objective


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


def _parser_and_keys(names: Names) -> tuple[ArgumentParser, Keys]:
    parser = _build_parser(names)
    return parser, Keys(parser.get_defaults(), list_settings(names))


_cached_parser = cache(_parser_and_keys)  # for components of the package: building a parser takes longer than reading


@cache
def _objective_parser() -> ArgumentParser:
    parser = ArgumentParser(exit_on_error=False, add_help=False, allow_abbrev=False)
    _add_objective(parser)
    return parser


def _add_objective(parser: ArgumentParser) -> None:
    parser.add_subclass_arguments(Objective, "objective", default={"class_path": DEFAULT_OBJECTIVE}, help="the loss")


@contextmanager
def _faults_as_sentences(path: str | Path | None) -> Iterator[None]:
    """Turn the errors of jsonargparse and YAML into one sentence each."""
    try:
        yield
    except TreeparseError:
        raise
    except (ArgumentError, ValueError, TypeError, yaml.YAMLError) as error:
        raise TreeparseError(_sentence(str(error), path)) from error


def _sentence(message: str, path: str | Path | None) -> str:
    """Return one sentence for a message of jsonargparse or YAML, with a suggestion at its end if there is one."""
    end = SEE
    message = _NO_PATH.sub(" ", message)
    if wrong := _WRONG_TYPE.fullmatch(message):
        names = _type_names(wrong["union"] or wrong["type"])
        message = f"{wrong['key']} must be {' or '.join(names)}, got {wrong['value']}"
        end = did_you_mean(wrong["value"], names) or SEE
    elif missing := _NO_CLASS.search(message):
        problem = f"there is no class {missing['name']} in treeparse.objectives; a custom class needs its module's name"
        message = re.sub("Expected a dot import path string: .*", problem, message)
        end = did_you_mean(missing["name"], objectives.__all__) or SEE
    elif "No module named" in message:
        end = ": the module must be in the current folder or be installed" + SEE
    message = re.sub(r'Parser key "([^"]*)":', r"\1:", message).replace('in "<unicode string>", ', "in ")
    message = re.sub(r"\s+", " ", message).strip().rstrip(".")
    where = f" (read with {path})" if path is not None else ""
    return f"The settings of the run are not valid{where}: {message}{end}"


def _type_names(hints: str) -> list[str]:
    """Return the types of a hint, as jsonargparse writes it, by the names that users write."""
    names = re.sub(r"<class '([^']*)'>", r"\1", hints).replace("NoneType", "null").replace("typing.", "")
    return re.sub(r"Literal\[([^]]*)\]", lambda choice: choice[1].replace("'", ""), names).split(", ")
