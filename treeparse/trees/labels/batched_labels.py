"""Labelled trees as one flat batch, from the trees of their arcs and, given the arcs, independent labels."""

import torch
from torch import Tensor

from treeparse.lazy import cached_property, graph_property
from treeparse.trees.flat import FlatTrees
from treeparse.trees.labels import label_sums
from treeparse.trees.labels.label_scores import FlatLabels
from treeparse.trees.part_values import DenseValues, PartValues, SparseValues, full_values, join_values, sparse_entries
from treeparse.trees.parts import power


class FlatLabeledTrees:
    """Sums over labelled trees in float64, before rounding.

    Args:
        base: the trees without labels.
        arcs: the trees where an arc weighs as much as its labels together.
        labels: the label scores.
    """

    base: FlatTrees
    arcs: FlatTrees
    labels: FlatLabels

    def __init__(self, base: FlatTrees, arcs: FlatTrees, labels: FlatLabels) -> None:
        self.base, self.arcs, self.labels = base, arcs, labels

    @property
    def log_partition(self) -> Tensor:
        """Log partition ``(*batch,)``."""
        return self.arcs.log_partition

    def minus_inf_without_tree(self, value: Tensor) -> Tensor:
        """Replace a value ``(*batch,)`` by -inf for items without a tree."""
        return self.arcs.minus_inf_without_tree(value)

    @graph_property
    def entropy(self) -> Tensor:
        """Entropy ``(*batch,)``: of the arcs, and of the labels given the arcs."""
        arcs = self.arcs.entropy
        return arcs + self.arcs.unflat(
            label_sums.expected(label_sums.entropy, self.arcs.marginals, [self.labels.source])
        )

    def cross_entropy(self, q: "FlatLabeledTrees") -> Tensor:
        """Return ``-E_p[log q]`` ``(*batch,)``; +inf where q forbids a tree of p."""
        sources = [self.labels.source, q.labels.source]
        labels = label_sums.expected(label_sums.code_length, self.arcs.marginals, sources)
        value = self.arcs.cross_entropy(q.arcs) + self.arcs.unflat(labels)
        forbids_label = self.arcs.allows_some(self.labels.forbidden_by(q.labels))
        return torch.where(self.arcs.unflat(forbids_label), torch.inf, value)

    def expected_gradient(self) -> Tensor:
        """Return the trace of the covariance of labelled arcs ``(*batch,)``: trees differ in an arc or in its label."""
        arcs, marginals = self.arcs.expected_gradient(), self.arcs.marginals
        return arcs + self.arcs.unflat(
            label_sums.expected(label_sums.difference, marginals.square(), [self.labels.source])
        )

    def log_power_sum(self, order: float) -> Tensor:
        """Return the log of the sum over labelled trees of their probability to a power ``(*batch,)``."""
        parts = self.base.parts.power(order)
        labels = self.labels.reduce(lambda scores: label_sums.log_sum(power(scores, order)))
        arcs = self.arcs.with_parts(parts.with_arcs(parts.arcs + labels))
        return arcs.log_partition - order * self.log_partition

    def expectation(self, r: Tensor) -> Tensor:
        """Return expected sums of values of labelled arcs: ``(*batch, n+1, n+1, L, R) -> (*batch, R)``."""
        result = self.arcs.expectation_of(self._values(r).over_arcs)
        return result.reshape(self.arcs.shape + r.shape[len(self.arcs.shape) + 3 :])

    def covariance(self, r: Tensor, s: Tensor) -> Tensor:
        """Return the covariance ``(*batch, R, S)`` of two sums of values of labelled arcs."""
        left, right = self._values(r), self._values(s)
        result = self.arcs.covariance_of(left.over_arcs, right.over_arcs) + left.covariance_given_arcs(right)
        axes = len(self.arcs.shape) + 3
        return result.reshape(self.arcs.shape + r.shape[axes:] + s.shape[axes:])

    def _values(self, values: Tensor) -> "LabelValues":
        return LabelValues(values, self.labels, self.arcs.marginals)

    def score_variance(self) -> Tensor:
        """Return the variance of a labelled tree's score ``(*batch,)``."""
        arcs = torch.where(self.labels.is_arc, self.base.arcs, 0.0).unsqueeze(-1)
        total = self.labels.reduce(lambda scores: scores) + arcs
        of_labels = self._values(self.arcs.unflat(torch.where(total > -torch.inf, total, 0.0)))
        parts = self.base.parts.map(lambda part: self.arcs.unflat(torch.where(part > -torch.inf, part, 0.0)))
        others = [self.arcs.values_of_kind(part, kind) for kind, part in enumerate(parts.others, 1)]
        given_arcs = join_values([of_labels.over_arcs, *others])
        variance = self.arcs.covariance_of(given_arcs, given_arcs) + of_labels.covariance_given_arcs(of_labels)
        return self.arcs.unflat(variance.flatten())


class LabelValues:
    """Values of labelled arcs, whose sums over a tree have expectations and covariances.

    Args:
        values: ``(*batch, n+1, n+1, L, R)`` or ``(*batch, n+1, n+1, L)``, dense or sparse COO.
        labels: the label scores, which give the probability of a label given its arc.
        marginals: float64 probabilities of arcs ``(B, n+1, n+1)``.
    """

    labels: FlatLabels
    marginals: Tensor
    count: int

    def __init__(self, values: Tensor, labels: FlatLabels, marginals: Tensor) -> None:
        self.labels, self.marginals = labels, marginals
        values, self.count = full_values(values, labels.source.shape)
        self.is_sparse: bool = values.layout == torch.sparse_coo
        self.values: Tensor = values if self.is_sparse else values.reshape(*marginals.shape, labels.count, self.count)

    @cached_property
    def over_arcs(self) -> PartValues:
        """The expected value of every arc's label."""
        if self.is_sparse:
            return self._mean_entries
        return DenseValues(
            self.labels.reduce(label_sums.mean, self.marginals, self.values).flatten(1, 2), self._possible
        )

    @cached_property
    def entries(self) -> tuple[SparseValues, Tensor, tuple[Tensor, Tensor, Tensor]]:
        """Values of labelled arcs, each label's probability given the arc, and item, arc and column of every entry."""
        (items, nodes, _), count = self.marginals.shape, self.labels.count
        parts, shape = nodes * nodes * count, self.labels.source.shape
        sparse = self.values if self.is_sparse else self.values.reshape(*shape, self.count).to_sparse()
        indices, entries = sparse_entries(sparse, shape, parts)
        item, part, column = indices
        arc, label = part // count, part % count
        scores = self.labels.at_labels(item, arc // nodes, arc % nodes, label)
        total = self.labels.log_sums.flatten(1)[item, arc]
        possible = (self.marginals.flatten(1)[item, arc] > 0) & (scores > -torch.inf)
        probs = torch.where(possible, torch.where(possible, scores - total, 0.0).exp(), 0.0)
        values = torch.where(probs > 0, entries, 0.0)
        return SparseValues(indices, values, (items, parts), self.count), probs, (item, arc, column)

    def covariance_given_arcs(self, right: "LabelValues") -> Tensor:
        """Return the summed covariances ``(B, R, S)`` of values given the arcs, weighted by the arcs' marginals."""
        if not self.is_sparse and not right.is_sparse:
            return self.labels.reduce(label_sums.covariance, self.marginals, self.values, right.values).sum(1)
        (left, probs, (item, arc, _)), (other, _, _) = self.entries, right.entries
        weights = self.marginals.flatten(1)[item, arc]
        together = left.products(other, weights * probs)
        return together - self._mean_entries.products(right._mean_entries, weights)

    @property
    def _possible(self) -> Tensor:
        return (self.marginals > 0).flatten(1)

    @property
    def _mean_entries(self) -> SparseValues:
        """The values of ``over_arcs``, entry by entry."""
        labeled, probs, indices = self.entries
        items, arcs = self._possible.shape
        return SparseValues(torch.stack(indices), labeled.values * probs, (items, arcs), self.count)
