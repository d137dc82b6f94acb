"""Learning from other distributions over trees: from all their probabilities, or from their best or sampled trees."""

from typing import ClassVar, Literal, cast

import torch
from torch import Tensor
from torch.distributions import kl_divergence

from treeparse.batch import Batch
from treeparse.errors import TreeparseError
from treeparse.objectives.objective import Data
from treeparse.trees import LabeledCRF, TreeDistribution

from .objective import Objective, check_choice
from .reference import Itself, Reference
from .risk import check_trees

Measure = Literal["cross_entropy", "kl", "reverse_kl"]
TreeChoice = Literal["best", "kbest", "sampled"]


class Divergence(Objective):
    """The divergence of the parser from other distributions over all trees, exactly: distillation, or a prior.

    The gradient is the difference of two sets of marginals ([Exp] §6.3), not an estimate from a list of trees.

    Args:
        reference: the other distributions.
        measure: "cross_entropy", ``-E_q[log p]`` with the parser's p; "kl", which differs from it by a constant; or
            "reverse_kl", ``KL(p || q)``, which penalises trees that the others find improbable.
        least_log_prob: skip sentences whose best tree has a lower log probability a word under the first of the other
            distributions; null skips none.
    """

    reference: Reference
    measure: str

    scores_all_labels = True

    def __init__(
        self, reference: Reference, measure: Measure = "cross_entropy", least_log_prob: float | None = None
    ) -> None:
        super().__init__()
        self.reference, self.measure = reference, check_choice("measure", measure, Measure)
        self.least_log_prob = least_log_prob

    def forward(self, distribution: LabeledCRF, batch: Batch) -> Tensor:
        """``(B,)`` nats; infinite if one distribution allows a tree that the other forbids."""
        others = self.reference.distributions(distribution, batch)
        values = torch.stack([self._value(distribution, q) for q in others]).mean(0)
        if self.least_log_prob is None:
            return values
        best = others[0].log_prob(others[0].mode)
        return torch.where(best >= self.least_log_prob * batch.lengths, values, 0.0)

    def _value(self, own: LabeledCRF, q: TreeDistribution) -> Tensor:
        p = own if q.has_labels else cast(TreeDistribution, own.arcs)
        check_same_trees(own, q)
        if self.measure == "cross_entropy":
            return q.cross_entropy(p)
        return kl_divergence(q, p) if self.measure == "kl" else kl_divergence(p, q)


class SilverTrees(Objective):
    """Negative log probability of trees from a reference: self-training, or a teacher's trees.

    Args:
        trees: "best"; "kbest", each weighted by its probability among the K; or "sampled".
        count: K, or the number of sampled trees.
        reference: a reference with labels; null for the parser itself.
        least_log_prob: skip trees with a lower log probability a word under the reference; null skips none.
    """

    reference: Reference | Itself
    least_log_prob: float | None

    data: ClassVar[Data] = "unlabelled"

    def __init__(
        self,
        trees: TreeChoice = "best",
        count: int = 1,
        reference: Reference | None = None,
        least_log_prob: float | None = None,
    ) -> None:
        super().__init__()
        self.trees: str = check_choice("trees", trees, TreeChoice)
        if trees == "best" and count != 1:
            raise TreeparseError(f"count must be 1 with trees best, got {count}: use trees kbest.")
        self.count: int = check_trees(count)
        self.reference, self.least_log_prob = reference or Itself(), least_log_prob

    def forward(self, distribution: LabeledCRF, batch: Batch) -> Tensor:
        """``(B,)`` nats; trees are drawn with torch's default generator."""
        others = self.reference.distributions(distribution, batch)
        return torch.stack([self._value(distribution, q, batch) for q in others]).mean(0)

    def _value(self, own: LabeledCRF, q: TreeDistribution, batch: Batch) -> Tensor:
        if not q.has_labels:
            raise TreeparseError("The reference of silver trees must have labels: use a teacher, or the parser itself.")
        check_same_trees(own, q)
        q = cast(LabeledCRF, q)
        heads, labels, weights = self._trees_of(q)
        if self.least_log_prob is not None:
            confident = q.log_prob(heads, labels) >= self.least_log_prob * batch.lengths
            weights = weights * confident
        log_probs = own.log_prob(heads, labels)
        return -torch.where(weights > 0, weights * log_probs, 0.0).sum(0)

    @torch.no_grad()
    def _trees_of(self, q: LabeledCRF) -> tuple[Tensor, Tensor, Tensor]:
        """Return heads and labels ``(K, B, n+1)`` and their weights ``(K, B)``."""
        if self.trees == "best":
            heads, labels = (tree.unsqueeze(0) for tree in q.mode)
        elif self.trees == "sampled":
            heads, labels = q.sample((self.count,))
        else:
            heads, labels, scores, _ = q.topk(self.count)
            return heads, labels, scores.softmax(0)
        return heads, labels, torch.full(heads.shape[:2], 1 / len(heads), dtype=q.dtype, device=heads.device)


def check_same_trees(own: LabeledCRF, other: TreeDistribution) -> None:
    """Raise unless both distributions are over trees of the same kind, with one root or many."""
    if own.kind_of_trees != other.kind_of_trees:
        raise TreeparseError(
            f"The parser has the trees of {own.kind_of_trees}, the reference those of {other.kind_of_trees}: give both "
            "the same model.trees and model.single_root."
        )
