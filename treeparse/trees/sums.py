"""The three primitives of every sum over trees as autograd functions, each the derivative of the one before.

``log_partition`` has the derivative ``marginals``, whose derivative is the Hessian of the log partition, used only as a
product with a vector. All three take and return one tensor for each kind of part.
"""

from typing import Any, cast

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from treeparse.errors import TreeparseError
from treeparse.lazy import cached_property
from treeparse.trees.families import Family, Tensors
from treeparse.trees.operators.derivatives import NO_THIRD, aligned, for_each_vector, halves


class TreeSums:
    """The differentiable sums of one flat batch; the values that they share are computed once.

    Args:
        family: the trees.
        parts: float64 scores, one tensor ``(B, ...)`` a kind of part.
        lengths: int64 ``(B,)``.
    """

    family: Family
    parts: Tensors
    lengths: Tensor

    def __init__(self, family: Family, parts: Tensors, lengths: Tensor) -> None:
        self.family, self.parts, self.lengths = family, parts, lengths
        self.saved: Any = None  # the family's state for Hessian-vector products, or None

    @cached_property
    def constants(self) -> tuple[Tensor, Tensors]:
        """Log partition and marginals without a graph, both from one call."""
        return self.family.log_partition_and_marginals(_constant(self.parts), self.lengths)

    def prepare_products(self) -> None:
        """Compute ``constants`` with the state that makes Hessian-vector products faster, if the family saves one."""
        if self.family.saves_for_hessian and not self.has_constants:
            log_z, marginals, self.saved = self.family.sums_saved_for_hessian(_constant(self.parts), self.lengths)
            self.constants = log_z, marginals

    @property
    def has_constants(self) -> bool:
        """Whether ``constants`` are computed already."""
        return "constants" in self.__dict__

    def log_partition(self) -> Tensor:
        """Return the log of the summed weight of all trees ``(B,)``, differentiable twice; -inf without a tree."""
        return cast(Tensor, _LogPartition.apply(self, *self.parts))

    def marginals(self) -> Tensors:
        """Return the probability of every part, differentiable; 0 without a tree."""
        return _marginals(self, self.parts)

    def code_lengths(self, other: "TreeSums", items: Tensor) -> Tensor:
        """Return ``-E_p[log q]`` ``(I,)`` of some items, right for scores of any size and differentiable once.

        These sums are p's, the other ones q's, of a family that has code lengths.
        """
        parts = [part[items] for part in (*self.parts, *other.parts)]
        return cast(Tensor, _CodeLengths.apply(self.family, self.lengths[items], *parts))

    def hessian_vector_products(self, vectors: Tensors) -> Tensors:
        """Return H v of every item and each of its vectors ``(V, B, ...)``, differentiable in the vectors only."""
        self.prepare_products()

        def product(parts: Tensors, lengths: Tensor, flat: Tensors) -> Tensors:
            repeated = TreeSums(self.family, parts, lengths)
            repeated.saved = self.saved
            return _hessian_vector_product(repeated, parts, flat)

        return for_each_vector(product, self.parts, self.lengths, vectors)


class _LogPartition(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, sums: TreeSums, *parts: Tensor) -> Tensor:
        if not any(ctx.needs_input_grad) and not sums.has_constants:
            return sums.family.log_partition(parts, sums.lengths)
        log_z, marginals = sums.constants
        ctx.sums = sums
        ctx.save_for_backward(*parts, *marginals)  # saved, so that torch detects changes in place
        return log_z.detach()

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor | None, ...]:
        parts, marginals = halves(ctx.saved_tensors)
        if torch.is_grad_enabled():  # a second derivative may follow
            marginals = _marginals(ctx.sums, parts)
        (grad,) = grad_outputs
        return None, *(part * aligned(grad, part) for part in marginals)


class _Marginals(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, sums: TreeSums, *parts: Tensor) -> Tensors:
        ctx.sums = sums
        ctx.save_for_backward(*parts)
        if any(ctx.needs_input_grad):
            sums.prepare_products()
        return _constant(sums.constants[1])

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor | None, ...]:
        return None, *_hessian_vector_product(ctx.sums, ctx.saved_tensors, grad_outputs)


class _HessianVectorProduct(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, sums: TreeSums, *parts_and_vectors: Tensor) -> Tensors:
        parts, vectors = halves(parts_and_vectors)
        ctx.sums = sums
        ctx.save_for_backward(*parts)
        return sums.family.hessian_vector_product(parts, sums.lengths, vectors, sums.saved)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor | None, ...]:
        parts: Tensors = ctx.saved_tensors
        products = _hessian_vector_product(ctx.sums, parts, grad_outputs)  # the Hessian is symmetric
        return None, *(None for _ in parts), *products


class _TwiceDifferentiated(torch.autograd.Function):
    """The identity, whose derivative raises, without rules for ``torch.func``: they would cost 50 us a call."""

    @staticmethod
    def forward(ctx: Any, *parts: Tensor) -> Tensors:
        del ctx
        return tuple(part.view_as(part) for part in parts)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> Any:
        raise TreeparseError(NO_THIRD)


class _CodeLengths(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, family: Family, lengths: Tensor, *parts: Tensor) -> Tensor:
        values, derivatives = family.code_lengths(*halves(parts), lengths)
        ctx.family = family
        ctx.save_for_backward(lengths, *derivatives, *parts)
        return values

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        lengths, *saved = ctx.saved_tensors
        kinds = len(saved) // 3
        derivatives, *scores = (tuple(saved[start : start + kinds]) for start in range(0, 3 * kinds, kinds))
        own, others = (ctx.family.log_partition_and_marginals(each, lengths)[1] for each in scores)
        derivatives += tuple(other - mine for mine, other in zip(own, others, strict=True))  # in the scores of q
        return None, None, *(part * aligned(gradient, part) for part in derivatives)


def _marginals(sums: TreeSums, parts: Tensors) -> Tensors:
    return cast(Tensors, _Marginals.apply(sums, *parts))


def _hessian_vector_product(sums: TreeSums, parts: Tensors, vectors: Tensors) -> Tensors:
    if not torch.is_grad_enabled():
        return sums.family.hessian_vector_product(parts, sums.lengths, vectors, sums.saved)
    return cast(Tensors, _HessianVectorProduct.apply(sums, *_TwiceDifferentiated.apply(*parts), *vectors))


def _constant(parts: Tensors) -> Tensors:
    return tuple(part.detach() for part in parts)
