"""Minimum risk over some trees of each sentence: drawn ones, or the K best."""

import torch
from torch import Tensor

from treeparse.batch import Batch
from treeparse.errors import TreeparseError
from treeparse.trees import LabeledCRF
from treeparse.trees.estimators import sample_mean, unordered_set

from .likelihood import known_tree
from .objective import Objective
from .risk import Cost, check_cost
from .schedule import Ramp, Schedule, value_at


class SampledRisk(Objective):
    """An unbiased estimate of ``MinimumRisk``, gradient included, from random trees: for costs that are no sum, too.

    To use a cost of a whole tree of your own, override ``cost_of``.

    Args:
        samples: trees a sentence.
        replacement: whether trees may come twice. Without, the estimates vary less (Kool et al. 2020).
        cost: as for ``MinimumRisk``.
    """

    data = "labelled"

    def __init__(self, samples: int = 8, replacement: bool = False, cost: Cost = "las") -> None:
        super().__init__()
        self.samples, self.replacement = check_trees(samples), replacement
        self.cost: Cost = check_cost(cost)

    def forward(self, distribution: LabeledCRF, batch: Batch) -> Tensor:
        """``(B,)`` words; trees are drawn with torch's default generator."""
        if self.replacement:
            trees = distribution.sample((self.samples,))
        else:
            heads, labels, _, _ = distribution.sample_without_replacement(self.samples)
            trees = heads.transpose(0, 1), labels.transpose(0, 1)
        estimate = sample_mean if self.replacement else unordered_set
        return estimate(distribution.log_prob(*trees).T, self.cost_of(*trees, batch).T)

    def cost_of(self, heads: Tensor, labels: Tensor, batch: Batch) -> Tensor:
        """The costs ``(S, B)`` of heads and labels ``(S, B, n+1)``; where there is no tree, any number."""
        return wrong_words(heads, labels, batch, self.cost)


class KBestRisk(Objective):
    """The expected cost among the K best trees alone, as if there were no others (Smith and Eisner 2006).

    To use a cost of a whole tree of your own, override ``cost_of``.

    Args:
        trees: K, a sentence.
        scale: of the log probabilities before they are normalised over the K trees, a number or a ramp; the greater,
            the more the best one counts.
        cost: as for ``MinimumRisk``.
    """

    data = "labelled"

    def __init__(self, trees: int = 8, scale: Schedule = 1.0, cost: Cost = "las") -> None:
        super().__init__()
        ends = (scale.start, scale.end) if isinstance(scale, Ramp) else (scale,)
        if not all(0 < end < torch.inf for end in ends):
            raise TreeparseError(f"The scale of the log probabilities must be a number above 0, not {scale}.")
        self.trees, self.scale = check_trees(trees), scale
        self.cost: Cost = check_cost(cost)

    def forward(self, distribution: LabeledCRF, batch: Batch) -> Tensor:
        """``(B,)`` words."""
        heads, labels, _ = distribution.topk(self.trees)
        trees = heads.transpose(0, 1), labels.transpose(0, 1)
        probs = (value_at(self.scale, self.progress) * distribution.score(*trees)).softmax(0)
        return (probs * self.cost_of(*trees, batch)).sum(0)

    def cost_of(self, heads: Tensor, labels: Tensor, batch: Batch) -> Tensor:
        """The costs ``(K, B)`` of heads and labels ``(K, B, n+1)``; where there is no tree, any number."""
        return wrong_words(heads, labels, batch, self.cost)


def wrong_words(heads: Tensor, labels: Tensor, batch: Batch, cost: Cost) -> Tensor:
    """The numbers of wrong words ``(S, B)`` of trees ``(S, B, n+1)``, float64; of those that cost anything if wrong."""
    gold_heads, gold_labels = known_tree(batch)
    known, wrong = gold_heads >= 0, heads != gold_heads
    if cost == "las":
        known, wrong = known & (gold_labels >= 0), wrong | (labels != gold_labels)
    return (known & wrong).sum(-1).double()


def check_trees(count: int) -> int:
    """The number of trees, or an error if there are none."""
    if count < 1:
        raise TreeparseError(f"A sentence needs at least one tree, not {count}.")
    return count
