"""The dual of posterior regularisation: by how much each constraint lowers scores (Ganchev et al. 2010 §3)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from .ascent import maximize
from .constraint import Constraint
from .matches import ConstraintMatches

TOLERANCE = 1e-7  # the error of shares


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
