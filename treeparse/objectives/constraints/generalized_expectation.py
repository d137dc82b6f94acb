"""Generalised expectation criteria: training by expected shares of a text's arcs instead of trees."""

from typing import ClassVar, Literal

import torch
from torch import Tensor

from treeparse.batch import Batch
from treeparse.errors import TreeparseError
from treeparse.objectives.objective import Data, Objective, check_choice
from treeparse.trees import LabeledCRF

from .constraint import Constraint, Target
from .matches import ConstraintMatches

Penalty = Literal["squared", "kl"]
LEAST_SHARE = 1e-6  # divergences of shares that are nearer to 0 or 1 are those of this share


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
        from .constraint_files import read_constraints  # which needs PyYAML

        self.constraints: tuple[Constraint, ...] = read_constraints(constraints)
        self.penalty: Penalty = check_choice("penalty", penalty, Penalty)
        self.memory = memory
        for name in ("numerators", "denominators"):
            self.register_buffer(name, torch.zeros(len(self.constraints), dtype=torch.float64))

    def forward(self, distribution: LabeledCRF, batch: Batch) -> Tensor:
        """``(B,)``: the sum of the penalties times a sentence's words; gold trees are ignored."""
        matches = ConstraintMatches(self.constraints, distribution, batch)
        expected = matches.expectations(distribution.arcs.flat.marginals, matches.kind_log_probs)
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
