"""The best labelled trees, with the labels of an arc scored only if the arc may be in one of them."""

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from treeparse.batch import readable_without_sync
from treeparse.kernels import FloatArray, IntArray
from treeparse.kernels.lists.labeled import LabeledTrees
from treeparse.lazy import cached_property
from treeparse.trees.batched_trees import BatchedTrees
from treeparse.trees.families import KBest
from treeparse.trees.families.padded_arrays import integers
from treeparse.trees.labels import label_sums
from treeparse.trees.labels.batched_labels import BatchedLabels
from treeparse.trees.tree_lists import LabeledTree

FIRST_TREES = 4  # unlabelled trees that a list begins with; their number doubles as long as it is too small
NEAR, MOST_NEAR = 2.0, 16  # nats below the highest bound of a word, and arcs a word
# Nodes beyond which rounds cost more than the labels of near arcs, with 0, 1 or more kinds of part besides arcs.
MANY = 400, 100, 16
ROUNDS = 8  # of scoring the arcs of the best tree; items that need more have most of their arcs scored

ArcScores = Callable[[Tensor, Tensor, Tensor], Tensor]  # item, head and dependent (A,) of arcs -> scores (A,)
ItemScores = Callable[[Tensor], Tensor]  # items (I,) -> scores of all their arcs (I, n+1, n+1)


class LabeledKBest:
    """A list of labelled trees, best first: a ``KBest`` with ``labels`` beside the heads.

    Args:
        listed: the list of trees, each under the scores of its parts and the best labels of its arcs.
        trees: the trees under the scores of their parts.
        labels: the label scores, which are read at the arcs of the listed trees only.
    """

    def __init__(self, listed: KBest, trees: BatchedTrees, labels: BatchedLabels) -> None:
        self._listed, self._trees, self._arc_scores, self._label_scores = listed, trees, trees.arcs.detach(), labels
        items, nodes = trees.arcs.shape[:2]
        self._labeled = LabeledTrees(integers(trees.lengths), nodes)
        # A row for each arc of the trees: the sums of arc and label score, best first, and their labels.
        self._values, self._labels = np.empty((0, labels.count)), np.empty((0, labels.count), np.int64)
        self._row_of_arc = np.full((items, nodes, nodes), -1)
        self._rows_of_trees = np.empty((items, 0, nodes), np.int64)
        self._others = np.empty((items, 0))  # what trees score besides arcs and labels
        self.heads, self.labels = (np.empty((items, 0, nodes), np.int64) for _ in range(2))

    @property
    def scores(self) -> FloatArray:
        """Summed scores ``(B, made)``, -inf past the number of labelled trees."""
        return self._labeled.scores

    def extend(self, count: int, threads: int = 1) -> None:
        """Make the list ``count`` labelled trees an item long; trees made before count too."""
        while self._labeled.extend(
            count, self._listed.heads, self._rows_of_trees, self._values, others=self._others, threads=threads
        ):
            listed = self._rows_of_trees.shape[1]
            self._listed.extend(min(count, max(FIRST_TREES, 2 * listed)), threads=threads)
            self._add_arcs(self._listed.heads[:, listed:])
        trees = self._labeled.trees[..., None]
        self.heads: NDArray[np.int64] = np.where(
            trees >= 0, np.take_along_axis(self._listed.heads, trees.clip(0), 1), -1
        )
        rows = np.take_along_axis(self._rows_of_trees, trees.clip(0), 1)
        is_word = self.heads >= 0
        self.labels: NDArray[np.int64] = np.full(self.heads.shape, -1)
        self.labels[is_word] = self._labels[rows[is_word], self._labeled.ranks[is_word]]

    def _add_arcs(self, heads: IntArray) -> None:
        """Sort the labels of the arcs of new trees ``(B, T, n+1)`` that no earlier tree has."""
        is_word = heads >= 0
        item, _, dependent = is_word.nonzero()
        head = heads[is_word]
        in_new_trees = np.zeros(self._row_of_arc.shape, np.bool_)
        in_new_trees[item, head, dependent] = True
        new = (in_new_trees & (self._row_of_arc < 0)).nonzero()
        self._row_of_arc[new] = len(self._values) + np.arange(len(new[0]))
        arcs = [torch.from_numpy(index).to(self._arc_scores.device) for index in new]
        scores = self._label_scores.at(*arcs).detach()
        values, labels = scores.sort(dim=-1, descending=True, stable=True)  # of equal labels the lowest first
        values = values + self._arc_scores[tuple(arcs)].unsqueeze(-1)
        self._values = np.concatenate([self._values, values.cpu().numpy()])
        self._labels = np.concatenate([self._labels, labels.cpu().numpy()])
        rows = np.full(heads.shape, -1)
        rows[is_word] = self._row_of_arc[item, head, dependent]
        self._rows_of_trees = np.concatenate([self._rows_of_trees, rows], 1)
        trees = torch.from_numpy(heads).transpose(0, 1).to(self._arc_scores.device)
        others = sum((part.sum(-1) for part in self._trees.other_scores_of(trees)), torch.zeros(trees.shape[:2]))
        self._others = np.concatenate([self._others, others.detach().T.cpu().numpy()], 1)


class BestLabeled:
    """The best labelled trees of a batch.

    Args:
        trees: the trees, without labels.
        labels: the label scores.
        validate: whether items without a tree raise.
    """

    def __init__(self, trees: BatchedTrees, labels: BatchedLabels, *, validate: bool) -> None:
        self.trees, self.labels, self.validate = trees, labels, validate

    @property
    def _bound(self) -> float | None:
        """The bound of label scores; None on a device, because every round of the search would cause a sync."""
        return self.labels.source.bound if readable_without_sync(self.trees.arcs) else None

    def _over(self, arcs: Tensor, *, alone: bool = False) -> BatchedTrees:
        """Return the trees under other scores of arcs ``(B, n+1, n+1)``; if ``alone``, other allowed parts score 0."""
        parts = self.trees.original_parts.neutral() if alone else self.trees.original_parts
        return self.trees.with_parts(parts.with_arcs(arcs), validate=self.validate)

    @cached_property
    def under_best_labels(self) -> BatchedTrees:
        """The trees, where an arc's score includes that of its best label."""
        return self._over(self.trees.arcs.detach() + self.labels.best())

    def mode(self) -> LabeledTree:
        """Return heads and labels ``(*batch, n+1)`` of the best labelled trees."""
        return self._with_best_labels(self._heads_of_mode())

    def _heads_of_mode(self) -> Tensor:
        arcs, bound = self.trees.arcs.detach(), self._bound
        if bound is None:
            return self.under_best_labels.heads

        def best_scores(item: Tensor, head: Tensor, dependent: Tensor) -> Tensor:
            return arcs[item, head, dependent] + self.labels.at(item, head, dependent).detach().amax(-1)

        def best_scores_of_items(items: Tensor) -> Tensor:
            return arcs[items] + self.labels.of_items(items).best()

        near = NEAR if arcs.shape[-1] > MANY[min(len(self.trees.family.part_kinds), 2)] else None
        return best_under_bounds(self._over(arcs + bound), best_scores, best_scores_of_items, near)

    def arcs_first(self) -> LabeledTree:
        """Return the best trees by the scores of their parts, with the best label of each arc, ``(*batch, n+1)`` both.

        Items whose tree has an arc without an allowed label get the best labelled tree.
        """
        heads = self.trees.heads
        scores, labels = self.labels.best_of_trees(heads)
        is_impossible = ((heads >= 0) & (scores == -torch.inf)).any(-1, keepdim=True)
        if not readable_without_sync(heads) or bool(is_impossible.any()):
            return self._with_best_labels(torch.where(is_impossible, self._heads_of_mode(), heads))
        return self._labeled(heads, labels)

    def minimum_risk(self, weighted: BatchedTrees) -> LabeledTree:
        """Return heads and labels ``(*batch, n+1)`` of the trees of the greatest summed marginals of labelled arcs.

        In ``weighted``, the weight of an arc is the summed weight of its labels.
        """
        marginals, allowed = weighted.marginals.detach(), weighted.arcs > -torch.inf

        def greatest(scores: Tensor, marginals: Tensor) -> Tensor:
            return marginals * label_sums.log_probs(scores).amax(-1).exp()

        def of_arcs(item: Tensor, head: Tensor, dependent: Tensor) -> Tensor:
            return greatest(self.labels.at(item, head, dependent).detach(), marginals[item, head, dependent])

        def of_items(items: Tensor) -> Tensor:
            expected = self.labels.of_items(items).reduce(greatest, marginals[items]).detach()
            return torch.where(allowed[items], expected, -torch.inf)

        if self._bound is None:
            items = torch.arange(len(marginals), device=marginals.device)
            return self._with_best_labels(self._over(of_items(items), alone=True).heads)
        bounds = self._over(torch.where(allowed, marginals, -torch.inf), alone=True)
        return self._with_best_labels(best_under_bounds(bounds, of_arcs, of_items))

    def _with_best_labels(self, heads: Tensor) -> LabeledTree:
        """Add the best label of each arc to trees ``(B, n+1)``: ``(*batch, n+1)`` both."""
        return self._labeled(heads, self.labels.best_of_trees(heads)[1])

    def _labeled(self, heads: Tensor, labels: Tensor) -> LabeledTree:
        """Return trees ``(*batch, n+1)`` from heads, and the labels of those that are not -1, ``(B, n+1)`` both."""
        labels = torch.where(heads >= 0, labels, -1)
        return LabeledTree(self.trees.in_batch_shape(heads), self.trees.in_batch_shape(labels))

    def k_best(self, count: int) -> LabeledKBest:
        """Start a list of the best labelled trees, with the first ``count`` of each item."""
        best = self.under_best_labels
        best.check_values()
        result = LabeledKBest(best.family.k_best(best.original_parts, best.lengths), self.trees, self.labels)
        result.extend(count, threads=torch.get_num_threads())
        best.require(torch.from_numpy(result.scores[:, 0] > -np.inf))
        return result


def best_under_bounds(
    trees: BatchedTrees, scores_of: ArcScores, scores_of_items: ItemScores, near: float | None = None
) -> Tensor:
    """Return heads ``(B, n+1)`` of the best trees by arc scores that are computed on demand; -1 without a tree.

    The best tree under the bounds is the best of all once all its arcs are scored, because no other tree scores more
    than its bound. So each round scores the arcs of the best tree so far and lowers their bounds to these scores.

    Args:
        trees: the trees, under upper bounds of the scores of arcs, -inf for forbidden arcs.
        scores_of: the scores of arcs.
        scores_of_items: the scores of all arcs of items, for the few items whose bounds are too loose.
        near: arcs whose bounds are so little below the highest one of their word are scored before the first round, of
            each word the ``MOST_NEAR`` of the highest bounds.
    """
    bounds = torch.where(trees.is_arc, trees.arcs, -torch.inf)
    is_known = torch.zeros_like(bounds, dtype=torch.bool)
    if near is not None:
        highest = bounds.topk(min(MOST_NEAR, bounds.shape[1]), 1).values
        least = torch.maximum(highest[:, :1] - near, highest[:, -1:])
        is_known = (bounds >= least) & (bounds > -torch.inf)
        arcs = is_known.nonzero(as_tuple=True)
        bounds[arcs] = scores_of(*arcs).to(bounds.dtype)
        trees = trees.with_parts(trees.original_parts.with_arcs(bounds))
    heads = trees.heads.clone()
    items = torch.arange(len(heads), device=heads.device)
    for _ in range(ROUNDS):
        rows, dependents = (heads[items] >= 0).nonzero(as_tuple=True)
        arcs = items[rows], heads[items[rows], dependents], dependents
        is_new = ~is_known[arcs]
        item, head, dependent = (part[is_new] for part in arcs)
        scores = scores_of(item, head, dependent).to(bounds.dtype)
        lower = scores < bounds[item, head, dependent]
        bounds[item, head, dependent] = scores
        is_known[item, head, dependent] = True
        items = item[lower].unique()
        if not len(items):
            return heads
        heads[items] = trees.best_of_items(items, bounds[items] if len(items) < len(bounds) else bounds)
    heads[items] = trees.best_of_items(items, scores_of_items(items))
    return heads
