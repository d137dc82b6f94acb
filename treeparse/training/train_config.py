"""The settings of a training run."""

import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args, get_type_hints

import yaml

from treeparse.errors import TreeparseError
from treeparse.model.parser_config import LinearConfig, ParserConfig
from treeparse.model.settings import plain_settings
from treeparse.names import Algorithm, Auto, CacheDtype, Mixing, Schedule
from treeparse.nn import TransformerConfig
from treeparse.training.trainer import TrainerSettings

SEEDS = 2**63
MOST, MOST_EPOCHS = 10**9, 10**6  # of any whole number: what is larger would never end, or never start
TREEBANK_NAME = re.compile(r"[A-Za-z0-9_-]+")
MOST_RATIO = 1000  # of unlabelled words
# The ranges of numbers, by the names of settings.
LEAST = {
    **dict.fromkeys(("batch_words", "batch_squared", "max_vectors", "unlabelled_max_words"), 1),
    **dict.fromkeys(("epochs", "dev_every", "patience"), 1),
    **dict.fromkeys(("batch_sentences", "k"), 1),
    **dict.fromkeys(("workers", "steps", "learning_rate", "eps", "weight_decay", "warmup_steps"), 0),
}
ABOVE_0 = ("temperature", "step_limit", "rate")
BELOW_1 = ("dev_share", "betas", "average_decay")
DEFAULT_OBJECTIVE = "treeparse.objectives.TreeLikelihood"


def _check_numbers(section: str, settings: Any) -> None:
    """Raise for a number in a section of settings that is out of its range; ``auto`` and null are in every range."""
    hints = get_type_hints(type(settings))
    for name, value in vars(settings).items():
        if value is None and type(None) not in get_args(hints[name]):
            raise TreeparseError(f"{section}.{name} must not be null.")
        for number in value if isinstance(value, tuple) else (value,):
            if isinstance(number, int | float) and (rule := _broken_rule(name, number)):
                raise TreeparseError(f"{section}.{name} must be {rule}, got {number}.")


def _broken_rule(name: str, number: float) -> str | None:
    """Return the rule that a number of a setting breaks; None if it breaks none."""
    most = {"workers": max(16, 4 * (os.cpu_count() or 1)), "epochs": MOST_EPOCHS}.get(name, MOST)
    if name in LEAST and not number >= LEAST[name]:
        return f"at least {LEAST[name]}"
    if name in ABOVE_0 and not number > 0:
        return "more than 0, or null"
    if name in BELOW_1 and not 0 <= number < 1:
        return "at least 0 and less than 1"
    if isinstance(number, int) and number > most:
        return f"at most {most}"
    return "finite" if number == math.inf else None


@dataclass(frozen=True)
class TreebankConfig:
    """One of the treebanks of ``data.treebanks``.

    Attributes:
        train: CoNLL-U files or globs to train on.
        dev: CoNLL-U files or globs to measure; null for none.
        weight: factor of its share of the sentences of an epoch.
    """

    train: list[str] | str
    dev: list[str] | str | None = None
    weight: float = 1.0


@dataclass(frozen=True)
class DataConfig:
    """Treebanks and batches.

    Attributes:
        train: CoNLL-U files or globs to train on; $VARIABLES and ~ are expanded. As options, train, dev and unlabelled
            take several values (--data.train a.conllu b.conllu) or a list ([a.conllu, b.conllu]); null if there are
            treebanks.
        dev: CoNLL-U files or globs whose LAS chooses the best epoch; null for none: the last epoch makes the model.
        dev_share: share of the training sentences that is held out as the dev set if there are no dev files.
        treebanks: several treebanks for one model, by their names, of letters, digits, - and _, each with its files
            train and, unless null, dev, and a weight (1). As options, --data.treebanks.NAME.train a.conllu, .dev and
            .weight. The model learns a vector for each treebank, which it reads with every word; a linear model learns
            its features once for all treebanks and once for each. A sentence never gets a label that its treebank does
            not have. Weights are factors of the shares of sentences in an epoch, see temperature. predict --treebank
            parses as the treebank of a name is annotated.
        train_on_dev: train even if most sentences of the dev set are among those of training, so that nothing is
            measured.
        dev_choice: the treebank whose dev LAS chooses the best epoch; null for the mean of all that have dev files.
        batch_words: most words of a batch, padding included, or most subwords if the encoder reads subwords; auto
            chooses by the size of the treebank.
        batch_squared: most cells of a batch's score matrices, padding included, each as wide and high as the longest
            sentence; null for no limit.
        workers: number of processes that make batches in advance, 0 for none; the batches are the same.
        start_method: how these processes start (fork, spawn or forkserver); null for the system's default.
        vectors: a file of pretrained word vectors, in the text format of word2vec, fastText (.vec) or GloVe, or in
            the binary format of word2vec, plain or gzipped; null for none.
        max_vectors: number of vectors to read, from the start of the file; null for all.
        only_seen_vectors: store only the vectors of words in train and unlabelled. This saves memory and makes the
            model smaller, but all other words become the same word to it.
        cache: a folder for the layers of a frozen transformer, computed once for the sentences of train and dev and
            read in all epochs and runs; null for none. It takes words x mixed_layers x hidden size x 2 bytes. It does
            not speed up unlabelled text, and the model does not need it.
        cache_dtype: precision of the cache: float16, rounded by up to 1/2048 of a value; bfloat16, by up to 1/256, for
            models whose values exceed the range of float16; float32, not rounded, twice the size.
        skip_invalid: leave out invalid sentences, with a count, instead of stopping.
        partial: accept training sentences with words of unknown HEAD, _. Their likelihood sums over all trees that
            agree with the known heads. MISC lists several possible heads: Heads=2,5. Where all heads and labels are
            unknown, the labels are root and dep.
        temperature: draw each epoch's sentences from several treebanks, the entries of train or of treebanks: as many
            sentences as there are, in shares proportional to weight * size ** (1 / temperature). 1 leaves the shares as
            they are, higher temperatures make them more even; null is 1, or takes every sentence once if all weights
            are equal.
        unlabelled: files or globs of unlabelled text, of any size, for objectives that need no tree: CoNLL-U, whose
            trees are ignored, or one tokenised sentence a line (.txt, .tok, also compressed); null for none. Each epoch
            takes the next part of it.
        unlabelled_ratio: words of unlabelled text for each word of training sentences.
        unlabelled_max_words: leave out unlabelled sentences with more words.
        mixing: together for batches of both kinds of sentences, which may hold 1 + unlabelled_ratio times batch_words
            and batch_squared; turns for batches of one kind, by turns.
    """

    train: list[str] | str | None = None
    dev: list[str] | str | None = None
    dev_share: float = 0.0
    treebanks: dict[str, TreebankConfig] = field(default_factory=dict)
    dev_choice: str | None = None
    train_on_dev: bool = False
    batch_words: int | Auto = "auto"
    batch_squared: int | None = 40000
    workers: int = 0
    start_method: Literal["fork", "spawn", "forkserver"] | None = None
    vectors: str | None = None
    max_vectors: int | None = None
    only_seen_vectors: bool = False
    cache: str | None = None
    cache_dtype: CacheDtype = "float16"
    skip_invalid: bool = False
    partial: bool = False
    temperature: float | None = None
    unlabelled: list[str] | str | None = None
    unlabelled_ratio: float = 1.0
    unlabelled_max_words: int = 100
    mixing: Mixing = "together"

    def __post_init__(self) -> None:
        _check_numbers("data", self)
        self._check_treebanks()
        if self.dev_share and self.partial:
            raise TreeparseError(
                "data.dev_share cannot be used with data.partial, because the held-out trees may be incomplete: name a "
                "file as data.dev."
            )
        if self.dev_share and self.has_dev_files:
            raise TreeparseError(
                "data.dev and data.dev_share cannot be used together: set data.dev to null, or data.dev_share to 0."
            )
        if not 0 < self.unlabelled_ratio <= MOST_RATIO:
            raise TreeparseError(
                f"data.unlabelled_ratio must be more than 0 and at most {MOST_RATIO}, got {self.unlabelled_ratio}."
            )
        if self.mixing == "turns" and self.unlabelled is None:
            raise TreeparseError(
                "data.mixing turns needs unlabelled text, but data.unlabelled is null: name files as data.unlabelled."
            )
        several = self.treebanks if self.treebanks or isinstance(self.train, str) else self.train or ()
        if self.temperature is not None and len(several) < 2:
            raise TreeparseError(
                "data.temperature needs several treebanks, but data.train names one: list them, [a.conllu, b.conllu], "
                "one treebank an entry."
            )

    def _check_treebanks(self) -> None:
        if not self.train and not self.treebanks:
            raise TreeparseError(
                "There is nothing to train on: name CoNLL-U files as data.train, or treebanks as data.treebanks."
            )
        if self.treebanks and (self.train or self.dev):
            raise TreeparseError(
                "data.treebanks cannot be used with data.train and data.dev: name their files as a treebank, too, and "
                "set these to null."
            )
        for name, treebank in self.treebanks.items():
            if not TREEBANK_NAME.fullmatch(name):
                raise TreeparseError(
                    f"The name of a treebank must have letters, digits, - and _ alone, got {name!r:.60} in "
                    "data.treebanks."
                )
            if not 0 < treebank.weight < math.inf:
                raise TreeparseError(
                    f"data.treebanks.{name}.weight must be more than 0 and finite, got {treebank.weight}."
                )
        measured = [name for name, treebank in self.treebanks.items() if treebank.dev is not None or self.dev_share]
        if self.dev_choice is not None and self.dev_choice not in measured:
            raise TreeparseError(
                f"data.dev_choice must be a treebank of data.treebanks with dev files ({', '.join(measured) or 'none'}"
                f"), got {self.dev_choice!r:.60}."
            )

    @property
    def has_dev_files(self) -> bool:
        """Whether there are files to measure."""
        return self.dev is not None or any(treebank.dev is not None for treebank in self.treebanks.values())


@dataclass(frozen=True)
class OptimizationConfig:
    """AdamW, its learning rate over time, and when to stop.

    Attributes:
        epochs: passes over the training data; auto for the number that steps needs.
        steps: steps in whole epochs; auto for the number that epochs needs. The larger of both counts, so that a small
            treebank gets more epochs; if both are auto, at least 28 epochs and 3,500 steps. An option for one of the
            two alone (--optimization.epochs 3) replaces both of the config file's.
        dev_every: epochs from one evaluation on the dev set, and checkpoint, to the next. The number of epochs is
            rounded up to a multiple of it; auto for about twenty evaluations in all.
        learning_rate: the highest learning rate.
        betas: decay rates of Adam's two averages.
        eps: the constant in Adam's denominator.
        weight_decay: decoupled weight decay; with 0, AdamW is Adam.
        warmup_steps: steps over which the learning rate rises linearly from 0; auto for 3% of all.
        schedule: the learning rate over all epochs after that; linear and cosine end at 0.
        patience: number of epochs without a better dev LAS after which training stops, null for no such limit; auto for
            a third of all epochs, and at least five evaluations.
        average_decay: decay of an exponential moving average of the weights, which the dev set then evaluates and the
            final model holds; null for no average; auto for an average over about 6% of all steps.
    """

    epochs: int | Auto = "auto"
    steps: int | Auto = "auto"
    dev_every: int | Auto = "auto"
    learning_rate: float = 2e-3
    betas: tuple[float, float] = (0.9, 0.95)
    eps: float = 1e-8
    weight_decay: float = 0.0
    warmup_steps: int | Auto = "auto"
    schedule: Schedule = "linear"
    patience: int | Auto | None = "auto"
    average_decay: float | Auto | None = "auto"

    def __post_init__(self) -> None:
        _check_numbers("optimization", self)


@dataclass(frozen=True)
class LinearLearningConfig:
    """How a linear model learns (model.scorer LinearConfig); neural models have optimization instead.

    Weights are averaged over all steps. Trees that no distribution of model.trees has, because arcs cross, are learned
    from as they are.

    Attributes:
        algorithm: perceptron (Collins 2002), towards the gold tree where it is not the best; mira (Crammer and Singer
            2003), the least change by which the gold tree outscores the k best trees by their number of wrong words;
            log_linear, up the gradient of the gold tree's log probability.
        epochs: passes over the training data, at most.
        patience: number of epochs without a better dev LAS after which training stops; null for no such limit.
        batch_sentences: sentences of a step, which see the same weights.
        k: trees that mira compares with the gold tree.
        step_limit: the largest step of mira.
        rate: the learning rate of log_linear in the first epoch; that of epoch t is divided by the square root of t.
    """

    algorithm: Algorithm = "mira"
    epochs: int = 10
    patience: int | None = 3
    batch_sentences: int = 16
    k: int = 1
    step_limit: float = 0.05
    rate: float = 0.1

    def __post_init__(self) -> None:
        _check_numbers("learning", self)


# The sections that may hold ``auto``.
SECTIONS: Mapping[str, type] = {"data": DataConfig, "optimization": OptimizationConfig}


@dataclass(frozen=True)
class TrainConfig:
    """The settings of a training run.

    Attributes:
        data: treebanks and batches.
        output: the folder of the run.
        seed: seed of the first weights, the order of the data and dropout.
        init_from: the folder of a model or of a run whose weights and vocabularies training starts from; new words and
            labels of the training data are added to the vocabularies.
        model: the parser.
        objective: the loss: the ``class_path`` of a subclass of `Objective`, with its ``init_args``.
        optimization: the optimiser, the learning rate and the length of training of a neural model.
        learning: how a linear model learns.
        trainer: arguments of Lightning's Trainer. A step of training takes accumulate_grad_batches batches on each
            device; its loss and its gradient are means over all their words, as if they were one batch. precision null
            is bf16-mixed if the device has instructions for it.
    """

    data: DataConfig
    output: str
    seed: int = 1
    init_from: str | None = None
    model: ParserConfig = field(default_factory=ParserConfig)
    objective: Mapping[str, Any] = field(default_factory=lambda: {"class_path": DEFAULT_OBJECTIVE})
    optimization: OptimizationConfig = field(default_factory=OptimizationConfig)
    trainer: TrainerSettings = field(default_factory=dict)
    learning: LinearLearningConfig = field(default_factory=LinearLearningConfig)

    @property
    def is_linear(self) -> bool:
        """Whether the model is linear, so that ``learning`` trains it."""
        return isinstance(self.model.scorer, LinearConfig)

    def __post_init__(self) -> None:
        if self.seed is None or not 0 <= self.seed < SEEDS:
            raise TreeparseError(f"seed must be from 0 to 2**63 - 1, got {self.seed}.")
        self._check_cache()
        if not self.output.strip():
            raise TreeparseError("output is empty: name a folder for the run.")

    def _check_cache(self) -> None:
        encoder = self.model.encoder
        if self.data.cache is None or (isinstance(encoder, TransformerConfig) and encoder.frozen):
            return
        problem = "model.encoder.frozen is false, and the layers of a model that learns change with every step"
        if not isinstance(encoder, TransformerConfig):
            problem = "model.encoder is no transformer"
        raise TreeparseError(
            f"data.cache needs a frozen transformer, but {problem}: leave out data.cache, or set model.encoder to "
            "TransformerConfig and its frozen to true."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as plain data for YAML or JSON; neural models have no ``learning``."""
        settings = plain_settings(self)
        return settings if self.is_linear else {name: value for name, value in settings.items() if name != "learning"}

    def to_yaml(self) -> str:
        """Return the text of a config file that `load_config` reads back."""
        return yaml.safe_dump(self.to_dict(), sort_keys=False, allow_unicode=True)


@dataclass(frozen=True, kw_only=True)
class ResolvedData(DataConfig):
    """`DataConfig` without ``auto``."""

    batch_words: int = field()


@dataclass(frozen=True, kw_only=True)
class ResolvedOptimization(OptimizationConfig):
    """`OptimizationConfig` without ``auto``."""

    epochs: int = field()
    steps: int = field()
    dev_every: int = field()
    warmup_steps: int = field()
    patience: int | None = field()
    average_decay: float | None = field()


@dataclass(frozen=True, kw_only=True)
class ResolvedConfig(TrainConfig):
    """`TrainConfig` without ``auto`` and with a precision: `resolve_settings` makes it, the files of a run hold it."""

    data: ResolvedData = field()
    optimization: ResolvedOptimization = field()
