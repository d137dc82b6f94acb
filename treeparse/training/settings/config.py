"""The settings of a training run."""

import json
import math
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal

import yaml

from treeparse.errors import TreeparseError
from treeparse.model.config import ParserConfig
from treeparse.names import CacheDtype, Mixing, Schedule, TrainingPrecision, device_named
from treeparse.nn.transformer_config import TransformerConfig
from treeparse.setting_fields import added_setting

Auto = Literal["auto"]  # a setting that follows from the treebank or the machine, see training/plan.py
SEEDS = 2**63
MOST = 10**9  # of any whole number: what is larger would never end, or never start
MOST_EPOCHS = 10**6
MOST_RATIO = 1000  # of unlabelled words
DEFAULT_OBJECTIVE = "treeparse.objectives.TreeLikelihood"


@dataclass(frozen=True)
class DataConfig:
    """Treebanks, and how their sentences are put into batches.

    Attributes:
        train: CoNLL-U files or globs to train on; $VARIABLES and ~ are expanded. As an option, several stand one after
            the other (--data.train a.conllu b.conllu) or in a list ([a.conllu, b.conllu]); so do dev and unlabelled.
        dev: CoNLL-U files or globs whose LAS chooses the best epoch; null for none: the last epoch makes the model.
        dev_share: without dev files, the share of the training sentences that are held out as the dev set.
        batch_words: most words of a batch, padding included, or most subwords where the encoder reads those; auto for
            what suits the size of the treebank.
        batch_squared: most cells of a batch's score matrices, padding included, as many words or subwords wide and
            high; null for no bound.
        memory: gigabytes that a step of training may take, the weights and what the optimiser keeps included: where a
            few steps, which are measured before training, say that the bounds above ask for more, both are lowered;
            null to leave them. Text without trees is taken to need as much as training sentences of its length.
        workers: processes that make batches ahead of time, 0 for none; the batches are the same.
        start_method: how these processes start (fork, spawn or forkserver); null for the system's default.
        vectors: a file of pretrained word vectors, as text of word2vec, fastText or GloVe or as a binary file of the
            first two, plain or gzipped; null for none.
        max_vectors: read only so many vectors, the first; null for all.
        only_seen_vectors: keep only the vectors of words in train, and in unlabelled: less memory and a smaller model,
            to which all other words are the same.
        cache: a folder in which to keep what a frozen transformer makes of the sentences of train and dev, so that it
            is computed once, for all epochs and runs; null for none. It takes words x mixed_layers x hidden size x 2
            bytes, is of no use to unlabelled text, and the model does not need it.
        cache_dtype: in what precision that is kept: float16, rounded by up to 1/2048 of a value; bfloat16, by up to
            1/256, for models whose values leave the range of float16; float32, not rounded, twice the size.
        skip_invalid: whether to leave out sentences that are not valid, with a count, instead of stopping.
        partial: whether training sentences may have words of unknown HEAD, _: their likelihood sums over all trees that
            agree with the rest. Of several possible heads MISC names all: Heads=2,5. Where all heads and labels are
            unknown, the labels are root and dep.
        temperature: draw each epoch's sentences from several treebanks, the entries of train: as many as there are in
            all, shares proportional to size ** (1 / temperature); 1 leaves them as they are, above they are more even;
            null for all sentences once.
        unlabelled: files or globs of unlabelled text, of any size, for objectives that need no tree: CoNLL-U, whose
            trees are ignored, or a tokenised sentence a line (.txt, .tok, compressed too); null for none. An epoch
            takes the next part of it.
        unlabelled_ratio: words of unlabelled text for each word of training sentences.
        unlabelled_max_words: leave out unlabelled sentences that are longer.
        mixing: together for batches of both, with room for 1 + unlabelled_ratio times batch_words and batch_squared;
            turns for batches of one kind, by turns.
    """

    train: list[str] | str
    dev: list[str] | str | None = None
    dev_share: float = added_setting(0.0, before=0.0)
    batch_words: int | Auto = "auto"
    batch_squared: int | None = 40000
    workers: int = 0
    start_method: Literal["fork", "spawn", "forkserver"] | None = None
    vectors: str | None = None
    max_vectors: int | None = None
    only_seen_vectors: bool = added_setting(False, before=False)
    cache: str | None = added_setting(None, before=None)
    cache_dtype: CacheDtype = added_setting("float16", before="float16")
    skip_invalid: bool = False
    partial: bool = added_setting(False, before=False)
    temperature: float | None = added_setting(None, before=None)
    unlabelled: list[str] | str | None = added_setting(None, before=None)
    unlabelled_ratio: float = added_setting(1.0, before=1.0)
    unlabelled_max_words: int = added_setting(100, before=100)
    mixing: Mixing = added_setting("together", before="together")
    memory: float | None = added_setting(None, before=None)

    def __post_init__(self) -> None:
        _at_least("data.batch_words", self.batch_words, 1)
        _at_least("data.batch_squared", self.batch_squared, 1)
        _at_least("data.workers", self.workers, 0)
        if self.memory is not None and not self.memory > 0:
            raise TreeparseError(f"data.memory is {self.memory}, but must be more than 0, or null.")
        _at_least("data.max_vectors", self.max_vectors, 1)
        if not 0 <= self.dev_share < 1:
            raise TreeparseError(f"data.dev_share is {self.dev_share}, but must be from 0 to less than 1.")
        if self.dev_share and self.partial:
            raise TreeparseError(
                "data.dev_share holds out training sentences, but with data.partial their trees may be incomplete: "
                "name a file as data.dev."
            )
        if self.dev_share and self.dev is not None:
            raise TreeparseError("data.dev names a dev set and data.dev_share holds one out: give one of them.")
        self._check_mixture()

    def _check_mixture(self) -> None:
        _at_least("data.unlabelled_max_words", self.unlabelled_max_words, 1)
        if not 0 < self.unlabelled_ratio <= MOST_RATIO:
            raise TreeparseError(
                f"data.unlabelled_ratio is {self.unlabelled_ratio}, but must be more than 0 and at most {MOST_RATIO}."
            )
        if self.mixing == "turns" and self.unlabelled is None:
            raise TreeparseError(
                "data.mixing says how unlabelled text is mixed in, but there is none: name files as data.unlabelled."
            )
        if self.temperature is None:
            return
        if not self.temperature > 0:
            raise TreeparseError(f"data.temperature is {self.temperature}, but must be more than 0, or null.")
        if isinstance(self.train, str) or len(self.train) < 2:
            raise TreeparseError(
                "data.temperature draws from several treebanks, but data.train names one: give a list, [a.conllu, "
                "b.conllu], each entry of which is a treebank."
            )


@dataclass(frozen=True)
class OptimizationConfig:
    """AdamW, its learning rate over time, and when to stop.

    Attributes:
        epochs: passes over the training data; auto for those that the steps ask for.
        steps: steps in whole epochs; auto for those of the epochs. Of both, what is more, so that a small treebank gets
            more epochs; where both are auto, at least 14 epochs and 3,500 steps. An option for one of the two alone
            (--optimization.epochs 3) replaces both of the config file's.
        dev_every: epochs from one measurement of the dev set, and checkpoint, to the next; the number of epochs is
            rounded up to a multiple of it; auto for some twenty measurements in all.
        learning_rate: the highest learning rate.
        betas: decay of Adam's two averages.
        eps: the constant in Adam's denominator.
        weight_decay: decoupled weight decay; with 0 this is Adam.
        warmup_steps: steps over which the learning rate rises linearly from 0; auto for 3% of all.
        schedule: how the learning rate goes from there over all epochs; linear and cosine end at 0.
        clip_norm: largest norm of the gradient, null for any.
        patience: stop after so many epochs without a better dev LAS, null for never; auto for a third of all, at
            least five measurements.
        average_decay: decay of an exponential moving average of the weights, which is then what the dev set
            measures and the final model holds; null for none; auto for an average over some 6% of all steps.
    """

    epochs: int | Auto = "auto"
    steps: int | Auto = "auto"
    dev_every: int | Auto = added_setting("auto", before=1)
    learning_rate: float = 2e-3
    betas: tuple[float, float] = (0.9, 0.95)
    eps: float = 1e-8
    weight_decay: float = 0.0
    warmup_steps: int | Auto = "auto"
    schedule: Schedule = "linear"
    clip_norm: float | None = 5.0
    patience: int | Auto | None = "auto"
    average_decay: float | Auto | None = "auto"

    def __post_init__(self) -> None:
        _at_least("optimization.epochs", self.epochs, 1)
        _at_least("optimization.steps", self.steps, 0)
        _at_least("optimization.dev_every", self.dev_every, 1)
        _at_least("optimization.learning_rate", self.learning_rate, 0)
        _at_least("optimization.eps", self.eps, 0)
        _at_least("optimization.weight_decay", self.weight_decay, 0)
        _at_least("optimization.warmup_steps", self.warmup_steps, 0)
        _at_least("optimization.patience", self.patience, 1)
        if self.clip_norm is not None and not self.clip_norm > 0:
            raise TreeparseError(f"optimization.clip_norm is {self.clip_norm}, but must be more than 0, or null.")
        for name, value in (("betas", self.betas[0]), ("betas", self.betas[1]), ("average_decay", self.average_decay)):
            if not isinstance(value, str | None) and not 0 <= value < 1:
                raise TreeparseError(f"optimization.{name} holds {value}, but must be from 0 to less than 1.")


@dataclass(frozen=True)
class TrainerConfig:
    """Where and how exactly to compute.

    Attributes:
        device: auto (a GPU if there is one), cpu, cuda, cuda:1.
        precision: 32-true, or bf16-mixed (encoder and scorer in bfloat16; sums over trees are always float64); auto for
            bf16-mixed where the device has instructions for it.
    """

    device: str = "auto"
    precision: TrainingPrecision | Auto = "auto"

    def __post_init__(self) -> None:
        device_named(self.device)


@dataclass(frozen=True)
class TrainConfig:
    """A training run; ``objective`` names a subclass of `Objective` by ``class_path``, with its ``init_args``.

    Attributes:
        data: treebanks and batches.
        output: the folder of the run.
        seed: seed of the first weights, the order of the data and dropout.
        init_from: the folder of a model, or of a run, whose weights and vocabularies training starts from; what is new
            in the training data is added to the vocabularies.
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

    def __post_init__(self) -> None:
        _check_seed(self.seed)
        _check_most("data", self.data)
        _check_most("optimization", self.optimization)
        self._check_cache()
        if not self.output.strip():
            raise TreeparseError("output is empty: name a folder for the run.")

    def _check_cache(self) -> None:
        encoder = self.model.encoder
        if self.data.cache is None or (isinstance(encoder, TransformerConfig) and encoder.frozen):
            return
        problem = "model.encoder.frozen is false, and what a model that learns makes of them changes with every step"
        if not isinstance(encoder, TransformerConfig):
            problem = "model.encoder is no transformer"
        raise TreeparseError(
            f"data.cache keeps what a frozen transformer makes of sentences, but {problem}: leave out data.cache, or "
            "set model.encoder.type to transformer and model.encoder.frozen to true."
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as it stands in YAML or JSON."""
        return json.loads(json.dumps(asdict(self)))

    def to_yaml(self) -> str:
        """A config file that :func:`~treeparse.training.settings.reading.load_config` reads back."""
        return yaml.safe_dump(self.to_dict(), sort_keys=False, allow_unicode=True)


def _at_least(name: str, value: float | Auto | None, least: float) -> None:
    if not isinstance(value, str | None) and not value >= least:
        raise TreeparseError(f"{name} is {value}, but must be at least {least}.")


def _check_seed(seed: int) -> None:
    """Raise for a seed that torch or numpy does not take."""
    if not 0 <= seed < SEEDS:
        raise TreeparseError(f"seed is {seed}, but must be from 0 to 2**63 - 1.")


def _check_most(section: str, settings: Any) -> None:
    """Raise for a number in a section of settings, a dataclass, that is larger than any use of it."""
    special = {"workers": _most_workers(), "epochs": MOST_EPOCHS}
    for name in (each.name for each in fields(settings)):
        value, most = getattr(settings, name), special.get(name, MOST)
        if isinstance(value, int) and value > most:
            raise TreeparseError(f"{section}.{name} is {value}, but must be at most {most}.")
        if value == math.inf:
            raise TreeparseError(f"{section}.{name} is {value}, but must be finite.")


def _most_workers() -> int:
    """Four processes a core, and 16 in any case."""
    return max(16, 4 * (os.cpu_count() or 1))
