"""Settings of a run, read by jsonargparse from YAML and dotted options."""

import json
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from difflib import get_close_matches
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import yaml
from jsonargparse import ArgumentError, ArgumentParser, get_loader

from treeparse.data.files import is_stream
from treeparse.data.yaml import UniqueKeyLoader
from treeparse.errors import TreeparseError
from treeparse.model.folder import check_local_model
from treeparse.model.parser_config import LinearConfig
from treeparse.model.settings import DEFAULT_CLASSES, add_parser_arguments
from treeparse.nn import BiLSTMConfig, TransformerConfig
from treeparse.nn.huggingface import no_adapters
from treeparse.objectives import Objective
from treeparse.training.train_config import DEFAULT_OBJECTIVE, SECTIONS, LinearLearningConfig, TrainConfig
from treeparse.training.trainer import add_trainer_arguments, trainer_settings
from treeparse.training.treebanks import data_files
from treeparse.user_code import import_code

FILES = ("data.train", "data.dev", "data.unlabelled")  # options that take several values, separated by spaces
TREEBANKS = "data.treebanks."
LENGTHS = ("optimization.epochs", "optimization.steps")  # of a run, each a minimum
CLASSES = """
--model.encoder TransformerConfig chooses another encoder, --model.encoder.help TransformerConfig lists its settings;
--model.scorer LinearConfig and --objective HeadSelection likewise. A class of yours is named by its path,
mymodule.MyEncoderConfig. In a file, class_path names the class and init_args are its settings.
"""
Options = Sequence[tuple[str, list[str]]]  # names, without dashes, with their values


def load_config(path: str | Path | None, options: Sequence[str] = (), *, of_run: bool = False) -> TrainConfig:
    """Read a config file and then dotted options (``["--optimization.epochs", "3"]``), which win.

    An option for epochs or steps alone replaces both of the file's. One that names the class of the encoder or scorer
    replaces all the settings that the file has for it. Reading imports the module of a custom class.

    Args:
        path: the config file; None for options alone.
        options: dotted options.
        of_run: whether a run wrote the file. An option for epochs or steps then replaces this one alone.

    Raises:
        TreeparseError: a key is unknown, a value has a wrong type or is missing, or the file is no YAML.
    """
    named = _read_options(options)
    settings = {} if path is None else _file_settings(path)
    settings = _without_replaced(settings, named, lengths=not of_run)
    settings, others = _with_treebanks(settings, named)
    parser = _settings_parser()
    try:
        parsed = parser.parse_args([*_as_arguments(settings), *_option_arguments(others)])
        objective = parsed.pop("objective")  # the run builds it, once: it may load models
        values = parser.instantiate(parsed)
    except TreeparseError:
        raise
    except (ArgumentError, ValueError, TypeError) as error:
        where = "" if path is None else f" (read with {path})"
        hint = _suggestion(settings, named)
        raise TreeparseError(f"The settings of the run are not valid{where}: {error}{hint}") from error
    config = TrainConfig(
        data=values.data,
        output=values.output,
        seed=values.seed,
        init_from=values.init_from,
        model=values.model,
        objective=objective.as_dict(),
        optimization=values.optimization,
        trainer=trainer_settings(parsed.trainer),
        learning=values.learning,
    )
    _check_learning(config, named)
    if isinstance(config.model.scorer, LinearConfig) and config.model.scorer.attributes is not None:
        import_code(config.model.scorer.attributes.rpartition(".")[0])
    return config


def _check_learning(config: TrainConfig, options: Options) -> None:
    """Raise for settings of learning or optimization that the model has no use for."""
    if config.is_linear and any(name.startswith("optimization") for name, _ in options):
        raise TreeparseError(
            "A linear model is trained by learning, not by optimization: set learning.epochs and so on."
        )
    if not config.is_linear and config.learning != LinearLearningConfig():
        raise TreeparseError(
            "learning trains linear models alone: set optimization instead, or set model.scorer to LinearConfig."
        )


def check_inputs(config: TrainConfig) -> None:
    """Raise for files, models and libraries that a run needs and that do not exist."""
    data_files(config.data)
    if config.init_from is not None:
        check_local_model(config.init_from)
    encoder = config.model.encoder
    if isinstance(encoder, TransformerConfig) and encoder.lora_rank and find_spec("peft") is None:
        raise no_adapters("No module named 'peft'")


def build_objective(settings: Mapping[str, Any]) -> Objective:
    """Build the objective that ``class_path`` and ``init_args`` name; raise for any other class."""
    parser = ArgumentParser(exit_on_error=False, add_help=False)
    parser.add_subclass_arguments(Objective, "objective")
    try:
        # A copy, because jsonargparse changes nested settings in place.
        return parser.instantiate(parser.parse_object({"objective": deepcopy(dict(settings))})).objective
    except TreeparseError:
        raise
    except (ArgumentError, ValueError, TypeError) as error:
        raise TreeparseError(f"The objective is not valid: {error}") from error


def describe_settings() -> str:
    """Return a text that lists every key with its meaning, type and default; the encoder is the default one."""
    encoder = ArgumentParser(add_help=False)
    encoder.add_class_arguments(BiLSTMConfig, "model.encoder")
    texts = (parser.format_help().partition("\n\n")[2] for parser in (_settings_parser(), encoder))
    # jsonargparse joins --print_config and its flags by a backspace, for terminals.
    return "\n".join(texts).replace(" \b", "") + CLASSES


@cache
def _settings_parser() -> ArgumentParser:
    parser = ArgumentParser(prog="treeparse train", exit_on_error=False, add_help=False, allow_abbrev=False)
    parser.add_argument("--config", action="config", help="a YAML file of these keys")
    parser.add_argument("--output", type=str, required=True, help="the folder of the run")
    parser.add_argument("--seed", type=int, default=1, help="seed of the first weights, data order and dropout")
    parser.add_argument("--init_from", type=str | None, default=None, help="a model, or a run, to start from")
    parser.add_class_arguments(SECTIONS["data"], "data")
    add_parser_arguments(parser, "model")
    default = {"class_path": DEFAULT_OBJECTIVE}
    parser.add_subclass_arguments(Objective, "objective", default=default, help="the loss")
    parser.add_class_arguments(SECTIONS["optimization"], "optimization")
    add_trainer_arguments(parser)
    parser.add_class_arguments(LinearLearningConfig, "learning")
    return parser


def _as_arguments(settings: Mapping[Any, Any]) -> Iterator[str]:
    """Yield the arguments that give the default classes and then the settings of a file."""
    # As JSON, because its strings are quoted: YAML 1.1 and jsonargparse differ on the type of 1e5.
    in_file = {key: value for key, value in settings.items() if value is not None or key == "seed"}
    for values in ({"model": DEFAULT_CLASSES}, in_file):
        yield from ("--config", json.dumps(values, ensure_ascii=False))


def _option_arguments(options: Options) -> Iterator[str]:
    """Yield options as arguments; several files become a list, as the shell expands a glob."""
    for name, values in options:
        if name in FILES and len(values) > 1:
            values = [json.dumps(values, ensure_ascii=False)]
        yield from ("=".join([f"--{name}", *values[:1]]), *values[1:])


def _read_options(texts: Sequence[str]) -> Options:
    """Divide dotted options into names and values."""
    options: list[tuple[str, list[str]]] = []
    for text in texts:
        if text.startswith("--"):
            name, equals, value = text.removeprefix("--").partition("=")
            options.append((name, [value] if equals else []))
        elif options:
            options[-1][1].append(text)
        else:
            raise TreeparseError(
                f"Unrecognized argument {text!r}: options begin with --; treeparse train --help-config lists them."
            )
    return options


def _file_settings(path: str | Path) -> dict[Any, Any]:
    """Read the settings of a file; raise if it does not exist, is no YAML or repeats a key."""
    if not (Path(path).is_file() or is_stream(path)):
        raise TreeparseError(f"There is no config file {str(path)!r}; treeparse config lists the shipped ones.")
    try:
        text = Path(path).read_text(encoding="utf-8")
        yaml.compose(text, Loader=UniqueKeyLoader)
        settings = get_loader("yaml")(text)
    except UnicodeDecodeError as error:
        raise TreeparseError(f"{path} is no config file: it is not text in UTF-8.") from error
    except yaml.YAMLError as error:
        raise TreeparseError(f"{path} is no config file: {error}") from error
    if not isinstance(settings, dict):
        raise TreeparseError(f"{path} is no config file: it holds no settings, such as 'output: runs/mine'.")
    return settings


def _without_replaced(settings: dict[Any, Any], options: Options, *, lengths: bool) -> dict[Any, Any]:
    """Leave out a file's settings that options replace as a whole: of a named class, and both lengths."""
    replaced = {f"model.{name}" for name in DEFAULT_CLASSES} & {name for name, _ in options}
    set_lengths = {name for name, values in options if name in LENGTHS and values != ["auto"]}
    if lengths and len(set_lengths) == 1:
        replaced |= {*LENGTHS}
    return {
        section: {name: value for name, value in values.items() if f"{section}.{name}" not in replaced}
        if isinstance(values, dict)
        else values
        for section, values in settings.items()
    }


def _with_treebanks(settings: dict[Any, Any], options: Options) -> tuple[dict[Any, Any], Options]:
    """Put options such as data.treebanks.NAME.train into the settings of a file; return the other options, too.

    jsonargparse takes a value of a mapping as one option, but no part of the value.
    """
    parts = [(name, values) for name, values in options if name.startswith(TREEBANKS) and name.count(".") > 2]
    if not parts:
        return settings, options
    data = settings.get("data") or {}
    treebanks = deepcopy(data.get("treebanks") or {})
    for name, values in parts:
        treebank, _, key = name.removeprefix(TREEBANKS).rpartition(".")
        if not isinstance(treebanks.setdefault(treebank, {}), dict):
            raise TreeparseError(f"data.treebanks.{treebank} must have train, and perhaps dev and weight.")
        treebanks[treebank][key] = values[0] if len(values) == 1 else values or None
    others = [option for option in options if option not in parts]
    return {**settings, "data": {**data, "treebanks": treebanks}}, others


def _suggestion(settings: Mapping[Any, Any], options: Options) -> str:
    """Return the setting that is most like an unknown one of a file or of options; "" if there is none.

    What is within the value of a setting is left to its type.
    """
    defaults = _settings_parser().get_defaults()
    leaves = {*defaults.keys()}
    known = [*defaults.keys(branches=True), *(f"model.encoder.{name}" for name in vars(BiLSTMConfig()))]
    last_parts = {key.rpartition(".")[2]: key for key in reversed(known)}
    in_file = ((key, "") for key in _keys_of(settings))
    for key, dashes in [*in_file, *((name.removesuffix("+"), "--") for name, _ in options)]:
        parts = key.replace("-", "_").split(".")
        outer = {".".join(parts[:end]) for end in range(1, len(parts))} - {"model.encoder"}
        if key in known or outer & leaves or {"class_path", "init_args"} & {*parts}:
            continue
        whole = [] if parts[-1] in last_parts else get_close_matches(".".join(parts), known, n=1)
        if close := whole or [last_parts[part] for part in get_close_matches(parts[-1], last_parts, n=1)]:
            return f". Did you mean {dashes}{close[0]}?"
    return ""


def _keys_of(settings: Mapping[Any, Any], prefix: str = "") -> Iterator[str]:
    for name, value in settings.items():
        yield f"{prefix}{name}"
        if isinstance(value, Mapping):
            yield from _keys_of(value, f"{prefix}{name}.")
