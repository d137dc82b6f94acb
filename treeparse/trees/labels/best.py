"""The best labelled trees, with the labels of an arc scored only if the arc may be in one of them."""

from collections.abc import Callable
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from treeparse.batch import readable_without_sync
from treeparse.trees.flat import FlatTrees
from treeparse.trees.labels import sums
from treeparse.trees.labels.kbest import LabeledKBest
from treeparse.trees.labels.scores import FlatLabels
from treeparse.trees.labels.trees import LabeledTree

ROUNDS = 8  # in which the arcs of the best tree are scored; items that need more have most of their arcs scored

ArcScores = Callable[[Tensor, Tensor, Tensor], Tensor]  # of arcs (A,), given by item, head and dependent: (A,)
ItemScores = Callable[[Tensor], Tensor]  # of all arcs of items (I,): (I, n+1, n+1)


class BestLabeled:
    """The best labelled trees of a flat batch.

    Args:
        trees: the trees, without labels.
        labels: the label scores.
        validate: whether items without a tree raise.
    """

    def __init__(self, trees: FlatTrees, labels: FlatLabels, *, validate: bool) -> None:
        self.trees, self.labels, self.validate = trees, labels, validate

    @property
    def _bound(self) -> float | None:
        """The bound of label scores; None on a device, where every round of a search would cause a sync."""
        return self.labels.source.bound if readable_without_sync(self.trees.arcs) else None

    def _over(self, arcs: Tensor, *, alone: bool = False) -> FlatTrees:
        """The trees under other scores of arcs ``(B, n+1, n+1)``; if ``alone``, other allowed parts score 0."""
        parts = self.trees.parts.neutral() if alone else self.trees.parts
        return self.trees.with_parts(parts.with_arcs(arcs), validate=self.validate)

    @cached_property
    def under_best_labels(self) -> FlatTrees:
        """The trees, where the score of an arc counts its best label."""
        return self._over(self.trees.arcs.detach() + self.labels.best())

    def mode(self) -> LabeledTree:
        """Heads and labels ``(*batch, n+1)`` of the best labelled trees."""
        arcs, bound = self.trees.arcs.detach(), self._bound
        if bound is None:
            return self._with_best_labels(self.under_best_labels.heads)

        def best_scores(item: Tensor, head: Tensor, dependent: Tensor) -> Tensor:
            return arcs[item, head, dependent] + self.labels.at(item, head, dependent).detach().amax(-1)

        def best_scores_of_items(items: Tensor) -> Tensor:
            return arcs[items] + self.labels.of_items(items).best()

        return self._with_best_labels(best_under_bounds(self._over(arcs + bound), best_scores, best_scores_of_items))

    def minimum_risk(self, weighted: FlatTrees) -> LabeledTree:
        """Heads and labels ``(*batch, n+1)`` of the trees whose labelled arcs have the greatest summed marginals.

        Args:
            weighted: the trees, where an arc weighs what its labels weigh together.
        """
        marginals, allowed = weighted.marginals.detach(), weighted.arcs > -torch.inf

        def greatest(scores: Tensor, marginals: Tensor) -> Tensor:
            return marginals * sums.log_probs(scores).amax(-1).exp()

        def of_arcs(item: Tensor, head: Tensor, dependent: Tensor) -> Tensor:
            return greatest(self.labels.at(item, head, dependent).detach(), marginals[item, head, dependent])

        def of_items(items: Tensor) -> Tensor:
            expected = self.labels.of_items(items).reduce(greatest, marginals[items]).detach()
            return torch.where(allowed[items], expected, -torch.inf)

        if self._bound is None:
            every = torch.arange(len(marginals), device=marginals.device)
            return self._with_best_labels(self._over(of_items(every), alone=True).heads)
        bounds = self._over(torch.where(allowed, marginals, -torch.inf), alone=True)
        return self._with_best_labels(best_under_bounds(bounds, of_arcs, of_items))

    def _with_best_labels(self, heads: Tensor) -> LabeledTree:
        """Add the best label of each arc to trees ``(B, n+1)``: ``(*batch, n+1)`` both."""
        labels = torch.where(heads >= 0, self.labels.of_trees(heads).argmax(-1), -1)
        return LabeledTree(self.trees.unflat(heads), self.trees.unflat(labels))

    def k_best(self, count: int) -> LabeledKBest:
        """Start a list of the best labelled trees and make the first ``count`` of an item.

        Raises:
            TreeparseError: for trees with parts other than arcs, whose scores no list of labellings counts.
        """
        self.trees.check_arcs_alone("Lists of the best labelled trees")
        best = self.under_best_labels
        trees = best.family.k_best(best.parts, best.lengths)
        made = LabeledKBest(trees, self.trees.arcs, best.lengths, self.labels)
        made.extend(count, threads=torch.get_num_threads())
        best.require(torch.from_numpy(made.scores[:, 0] > -np.inf))
        return made


def best_under_bounds(trees: FlatTrees, scores_of: ArcScores, scores_of_items: ItemScores) -> Tensor:
    """Return heads ``(B, n+1)`` of the best trees by scores of arcs that are computed on demand; -1 where none is.

    The best tree under the bounds is the best of all once all its arcs are scored, because no other tree scores more
    than its bound. So each round scores the arcs of the best tree so far and lowers their bounds to these scores.

    Args:
        trees: the trees, under upper bounds of the scores of arcs, -inf for forbidden arcs.
        scores_of: the scores of arcs.
        scores_of_items: the scores of all arcs of items, for the few items whose bounds are too loose.
    """
    heads, bounds = trees.heads.clone(), trees.arcs.clone()
    is_known = torch.zeros_like(bounds, dtype=torch.bool)
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
        heads[items] = trees.best_of_items(items, bounds[items])
    heads[items] = trees.best_of_items(items, scores_of_items(items))
    return heads
