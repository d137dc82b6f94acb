"""The settings of a training run: dataclasses, read from YAML and dotted options by jsonargparse."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import yaml
from jsonargparse import ArgumentError, ArgumentParser

from treeparse.core import TreeparseError
from treeparse.model import ParserConfig
from treeparse.objectives import Objective

DEFAULT_OBJECTIVE = "treeparse.objectives.TreeLikelihood"


@dataclass(frozen=True)
class DataConfig:
    """Treebanks, and how their sentences are put into batches.

    Attributes:
        train: CoNLL-U files or globs to train on; $VARIABLES and ~ are expanded.
        dev: CoNLL-U files or globs whose LAS chooses the best epoch.
        batch_words: most words of a batch, padding included.
        batch_squared: most cells of a batch's score matrices, padding included; null for no bound.
        workers: processes that make batches ahead of time, 0 for none; the batches are the same.
        start_method: how these processes start (fork, spawn or forkserver); null for the system's default.
        vectors: a file of pretrained word vectors in the text format of word2vec or fastText; null for none.
        max_vectors: read only so many vectors, the first; null for all.
        skip_invalid: whether to leave out sentences that are not valid, with a count, instead of stopping.
    """

    train: list[str] | str
    dev: list[str] | str
    batch_words: int = 1000
    batch_squared: int | None = 40000
    workers: int = 0
    start_method: Literal["fork", "spawn", "forkserver"] | None = None
    vectors: str | None = None
    max_vectors: int | None = None
    skip_invalid: bool = False

    def __post_init__(self) -> None:
        _at_least("data.batch_words", self.batch_words, 1)
        _at_least("data.batch_squared", self.batch_squared, 1)
        _at_least("data.workers", self.workers, 0)
        _at_least("data.max_vectors", self.max_vectors, 1)


@dataclass(frozen=True)
class OptimizationConfig:
    """AdamW, its learning rate over time, and when to stop.

    Attributes:
        epochs: passes over the training data.
        learning_rate: the highest learning rate.
        betas: decay of Adam's two averages.
        eps: the constant in Adam's denominator.
        weight_decay: decoupled weight decay; with 0 this is Adam.
        warmup_steps: steps over which the learning rate rises linearly from 0.
        schedule: how the learning rate goes from there over all epochs; linear and cosine end at 0.
        clip_norm: largest norm of the gradient, null for any.
        patience: stop after so many epochs without a better dev LAS, null for never.
        average_decay: decay of an exponential moving average of the weights, which is then what the dev set
            measures and the final model holds; null for none.
    """

    epochs: int = 15
    learning_rate: float = 2e-3
    betas: tuple[float, float] = (0.9, 0.95)
    eps: float = 1e-8
    weight_decay: float = 0.0
    warmup_steps: int = 100
    schedule: Literal["linear", "cosine", "constant"] = "linear"
    clip_norm: float | None = 5.0
    patience: int | None = None
    average_decay: float | None = None

    def __post_init__(self) -> None:
        _at_least("optimization.epochs", self.epochs, 1)
        _at_least("optimization.learning_rate", self.learning_rate, 0)
        _at_least("optimization.eps", self.eps, 0)
        _at_least("optimization.weight_decay", self.weight_decay, 0)
        _at_least("optimization.warmup_steps", self.warmup_steps, 0)
        _at_least("optimization.patience", self.patience, 1)
        if self.clip_norm is not None and not self.clip_norm > 0:
            raise TreeparseError(f"optimization.clip_norm is {self.clip_norm}, but must be more than 0, or null.")
        for name, value in (("betas", self.betas[0]), ("betas", self.betas[1]), ("average_decay", self.average_decay)):
            if value is not None and not 0 <= value < 1:
                raise TreeparseError(f"optimization.{name} holds {value}, but must be from 0 to less than 1.")


@dataclass(frozen=True)
class TrainerConfig:
    """Where and how exactly to compute.

    Attributes:
        device: auto (a GPU if there is one), cpu, cuda, cuda:1, mps.
        precision: 32-true, or bf16-mixed (encoder and scorer in bfloat16; sums over trees are always float64).
    """

    device: str = "auto"
    precision: Literal["32-true", "bf16-mixed"] = "32-true"


@dataclass(frozen=True)
class TrainConfig:
    """A training run; ``objective`` names a subclass of `Objective` by ``class_path``, with its ``init_args``.

    Attributes:
        data: treebanks and batches.
        output: the folder of the run.
        seed: seed of the first weights, the order of the data and dropout.
        init_from: a model directory whose weights and vocabularies training starts from.
        model: the parser.
        objective: the loss of the trees.
        optimization: how the loss is minimised.
        trainer: where and how exactly to compute.
    """

    data: DataConfig
    output: str
    seed: int = 1
    init_from: str | None = None
    model: ParserConfig = field(default_factory=ParserConfig)
    objective: Mapping[str, Any] = field(default_factory=lambda: {"class_path": DEFAULT_OBJECTIVE})
    optimization: OptimizationConfig = field(default_factory=OptimizationConfig)
    trainer: TrainerConfig = field(default_factory=TrainerConfig)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as it stands in YAML or JSON."""
        return json.loads(json.dumps(asdict(self)))

    def to_yaml(self) -> str:
        """A config file that `load_config` reads back."""
        return yaml.safe_dump(self.to_dict(), sort_keys=False, allow_unicode=True)


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
    parser.add_argument("--init_from", type=str | None, default=None, help="a model directory to start from")
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


def _at_least(name: str, value: float | None, least: float) -> None:
    if value is not None and not value >= least:
        raise TreeparseError(f"{name} is {value}, but must be at least {least}.")
