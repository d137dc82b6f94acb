"""The three primitives of every sum over trees, each the derivative of the one before, and where they run.

``log_partition`` has the derivative ``marginals``, whose derivative is the Hessian of the log partition, met only as a
product with a vector. This is the only place that chooses between the compiled kernels, which take CPU memory, and
the torch form, which runs on any device.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property, partial
from typing import Any, Literal, Protocol

import torch
from torch import Tensor

from treeparse.core import TreeparseError
from treeparse.kernels.arrays import FloatArray, IntArray
from treeparse.kernels.best import arborescence, eisner, gabow_tarjan
from treeparse.kernels.lists.nonprojective import NonprojectiveKBest
from treeparse.kernels.lists.projective import ProjectiveKBest
from treeparse.kernels.sums import conditionals, elimination, hessian, inside_outside
from treeparse.trees import dense
from treeparse.trees.arrays import floats, integers

Backend = Literal["numba", "torch"]


class KBest(Protocol):
    """A list of trees, best first, that grows where more are asked for; what is done is kept."""

    @property
    def heads(self) -> IntArray:
        """Heads ``(B, made, n+1)``, -1 past the number of trees."""
        ...

    @property
    def scores(self) -> FloatArray:
        """Summed scores ``(B, made)``, -inf past the number of trees."""
        ...

    def extend(self, count: int, threads: int = 1) -> None:
        """Make ``count`` trees an item, with those made before."""
        ...


@dataclass(frozen=True)
class Primitives:
    """Plain functions of float64 scores ``(B, n+1, n+1)`` and int64 lengths ``(B,)``, without autograd."""

    log_partition: Callable[[Tensor, Tensor], Tensor]
    log_partition_and_marginals: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]
    hessian_vector_product: Callable[[Tensor, Tensor, Tensor], Tensor]


class TreeSums:
    """The differentiable sums of one batch; the values that they share are computed once.

    Args:
        primitives: how the trees of a family are summed.
        scores: float64 ``(B, n+1, n+1)``.
        lengths: int64 ``(B,)``.
    """

    def __init__(self, primitives: Primitives, scores: Tensor, lengths: Tensor) -> None:
        self.primitives, self.scores, self.lengths = primitives, scores, lengths

    @cached_property
    def constants(self) -> tuple[Tensor, Tensor]:
        """Log partition and marginals without a graph; one elimination gives both."""
        return self.primitives.log_partition_and_marginals(self.scores.detach(), self.lengths)

    def log_partition(self) -> Tensor:
        """Log of the summed weight of all trees ``(B,)``, differentiable twice; -inf where there is none."""
        return _LogPartition.apply(self.scores, self)  # pyright: ignore[reportReturnType]

    def marginals(self) -> Tensor:
        """The probability of every arc ``(B, n+1, n+1)``, differentiable; 0 where there is no tree."""
        return _Marginals.apply(self.scores, self)  # pyright: ignore[reportReturnType]

    def hessian_vector_products(self, vectors: Tensor) -> Tensor:
        """H v of every item and each of its vectors ``(V, B, n+1, n+1)``, differentiable in the vectors alone."""
        count, shape = len(vectors), self.scores.shape[-2:]
        scores = self.scores.expand(count, *self.scores.shape).reshape(-1, *shape)
        lengths = self.lengths.expand(count, -1).reshape(-1)
        repeated = TreeSums(self.primitives, scores, lengths)
        return _hessian_vector_product(scores, vectors.reshape(-1, *shape), repeated).reshape(vectors.shape)


class _LogPartition(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, scores: Tensor, sums: TreeSums) -> Tensor:
        if not ctx.needs_input_grad[0] and "constants" not in sums.__dict__:
            return sums.primitives.log_partition(scores, sums.lengths)
        log_z, marginals = sums.constants
        ctx.sums = sums
        ctx.save_for_backward(scores, marginals)  # saved, so that a change in place is found
        return log_z.clone()

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor, None]:
        scores, marginals = ctx.saved_tensors
        if torch.is_grad_enabled():  # somebody wants to differentiate again
            marginals = _Marginals.apply(scores, ctx.sums)
        return marginals * grad_outputs[0][:, None, None], None


class _Marginals(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, scores: Tensor, sums: TreeSums) -> Tensor:
        ctx.sums = sums
        ctx.save_for_backward(scores)
        return sums.constants[1].detach()

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor, None]:
        (scores,) = ctx.saved_tensors
        return _hessian_vector_product(scores, grad_outputs[0], ctx.sums), None


class _HessianVectorProduct(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, scores: Tensor, vectors: Tensor, sums: TreeSums) -> Tensor:
        ctx.sums = sums
        ctx.save_for_backward(scores)
        return sums.primitives.hessian_vector_product(scores, sums.lengths, vectors)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[None, Tensor, None]:
        (scores,) = ctx.saved_tensors
        return None, _hessian_vector_product(scores, grad_outputs[0], ctx.sums), None  # the Hessian is symmetric


class _NoThirdDerivative(torch.autograd.Function):
    """The identity, in whose place a missing derivative is found as soon as somebody asks for it."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor) -> Tensor:
        return scores.view_as(scores)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> Tensor:
        raise TreeparseError(
            "This gradient needs a third derivative of the log partition in the scores, which is not implemented: "
            "covariances and second moments are differentiable in their arc values only, marginals and entropies once."
        )


def _hessian_vector_product(scores: Tensor, vectors: Tensor, sums: TreeSums) -> Tensor:
    return _HessianVectorProduct.apply(_NoThirdDerivative.apply(scores), vectors, sums)  # pyright: ignore[reportReturnType]


def check_backend(backend: str | None) -> None:
    """Raise for a backend that does not exist."""
    if backend not in (None, "numba", "torch"):
        raise TreeparseError(f"There is no backend {backend!r}: choose 'numba', 'torch', or None.")


@cache
def nonprojective_primitives(device: torch.device, *, single_root: bool, backend: Backend | None) -> Primitives:
    """Sums over non-projective trees; the compiled kernels for CPU tensors, the torch form for others, or as told."""
    if backend == "torch" or (backend is None and device.type != "cpu"):
        return Primitives(
            partial(dense.log_partition, single_root=single_root),
            partial(dense.log_partition_and_marginals, single_root=single_root),
            partial(dense.hessian_vector_product, single_root=single_root),
        )
    return Primitives(
        partial(_run, elimination.log_partition, single_root=single_root),
        partial(_run, elimination.log_partition_and_marginals, single_root=single_root),
        partial(_run, hessian.hessian_vector_product, single_root=single_root),
    )


@cache
def projective_primitives(*, single_root: bool) -> Primitives:
    """Sums over projective trees by the compiled kernels, wherever the tensors are."""
    return Primitives(
        partial(_run, inside_outside.log_partition, single_root=single_root),
        partial(_run, inside_outside.log_partition_and_marginals, single_root=single_root),
        partial(_run, inside_outside.hessian_vector_product, single_root=single_root),
    )


def log_marginals(scores: Tensor, lengths: Tensor, *, single_root: bool, projective: bool = False) -> Tensor:
    """Log probability of every arc ``(B, n+1, n+1)``, right to relative accuracy and exact about -inf; a constant."""
    kernel = inside_outside.log_marginals if projective else conditionals.log_marginals
    return _run(kernel, scores, lengths, single_root=single_root)


def best_trees(scores: Tensor, lengths: Tensor, *, single_root: bool, projective: bool = False) -> Tensor:
    """Heads of the best trees ``(B, n+1)``, -1 where there is none.

    For one root by Gabow and Tarjan's way; ``arborescence`` has another for it, slower, which is there to check it.
    """
    if projective:
        return _run(eisner.best_trees, scores, lengths, single_root=single_root)
    if single_root:
        return _run(gabow_tarjan.best_trees, scores, lengths)
    return _run(arborescence.best_trees, scores, lengths, single_root=False)


def k_best(scores: Tensor, lengths: Tensor, *, single_root: bool, projective: bool = False) -> KBest:
    """The lazy list of the best trees; it is kept in CPU memory."""
    family = ProjectiveKBest if projective else NonprojectiveKBest
    return family(floats(scores), integers(lengths), single_root=single_root)


def are_trees(heads: Tensor, lengths: Tensor, *, single_root: bool, projective: bool = False) -> Tensor:
    """Which head lists ``(B, n+1)`` are trees, ``(B,)`` bool."""
    kernel = eisner.are_projective_trees if projective else arborescence.are_trees
    return torch.from_numpy(kernel(integers(heads), integers(lengths), single_root=single_root)).to(heads.device)


def _run(kernel: Callable[..., Any], scores: Tensor, lengths: Tensor, *vectors: Tensor, **options: bool) -> Any:
    """A kernel's answer as tensors of the scores' device; CUDA tensors are copied to the CPU and back."""
    arrays = floats(scores), integers(lengths), *map(floats, vectors)
    found = kernel(*arrays, **options, threads=torch.get_num_threads())
    if isinstance(found, tuple):
        return tuple(torch.from_numpy(array).to(scores.device) for array in found)
    return torch.from_numpy(found).to(scores.device)
