"""Posterior regularisation: the divergence of the parser from the nearest distribution that meets constraints."""

import torch
from torch import Tensor

from treeparse.batch import Batch
from treeparse.errors import TreeparseError
from treeparse.objectives.objective import Objective
from treeparse.trees import LabeledCRF

from .dual import ShareBounds, multipliers_of
from .matches import ConstraintMatches
from .reading import read_constraints


class PosteriorRegularization(Objective):
    """The divergence KL(q || p) of the nearest q that meets constraints over the batch (Ganchev et al. 2010).

    q has the scores of p, lowered by a multiplier wherever a constraint matches; a constraint on labels lowers label
    scores. The multipliers maximise a concave dual by projected gradient ascent. They are constants for the gradient,
    which by the envelope theorem is the gradient of KL(q || p) in p at a fixed q.

    The value is the dual's, distributed over sentences by the words that the constraints concern: its sum over the
    batch is the divergence, but a sentence's value may be negative. Before the maximum it is less, and it is finite
    even if no distribution meets all constraints. Constraints without words in a batch are left out.

    Args:
        constraints: the file, or the name of a shipped file (``treeparse.objectives.constraints`` documents it).
        slack: at least 0: a share may miss its target by the slack for every nat by which its multiplier lowers scores.
            The divergence then has one more term for each constraint: its words times the squared miss, over twice the
            slack.
        most_steps: the greatest number of steps of the ascent, each about the cost of the trees' marginals; the ascent
            ends once shares are right to 1e-7.
    """

    data = "all"

    def __init__(self, constraints: str, slack: float = 0.01, most_steps: int = 50) -> None:
        super().__init__()
        if not 0 <= slack < torch.inf:
            raise TreeparseError(f"slack must be a finite number that is at least 0, got {slack}.")
        if most_steps < 1:
            raise TreeparseError(f"most_steps must be at least 1, got {most_steps}.")
        self.constraints = read_constraints(constraints)
        self.slack, self.most_steps = slack, most_steps

    def forward(self, distribution: LabeledCRF, batch: Batch) -> Tensor:
        """``(B,)`` nats; gold trees are ignored."""
        matches = ConstraintMatches(self.constraints, distribution, batch)
        bounds = ShareBounds.of(self.constraints, matches.counts)
        multipliers = multipliers_of(matches, bounds, self.slack, self.most_steps)
        arcs, kinds = matches.trees.arcs, matches.kind_log_probs
        nearest, _ = matches.lowered(arcs, kinds, multipliers @ bounds.sides)
        return matches.trees.log_partition - nearest.log_partition - bounds.costs(multipliers, self.slack)
