"""The three primitives of every sum over trees as autograd functions, each the derivative of the one before.

``log_partition`` has the derivative ``marginals``, whose derivative is the Hessian of the log partition, used only as a
product with a vector. All three take and return one tensor for each kind of part.
"""

from typing import Any, cast

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from treeparse.errors import TreeparseError
from treeparse.kernels.weights import LARGE_SCORE
from treeparse.lazy import cached_property
from treeparse.trees.checks import arc_mask
from treeparse.trees.families import Family, Tensors
from treeparse.trees.operators.derivatives import NO_THIRD, aligned, for_each_vector, halves

FAR_BELOW = 500.0  # nats below which weights vanish
NEGLIGIBLE = 1e-12  # nats


class TreeSums:
    """The differentiable sums of one flat batch; the values that they share are computed once.

    Args:
        family: the trees.
        parts: float64 scores, one tensor ``(B, ...)`` a kind of part.
        lengths: int64 ``(B,)``.
        remainders: what rounding took from large scores of arcs ``(B, n+1, n+1)``, if anything.
        has_large: whether there are large scores, which the family would round.
    """

    family: Family
    parts: Tensors
    lengths: Tensor
    remainders: Tensor | None
    has_large: bool

    def __init__(
        self,
        family: Family,
        parts: Tensors,
        lengths: Tensor,
        remainders: Tensor | None = None,
        *,
        has_large: bool = False,
    ) -> None:
        self.family, self.parts, self.lengths = family, parts, lengths
        self.remainders, self.has_large = remainders, has_large
        self.saved: Any = None  # the family's state for Hessian-vector products, or None

    @cached_property
    def constants(self) -> tuple[Tensor, Tensors]:
        """Log partition and marginals without a graph, both from one call."""
        return self._mended(*self.family.log_partition_and_marginals(_constant(self.parts), self.lengths))

    def _mended(self, log_z: Tensor, marginals: Tensors) -> tuple[Tensor, Tensors]:
        """Sum the items again that the family does not compute well enough."""
        items = self.items_in_logs
        if items is None:
            return log_z, marginals
        of_items = tuple(part[items] for part in _constant(self.parts)), self.lengths[items]
        again, of_parts = self.family.sums_in_logs(*of_items, self._remainders_of(items))
        results = (whole.index_copy(0, items, part) for whole, part in zip(marginals, of_parts, strict=True))
        return log_z.index_copy(0, items, again), tuple(results)

    @property
    def may_need_logs(self) -> bool:
        """Whether large scores have lost digits, or would lose them."""
        return self.has_large or self.remainders is not None

    @cached_property
    def items_in_logs(self) -> Tensor | None:
        """The items ``(I,)`` in which large scores have lost digits, or would lose them; None if there are none."""
        if not self.may_need_logs:
            return None
        parts = _constant(self.parts)
        lost = parts[0].abs() > (LARGE_SCORE if self.has_large else torch.inf)
        if self.remainders is not None:
            lost = lost | (self.remainders.abs() > NEGLIGIBLE)
        items = _items_where(lost, parts, self.lengths, self.family.log_partition(parts, self.lengths))
        return items if len(items) else None

    def _remainders_of(self, items: Tensor) -> Tensor | None:
        return None if self.remainders is None else self.remainders[items]

    def prepare_products(self) -> None:
        """Compute ``constants`` with the state that makes Hessian-vector products faster, if the family saves one."""
        if self.family.saves_for_hessian and not self.has_constants:
            log_z, marginals, self.saved = self.family.sums_saved_for_hessian(_constant(self.parts), self.lengths)
            self.constants = self._mended(log_z, marginals)

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

    def code_lengths(self, other: "TreeSums", items: Tensor, values: Tensor | None = None) -> Tensor:
        """Return ``-E_p[log q]`` ``(I,)`` of some items, right for scores of any size and differentiable once.

        These sums are p's, the other ones q's, of a family that works in logs. ``values`` are code lengths that arcs
        have of their own ``(I, n+1, n+1)``.
        """
        parts = [part[items] for part in (*self.parts, *other.parts)]
        lost = [each._remainders_of(items) for each in (self, other)]
        return cast(Tensor, _CodeLengths.apply(self.family, self.lengths[items], *lost, values, *parts))

    def product(self, parts: Tensors, vectors: Tensors) -> Tensors:
        """Return H v of every item ``(B, ...)`` without a graph."""
        products = self.family.hessian_vector_product(parts, self.lengths, vectors, self.saved)
        items = self.items_in_logs
        if items is None:
            return products
        chosen = [tuple(each[items].detach() for each in every) for every in (parts, vectors)]
        again = self.family.products_in_logs(chosen[0], self.lengths[items], chosen[1], self._remainders_of(items))
        return tuple(whole.index_copy(0, items, part) for whole, part in zip(products, again, strict=True))

    def hessian_vector_products(self, vectors: Tensors) -> Tensors:
        """Return H v of every item and each of its vectors ``(V, B, ...)``, differentiable in the vectors only."""
        self.prepare_products()

        def product(parts: Tensors, lengths: Tensor, flat: Tensors) -> Tensors:
            lost = self.remainders
            if lost is not None:
                lost = lost.repeat(len(lengths) // len(lost), 1, 1)
            repeated = TreeSums(self.family, parts, lengths, lost, has_large=self.has_large)
            repeated.saved = self.saved
            return _hessian_vector_product(repeated, parts, flat)

        return for_each_vector(product, self.parts, self.lengths, vectors)


class _LogPartition(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, sums: TreeSums, *parts: Tensor) -> Tensor:
        if not (
            any(ctx.needs_input_grad) or sums.has_constants or (sums.may_need_logs and sums.items_in_logs is not None)
        ):
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
        return sums.product(parts, vectors)

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
    def forward(
        ctx: Any,
        family: Family,
        lengths: Tensor,
        remainders: Tensor | None,
        other_remainders: Tensor | None,
        values: Tensor | None,
        *parts: Tensor,
    ) -> Tensor:
        more = {"remainders": remainders, "other_remainders": other_remainders, "values": values}
        codes, marginals, derivatives = family.code_lengths(*halves(parts), lengths, **more)
        ctx.family, ctx.lost, ctx.has_values = family, (remainders, other_remainders), values is not None
        ctx.save_for_backward(lengths, marginals, *derivatives, *parts)
        return codes

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        lengths, marginals, *saved = ctx.saved_tensors
        kinds = len(saved) // 3
        derivatives, *scores = (tuple(saved[start : start + kinds]) for start in range(0, 3 * kinds, kinds))
        both = zip(scores, ctx.lost, strict=True)
        own, others = (ctx.family.sums_in_logs(each, lengths, lost)[1] for each, lost in both)
        derivatives += tuple(other - mine for mine, other in zip(own, others, strict=True))  # in the scores of q
        of_values = marginals * aligned(gradient, marginals) if ctx.has_values else None
        return None, None, None, None, of_values, *(part * aligned(gradient, part) for part in derivatives)


def are_large(scores: Tensor) -> bool:
    """Whether some finite scores are so large that their sums lose digits."""
    if scores.numel() == 0:
        return False
    low, high = torch.aminmax(torch.nan_to_num(scores.detach(), nan=0.0, posinf=0.0, neginf=0.0))
    return bool((low < -LARGE_SCORE) | (high > LARGE_SCORE))


def _items_where(lost: Tensor, parts: Tensors, lengths: Tensor, log_z: Tensor) -> Tensor:
    """Return the items ``(I,)`` in which scores of arcs that matter are among ``lost`` ones ``(B, n+1, n+1)`` bool.

    Scores far below their column's best matter only where trees cannot do without them. Most of them are masks.
    """
    arcs, *others = parts
    is_arc = arc_mask(lengths, arcs.shape[-1]) & (arcs > -torch.inf)
    top = torch.where(is_arc, arcs, -torch.inf).amax(1, keepdim=True)
    far = torch.full_like(log_z, FAR_BELOW)
    for part in others:  # may make up for an arc's score, as often as there are words
        sizes = part.flatten(1).abs().double()
        far += 2 * arcs.shape[-1] * torch.where(sizes < torch.inf, sizes, 0.0).amax(1)
    forced = log_z - torch.where(top > -torch.inf, top, 0.0).sum((1, 2)) < -far
    matter = (arcs >= top - far[:, None, None]) | forced[:, None, None]
    return ((is_arc & matter & lost).flatten(1).any(1) & (log_z > -torch.inf)).nonzero().flatten()


def _marginals(sums: TreeSums, parts: Tensors) -> Tensors:
    return cast(Tensors, _Marginals.apply(sums, *parts))


def _hessian_vector_product(sums: TreeSums, parts: Tensors, vectors: Tensors) -> Tensors:
    if not torch.is_grad_enabled():
        return sums.product(parts, vectors)
    return cast(Tensors, _HessianVectorProduct.apply(sums, *_TwiceDifferentiated.apply(*parts), *vectors))


def _constant(parts: Tensors) -> Tensors:
    return tuple(part.detach() for part in parts)
