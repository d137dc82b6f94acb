"""A batch of labelled trees as one flat batch, from the trees of their arcs and, given these, their labels."""

from functools import cached_property

import torch
from torch import Tensor

from treeparse.trees.flat import FlatTrees
from treeparse.trees.labels.scores import FlatLabels
from treeparse.trees.labels.values import LabelValues


class FlatLabeledTrees:
    """What is summed over labelled trees, in float64, before it is rounded.

    Args:
        base: the trees without labels.
        arcs: the trees where every arc weighs what its labels weigh together.
        labels: the labels' scores.
    """

    def __init__(self, base: FlatTrees, arcs: FlatTrees, labels: FlatLabels) -> None:
        self.base, self.arcs, self.labels = base, arcs, labels

    @property
    def log_partition(self) -> Tensor:
        """Log partition ``(*batch,)``."""
        return self.arcs.log_partition

    def minus_inf_without_tree(self, value: Tensor) -> Tensor:
        """A value ``(*batch,)``, -inf for items without a tree."""
        return self.arcs.minus_inf_without_tree(value)

    @cached_property
    @torch.enable_grad()
    def entropy(self) -> Tensor:
        """Entropy ``(*batch,)``."""
        return self.arcs.entropy + self.arcs.unflat(self.labels.expected_entropy(self.arcs.marginals))

    def cross_entropy(self, q: "FlatLabeledTrees") -> Tensor:
        """``-E_p[log q]`` ``(*batch,)``; +inf where q forbids what p allows."""
        labels = self.labels.expected_code_length(q.labels, self.arcs.marginals)
        value = self.arcs.cross_entropy(q.arcs) + self.arcs.unflat(labels)
        return torch.where(self.arcs.unflat(self._forbids_label(q)), torch.inf, value)

    def expected_gradient(self) -> Tensor:
        """The trace of the covariance of labelled arcs ``(*batch,)``: two trees differ in an arc, or in its label."""
        return self.arcs.expected_gradient() + self.arcs.unflat(self.labels.expected_difference(self.arcs.marginals))

    def _forbids_label(self, q: "FlatLabeledTrees") -> Tensor:
        """Which items ``(B,)`` have a possible arc with a label that only q forbids."""
        return self.arcs.allows_some(self.labels.forbidden_by(q.labels))

    def log_power_sum(self, order: float) -> Tensor:
        """Log of the sum over labelled trees of their probability to a power ``(*batch,)``."""
        parts = self.base.parts.power(order)
        arcs = self.arcs.with_parts(parts.with_arcs(parts.arcs + self.labels.power(order)))
        return arcs.log_partition - order * self.log_partition

    def expectation(self, r: Tensor) -> Tensor:
        """Expected sums of values of labelled arcs: ``(*batch, n+1, n+1, L, R) -> (*batch, R)``."""
        result = self.arcs.expectation_of(self._values(r).over_arcs)
        return result.reshape(self.arcs.shape + r.shape[len(self.arcs.shape) + 3 :])

    def covariance(self, r: Tensor, s: Tensor) -> Tensor:
        """The covariance of two such sums ``(*batch, R, S)``."""
        left, right = self._values(r), self._values(s)
        result = self.arcs.covariance_of(left.over_arcs, right.over_arcs) + left.covariance_given_arcs(right)
        axes = len(self.arcs.shape) + 3
        return result.reshape(self.arcs.shape + r.shape[axes:] + s.shape[axes:])

    def _values(self, values: Tensor) -> LabelValues:
        return LabelValues(values, self.labels.source.shape, self.labels, self.arcs.marginals)

    def score_variance(self) -> Tensor:
        """The variance of a labelled tree's score ``(*batch,)``."""
        self.arcs.check_arcs_alone("Renyi entropies of labelled trees of orders within 1e-5 of 1")
        arcs = torch.where(self.labels.is_arc, self.base.arcs, 0.0).unsqueeze(-1)
        total = self.labels.reduce(lambda scores: scores) + arcs
        total = self.arcs.unflat(torch.where(total > -torch.inf, total, 0.0))
        return self.covariance(total, total)
