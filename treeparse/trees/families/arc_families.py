"""Trees that score arcs alone: all of them, or those without crossing arcs, by the compiled kernels or in torch."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from torch import Tensor

from treeparse.kernels.array_types import FloatArray, IntArray
from treeparse.kernels.best import arborescence, eisner
from treeparse.kernels.lists.nonprojective_lists import NonprojectiveKBest
from treeparse.kernels.lists.projective_lists import ProjectiveKBest
from treeparse.kernels.samples import nonprojective_samples as sampling
from treeparse.kernels.samples import projective_samples, without_replacement
from treeparse.kernels.sums import conditionals, elimination, hessian, inside_outside
from treeparse.trees.families import dense
from treeparse.trees.families.family import KBest, Method, Tensors
from treeparse.trees.families.kernel_family import METHODS, KernelFamily, KernelFunctions


def _sample(
    scores: FloatArray,
    lengths: IntArray,
    seeds: np.ndarray,
    count: int,
    *,
    method: Method | None = None,
    **options: Any,
) -> IntArray:
    number = METHODS.index(method)
    heads, _ = sampling.sample_trees(scores, lengths, seeds.view(np.uint64), count, method=number, **options)
    return heads


@dataclass(frozen=True)
class Nonprojective(KernelFamily):
    """Sums by elimination in O(n^3), best trees in O(n^2)."""

    crossing: ClassVar[bool] = True
    name: ClassVar[str] = "nonprojective"
    description: ClassVar[str] = "all trees"
    functions: ClassVar[KernelFunctions] = KernelFunctions(
        log_partition=elimination.log_partition,
        log_partition_and_marginals=elimination.log_partition_and_marginals,
        hessian_vector_product=hessian.hessian_vector_product,
        log_marginals=conditionals.log_marginals,
        best_trees=arborescence.best_trees,
        are_trees=arborescence.are_trees,
        sample=_sample,
    )
    drawing: ClassVar[tuple[Callable[..., Any], ...]] = (
        _sample,
        elimination.log_partition,
        without_replacement.sample_distinct_trees,
    )
    list_of_best: ClassVar[Callable[..., KBest]] = NonprojectiveKBest


@dataclass(frozen=True)
class NonprojectiveInTorch(Nonprojective):
    """Sums in torch operations on the scores' device, whichever it is; everything else by the CPU's kernels."""

    @property
    def option(self) -> str:
        return "torch"

    def log_partition(self, parts: Tensors, lengths: Tensor) -> Tensor:
        return dense.log_partition(parts[0], lengths, single_root=self.single_root)

    def sums(self, parts: Tensors, lengths: Tensor) -> Tensors:
        return dense.log_partition_and_marginals(parts[0], lengths, single_root=self.single_root)

    def hessian_vector_product(self, parts: Tensors, lengths: Tensor, vectors: Tensors) -> Tensors:
        return (dense.hessian_vector_product(parts[0], lengths, vectors[0], single_root=self.single_root),)


@dataclass(frozen=True)
class Projective(KernelFamily):
    """Sums and best trees in O(n^3) over Eisner's chart."""

    crossing: ClassVar[bool] = False
    name: ClassVar[str] = "projective"
    description: ClassVar[str] = "trees without crossing arcs"
    functions: ClassVar[KernelFunctions] = KernelFunctions(
        log_partition=inside_outside.log_partition,
        log_partition_and_marginals=inside_outside.log_partition_and_marginals,
        hessian_vector_product=inside_outside.hessian_vector_product,
        log_marginals=inside_outside.log_marginals,
        best_trees=eisner.best_trees,
        are_trees=eisner.are_projective_trees,
        sample=projective_samples.sample_trees,
    )
    drawing: ClassVar[tuple[Callable[..., Any], ...]] = (
        projective_samples.sample_trees,
        inside_outside.log_partition,
        partial(without_replacement.sample_distinct_trees, projective=True),
    )
    list_of_best: ClassVar[Callable[..., KBest]] = ProjectiveKBest
