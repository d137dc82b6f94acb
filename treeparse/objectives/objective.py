"""The losses that training minimises, over a distribution of labelled trees, and numbers that change meanwhile."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, TypeVar, get_args

import torch
from torch import Tensor, nn

from treeparse.batch import Batch
from treeparse.errors import TreeparseError
from treeparse.trees import LabeledCRF

Data = Literal["labelled", "unlabelled", "all"]
"""Which sentences: "labelled" have a known head, "unlabelled" have none."""

N = TypeVar("N", bound=str)
T = TypeVar("T")


class Term(NamedTuple):
    """A part of the loss of a batch: ``weight`` times ``mean``, the mean over the words of the sentences that it uses.

    ``mean`` is a scalar, or None if the batch has no such sentence; ``words`` is the number of these words.
    """

    name: str
    weight: float
    mean: Tensor | None
    words: int


class Objective(nn.Module, ABC):
    """A loss for each sentence, from the distribution of its labelled trees and its gold tree, as far as it is known.

    An objective is a module: its parameters are trained with the parser's.

    Attributes:
        data: the sentences that the loss uses; it is averaged over their words.
        scores_all_labels: whether the loss scores the labels of all likely arcs. A sum computes such objectives first,
            because the others reuse the scores.
        needs_sums: whether the loss needs log partitions or marginals, which ``trees: nonprojective_siblings`` lack.
        progress: the share of training that is done, 0 to 1, for schedules; training updates it.
    """

    data: ClassVar[Data] = "all"
    scores_all_labels: ClassVar[bool] = False
    needs_sums: bool = True
    progress: float = 0.0

    @abstractmethod
    def forward(self, distribution: LabeledCRF, batch: Batch) -> Tensor:
        """Return ``(B,)`` nats, or another cost. Unknown heads and labels are -1, None if the batch has none."""

    def terms(self, distribution: LabeledCRF, batch: Batch) -> Sequence[Term]:
        """Return the terms whose sum is the loss of a batch; a run logs each by its name."""
        return [term_of(type(self).__name__, 1.0, self(distribution, batch), self.data, batch)]

    def kinds(self) -> Mapping[str, Data]:
        """Return the sentences that each term uses, by the name of the term."""
        return {type(self).__name__: self.data}

    def words(self, batch: Batch) -> Mapping[str, int]:
        """Count the words that each of the ``terms`` is the mean over, by its name, before any is computed."""
        return {name: words_concerned(data, batch) for name, data in self.kinds().items()}

    def advance(self, progress: float) -> None:
        """Set ``progress``, the share of training that is done, of this objective and all objectives inside it."""
        for module in self.modules():
            if isinstance(module, Objective):
                module.progress = progress


def concerned(data: Data, batch: Batch) -> Tensor:
    """Return which sentences of a batch are of this kind, ``(B,)`` bool."""
    check_choice("data of an objective", data, Data)
    if data == "all":
        return torch.ones_like(batch.lengths, dtype=torch.bool)
    return batch.is_labelled() if data == "labelled" else ~batch.is_labelled()


def words_concerned(data: Data, batch: Batch) -> int:
    """Count the words of the sentences of this kind; causes no device sync."""
    on_cpu = batch.on_cpu
    return int(on_cpu.lengths[concerned(data, on_cpu)].sum())


def term_of(name: str, weight: float, values: Tensor, data: Data, batch: Batch) -> Term:
    """Return the term of values ``(B,)``, of which those of the sentences of this kind count.

    Raises:
        TreeparseError: the values have another shape.
    """
    if values.shape != batch.lengths.shape:
        raise TreeparseError(
            f"{name} must return a number for each of the {len(batch)} sentences of a batch, got the shape "
            f"{tuple(values.shape)}."
        )
    words = words_concerned(data, batch)
    if not words:
        return Term(name, weight, None, 0)
    return Term(name, weight, torch.where(concerned(data, batch), values, 0.0).sum() / words, words)


def total_loss(terms: Sequence[Term], distribution: LabeledCRF) -> Tensor:
    """Return the sum of terms, a scalar; without terms, a 0 with the distribution's graph."""
    means = [term.weight * term.mean for term in terms if term.mean is not None]
    return torch.stack(means).sum() if means else 0.0 * distribution.log_partition.sum()


@dataclass(frozen=True)
class Ramp:
    """A number that changes linearly from ``start`` to ``end`` during training.

    Attributes:
        start: the value until the share ``begin`` of training is done.
        end: the value from the share ``until`` on.
        begin: a share of training from 0.
        until: a greater share of training, up to 1.
    """

    start: float
    end: float
    begin: float = 0.0
    until: float = 1.0

    def __post_init__(self) -> None:
        if not 0 <= self.begin < self.until <= 1:
            raise TreeparseError(
                f"A ramp must begin at a share of training from 0 and end at a greater one up to 1, got begin "
                f"{self.begin} and until {self.until}."
            )

    def at(self, progress: float) -> float:
        """Return the value when the share ``progress`` of training is done."""
        way = (progress - self.begin) / (self.until - self.begin)
        return self.start + (self.end - self.start) * min(max(way, 0.0), 1.0)


Schedule = float | Ramp
"""A constant, or a ramp."""


def value_at(schedule: Schedule, progress: float) -> float:
    """Return the value of a schedule when the share ``progress`` of training is done."""
    return schedule.at(progress) if isinstance(schedule, Ramp) else schedule


def check_choice(setting: str, name: N, choices: Any) -> N:
    """Return a name, or raise if it is not among the names of the ``Literal`` type ``choices``."""
    if name not in get_args(choices):
        raise TreeparseError(f"{setting} must be {' or '.join(map(repr, get_args(choices)))}, got {name!r}.")
    return name


def check_nonnegative(setting: str, value: float) -> float:
    """Return a number, or raise unless it is finite and at least 0."""
    if not 0 <= value < torch.inf:
        raise TreeparseError(f"{setting} must be a finite number that is at least 0, got {value}.")
    return value


def check_temperature(temperature: float) -> float:
    """Return the temperature, or raise unless it is a finite number above 0."""
    if not 0 < temperature < torch.inf:
        raise TreeparseError(f"temperature must be a finite number above 0, got {temperature}.")
    return temperature


def check_smoothing(smoothing: float) -> float:
    """Return the share, or raise unless it is at least 0 and less than 1."""
    if not 0 <= smoothing < 1:
        raise TreeparseError(f"smoothing must be at least 0 and less than 1, got {smoothing}.")
    return smoothing


@dataclass
class Weighted:
    """An objective in a sum.

    Attributes:
        objective: the objective.
        weight: its factor, a number or a ramp.
        data: the sentences that it uses; null for the objective's default.
        name: its name in the run's logs; null for the name of its class.
    """

    objective: Objective
    weight: Schedule = 1.0
    data: Data | None = None
    name: str | None = None

    @property
    def title(self) -> str:
        return self.name or type(self.objective).__name__

    @property
    def sentences(self) -> Data:
        return self.data or self.objective.data


class WeightedSum(Objective):
    """The sum of objectives, each times a weight.

    In training each objective is the mean over the words of the sentences that it uses, so the meaning of a weight does
    not depend on how many of a batch's sentences these are.

    Args:
        terms: the objectives with their weights.
    """

    def __init__(self, terms: list[Weighted]) -> None:
        super().__init__()
        if not terms:
            raise TreeparseError("A weighted sum of objectives must have at least one term, got none.")
        self.weighted = terms
        counts = Counter(term.title for term in self.weighted)
        if twice := [title for title, count in counts.items() if count > 1]:
            raise TreeparseError(f"Names of terms must be unique, got {twice[0]} twice: give one of them another name.")
        self.objectives: nn.ModuleList = nn.ModuleList(
            term.objective for term in self.weighted
        )  # so that their parameters train
        self.needs_sums: bool = any(term.objective.needs_sums for term in self.weighted)

    def forward(self, distribution: LabeledCRF, batch: Batch) -> Tensor:
        """``(B,)``: the weighted sum of each sentence."""
        values = self._of_all(
            lambda term: torch.where(concerned(term.sentences, batch), term.objective(distribution, batch), 0.0)
        )
        weights = [value_at(term.weight, self.progress) for term in self.weighted]
        return torch.stack([weight * value for weight, value in zip(weights, values, strict=True)]).sum(0)

    def kinds(self) -> Mapping[str, Data]:
        return {term.title: term.sentences for term in self.weighted}

    def terms(self, distribution: LabeledCRF, batch: Batch) -> Sequence[Term]:
        """Return one term of each objective; an objective without sentences in the batch is not computed."""
        return self._of_all(lambda term: self._term(term, distribution, batch))

    def _of_all(self, function: Callable[[Weighted], T]) -> list[T]:
        """Return the function of every term, in order; terms that score all labels are computed first."""
        first = sorted(self.weighted, key=lambda term: not term.objective.scores_all_labels)
        values = {term.title: function(term) for term in first}
        return [values[term.title] for term in self.weighted]

    def _term(self, term: Weighted, distribution: LabeledCRF, batch: Batch) -> Term:
        weight, data = value_at(term.weight, self.progress), term.sentences
        if not words_concerned(data, batch):
            return Term(term.title, weight, None, 0)
        return term_of(term.title, weight, term.objective(distribution, batch), data, batch)
