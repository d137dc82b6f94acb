"""The dual problem of posterior regularisation: how much each constraint must lower scores (Ganchev et al. 2010 §3)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from .ascent import maximize
from .constraint import Constraint
from .features import Features

TOLERANCE = 1e-7  # of shares


@dataclass(frozen=True)
class Bounds:
    """K bounds on shares: ``sign * share <= limit``, or equal to it where the multiplier is free to be negative.

    A target that is an interval within 0 and 1 gives two of them, a constraint that is about no word gives none.
    """

    sides: Tensor  # (K, R): the sign, of the constraint's column
    limits: Tensor  # (K,)
    free: Tensor  # (K,) bool
    counts: Tensor  # (B, K): words of each sentence that the share is of

    @classmethod
    def of(cls, constraints: Sequence[Constraint], counts: Tensor) -> Self:
        """The bounds of R constraints, about so many words ``(B, R)`` of each sentence."""
        rows: list[tuple[int, float, float, bool]] = []
        for place, (constraint, words) in enumerate(zip(constraints, counts.sum(0).tolist(), strict=True)):
            target = constraint.target
            if words and (target.is_exact or target.most < 1):
                rows.append((place, 1.0, target.most, target.is_exact))
            if words and not target.is_exact and target.least > 0:
                rows.append((place, -1.0, -target.least, False))
        places = torch.tensor([row[0] for row in rows], dtype=torch.int64, device=counts.device)
        signs, limits = (counts.new_tensor([row[part] for row in rows]) for part in (1, 2))
        sides = counts.new_zeros(len(rows), counts.shape[1]).scatter(1, places.unsqueeze(1), signs.unsqueeze(1))
        free = torch.tensor([row[3] for row in rows], dtype=torch.bool, device=counts.device)
        return cls(sides, limits, free, counts[:, places])

    def costs(self, multipliers: Tensor, slack: float) -> Tensor:
        """What multipliers ``(K,)`` cost each sentence, ``(B,)``; their sum is linear and, by the slack, quadratic."""
        return self.counts @ (multipliers * self.limits + slack / 2 * multipliers.square())


@torch.no_grad()
def multipliers_of(features: Features, bounds: Bounds, slack: float, most_steps: int) -> Tensor:
    """The multipliers ``(K,)`` of bounds at the dual's maximum; after ``most_steps``, at the greatest value found.

    The dual is the sum over sentences of log Z less that of the lowered scores less the costs. It is climbed in
    variables in which every bound bends it about as much as any other: multipliers times the root of the bound's words.
    """
    arcs, kinds = features.trees.arcs.detach(), features.kind_log_probs.detach()
    words = bounds.counts.sum(0)

    def dual(variables: Tensor) -> tuple[Tensor, Tensor]:
        multipliers = variables / words.sqrt()
        trees, lowered = features.lowered(arcs, kinds, multipliers @ bounds.sides)
        matches = features.expectations(trees.marginals, lowered).sum(0)  # first, as it finds log Z on the way
        misses = bounds.sides @ matches - words * (bounds.limits + slack * multipliers)
        return -trees.log_partition.sum() - bounds.costs(multipliers, slack).sum(), misses / words.sqrt()

    return maximize(dual, bounds.free, TOLERANCE * words.sqrt(), most_steps) / words.sqrt()
