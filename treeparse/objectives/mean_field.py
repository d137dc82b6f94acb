"""Objectives of a distribution that approximates one without sums."""

from collections.abc import Mapping, Sequence

from torch import Tensor

from treeparse.batch import Batch
from treeparse.errors import TreeparseError
from treeparse.trees import LabeledCRF

from .likelihood import TreeLikelihood
from .objective import Data, Objective, Term


class MeanField(Objective):
    """An objective of the mean-field approximation, for ``trees: nonprojective_siblings``, which have no probabilities.

    Training through the approximation teaches scores that suit it (Wang and Tu 2020).

    Args:
        objective: the objective; None for ``TreeLikelihood``.
        rounds: the number of rounds of the approximation.
    """

    objective: Objective | TreeLikelihood
    rounds: int

    needs_sums = False

    def __init__(self, objective: Objective | None = None, rounds: int = 3) -> None:
        super().__init__()
        if rounds < 0:
            raise TreeparseError(f"The number of rounds must be 0 or more, got {rounds}.")
        self.objective, self.rounds = objective or TreeLikelihood(), rounds

    def forward(self, distribution: LabeledCRF, batch: Batch) -> Tensor:
        """``(B,)`` of the approximation. Raises for trees that need none."""
        return self.objective(distribution.mean_field(self.rounds), batch)

    def terms(self, distribution: LabeledCRF, batch: Batch) -> Sequence[Term]:
        return self.objective.terms(distribution.mean_field(self.rounds), batch)

    def kinds(self) -> Mapping[str, Data]:
        return self.objective.kinds()
