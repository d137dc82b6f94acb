"""Every quantity of one sentence's trees in 60 digits, by the sum over all of them: right for scores of any size."""

import decimal
import functools
from collections.abc import Sequence
from decimal import Decimal

import torch
from helpers.tree_cases import Case
from torch import Tensor

CONTEXT = decimal.Context(prec=60, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)
NONE = Decimal("-Infinity")


class Precise:
    """The trees of one item, from its parameters in float64, each tree's score an exact sum."""

    def __init__(self, case: Case, parameters: Sequence[Tensor]) -> None:
        self._words, self._shapes = parameters[0].shape[-1] - 1, [part.shape for part in parameters]
        self._labels = case.labels
        self.trees, self._cells, self._size = _trees_of(case, self._words)
        with decimal.localcontext(CONTEXT):
            scores = self._scores_of_cells(parameters)
            self.totals = [sum((scores[cell] for cell in cells), Decimal(0)) for cells in self._cells]
            best = max(self.totals)
            self.exists = best > NONE
            if not self.exists:
                return
            weights = [(total - best).exp() if total > NONE else Decimal(0) for total in self.totals]
            total = sum(weights, Decimal(0))
            self.log_partition = best + total.ln()
            self.probs = [weight / total for weight in weights]
            self.log_probs = [total - self.log_partition for total in self.totals]

    def _scores_of_cells(self, parameters: Sequence[Tensor]) -> list[Decimal]:
        """The scores of all parts, labelled arcs first and other kinds after them, and one part that scores 0."""
        arcs, *others = (list(map(_as_decimal, part.flatten().tolist())) for part in parameters)
        if self._labels:
            labels = others.pop()
            arcs = [arcs[cell // self._labels] + label for cell, label in enumerate(labels)]
        return [*arcs, *(value for part in others for value in part), Decimal(0)]

    def code_length(self, log_probs: Sequence[Decimal]) -> float:
        """-E_p of other log probabilities of the same trees."""
        with decimal.localcontext(CONTEXT):
            pairs = zip(self.probs, log_probs, strict=True)
            return float(-sum((prob * log_prob for prob, log_prob in pairs if prob), Decimal(0)))

    @property
    def entropy(self) -> float:
        return self.code_length(self.log_probs)

    def divergence(self, other: "Precise") -> float:
        """KL(p, q)."""
        with decimal.localcontext(CONTEXT):
            pairs = zip(self.log_probs, other.log_probs, strict=True)
            return self.code_length([theirs - own if own > NONE else theirs for own, theirs in pairs])

    def expectation(self, values: Sequence[int]) -> float:
        """The mean of a whole number of every tree."""
        with decimal.localcontext(CONTEXT):
            return float(sum((prob * value for prob, value in zip(self.probs, values, strict=True)), Decimal(0)))

    @functools.cached_property
    def marginals(self) -> list[Tensor]:
        """The probability of every part, in the shapes of the parameters: of arcs, other parts and labelled arcs."""
        with decimal.localcontext(CONTEXT):
            return self._by_parameter(self.probs)

    def covariances(self, values: Sequence[Decimal]) -> list[Tensor]:
        """The covariance of every part with a number of every tree, in the shapes of the parameters.

        It is the derivative of the number's mean in the part's score.
        """
        with decimal.localcontext(CONTEXT):
            mean = sum((prob * value for prob, value in zip(self.probs, values, strict=True) if prob), Decimal(0))
            pairs = zip(self.probs, values, strict=True)
            return self._by_parameter([prob * (value - mean) if prob else Decimal(0) for prob, value in pairs])

    def _by_parameter(self, shares: Sequence[Decimal]) -> list[Tensor]:
        """Add every tree's number to each of its parts."""
        sums = [Decimal(0)] * self._size
        for cells, share in zip(self._cells, shares, strict=True):
            if share:
                for cell in cells:
                    sums[cell] += share
        labelled: list[Decimal] = []
        if self._labels:
            count = self._shapes[-1].numel()
            labelled, others = sums[:count], sums[count:]
            rows = [labelled[cell : cell + self._labels] for cell in range(0, count, self._labels)]
            sums = [*(sum(row, Decimal(0)) for row in rows), *others]
        flat = torch.tensor([float(value) for value in [*sums[:-1], *labelled]], dtype=torch.float64)
        pieces = flat.split([shape.numel() for shape in self._shapes])
        return [piece.reshape(shape) for piece, shape in zip(pieces, self._shapes, strict=True)]


def _as_decimal(score: float) -> Decimal:
    """The score itself, or 0 for what no tree has."""
    return Decimal(score) if score < float("inf") else Decimal(0)


@functools.cache
def _trees_of(case: Case, words: int) -> tuple[list[Tensor], list[list[int]], int]:
    """All trees, as ``Case.trees``; each one's parts; and the number of parts, with the one that scores 0."""
    trees = case.trees(words)
    cells = case.parts(trees)
    sizes = [torch.Size(shape).numel() for shape in case.shapes(words, ())]
    if case.labels:
        sizes[0] = 0  # an arc is one of its labelled arcs
    return trees, cells.tolist(), sum(sizes) + 1
