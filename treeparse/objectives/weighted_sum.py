"""The weighted sum of several objectives."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor, nn

from treeparse.batch import Batch
from treeparse.errors import TreeparseError
from treeparse.trees import LabeledCRF

from .objective import Data, Objective, Schedule, Term, concerned, term_of, value_at, words_concerned

T = TypeVar("T")


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
