"""Reading the settings of a run: YAML and dotted options, by jsonargparse; what is wrong with them, as one sentence."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from jsonargparse import ArgumentError, ArgumentParser, Namespace

from treeparse.data.files import expand_paths
from treeparse.errors import TreeparseError, did_you_mean
from treeparse.model.config import ENCODERS, ParserConfig
from treeparse.model.hub import check_local_model
from treeparse.names import OBJECTIVES
from treeparse.nn.config import EncoderConfig
from treeparse.nn.size import TRAINING_COPIES, check_memory
from treeparse.nn.transformer_config import TransformerConfig, no_adapters
from treeparse.setting_fields import values_of_before
from treeparse.training.settings.arguments import (
    MODE,
    Keys,
    file_arguments,
    file_settings,
    option_arguments,
    option_values,
    options_of,
    present_options,
    without_replaced_length,
)
from treeparse.training.settings.config import (
    DEFAULT_OBJECTIVE,
    DataConfig,
    OptimizationConfig,
    TrainConfig,
    TrainerConfig,
)
from treeparse.training.settings.encoders import (
    KEY,
    add_encoder_arguments,
    chosen_encoder,
    encoder_config,
    list_settings,
)
from treeparse.upgrades import upgraded_settings
from treeparse.user_code import check_module

if TYPE_CHECKING:
    from treeparse.objectives import Objective

OBJECTIVES_MODULE = "treeparse.objectives"
OTHER_ENCODERS = f"""
Of the encoders {", ".join(ENCODERS)} these are the settings of one: --help-config --{KEY}.type NAME lists another's.

An encoder of your own goes by its class, a subclass of treeparse.model.OwnEncoder, and its own settings by init_args:
--help-config --{KEY}.class_path mymodule.MyEncoder lists them.
"""


def load_config(path: str | Path | None, options: Sequence[str] = (), *, of_run: bool = False) -> TrainConfig:
    """Read a config file and then dotted options (``["--optimization.epochs", "3"]``), which win.

    Of epochs and steps, one that the options give alone counts alone: what the file says of the other is left out.
    Of an encoder of one's own, the module is imported. A file ``of_run`` is one that a run wrote, of all its settings:
    what it lacks came later, and is as it was then. Elsewhere, what is left out has its default.

    Raises ``TreeparseError`` for unknown keys, wrong types, missing values, files that are no YAML, and a model that is
    too large for this machine.
    """
    return read_settings(path, options, of_run=of_run).checked()


@dataclass(frozen=True)
class Settings:
    """The settings of a run, checked but for the objective and the size of the model, for which torch is loaded."""

    config: TrainConfig  # of the default objective
    objective: list[str]  # arguments
    path: str | Path | None

    def checked(self) -> TrainConfig:
        """Check the rest and return the whole; raise as `load_config` does."""
        objective = _objective(self.objective, self.path)
        from treeparse.model.encoders import scorer_size

        check_memory(scorer_size(self.config.model), copies=TRAINING_COPIES)
        return replace(self.config, objective=objective)


def read_settings(path: str | Path | None, options: Sequence[str] = (), *, of_run: bool = False) -> Settings:
    """Read settings as `load_config` does, without torch unless an encoder of one's own loads it."""
    options = present_options(options)
    with _faults_as_sentences(path):
        encoder, given = chosen_encoder({} if path is None else file_settings(path), options)
        given = given if of_run else without_replaced_length(given, options)
        of_objective, others = options_of("objective", options)
        in_file = {name: given.pop(name) for name in ("objective",) if name in given}
        parser, keys = (_kept_parser if encoder in ENCODERS else _parser_and_keys)(encoder, of_run)
        objective = file_arguments(in_file, keys) + option_arguments(of_objective, keys)
        values = parser.instantiate(parser.parse_args(file_arguments(given, keys) + option_arguments(others, keys)))
        sizes = values.model.as_dict()
        config = TrainConfig(
            data=values.data,
            output=values.output,
            seed=values.seed,
            init_from=values.init_from,
            model=ParserConfig(**{**sizes, "encoder": encoder_config(sizes["encoder"])}),
            optimization=values.optimization,
            trainer=values.trainer,
        )
    _check_objective(in_file, of_objective, path)
    return Settings(config, objective, path)


def check_inputs(config: TrainConfig) -> None:
    """Raise for files and models that do not exist, and for a library that is not installed."""
    for patterns in (config.data.train, config.data.dev, config.data.unlabelled):
        expand_paths([patterns] if isinstance(patterns, str) else patterns or [])
    if config.data.vectors is not None and not Path(config.data.vectors).exists():
        raise TreeparseError(f"There is no file {config.data.vectors}, which data.vectors names.")
    if config.init_from is not None:
        check_local_model(config.init_from)
    _check_libraries(config.model.encoder)


def _check_libraries(encoder: EncoderConfig) -> None:
    if isinstance(encoder, TransformerConfig) and encoder.lora_rank and find_spec("peft") is None:
        raise no_adapters(encoder, "No module named 'peft'")


def _check_objective(in_file: Mapping[str, Any], options: Sequence[str], path: str | Path | None) -> None:
    """Raise for an objective that is none of the package's, and for classes of modules that do not exist."""
    named = [text for key, text in option_values(options) if key in ("objective", "objective.class_path")]
    named = [text for text in named if re.fullmatch(r"\w+(\.\w+)*", text)]  # no JSON
    for name in [*_class_paths(in_file), *named]:
        try:
            check_module(name.rpartition(".")[0] or OBJECTIVES_MODULE)
        except TreeparseError as error:
            raise TreeparseError(_sentence(f"objective: {name}: {error}", path)) from error
    chosen = in_file.get("objective")
    chosen = chosen.get("class_path") if isinstance(chosen, Mapping) else chosen
    module, _, own = str([chosen, *named][-1] or DEFAULT_OBJECTIVE).rpartition(".")
    if module in ("", OBJECTIVES_MODULE) and own not in OBJECTIVES:
        raise TreeparseError(_sentence(f"objective: has no attribute '{own}'", path))


def _class_paths(settings: Any) -> Iterator[str]:
    """Yield the classes that plain data name, nested ones too."""
    if isinstance(settings, Mapping):
        yield from (str(value) for key, value in settings.items() if key == "class_path")
        yield from (value for key, value in settings.items() if key == "objective" and isinstance(value, str))
    if isinstance(settings, Mapping | list):
        for value in settings.values() if isinstance(settings, Mapping) else settings:
            yield from _class_paths(value)


def _objective(arguments: list[str], path: str | Path | None) -> dict[str, Any]:
    """The settings of an objective as plain data; raise for what makes none."""
    with _faults_as_sentences(path):
        parser = _objective_parser()
        settings = parser.parse_args(arguments)
        parser.instantiate(settings)
    return _plain(settings.objective)


@cache
def _objective_parser() -> ArgumentParser:
    parser = ArgumentParser(exit_on_error=False, add_help=False, allow_abbrev=False, parser_mode=MODE)
    parser.add_argument("--config", action="config")
    _add_objective(parser)
    return parser


def _plain(settings: Any) -> Any:
    """What jsonargparse holds of an objective as plain data, objectives within objectives included."""
    if isinstance(settings, Namespace):
        return {name: _plain(value) for name, value in vars(settings).items()}
    return [_plain(value) for value in settings] if isinstance(settings, list) else settings


def build_objective(settings: Mapping[str, Any]) -> "Objective":
    """The objective that ``class_path`` and ``init_args`` name; any other class is an error."""
    parser = _objective_parser()
    try:
        return parser.instantiate(parser.parse_object({"objective": upgraded_settings(settings)})).objective
    except (ArgumentError, ValueError, TypeError) as error:
        raise TreeparseError(_sentence(str(error), None)) from error


def describe_settings(options: Sequence[str] = ()) -> str:
    """Every key with its meaning, type and default, as text; those of the encoder that the options name."""
    encoder, _ = chosen_encoder({}, options)
    return _made_parser(encoder, objective=True).format_help().partition("\n\n")[2] + OTHER_ENCODERS


def _values_of_before(encoder: str) -> dict[str, Any]:
    """The settings that the config of a run may lack, with what they are then."""
    sections = {"data": DataConfig, "model": ParserConfig, "optimization": OptimizationConfig, "trainer": TrainerConfig}
    sections |= {KEY: ENCODERS[encoder]} if encoder in ENCODERS else {}
    before = {key: values_of_before(kind) for key, kind in sections.items()}
    return flattened(json.loads(json.dumps(before, default=asdict)))


def differing_settings(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Which values differ between two configs as plain data: ``"optimization.epochs was 3 and is 4"``."""
    flat_before, flat_now = flattened(before), flattened(now)
    return [
        f"{key} was {_show(flat_before, key)} and is {_show(flat_now, key)}"
        for key in sorted(flat_before.keys() | flat_now.keys())
        if flat_before.get(key) != flat_now.get(key)
    ]


def _parser_and_keys(encoder: str, of_run: bool) -> tuple[ArgumentParser, Keys]:
    parser = _made_parser(encoder, of_run)
    return parser, Keys(parser.get_defaults(), list_settings(encoder))


_kept_parser = cache(_parser_and_keys)  # of one of our own encoders: they take longer to make than all the reading


def _made_parser(encoder: str, of_run: bool = False, *, objective: bool = False) -> ArgumentParser:
    """A parser of all settings; of those of the objective, for which torch is loaded, only if asked."""
    parser = ArgumentParser(
        prog="treeparse train", exit_on_error=False, add_help=False, allow_abbrev=False, parser_mode=MODE
    )
    parser.add_argument("--config", action="config", help="a YAML file of these keys")
    parser.add_argument("--output", type=str, required=True, help="the folder of the run")
    parser.add_argument("--seed", type=int, default=1, help="seed of first weights, order of the data and dropout")
    parser.add_argument("--init_from", type=str | None, default=None, help="a model, or a run, to start from")
    parser.add_class_arguments(DataConfig, "data")
    parser.add_class_arguments(ParserConfig, "model", skip={"encoder"}, instantiate=False)
    add_encoder_arguments(parser, encoder)
    if objective:
        _add_objective(parser)
    parser.add_class_arguments(OptimizationConfig, "optimization")
    parser.add_class_arguments(TrainerConfig, "trainer")
    if of_run:
        parser.set_defaults(_values_of_before(encoder))
    return parser


def _add_objective(parser: ArgumentParser) -> None:
    from treeparse.objectives import Objective

    parser.add_subclass_arguments(Objective, "objective", default={"class_path": DEFAULT_OBJECTIVE}, help="the loss")


@contextmanager
def _faults_as_sentences(path: str | Path | None) -> Iterator[None]:
    """Raise what jsonargparse and YAML find as one sentence."""
    try:
        yield
    except TreeparseError:
        raise
    except (ArgumentError, ValueError, TypeError, yaml.YAMLError) as error:
        raise TreeparseError(_sentence(str(error), path)) from error


def _sentence(message: str, path: str | Path | None) -> str:
    """One sentence from the report of several lines that jsonargparse or YAML gives."""
    union = re.search(r"Subtypes: \[(?P<types>.*?)\]\n.*Given value: (?P<value>.*)", message, re.DOTALL)
    if union:
        types = re.sub(r"(?:typing\.)?Literal\[([^]]*)\]", lambda choice: choice[1].replace("'", ""), union["types"])
        types = " or ".join(_type_names(types).split(", "))
        message = f"{message.splitlines()[0]} expected {types}, got {union['value']}"
    message = re.sub(r'Parser key "([^"]*)":', r"\1:", _type_names(message))
    message = message.replace('in "<unicode string>", ', "in ")
    message = re.sub(r"\s+", " ", message).strip().rstrip(".")
    where = f" (read with {path})" if path is not None else ""
    return f"The settings of the run are not valid{where}: {_mended(message)}"


def _mended(message: str) -> str:
    """The sentence of jsonargparse in the words of users, with a suggestion at its end or where to look."""
    see = ". See treeparse train --help-config."
    message = re.sub(r"- Expected a path but .* either not accessible or invalid - ", "", message)
    if choice := re.search(r"Expected a Literal\[(?P<names>.*)\]\. Got value: (?P<value>.*)", message):
        names = re.findall(r"'([^']*)'", choice["names"])
        message = f"{message[: choice.start()]}expected {' or '.join(names)}, got {choice['value']}"
        return message + (did_you_mean(choice["value"], names) or see)
    if objective := re.search(r"(Expected a dot import path string: |has no attribute ')(?P<name>\w+)", message):
        own = f"there is no class {objective['name']} in treeparse.objectives; your own go by a path, mymodule.MyLoss"
        message = re.sub("Expected a dot import path string: .*", own, message)
        return message + (did_you_mean(objective["name"], OBJECTIVES) or see)
    return message + see


def _type_names(message: str) -> str:
    return re.sub(r"<class '([^']*)'>", r"\1", message).replace("NoneType", "null").replace("typing.", "")


def flattened(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested settings by their dotted keys."""
    flat: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, Mapping):
            flat |= flattened(value, f"{prefix}{key}.")
        else:
            flat[prefix + key] = value
    return flat


def _show(flat: Mapping[str, Any], key: str) -> str:
    return json.dumps(flat[key], ensure_ascii=False) if key in flat else "absent"
