"""Generalised expectation criteria: a parser that is told shares of a text's arcs instead of trees."""

from typing import Literal, get_args

import torch
from torch import Tensor

from treeparse.batch import Batch
from treeparse.errors import TreeparseError
from treeparse.objectives.objective import Objective
from treeparse.trees import LabeledCRF

from .constraint import Target
from .features import Features
from .reading import read_constraints

Penalty = Literal["squared", "kl"]
LEAST_SHARE = 1e-6  # of the words: nearer to 0 or 1, a divergence is that of this share


class GeneralizedExpectation(Objective):
    """How far expected shares are from the targets of constraints (McCallum et al. 2007; Druck et al. 2009).

    Of all words of a batch that a constraint is about, the share is taken that is expected to have what it says. The
    penalties of all constraints add up, as in these papers; a sentence has the sum times its words, so that the mean
    over the words of a batch is the sum of the penalties. Constraints that are about no word of a batch are left out.

    One batch shows the shares of a text with noise. With a ``memory`` a share is in training that of the past batches
    too, whose words count the less the longer ago they were; its gradient is the gradient of the batch's own share.
    What is kept of the past is saved with the state of a run.

    Args:
        constraints: the file, or a shipped one by name (``treeparse.objectives.constraints`` says what it holds).
        penalty: of a share: "squared", its squared distance to the nearest target; or "kl", the divergence in nats of
            a word's chance to match at that target from the chance at the share.
        memory: from 0, for none, below 1: what a word counts one batch later, of those that the constraint is about.
            The greater, the less noise, and the later a penalty notices that the parser has moved, so that it may drive
            it past the target.
    """

    data = "all"
    numerators: Tensor
    denominators: Tensor

    def __init__(self, constraints: str, penalty: Penalty = "squared", memory: float = 0.0) -> None:
        super().__init__()
        if penalty not in get_args(Penalty):
            raise TreeparseError(f"The penalty of a share is 'squared' or 'kl', not {penalty!r}.")
        if not 0 <= memory < 1:
            raise TreeparseError(f"The memory of shares must be from 0 below 1, not {memory}.")
        self.constraints = read_constraints(constraints)
        self.penalty: Penalty = penalty
        self.memory = memory
        for name in ("numerators", "denominators"):
            self.register_buffer(name, torch.zeros(len(self.constraints), dtype=torch.float64))

    def forward(self, distribution: LabeledCRF, batch: Batch) -> Tensor:
        """``(B,)``: the sum of the penalties times a sentence's words, whatever is known of its tree."""
        features = Features(self.constraints, distribution, batch)
        expected = features.expectations(distribution.arcs.flat.marginals, features.kind_log_probs)
        shares = self._shares(expected.sum(0), features.counts.sum(0)).unbind()
        penalties = [
            penalty_of(constraint.target, share, self.penalty)
            for constraint, share in zip(self.constraints, shares, strict=True)
        ]
        found = features.counts.sum(0) > 0
        return torch.where(found, torch.stack(penalties), 0.0).sum() * batch.lengths

    def _shares(self, matches: Tensor, words: Tensor) -> Tensor:
        """The shares ``(R,)`` from numbers of expected matches and of words, those of the past included; 0 of none."""
        own = matches / words.clamp_min(1)
        if not self.training:
            return own
        decay = torch.where(words > 0, self.memory, 1.0)
        self.numerators.mul_(decay).add_(matches.detach())
        self.denominators.mul_(decay).add_(words)
        running = self.numerators / self.denominators.clamp_min(1)
        return own + (running - own).detach()


def penalty_of(target: Target, share: Tensor, penalty: Penalty) -> Tensor:
    """How bad a share, a scalar, is; 0 within the target, finite everywhere."""
    nearest = target.nearest(share.detach())
    if penalty == "squared":
        return (share - nearest).square()
    # At its ends a divergence is infinite: it is taken near to them, with the gradient that it has there.
    inner = share + (share.clamp(LEAST_SHARE, 1 - LEAST_SHARE) - share).detach()
    divergence = _cross_entropy(nearest, inner) - _cross_entropy(nearest, nearest)
    return torch.where((share >= target.least) & (share <= target.most), 0.0, divergence)


def _cross_entropy(target: Tensor, share: Tensor) -> Tensor:
    """The code length of one of two outcomes of probability ``target`` under another; 0 log 0 is 0."""
    return -torch.xlogy(target, share) - torch.xlogy(1 - target, 1 - share)
