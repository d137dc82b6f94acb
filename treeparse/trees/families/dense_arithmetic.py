"""The two kinds of numbers on which ``treeparse.trees.families.dense`` runs one elimination.

A weight is represented by itself, alone or with its derivative along a direction. On such dual numbers, the algorithm
for marginals computes the Hessian-vector product. Tensors of numbers have shape ``(B, ...)``, tensors of dual numbers
``(2, B, ...)``: value and derivative.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from treeparse.trees.checks import arc_mask


class Arcs(NamedTuple):
    """A batch prepared for the elimination, every tensor ``(B, n+1, n+1)``."""

    real: Tensor  # bool: the arcs of the items; other arcs make padding neutral
    weights: Tensor  # the maximum of every word's column is 1
    direction: Tensor  # the derivatives of the log weights; 0 where there is no arc


class Plain:
    """The elimination's operations on plain numbers; sums run over the last axis."""

    def __init__(self, arcs: Arcs) -> None:
        self.arcs = arcs

    def load(self) -> Tensor:
        """Return a new tensor of the weights as numbers."""
        return self.arcs.weights.clone()

    def arc_values(self, adjoint: Tensor) -> Tensor:
        """Return every arc's marginal, or its derivative, ``(B, n+1, n+1)`` from d log Z / d weight as numbers."""
        return adjoint * self.arcs.weights

    def values(self, numbers: Tensor) -> Tensor:
        """Return numbers without derivatives."""
        return numbers

    def total(self, numbers: Tensor) -> Tensor:
        """Return the sum."""
        return numbers.sum(-1)

    def divide(self, numbers: Tensor, divisor: Tensor) -> Tensor:
        """Return quotients."""
        return numbers / divisor

    def multiply(self, matrix: Tensor, vector: Tensor) -> Tensor:
        """Multiply a matrix by a vector."""
        return (matrix * vector.unsqueeze(-2)).sum(-1)  # twice as fast as bmm on small matrices

    def add_product_(self, matrix: Tensor, column: Tensor, row: Tensor) -> None:
        """Add the outer product of a column and a row to a matrix, in place."""
        matrix.addcmul_(column.unsqueeze(-1), row.unsqueeze(-2))

    def add_remainder(self, numbers: Tensor, factors: Tensor, mask: Tensor) -> Tensor:
        """Add ``mask * (1 - sum(numbers * factors))``, mask 0 or 1, clamped at 0: the only subtraction."""
        remainder = 1.0 - (numbers * factors).sum(-1, keepdim=True)
        return torch.addcmul(numbers, mask, remainder).clamp_(min=0.0)


class PlainDual(Plain):
    """Numbers and their derivatives."""

    def load(self) -> Tensor:
        return torch.stack([self.arcs.weights, self.arcs.weights * self.arcs.direction])

    def arc_values(self, adjoint: Tensor) -> Tensor:
        return torch.addcmul(adjoint[1], adjoint[0], self.arcs.direction) * self.arcs.weights

    def values(self, numbers: Tensor) -> Tensor:
        return numbers[0]

    def divide(self, numbers: Tensor, divisor: Tensor) -> Tensor:
        quotient = numbers / divisor[0]
        quotient[1].addcmul_(quotient[0], divisor[1] / divisor[0], value=-1)
        return quotient

    def multiply(self, matrix: Tensor, vector: Tensor) -> Tensor:
        product = super().multiply(matrix, vector[0])
        product[1] += super().multiply(matrix[0], vector[1])
        return product

    def add_product_(self, matrix: Tensor, column: Tensor, row: Tensor) -> None:
        super().add_product_(matrix, column, row[0])
        super().add_product_(matrix[1], column[0], row[1])

    def add_remainder(self, numbers: Tensor, factors: Tensor, mask: Tensor) -> Tensor:
        slope = (numbers * factors.flip(0)).sum(-1, keepdim=True).sum(0)
        value = super().add_remainder(numbers[0], factors[0], mask)
        return torch.stack([value, torch.addcmul(numbers[1], mask, slope, value=-1)])


def finite(logs: Tensor) -> Tensor:
    """Replace -inf by 0, so that it can be subtracted from -inf."""
    return torch.where(logs > -torch.inf, logs, 0.0)


def shifted_log_weights(scores: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the possible arcs, log weights less their column's maximum ``(B, n+1, n+1)``, and the maxima ``(B, n+1)``.

    Padding hangs from node 1, and that from node 0 if it is padding itself, by arcs of weight 1: this changes no sum,
    probability or derivative.
    """
    nodes = scores.shape[-1]
    log_weights = torch.where(arc_mask(lengths, nodes), scores, -torch.inf)
    real = log_weights > -torch.inf
    padding = (torch.arange(nodes, device=scores.device) > lengths.unsqueeze(-1)).unsqueeze(1)
    log_weights[:, 1:2, 2:].masked_fill_(padding[..., 2:], 0.0)
    log_weights[:, :1, 1:2].masked_fill_(padding[..., 1:2], 0.0)
    top = log_weights.amax(1, keepdim=True)
    return real, log_weights.sub_(finite(top)), top.squeeze(1)
