"""The interface of distributions over labelled trees: what `LabeledCRF` and `Mixture` have in common."""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Protocol

import torch
from torch import Size, Tensor

from treeparse.names import Decoder
from treeparse.trees.labels.crf import LabeledCRF
from treeparse.trees.labels.trees import DistinctLabeledTrees, LabeledPair, LabeledTree, TreeMarginals
from treeparse.trees.randomness import Generators


class LabeledDistribution(Protocol):
    """A distribution over the labelled trees of a batch. `LabeledCRF` documents what the methods share with it."""

    @property
    def components(self) -> Sequence[LabeledCRF]:
        """The distributions that a tree is drawn from, one or more; all have the same shape and device."""
        ...

    @property
    def shape(self) -> Size:
        """``(*batch, n+1, n+1, L)``, one number a labelled arc."""
        ...

    @property
    def device(self) -> torch.device: ...

    @cached_property
    def marginals(self) -> Tensor: ...

    def log_prob(self, value: Tensor | LabeledPair, labels: Tensor | None = None) -> Tensor: ...

    def score(self, value: Tensor | LabeledPair, labels: Tensor | None = None) -> Tensor: ...

    def log_prob_of_scored(self, heads: Tensor, labels: Tensor, scores: Tensor) -> Tensor:
        """Return log probabilities ``(*sample, *batch)`` of trees whose scores under this distribution are known."""
        ...

    def sample(self, sample_shape: Size | Sequence[int] = (), *, generator: Generators = None) -> LabeledTree: ...

    def sample_without_replacement(self, k: int, *, generator: Generators = None) -> DistinctLabeledTrees: ...

    def minimum_risk(self) -> LabeledTree: ...

    def decode(self, decoder: Decoder) -> LabeledTree:
        """Return heads and labels ``(*batch, n+1)`` of the tree that a decoder chooses."""
        ...

    def for_decoder(self, decoder: Decoder) -> "LabeledDistribution":
        """Return the distribution over the trees among which a decoder searches.

        Trees that are in both supports keep the ratios of their probabilities.
        """
        ...

    def conditioned(self, condition: Callable[[LabeledCRF], LabeledCRF]) -> "LabeledDistribution":
        """Return the distribution given that the tree is in the support of ``condition`` of its components.

        ``condition`` forbids arcs and labels of a component; it changes no other score.
        """
        ...

    def as_crf(self, purpose: str) -> LabeledCRF:
        """Return this distribution if a tree's score is a sum over its arcs.

        Raises:
            TreeparseError: otherwise; ``purpose``, a plural, begins the message.
        """
        ...

    def arc_marginals(self) -> Tensor:
        """Return the probability of every arc, whatever its label, ``(B, n+1, n+1)``: float64 constants."""
        ...

    def tree_marginals(self, heads: Tensor, labels: Tensor, label_powers: Sequence[float] = (1.0,)) -> TreeMarginals:
        """Return the marginals of the arcs, and of the labelled arcs, of trees ``(*sample, *batch, n+1)``: constants.

        Labels are scored at these arcs only. An arc has the probability 0 if its head or label is -1, or if the
        distribution has no such label. The trees need not be in the support.

        Args:
            heads: heads of the trees.
            labels: labels of the trees.
            label_powers: P(label | arc) is taken to this power and normalised; marginals of arcs do not change. A
                mixture takes one power for each component, or one for all; a `LabeledCRF` their geometric mean.

        Raises:
            TreeparseError: for heads or labels that are no integers or have another shape, and for a head that is no
                node.
            NoTreeError: as the distribution does.
        """
        ...

    def entropy(self) -> Tensor | None:
        """Return the entropy ``(*batch,)``, or None if it has no exact formula."""
        ...

    def expected_gradient(self) -> Tensor | None:
        """Return the expected squared length of the gradient ``(*batch,)``, or None if it has no exact formula."""
        ...
