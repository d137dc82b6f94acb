"""Labels of a batch of one batch dimension: their scores, and the sums over labelled trees, before rounding."""

from collections.abc import Callable

import torch
from torch import Tensor

from treeparse.batch import readable_without_sync
from treeparse.lazy import cached_property, graph_property
from treeparse.trees.batched_trees import BatchedTrees
from treeparse.trees.labels import label_sums
from treeparse.trees.labels.sources import LabelSource
from treeparse.trees.look_ups import gather
from treeparse.trees.part_values import DenseValues, PartValues, SparseValues, full_values, join_values, sparse_entries
from treeparse.trees.parts import power
from treeparse.trees.randomness import uniforms
from treeparse.trees.tree_lists import TreeMarginals

SALT = 0x6C6162656C73  # gives the draws of labels another stream than the draws of trees


class BatchedLabels:
    """Log weights of labels ``(B, n+1, n+1, L)`` in any dtype, which methods return in float64.

    Args:
        source: the scores; entries that are no arc are ignored.
        is_arc: which arcs may be in a tree, ``(B, n+1, n+1)`` bool.
    """

    def __init__(self, source: LabelSource, is_arc: Tensor) -> None:
        self.source, self.is_arc = source, is_arc
        self.count: int = source.shape[-1]

    @property
    def device(self) -> torch.device:
        return self.source.device

    def reduce(self, function: Callable[..., Tensor], *others: Tensor) -> Tensor:
        """Apply a function to label scores and other tensors ``(B, n+1, n+1, ...)``, by slices of heads."""
        return label_sums.by_heads(function, self.is_arc, [self.source], others)

    @graph_property
    def log_sums(self) -> Tensor:
        """Log of the summed weight of every arc's labels ``(B, n+1, n+1)``."""
        from_source = self.source.log_sums(self.is_arc)
        return self.reduce(label_sums.log_sum) if from_source is None else from_source

    def best(self) -> Tensor:
        """The score of every arc's best label ``(B, n+1, n+1)``, a constant."""
        return self.reduce(lambda scores: scores.amax(-1)).detach()

    def forbidden_by(self, q: "BatchedLabels") -> Tensor:
        """Tell which arcs ``(B, n+1, n+1)`` have a label that q forbids and these scores allow."""
        if self.source.support is not None and self.source.support == q.source.support:
            return torch.zeros_like(self.is_arc)

        def some_label(scores: Tensor, scores_of_q: Tensor) -> Tensor:
            return ((scores > -torch.inf) & (scores_of_q == -torch.inf)).any(-1)

        return label_sums.by_heads(some_label, self.is_arc, [self.source, q.source])

    def log_probs(self) -> Tensor:
        """Return log probabilities of all labels given their arcs ``(B, n+1, n+1, L)``, float64 constants."""
        return self.reduce(label_sums.log_probs).detach()

    def log_probs_of_trees(self, heads: Tensor, labels: Tensor) -> Tensor:
        """Return log probabilities ``(S, B)`` of trees' labels given their arcs, from heads and labels ``(S, B, n+1)``.

        A word without a head adds 0.
        """
        return self.log_probs_of_arcs(heads, labels).sum(-1)

    def log_probs_of_arcs(self, heads: Tensor, labels: Tensor) -> Tensor:
        """Return the log probability ``(S, B, n+1)`` of each word's label given its arc; 0 without a head.

        It is -inf for what is no arc, and on arcs without a label.
        """
        scores = self.of_labeled_trees(heads, labels)
        sums = self._at_heads(torch.where(self.is_arc, self.log_sums, -torch.inf), heads)
        return torch.where(heads >= 0, torch.where(sums > -torch.inf, scores - sums, -torch.inf), 0.0)

    def _at_heads(self, values: Tensor, heads: Tensor) -> Tensor:
        """Return the values ``(S, B, n+1)`` that arcs of trees have ``(B, n+1, n+1)``; 0 without a head."""
        index = heads.clamp(0, heads.shape[-1] - 1).unsqueeze(2)
        return torch.where(heads >= 0, gather(values.expand(len(heads), *values.shape), 2, index).squeeze(2), 0.0)

    def tree_marginals(self, marginals: Tensor, heads: Tensor, labels: Tensor) -> TreeMarginals:
        """Return the marginals of the arcs, and of the labelled arcs, of trees ``(S, B, n+1)``: constants.

        Args:
            marginals: of all arcs ``(B, n+1, n+1)``.
            heads: heads of the trees.
            labels: labels of the trees.
        """
        arcs = torch.where(heads < heads.shape[-1], self._at_heads(marginals, heads), 0.0)
        known = (arcs > 0) & (labels >= 0) & (labels < self.count)
        log_probs = self.log_probs_of_arcs(torch.where(known, heads, -1), labels).detach()
        return TreeMarginals(arcs, torch.where(known, arcs * log_probs.exp(), 0.0))

    def of_items(self, items: Tensor) -> "BatchedLabels":
        """Select the scores of items ``(I,)``, in order."""
        if len(items) == len(self.is_arc):
            return self
        return BatchedLabels(self.source.of_items(items), self.is_arc[items])

    def at(self, item: Tensor, head: Tensor, dependent: Tensor) -> Tensor:
        """Return the scores of arcs ``(A, L)``."""
        return self.source.at(item, head, dependent).to(torch.float64)

    def at_labels(self, item: Tensor, head: Tensor, dependent: Tensor, label: Tensor) -> Tensor:
        """Return the score ``(A,)`` of one label of each arc."""
        return self.source.at_labels(item, head, dependent, label).to(torch.float64)

    def of_trees(self, heads: Tensor) -> Tensor:
        """Return the label scores ``(B, n+1, L)`` of the arcs of one tree an item ``(B, n+1)``; 0 for no head."""
        return self._at_arcs(heads.unsqueeze(0), self.source.at)[0]

    def best_of_trees(self, heads: Tensor) -> tuple[Tensor, Tensor]:
        """Return the score of the best label of each arc of one tree an item, and the label: ``(B, n+1)`` both.

        Of equal labels the first is the best. Constants; 0 for no head.
        """
        if not readable_without_sync(heads):
            scores, labels = self.of_trees(heads).detach().max(-1)
            return scores, labels
        is_arc = heads >= 0
        item, dependent = is_arc.nonzero(as_tuple=True)
        found = self.source.at(item, heads[is_arc], dependent).detach().double().max(-1)
        scores, labels = found.values.new_zeros(heads.shape), torch.zeros_like(heads)
        scores[is_arc], labels[is_arc] = found.values, found.indices
        return scores, labels

    def of_labeled_trees(self, heads: Tensor, labels: Tensor) -> Tensor:
        """Return the score ``(S, B, n+1)`` of each word's label on its arc; 0 for no head."""
        return self._at_arcs(heads, self.source.at_labels, labels.clamp(0, self.count - 1))

    def _at_arcs(self, heads: Tensor, look_up: Callable[..., Tensor], *others: Tensor) -> Tensor:
        """Look up the arcs of trees ``(S, B, n+1)``, with other tensors of that shape: float64, 0 for no head."""
        is_arc = heads >= 0
        if torch.is_grad_enabled() or not readable_without_sync(heads):
            found = look_up(*_arcs_of(heads), *map(torch.flatten, others)).unflatten(0, heads.shape)
            return torch.where(is_arc if found.dim() == heads.dim() else is_arc.unsqueeze(-1), found, 0.0).double()
        _, item, dependent = is_arc.nonzero(as_tuple=True)
        found = look_up(item, heads[is_arc], dependent, *(other[is_arc] for other in others)).double()
        result = found.new_zeros(*heads.shape, *found.shape[1:])
        result[is_arc] = found
        return result

    def sample_of_trees(self, heads: Tensor, seeds: Tensor) -> Tensor:
        """Draw a label for every word of trees ``(S, B, n+1)``, given its arc, by a seed an item ``(B,)``.

        Labels are drawn on the scores' device, without a device sync. The draws are the same on any device, except
        where a random number falls within rounding of the border between two labels.
        """
        step = max(1, label_sums.SLICE // (max(heads[0].numel(), 1) * self.count)) if len(heads) else 1
        numbers = uniforms(seeds, len(heads), heads.shape[-1], salt=SALT, device=heads.device).transpose(0, 1)
        parts = zip(heads.split(step), numbers.split(step), strict=True)
        return torch.cat([self._draw_labels(*part) for part in parts]) if len(heads) else heads.clone()

    def _draw_labels(self, heads: Tensor, numbers: Tensor) -> Tensor:
        """Draw labels by uniform numbers ``(S, B, n+1)``, with the label scores of all these trees in memory."""
        item, head, node = _arcs_of(heads)
        if readable_without_sync(heads):  # most arcs are in many trees: each arc's label scores are read once
            size = heads.shape[-1]
            arcs, which = ((item * size + head) * size + node).unique(return_inverse=True)
            bounds = self._bounds(arcs // (size * size), arcs // size % size, arcs % size)[which]
        else:
            bounds = self._bounds(item, head, node)
        last = (bounds < bounds[:, -1:]).sum(-1)  # the last possible label, because rounding may lead past it
        chosen = (bounds <= (numbers.flatten() * bounds[:, -1]).unsqueeze(-1)).sum(-1)
        return torch.where(heads >= 0, torch.minimum(chosen, last).reshape(heads.shape), -1)

    def _bounds(self, item: Tensor, head: Tensor, dependent: Tensor) -> Tensor:
        """Return the cumulative probabilities of the labels of arcs ``(A, L)``."""
        return label_sums.log_probs(self.at(item, head, dependent)).exp().cumsum(-1)

    def labelings(self, trees: Tensor, item: int, words: int) -> tuple[Tensor, Tensor]:
        """Return all labelled trees of an item, heads and labels, whose trees are ``(trees, n+1)``."""
        choices = [torch.tensor([-1]), *[torch.arange(self.count)] * words]
        grid = torch.cartesian_prod(*choices).reshape(-1, words + 1)
        labels = torch.nn.functional.pad(grid, (0, trees.shape[-1] - 1 - words), value=-1).to(trees.device)
        heads, labels = trees.repeat_interleave(len(labels), 0), labels.repeat(len(trees), 1)
        of_item = self.of_items(torch.tensor([item], device=self.device))
        scores = of_item.of_labeled_trees(heads.unsqueeze(1), labels.unsqueeze(1))
        allowed = (scores > -torch.inf).all(-1).squeeze(1)
        return heads[allowed], labels[allowed]


def _arcs_of(heads: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return item, head and dependent of every arc of trees ``(S, B, n+1)``.

    Entries that are no word have an arc too, because batches then come in few shapes, for which torch compiles kernels.
    """
    size = heads.shape[-1]
    item = torch.arange(heads.shape[1], device=heads.device).unsqueeze(-1).expand(heads.shape)
    node = torch.arange(size, device=heads.device).expand(heads.shape)
    return item.flatten(), heads.clamp(0, size - 1).flatten(), node.flatten()


class BatchedLabeledTrees:
    """Sums over labelled trees in float64, before rounding.

    Args:
        base: the trees without labels.
        arcs: the trees where an arc weighs as much as its labels together.
        labels: the label scores.
    """

    def __init__(self, base: BatchedTrees, arcs: BatchedTrees, labels: BatchedLabels) -> None:
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
        return arcs + self.arcs.in_batch_shape(
            label_sums.expected(label_sums.entropy, self.arcs.marginals, [self.labels.source])
        )

    def cross_entropy(self, q: "BatchedLabeledTrees") -> Tensor:
        """Return ``-E_p[log q]`` ``(*batch,)``; +inf where q forbids a tree of p."""
        sources = [self.labels.source, q.labels.source]
        labels = label_sums.expected(label_sums.code_length, self.arcs.marginals, sources)
        value = self.arcs.cross_entropy(q.arcs) + self.arcs.in_batch_shape(labels)
        forbids_label = self.arcs.allows_some(self.labels.forbidden_by(q.labels))
        return torch.where(self.arcs.in_batch_shape(forbids_label), torch.inf, value)

    def expected_gradient(self) -> Tensor:
        """Return the trace of the covariance of labelled arcs ``(*batch,)``: trees differ in an arc or in its label."""
        arcs, marginals = self.arcs.expected_gradient(), self.arcs.marginals
        return arcs + self.arcs.in_batch_shape(
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
        of_labels = self._values(self.arcs.in_batch_shape(torch.where(total > -torch.inf, total, 0.0)))
        parts = self.base.parts.map(lambda part: self.arcs.in_batch_shape(torch.where(part > -torch.inf, part, 0.0)))
        others = [self.arcs.values_of_kind(part, kind) for kind, part in enumerate(parts.others, 1)]
        given_arcs = join_values([of_labels.over_arcs, *others])
        variance = self.arcs.covariance_of(given_arcs, given_arcs) + of_labels.covariance_given_arcs(of_labels)
        return self.arcs.in_batch_shape(variance.flatten())


class LabelValues:
    """Values of labelled arcs, whose sums over a tree have expectations and covariances.

    Args:
        values: ``(*batch, n+1, n+1, L, R)`` or ``(*batch, n+1, n+1, L)``, dense or sparse COO.
        labels: the label scores, which give the probability of a label given its arc.
        marginals: float64 probabilities of arcs ``(B, n+1, n+1)``.
    """

    def __init__(self, values: Tensor, labels: BatchedLabels, marginals: Tensor) -> None:
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
