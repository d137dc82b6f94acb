"""The interface of scorers, which map a batch to scores of the parts of trees, of labels and of tags."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field

from torch import Tensor, nn

from treeparse.batch import Batch
from treeparse.errors import TreeparseError
from treeparse.nn import Encoder
from treeparse.nn.encoder_config import Learner, weights_with
from treeparse.trees import LabelSource


class PartScores(ABC):
    """The scores of a kind of part of three words, computed for the arcs that trees may have."""

    @abstractmethod
    def of_arcs(self, arcs: Tensor | None = None) -> Tensor:
        """Return ``(B, n+1, n+1, n+1)`` log weights, [head, dependent, other word].

        With ``arcs`` ``(B, n+1, n+1)`` bool, the parts of other arcs may have any finite score.
        """


@dataclass(frozen=True)
class ScorerOutput:
    """The scores of a batch of B sentences of up to n words.

    Attributes:
        arcs: ``(B, n+1, n+1)`` log weights, head first; column 0, the diagonal and padding may hold anything.
        labels: ``(B, n+1, n+1, L)`` scores of any scale, which the parser normalises for each arc; or a source of log
            probabilities of labels given their arcs, in which "root" is possible for arcs from the root alone, and for
            these no other label.
        tags: ``(B, n+1, T)`` log probabilities by column, of the columns that the parser predicts.
        others: ``(B, n+1, n+1, n+1)`` log weights of each other kind of part, or what computes them, in the order of
            the distribution of ``trees`` in the config, such as ``SiblingCRF``; none for trees that score arcs alone.
    """

    arcs: Tensor
    labels: Tensor | LabelSource
    tags: Mapping[str, Tensor] = field(default_factory=dict)
    others: tuple[Tensor | PartScores, ...] = ()


class Scorer(Learner, ABC):
    """A module that scores sentences.

    A sentence's scores must not depend on the rest of the batch, except for rounding. Outside training, scores have the
    weights' dtype, under autocast too.
    """

    @abstractmethod
    def forward(self, batch: Batch) -> ScorerOutput:
        """Score a batch with the features of the scorer's kind."""


class EncoderScorer(Scorer):
    """A scorer that reads the vectors of an encoder."""

    encoder: Encoder

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.encoder = encoder

    def base_weights(self) -> dict[str, Tensor]:
        return weights_with(self, "encoder.", self.encoder.base_weights())

    def merged_weights(self) -> dict[str, Tensor]:
        return weights_with(self, "encoder.", self.encoder.merged_weights())

    def rates(self) -> Mapping[nn.Parameter, float]:
        return self.encoder.rates()

    def advance(self, progress: float) -> None:
        self.encoder.advance(progress)


def encoder_of(scorer: Scorer) -> Encoder:
    """Return the encoder of a scorer; raise if it has none."""
    if not isinstance(scorer, EncoderScorer):
        raise TreeparseError(f"The scorer {type(scorer).__name__} has no encoder.")
    return scorer.encoder
