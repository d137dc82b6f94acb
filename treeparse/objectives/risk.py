"""Costs of trees: the expected cost over all, sampled or the K best trees, and the margin by cost."""

from typing import ClassVar, Literal

import torch
from torch import Tensor

from treeparse.batch import Batch
from treeparse.errors import TreeparseError
from treeparse.objectives.likelihood import known_tree, known_trees
from treeparse.objectives.objective import Data, Objective, Ramp, Schedule, check_choice, check_nonnegative, value_at
from treeparse.trees import LabeledCRF, LabeledTree
from treeparse.trees.estimators import sample_mean, unordered_set
from treeparse.trees.parts import arcs_of

Cost = Literal["las", "uas"]


class MinimumRisk(Objective):
    """The expected number of wrong words, exactly: nothing is sampled ([Exp] §6.1).

    Args:
        cost: "las" counts words whose head or label is wrong, "uas" counts words whose head is wrong.
    """

    data: ClassVar[Data] = "labelled"

    def __init__(self, cost: Cost = "las") -> None:
        super().__init__()
        self.cost: Cost = check_choice("cost", cost, Cost)

    def forward(self, distribution: LabeledCRF, batch: Batch) -> Tensor:
        """``(B,)`` words; a word of unknown head, or for "las" of unknown label, counts 0."""
        heads, labels = known_tree(batch)
        if self.cost == "uas":
            return (1 - distribution.expected_uas(heads)) * (heads >= 0).sum(-1)
        return distribution.risk(heads, labels) * ((heads >= 0) & (labels >= 0)).sum(-1)


class ListedRisk(Objective):
    """A base of objectives over listed trees; override ``cost_of`` for a custom cost of whole trees."""

    data: ClassVar[Data] = "labelled"
    cost: Cost

    def cost_of(self, heads: Tensor, labels: Tensor, batch: Batch) -> Tensor:
        """Return the costs ``(S, B)`` of heads and labels ``(S, B, n+1)``; any number for an empty slot."""
        return wrong_words(heads, labels, batch, self.cost)


class SampledRisk(ListedRisk):
    """An unbiased estimate of the expected cost of a tree, and of its gradient, from sampled trees.

    With a ``cost`` of ``MinimumRisk`` it estimates that; a subclass's ``cost_of`` may look at the whole tree.

    Args:
        samples: the number of trees of a sentence.
        replacement: whether to sample with replacement. Estimates without it vary less (Kool et al. 2020).
        cost: as for ``MinimumRisk``.
    """

    def __init__(self, samples: int = 8, replacement: bool = False, cost: Cost = "las") -> None:
        super().__init__()
        self.samples, self.replacement = check_trees(samples), replacement
        self.cost: Cost = check_choice("cost", cost, Cost)

    def forward(self, distribution: LabeledCRF, batch: Batch) -> Tensor:
        """``(B,)`` words; trees are drawn with torch's default generator."""
        if self.replacement:
            trees, estimate = distribution.sample((self.samples,)), sample_mean
        else:
            trees, estimate = distribution.sample_without_replacement(self.samples)[:2], unordered_set
        return estimate(distribution.log_prob(*trees), self.cost_of(*trees, batch))


class KBestRisk(ListedRisk):
    """The expected cost among the K best trees, whose probabilities are normalised to 1 (Smith and Eisner 2006).

    Args:
        trees: K, the number of trees of a sentence.
        scale: a factor of the log probabilities before they are normalised over the K trees, a number or a ramp. A
            greater scale gives the best tree more weight.
        cost: as for ``MinimumRisk``.
    """

    def __init__(self, trees: int = 8, scale: Schedule = 1.0, cost: Cost = "las") -> None:
        super().__init__()
        ends = (scale.start, scale.end) if isinstance(scale, Ramp) else (scale,)
        if not all(0 < end < torch.inf for end in ends):
            raise TreeparseError(f"scale must be a number above 0, or a ramp of such numbers, got {scale}.")
        self.trees, self.scale = check_trees(trees), scale
        self.cost: Cost = check_choice("cost", cost, Cost)

    def forward(self, distribution: LabeledCRF, batch: Batch) -> Tensor:
        """``(B,)`` words."""
        trees = distribution.topk(self.trees)[:2]
        probs = (value_at(self.scale, self.progress) * distribution.score(*trees)).softmax(0)
        return (probs * self.cost_of(*trees, batch)).sum(0)


def wrong_words(heads: Tensor, labels: Tensor, batch: Batch, cost: Cost) -> Tensor:
    """Count wrong words of trees ``(S, B, n+1)``: ``(S, B)`` float64; unknown gold heads and labels cost nothing."""
    gold_heads, gold_labels = known_tree(batch)
    known, wrong = gold_heads >= 0, heads != gold_heads
    if cost == "las":
        known, wrong = known & (gold_labels >= 0), wrong | (labels != gold_labels)
    return (known & wrong).sum(-1).double()


def check_trees(count: int) -> int:
    """Return the number of trees of a sentence, or raise if it is below 1."""
    if count < 1:
        raise TreeparseError(f"The number of trees of a sentence must be at least 1, got {count}.")
    return count


class MaxMargin(Objective):
    """The structured hinge loss (Taskar et al. 2005): the greatest score plus cost of a tree, less the gold score.

    A tree costs its number of words with a wrong head or label. A partial gold tree counts as its best completion;
    unknown heads and labels cost nothing. If the distribution has projective trees alone, words with a non-projective
    arc count as words of unknown head.

    Args:
        cost: the cost of a wrong word; 0 gives the loss of the structured perceptron (Collins 2002).
    """

    data: ClassVar[Data] = "labelled"
    needs_sums = False

    def __init__(self, cost: float = 1.0) -> None:
        super().__init__()
        self.cost: float = check_nonnegative("cost", cost)

    def forward(self, distribution: LabeledCRF, batch: Batch) -> Tensor:
        """``(B,)``, 0 or more, in the unit of scores. Raises if the known heads and labels fit no tree."""
        heads, labels, _ = known_trees(distribution, batch)
        gold = distribution.given(heads, labels).mode
        other = costliest(distribution, heads, labels, self.cost)
        wrong = (heads >= 0) & ((heads != other.heads) | ((labels >= 0) & (labels != other.labels)))
        return distribution.score(other) + self.cost * wrong.sum(-1) - distribution.score(gold)


@torch.no_grad()
def costliest(distribution: LabeledCRF, heads: Tensor, labels: Tensor, cost: float) -> LabeledTree:
    """Return the trees ``(B, n+1)`` with the greatest score plus ``cost`` for each wrong word.

    A word is wrong if its head differs from a known head, or its label under that head from a known label; -1 is
    unknown.
    """
    trees, scores = distribution.base.batched, distribution.labels
    is_known, is_gold = heads.unsqueeze(-2) >= 0, arcs_of(heads)
    ids = torch.arange(scores.count, device=heads.device)
    wrong = (labels.unsqueeze(-1) >= 0) & (labels.unsqueeze(-1) != ids)
    of_gold = scores.of_trees(heads) + cost * wrong  # (B, n+1, L)
    augmented = torch.where(is_gold, of_gold.amax(-1).unsqueeze(-2), scores.best() + cost * is_known)
    best = trees.with_parts(trees.parts.with_arcs(trees.arcs + augmented)).heads
    label_scores = torch.where((best == heads).unsqueeze(-1), of_gold, scores.of_trees(best))
    return LabeledTree(best, torch.where(best >= 0, label_scores.argmax(-1), -1))
