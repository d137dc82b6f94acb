"""The interface of distributions over labelled trees: what `LabeledCRF` and `Mixture` have in common."""

from collections.abc import Callable, Sequence
from typing import Protocol

import torch
from torch import Size, Tensor

from treeparse.lazy import cached_property
from treeparse.names import Decoder
from treeparse.trees.labels.crf import LabeledCRF
from treeparse.trees.labels.trees import LabeledPair, LabeledTree, TreeMarginals
from treeparse.trees.randomness import Generators
from treeparse.trees.tree_lists import DistinctLabeledTrees


class LabeledDistribution(Protocol):
    """A distribution over the labelled trees of a batch. `LabeledCRF` documents the methods without a docstring."""

    @property
    def components(self) -> Sequence[LabeledCRF]:
        """The distributions that a tree is drawn from, one or more; all have the same shape and device."""
        ...

    @property
    def shape(self) -> Size: ...

    @property
    def device(self) -> torch.device: ...

    @cached_property
    def marginals(self) -> Tensor: ...

    def log_prob(self, value: Tensor | LabeledPair, labels: Tensor | None = None) -> Tensor: ...

    def score(self, value: Tensor | LabeledPair, labels: Tensor | None = None) -> Tensor: ...

    def log_prob_of_scored(self, heads: Tensor, labels: Tensor, scores: Tensor) -> Tensor: ...

    def sample(self, sample_shape: Size | Sequence[int] = (), *, generator: Generators = None) -> LabeledTree: ...

    def sample_without_replacement(self, k: int, *, generator: Generators = None) -> DistinctLabeledTrees: ...

    def minimum_risk(self) -> LabeledTree: ...

    def decode(self, decoder: Decoder) -> LabeledTree: ...

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
        """Return this distribution if a tree's score is a sum over its parts.

        Raises:
            TreeparseError: otherwise; ``purpose``, a plural, begins the message.
        """
        ...

    def arc_marginals(self) -> Tensor: ...

    def tree_marginals(
        self, heads: Tensor, labels: Tensor, label_powers: Sequence[float] = (1.0,)
    ) -> TreeMarginals: ...

    def entropy(self) -> Tensor | None:
        """Return the entropy ``(*batch,)``, or None if it has no exact formula."""
        ...

    def expected_gradient(self) -> Tensor | None:
        """Return the expected squared length of the gradient ``(*batch,)``, or None if it has no exact formula."""
        ...
