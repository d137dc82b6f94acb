"""Objectives by constraints: generalised expectation criteria, and posterior regularisation.

Generalised expectation trains by the distance of expected shares of a text's arcs from targets, posterior
regularisation by the divergence of the parser from the nearest distribution that meets constraints.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, Self

import torch
from torch import Tensor

from treeparse.batch import Batch
from treeparse.errors import TreeparseError
from treeparse.objectives.objective import Data, Objective, check_choice, check_nonnegative
from treeparse.trees import LabeledCRF

from .constraint import Constraint, Target
from .matches import ConstraintMatches

Penalty = Literal["squared", "kl"]
LEAST_SHARE = 1e-6  # divergences of shares that are nearer to 0 or 1 are those of this share
TOLERANCE = 1e-7  # the error of shares
RISE = 1e-4  # the share of the gain by the slope that a step must reach
RECENT = 5  # recent values, the least of which a step must exceed
ROUNDING = 1e-9  # the rounding error of values
SHORTEST, LONGEST = 1e-6, 1e6  # lengths of a step of the ascent


def _constraints_of(path: str) -> tuple[Constraint, ...]:
    from .constraint_files import read_constraints  # which needs PyYAML

    return read_constraints(path)


class GeneralizedExpectation(Objective):
    """The distance of expected shares from the targets of constraints (McCallum et al. 2007; Druck et al. 2009).

    A share is the expected number of matching words over the number of words of the batch that a constraint concerns.
    The penalties of all constraints add up, as in these papers. A sentence's loss is the sum times its number of words,
    so that the mean over the words of a batch is the sum. Constraints without words in a batch are left out.

    The share of one batch is a noisy estimate of the share of a text. With a ``memory``, training uses a running share
    of past batches, whose words have exponentially falling weights; the gradient is that of the batch's own share. The
    state of a run holds the running counts.

    Args:
        constraints: the file, or the name of a shipped file (``treeparse.objectives.constraints`` documents it).
        penalty: "squared", the squared distance of a share to the nearest target; or "kl", the divergence in nats of
            the chance to match at the nearest target from the chance at the share.
        memory: the factor by which the weight of a word falls with each batch that has words of the constraint, from 0
            (no memory) to below 1. A greater memory has less noise but reacts later, so that the parser may overshoot
            the target.
    """

    data: ClassVar[Data] = "all"
    numerators: Tensor
    denominators: Tensor

    def __init__(self, constraints: str, penalty: Penalty = "squared", memory: float = 0.0) -> None:
        super().__init__()
        if not 0 <= memory < 1:
            raise TreeparseError(f"memory must be a number that is at least 0 and below 1, got {memory}.")
        self.constraints = _constraints_of(constraints)
        self.penalty: Penalty = check_choice("penalty", penalty, Penalty)
        self.memory = memory
        for name in ("numerators", "denominators"):
            self.register_buffer(name, torch.zeros(len(self.constraints), dtype=torch.float64))

    def forward(self, distribution: LabeledCRF, batch: Batch) -> Tensor:
        """``(B,)``: the sum of the penalties times a sentence's words; gold trees are ignored."""
        matches = ConstraintMatches(self.constraints, distribution, batch)
        expected = matches.expectations(distribution.arcs.batched.marginals, matches.kind_log_probs)
        shares = self._shares(expected.sum(0), matches.counts.sum(0)).unbind()
        penalties = [
            penalty_of(constraint.target, share, self.penalty)
            for constraint, share in zip(self.constraints, shares, strict=True)
        ]
        has_words = matches.counts.sum(0) > 0
        return torch.where(has_words, torch.stack(penalties), 0.0).sum() * batch.lengths

    def _shares(self, matches: Tensor, words: Tensor) -> Tensor:
        """Return the shares ``(R,)`` of expected matches among words, past batches included; 0 without words."""
        own = matches / words.clamp_min(1)
        if not self.training:
            return own
        decay = torch.where(words > 0, self.memory, 1.0)
        self.numerators.mul_(decay).add_(matches.detach())
        self.denominators.mul_(decay).add_(words)
        running = self.numerators / self.denominators.clamp_min(1)
        return own + (running - own).detach()


def penalty_of(target: Target, share: Tensor, penalty: Penalty) -> Tensor:
    """Return the penalty of a share, a scalar; 0 within the target, finite everywhere."""
    nearest = target.nearest(share.detach())
    if penalty == "squared":
        return (share - nearest).square()
    # At 0 and 1 a divergence is infinite: it is evaluated near them, with the gradient there.
    inner = share + (share.clamp(LEAST_SHARE, 1 - LEAST_SHARE) - share).detach()
    divergence = _cross_entropy(nearest, inner) - _cross_entropy(nearest, nearest)
    return torch.where((share >= target.least) & (share <= target.most), 0.0, divergence)


def _cross_entropy(target: Tensor, share: Tensor) -> Tensor:
    """Return the cross entropy of a binary outcome of probability ``target`` under ``share``; 0 log 0 is 0."""
    return -torch.xlogy(target, share) - torch.xlogy(1 - target, 1 - share)


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

    data: ClassVar[Data] = "all"

    def __init__(self, constraints: str, slack: float = 0.01, most_steps: int = 50) -> None:
        super().__init__()
        if most_steps < 1:
            raise TreeparseError(f"most_steps must be at least 1, got {most_steps}.")
        self.constraints = _constraints_of(constraints)
        self.slack, self.most_steps = check_nonnegative("slack", slack), most_steps

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
