"""Values of labelled arcs, whose sums over a tree have expectations and covariances."""

from functools import cached_property

import torch
from torch import Size, Tensor

from treeparse.trees.labels import sums
from treeparse.trees.labels.scores import FlatLabels
from treeparse.trees.part_values import DenseValues, PartValues, SparseValues, full_values, sparse_entries


class LabelValues:
    """Values ``(*shape, R)`` or ``(*shape)`` of labelled arcs, dense or sparse COO.

    Args:
        values: the values.
        shape: ``(*batch, n+1, n+1, L)``.
        labels: the label scores, which give the probability of a label given its arc.
        marginals: float64 probabilities of arcs ``(B, n+1, n+1)``.
    """

    def __init__(self, values: Tensor, shape: Size, labels: FlatLabels, marginals: Tensor) -> None:
        self.labels, self.marginals, self.shape = labels, marginals, shape
        values, self.count = full_values(values, shape)
        self.sparse = values.layout == torch.sparse_coo
        # Parts in a flat batch: (B, n+1, n+1, L, R), or sparse as given.
        self.values = values if self.sparse else values.reshape(*marginals.shape, labels.count, self.count)

    @cached_property
    def over_arcs(self) -> PartValues:
        """The expected values of every arc's label."""
        if self.sparse:
            return self._mean_entries
        return DenseValues(self.labels.reduce(sums.mean, self.marginals, self.values).flatten(1, 2), self._possible)

    @cached_property
    def entries(self) -> tuple[SparseValues, Tensor, tuple[Tensor, Tensor, Tensor]]:
        """Values by labelled arc, each label's probability given the arc, and item, arc and column of every entry."""
        (items, nodes, _), count = self.marginals.shape, self.labels.count
        parts = nodes * nodes * count
        places, entries = sparse_entries(self._as_sparse(), self.shape, parts)
        item, part, column = places
        arc, label = part // count, part % count
        scores = self.labels.at_labels(item, arc // nodes, arc % nodes, label)
        total = self.labels.log_sums.flatten(1)[item, arc]
        possible = (self.marginals.flatten(1)[item, arc] > 0) & (scores > -torch.inf)
        probs = torch.where(possible, torch.where(possible, scores - total, 0.0).exp(), 0.0)
        values = torch.where(probs > 0, entries, 0.0)
        return SparseValues(places, values, (items, parts), self.count), probs, (item, arc, column)

    def covariance_given_arcs(self, right: "LabelValues") -> Tensor:
        """The summed covariances of values given the arcs, weighted by the arcs' marginals: ``(B, count, count)``."""
        if not self.sparse and not right.sparse:
            pairs = self.marginals, self.values, right.values
            return self.labels.reduce(sums.covariance, *pairs).sum(1)
        (left, probs, (item, arc, _)), (other, _, _) = self.entries, right.entries
        weights = self.marginals.flatten(1)[item, arc]
        together = left.products(other, weights * probs)
        return together - self._mean_entries.products(right._mean_entries, weights)

    @property
    def _possible(self) -> Tensor:
        return (self.marginals > 0).flatten(1)

    @property
    def _mean_entries(self) -> SparseValues:
        """``over_arcs``, entry by entry."""
        labeled, probs, place = self.entries
        items, arcs = self._possible.shape
        return SparseValues(torch.stack(place), labeled.values * probs, (items, arcs), self.count)

    def _as_sparse(self) -> Tensor:
        """The values as a sparse tensor, in the shape they came in."""
        return self.values if self.sparse else self.values.reshape(*self.shape, self.count).to_sparse()
