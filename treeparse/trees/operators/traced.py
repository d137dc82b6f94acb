"""The sums, best trees and samples of a family by operators, for scores that are not plain tensors."""

from typing import cast

import torch
from torch import Tensor
from torch._C._functorch import TransformType, get_interpreter_stack  # torch has no public names for these

from treeparse.errors import TreeparseError
from treeparse.trees.families import Family, Method, Tensors
from treeparse.trees.operators.derivatives import LogPartition, Product, Sums, for_each_vector
from treeparse.trees.operators.library import OPERATORS, name_of


class TracedFamily:
    """What distributions ask a family for, through operators; log marginals are constants for autograd."""

    def __init__(self, family: Family) -> None:
        self._trees = name_of(family), family.single_root

    def log_marginals(self, parts: Tensors, lengths: Tensor) -> Tensors:
        return tuple(OPERATORS.log_marginals(_constant(parts), lengths, *self._trees))

    def best_trees(self, parts: Tensors, lengths: Tensor) -> Tensor:
        return OPERATORS.best_trees(_constant(parts), lengths, *self._trees)

    def are_trees(self, heads: Tensor, lengths: Tensor) -> Tensor:
        return OPERATORS.are_trees(heads, lengths, *self._trees)

    def sample(
        self, parts: Tensors, lengths: Tensor, seeds: Tensor, count: int, method: Method | None = None
    ) -> Tensor:
        return OPERATORS.sample(_constant(parts), lengths, seeds, count, method, *self._trees)


class TracedSums:
    """The differentiable sums of one flat batch, as ``TreeSums`` has them."""

    parts: tuple[Tensor, ...]
    lengths: Tensor

    def __init__(self, family: Family, parts: Tensors, lengths: Tensor) -> None:
        self.parts, self.lengths, self._trees = tuple(parts), lengths, (name_of(family), family.single_root)

    def log_partition(self) -> Tensor:
        """Return the log of the summed weight of all trees ``(B,)``; -inf without a tree."""
        if _in_transform():
            return cast(Tensors, LogPartition.apply(self.lengths, *self._trees, *self.parts))[0]
        return OPERATORS.log_partition(self.parts, self.lengths, *self._trees)

    def marginals(self) -> Tensors:
        """Return the probability of every part; 0 without a tree."""
        if _in_transform():
            return cast(Tensors, Sums.apply(self.lengths, *self._trees, *self.parts))[1:]
        return tuple(OPERATORS.sums(self.parts, self.lengths, *self._trees)[1:])

    def hessian_vector_products(self, vectors: Tensors) -> Tensors:
        """Return H v of every item and each of its vectors ``(V, B, ...)``, differentiable in the vectors only."""
        return for_each_vector(self._product, self.parts, self.lengths, vectors)

    def _product(self, parts: Tensors, lengths: Tensor, vectors: Tensors) -> Tensors:
        if _in_transform():
            return cast(Tensors, Product.apply(lengths, *self._trees, *parts, *vectors))
        return OPERATORS.hessian_vector_product(parts, vectors, lengths, *self._trees)


def _in_transform() -> bool:
    """Whether a transform of ``torch.func`` runs, which needs functions; compiled programs need operators."""
    stack = None if torch.compiler.is_compiling() else get_interpreter_stack()
    if stack and sum(each.key() == TransformType.Jvp for each in stack) > 1:
        raise TreeparseError(
            "torch takes the derivative of a forward derivative by forward mode to be 0 (torch.func.jacfwd of jacfwd, "
            "jvp of jvp): take one of them by reverse mode, as torch.func.hessian does."
        )
    return bool(stack)


def _constant(parts: Tensors) -> list[Tensor]:
    return [part.detach() for part in parts]
