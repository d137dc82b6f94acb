"""Posterior regularisation: the divergence of the parser from the nearest distribution that meets constraints."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import torch
from torch import Tensor

from treeparse.batch import Batch
from treeparse.errors import TreeparseError
from treeparse.objectives.objective import Data, Objective
from treeparse.trees import LabeledCRF

from .constraint import Constraint
from .matches import ConstraintMatches

TOLERANCE = 1e-7  # the error of shares
RISE = 1e-4  # the share of the gain by the slope that a step must reach
RECENT = 5  # recent values, the least of which a step must exceed
ROUNDING = 1e-9  # the rounding error of values
SHORTEST, LONGEST = 1e-6, 1e6  # lengths of a step of the ascent


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

    slack: float
    most_steps: int

    data: ClassVar[Data] = "all"

    def __init__(self, constraints: str, slack: float = 0.01, most_steps: int = 50) -> None:
        super().__init__()
        if not 0 <= slack < torch.inf:
            raise TreeparseError(f"slack must be a finite number that is at least 0, got {slack}.")
        if most_steps < 1:
            raise TreeparseError(f"most_steps must be at least 1, got {most_steps}.")
        from .constraint_files import read_constraints  # which needs PyYAML

        self.constraints: tuple[Constraint, ...] = read_constraints(constraints)
        self.slack, self.most_steps = slack, most_steps

    def forward(self, distribution: LabeledCRF, batch: Batch) -> Tensor:
        """``(B,)`` nats; gold trees are ignored."""
        matches = ConstraintMatches(self.constraints, distribution, batch)
        bounds = ShareBounds.of(self.constraints, matches.counts)
        multipliers = multipliers_of(matches, bounds, self.slack, self.most_steps)
        arcs, kinds = matches.trees.arcs, matches.kind_log_probs
        nearest, _ = matches.lowered(arcs, kinds, multipliers @ bounds.sides)
        return matches.trees.log_partition - nearest.log_partition - bounds.costs(multipliers, self.slack)


@dataclass(frozen=True)
class ShareBounds:
    """K bounds on shares: ``sign * share <= limit``, or equality if the multiplier is free to be negative.

    A target that is an interval inside 0 to 1 gives two bounds; a constraint without words in the batch gives none.
    """

    sides: Tensor  # (K, R): the sign, of the constraint's column
    limits: Tensor  # (K,)
    free: Tensor  # (K,) bool
    counts: Tensor  # (B, K): words of each sentence that the share is of

    @classmethod
    def of(cls, constraints: Sequence[Constraint], counts: Tensor) -> Self:
        """Return the bounds of R constraints, which concern ``counts`` ``(B, R)`` words of each sentence."""
        rows: list[tuple[int, float, float, bool]] = []
        for index, (constraint, words) in enumerate(zip(constraints, counts.sum(0).tolist(), strict=True)):
            target = constraint.target
            if words and (target.is_exact or target.most < 1):
                rows.append((index, 1.0, target.most, target.is_exact))
            if words and not target.is_exact and target.least > 0:
                rows.append((index, -1.0, -target.least, False))
        columns = torch.tensor([row[0] for row in rows], dtype=torch.int64, device=counts.device)
        signs, limits = (counts.new_tensor([row[part] for row in rows]) for part in (1, 2))
        sides = counts.new_zeros(len(rows), counts.shape[1]).scatter(1, columns.unsqueeze(1), signs.unsqueeze(1))
        free = torch.tensor([row[3] for row in rows], dtype=torch.bool, device=counts.device)
        return cls(sides, limits, free, counts[:, columns])

    def costs(self, multipliers: Tensor, slack: float) -> Tensor:
        """Return the cost of multipliers ``(K,)`` for each sentence, ``(B,)``; the slack makes it quadratic."""
        return self.counts @ (multipliers * self.limits + slack / 2 * multipliers.square())


@torch.no_grad()
def multipliers_of(matching: ConstraintMatches, bounds: ShareBounds, slack: float, most_steps: int) -> Tensor:
    """Return the multipliers ``(K,)`` at the dual's maximum, or at its greatest value after ``most_steps``.

    The dual is the sum over sentences of log Z, less log Z of the lowered scores, less the costs. It is maximised in
    the multipliers times the root of the bound's words, because its curvature is about the same in all of these.
    """
    arcs, kinds = matching.trees.arcs.detach(), matching.kind_log_probs.detach()
    words = bounds.counts.sum(0)

    def dual(variables: Tensor) -> tuple[Tensor, Tensor]:
        multipliers = variables / words.sqrt()
        trees, lowered = matching.lowered(arcs, kinds, multipliers @ bounds.sides)
        matches = matching.expectations(trees.marginals, lowered).sum(0)  # first, as it finds log Z on the way
        misses = bounds.sides @ matches - words * (bounds.limits + slack * multipliers)
        return -trees.log_partition.sum() - bounds.costs(multipliers, slack).sum(), misses / words.sqrt()

    return maximize(dual, bounds.free, TOLERANCE * words.sqrt(), most_steps) / words.sqrt()


def maximize(
    function: Callable[[Tensor], tuple[Tensor, Tensor]], free: Tensor, tolerance: Tensor, most_steps: int
) -> Tensor:
    """Return the maximum ``(K,)`` of a concave function of variables of which some must not be negative.

    The method is that of spectral projected gradients from 0 (Birgin, Martínez and Raydan 2000, SPG2). The curvature
    along the last step sets the length of the next one (Barzilai and Borwein 1988), which is shortened until the value
    exceeds the least of the recent values.

    Args:
        function: returns the value, a scalar, and its gradient ``(K,)`` at a point ``(K,)``; it is evaluated at most
            ``most_steps`` times after the start.
        free: which variables may be negative, ``(K,)`` bool.
        tolerance: the greatest distance of the gradient from the gradient of a maximum, ``(K,)``.
        most_steps: the number of steps after which the point of the greatest value is returned.
    """
    point = torch.zeros_like(tolerance)
    value, gradient = function(point)
    best, recent = (value, point), [value]
    length = share = 1.0  # the step is share * length * gradient, projected
    for _ in range(most_steps):
        if bool(((_allowed(point + gradient, free) - point).abs() <= tolerance).all()):
            return point
        change = share * (_allowed(point + length * gradient, free) - point)
        new_value, new_gradient = function(point + change)
        if new_value < min(recent) + RISE * (gradient @ change) - ROUNDING:
            share /= 4
            continue
        curvature = float(change @ (gradient - new_gradient))
        length = min(max(float(change @ change) / curvature, SHORTEST), LONGEST) if curvature > 0 else LONGEST
        point, value, gradient, share = point + change, new_value, new_gradient, 1.0
        recent = [*recent[1 - RECENT :], value]
        best = max(best, (value, point), key=lambda pair: float(pair[0]))
    return best[1]


def _allowed(point: Tensor, free: Tensor) -> Tensor:
    """Return the nearest point whose variables are not negative unless they are free."""
    return torch.where(free, point, point.clamp_min(0))
