"""The interface of scorers, which map a batch to scores of the parts of trees, of labels and of tags."""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Size, Tensor, nn

from treeparse.batch import Batch
from treeparse.errors import TreeparseError
from treeparse.nn import Encoder
from treeparse.nn.encoder_config import Learner, weights_with
from treeparse.trees import LabelSource
from treeparse.trees.labels.sources import with_root_rule


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
            probabilities of labels given their arcs, in which the indexer's ``root_label``, if any, is possible for
            arcs from the root alone, and for these no other label.
        tags: ``(B, n+1, T)`` log probabilities by column, of the columns that the parser predicts.
        others: ``(B, n+1, n+1, n+1)`` log weights of each other kind of part, or what computes them, in the order of
            the distribution of ``trees`` in the config, such as ``SiblingCRF``; none for trees that score arcs alone.
    """

    arcs: Tensor
    labels: Tensor | LabelSource
    tags: Mapping[str, Tensor] = field(default_factory=dict)
    others: tuple[Tensor | PartScores, ...] = ()


class LabelLogProbs:
    """A base of ``treeparse.trees.LabelSource`` of log P(label | arc).

    Args:
        nodes: the shape ``(B, n+1, ...)`` of vectors of nodes.
        count: number of labels.
        root_label: index of the label that arcs from the root, and no others, have; -1 if none is reserved for them.
    """

    bound: float | None = 0.0
    resolution: float = torch.finfo(torch.float32).eps
    dtype: torch.dtype
    device: torch.device

    def __init__(self, nodes: Sequence[int], count: int, root_label: int) -> None:
        self.count, self.root_label = count, root_label
        self.shape: Size = Size((*nodes[:2], nodes[1], count))
        self.support: Hashable = ("root", root_label, count)

    def at(self, item: Tensor, head: Tensor, dependent: Tensor) -> Tensor:
        raise NotImplementedError

    def at_labels(self, item: Tensor, head: Tensor, dependent: Tensor, label: Tensor) -> Tensor:
        return self.at(item, head, dependent).gather(-1, label.unsqueeze(-1)).squeeze(-1)

    def log_sums(self, arcs: Tensor) -> Tensor:
        """Return zeros, because the label probabilities of every arc sum to 1."""
        return torch.zeros((), dtype=torch.float64, device=self.device).expand(arcs.shape)

    def log_probs(self, scores: Tensor, from_root: Tensor) -> Tensor:
        """Return log probabilities from scores ``(..., L)`` of arcs; ``from_root`` marks the arcs from the root."""
        return with_root_rule(scores, from_root, self.root_label).log_softmax(-1)


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
