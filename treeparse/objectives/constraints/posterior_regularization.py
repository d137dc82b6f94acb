"""Posterior regularisation: a parser that is drawn to the nearest distribution that meets constraints."""

import torch
from torch import Tensor

from treeparse.batch import Batch
from treeparse.errors import TreeparseError
from treeparse.objectives.objective import Objective
from treeparse.trees import LabeledCRF

from .dual import Bounds, multipliers_of
from .features import Features
from .reading import read_constraints


class PosteriorRegularization(Objective):
    """The divergence KL(q || p) of the nearest q that meets constraints over the batch (Ganchev et al. 2010).

    q has the scores of p, lowered by a multiplier wherever a constraint matches; one on labels lowers these. The
    multipliers maximise a concave dual by projected gradient ascent and are constants for the gradient, which is, by
    the envelope theorem, that of KL(q || p) in p at a fixed q: p is drawn to q.

    The value is the dual's, spread over sentences by the words that the constraints are about: its sum over the batch
    is the divergence, while a sentence's own value may be negative. Short of the maximum it is less, and it is finite
    where constraints cannot be met together, or by no tree. Constraints that are about no word of a batch are left out.

    Args:
        constraints: the file, or a shipped one by name (``treeparse.objectives.constraints`` says what it holds).
        slack: 0 or more: a share may miss its target by this for every nat by which its multiplier lowers scores. To
            the divergence then comes, for each constraint, its words times the square of the miss, over twice the
            slack.
        most_steps: of the ascent, each about the cost of the trees' marginals; it ends when shares are right to 1e-7.
    """

    data = "all"

    def __init__(self, constraints: str, slack: float = 0.01, most_steps: int = 50) -> None:
        super().__init__()
        if not 0 <= slack < torch.inf:
            raise TreeparseError(f"The slack of shares must be a number from 0, not {slack}.")
        if most_steps < 1:
            raise TreeparseError(f"The ascent needs at least one step, not {most_steps}.")
        self.constraints = read_constraints(constraints)
        self.slack, self.most_steps = slack, most_steps

    def forward(self, distribution: LabeledCRF, batch: Batch) -> Tensor:
        """``(B,)`` nats, whatever is known of the sentences' trees."""
        features = Features(self.constraints, distribution, batch)
        bounds = Bounds.of(self.constraints, features.counts)
        multipliers = multipliers_of(features, bounds, self.slack, self.most_steps)
        arcs, kinds = features.trees.arcs, features.kind_log_probs
        nearest, _ = features.lowered(arcs, kinds, multipliers @ bounds.sides)
        return features.trees.log_partition - nearest.log_partition - bounds.costs(multipliers, self.slack)
