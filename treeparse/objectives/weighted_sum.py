"""Several objectives at once."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor, nn

from treeparse.batch import Batch
from treeparse.errors import TreeparseError
from treeparse.trees import LabeledCRF

from .objective import Data, Objective, Term, concerned, term_of, words_concerned
from .schedule import Schedule, value_at

T = TypeVar("T")


@dataclass
class Weighted:
    """An objective in a sum.

    Attributes:
        objective: what is added.
        weight: what it is multiplied by, a number or a ramp.
        data: the sentences that it is for; null for those that the objective is for by itself.
        name: what the run's logs call it; null for the name of its class.
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

    In training each is the mean over the words of the sentences that it is for: how many of a batch these are does not
    change what a weight means.

    Args:
        terms: what is added up.
    """

    def __init__(self, terms: list[Weighted]) -> None:
        super().__init__()
        if not terms:
            raise TreeparseError("A weighted sum of objectives needs at least one.")
        self.weighted = terms
        counts = Counter(term.title for term in self.weighted)
        if twice := [title for title, count in counts.items() if count > 1]:
            raise TreeparseError(f"Two terms of a weighted sum are called {twice[0]}: give each a name of its own.")
        self.objectives = nn.ModuleList(term.objective for term in self.weighted)  # so that their parameters train

    def forward(self, distribution: LabeledCRF, batch: Batch) -> Tensor:
        """``(B,)``: the sum for each sentence by itself."""
        values = self._of_all(
            lambda term: torch.where(concerned(term.sentences, batch), term.objective(distribution, batch), 0.0)
        )
        weights = [value_at(term.weight, self.progress) for term in self.weighted]
        return torch.stack([weight * value for weight, value in zip(weights, values, strict=True)]).sum(0)

    def kinds(self) -> Mapping[str, Data]:
        return {term.title: term.sentences for term in self.weighted}

    def terms(self, distribution: LabeledCRF, batch: Batch) -> Sequence[Term]:
        """One of each objective; those for sentences that the batch does not have are not computed."""
        return self._of_all(lambda term: self._term(term, distribution, batch))

    def _of_all(self, function: Callable[[Weighted], T]) -> list[T]:
        """The function of every term, in order; called first for those that score all labels."""
        first = sorted(self.weighted, key=lambda term: not term.objective.scores_all_labels)
        found = {term.title: function(term) for term in first}
        return [found[term.title] for term in self.weighted]

    def _term(self, term: Weighted, distribution: LabeledCRF, batch: Batch) -> Term:
        weight, data = value_at(term.weight, self.progress), term.sentences
        if not words_concerned(data, batch):
            return Term(term.title, weight, None, 0)
        return term_of(term.title, weight, term.objective(distribution, batch), data, batch)
