"""What training minimises: losses over a distribution of labelled trees."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal, NamedTuple

import torch
from torch import Tensor, nn

from treeparse.batch import Batch
from treeparse.trees import LabeledCRF

Data = Literal["labelled", "unlabelled", "all"]
"""Which sentences: those of which some head is known, those of which none is, or both."""


class Term(NamedTuple):
    """A part of the loss of a batch: ``weight`` times ``mean``, the mean over the words of the sentences it is for.

    ``mean`` is a scalar, None where the batch has no such sentence; ``words`` is the number of these words.
    """

    name: str
    weight: float
    mean: Tensor | None
    words: int


class Objective(nn.Module, ABC):
    """A loss for each sentence, from the distribution of its labelled trees and what is known of its gold tree.

    Parameters of its own, if it has any, are trained with the parser's.

    Attributes:
        data: the sentences that it is for, and whose words the loss is averaged over.
        scores_all_labels: whether it asks for the labels of all likely arcs. In a sum such objectives are computed
            first: what they have scored the others look up.
        progress: the share of training that is done, 0 to 1, for schedules; training keeps it up to date.
    """

    data: ClassVar[Data] = "all"
    scores_all_labels: ClassVar[bool] = False
    progress: float = 0.0

    @abstractmethod
    def forward(self, distribution: LabeledCRF, batch: Batch) -> Tensor:
        """``(B,)`` nats, or another cost; heads and labels of the batch are -1 where unknown, None if all are."""

    def terms(self, distribution: LabeledCRF, batch: Batch) -> Sequence[Term]:
        """What the loss of a batch is made of, each part by its name: a run logs them apart."""
        return [term_of(type(self).__name__, 1.0, self(distribution, batch), self.data, batch)]

    def kinds(self) -> Mapping[str, Data]:
        """The sentences that each of the terms is for, by its name."""
        return {type(self).__name__: self.data}

    def advance(self, progress: float) -> None:
        """Say to this objective and all within it that the share ``progress`` of training is done."""
        for module in self.modules():
            if isinstance(module, Objective):
                module.progress = progress


def concerned(data: Data, batch: Batch) -> Tensor:
    """The sentences of a batch that are of this kind, ``(B,)`` bool."""
    if data == "all":
        return torch.ones_like(batch.lengths, dtype=torch.bool)
    return batch.is_labelled() if data == "labelled" else ~batch.is_labelled()


def words_concerned(data: Data, batch: Batch) -> int:
    """How many words the sentences of a batch that are of this kind have."""
    near = batch.near
    return int(near.lengths[concerned(data, near)].sum())


def term_of(name: str, weight: float, values: Tensor, data: Data, batch: Batch) -> Term:
    """The term of values ``(B,)`` of the sentences of this kind."""
    words = words_concerned(data, batch)
    if not words:
        return Term(name, weight, None, 0)
    return Term(name, weight, torch.where(concerned(data, batch), values, 0.0).sum() / words, words)


def total_loss(terms: Sequence[Term], distribution: LabeledCRF) -> Tensor:
    """The sum of terms, a scalar; where there is none, a 0 with the distribution's graph."""
    found = [term.weight * term.mean for term in terms if term.mean is not None]
    return torch.stack(found).sum() if found else 0.0 * distribution.log_partition.sum()
