"""All dependency trees, crossing arcs included: by the compiled kernels, or with sums in torch operations."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from treeparse.kernels.arrays import FloatArray, IntArray
from treeparse.kernels.best import arborescence, gabow_tarjan
from treeparse.kernels.lists.nonprojective import NonprojectiveKBest
from treeparse.kernels.samples import nonprojective as sampling
from treeparse.kernels.samples import without_replacement
from treeparse.kernels.sums import conditionals, elimination, hessian
from treeparse.kernels.sums.in_logs import elimination as elimination_in_logs
from treeparse.kernels.sums.in_logs.code_lengths_by_elimination import code_lengths
from treeparse.trees.families import dense
from treeparse.trees.families.arrays import floats, integers, tensors
from treeparse.trees.families.family import KBest, Method, Tensors
from treeparse.trees.families.kernel_family import METHODS, KernelFamily, KernelFunctions, LogKernels

MOST_SAVED = 2**25  # numbers, 256 MiB


def _best_trees(scores: FloatArray, lengths: IntArray, *, single_root: bool, threads: int) -> IntArray:
    """Return heads of the best trees ``(B, n+1)``: for a single root by the algorithm of Gabow and Tarjan."""
    if single_root:
        return gabow_tarjan.best_trees(scores, lengths, threads=threads)
    return arborescence.best_trees(scores, lengths, single_root=False, threads=threads)


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
    saves_for_hessian: ClassVar[bool] = True
    functions: ClassVar[KernelFunctions] = KernelFunctions(
        log_partition=elimination.log_partition,
        log_partition_and_marginals=elimination.log_partition_and_marginals,
        hessian_vector_product=hessian.hessian_vector_product,
        log_marginals=conditionals.log_marginals,
        best_trees=_best_trees,
        are_trees=arborescence.are_trees,
        sample=_sample,
    )
    works_in_logs: ClassVar[bool] = True
    in_logs: ClassVar[LogKernels] = LogKernels(
        log_partition_and_marginals=elimination_in_logs.log_partition_and_marginals,
        hessian_vector_product=elimination_in_logs.hessian_vector_product,
        code_lengths=code_lengths,
    )
    drawing: ClassVar[tuple[Callable[..., Any], ...]] = (
        _sample,
        elimination.log_partition,
        without_replacement.sample_distinct_trees,
    )
    list_of_best: ClassVar[Callable[..., KBest]] = NonprojectiveKBest

    def sums_saved_for_hessian(self, parts: Tensors, lengths: Tensor) -> tuple[Tensor, Tensors, Any]:
        """The saved state is the elimination, three matrices an item; of large batches nothing is saved."""
        (arcs,) = parts
        if 3 * arcs.numel() > MOST_SAVED:
            return *self.log_partition_and_marginals(parts, lengths), None
        *sums, eliminated = elimination.log_partition_marginals_and_elimination(
            floats(arcs), integers(lengths), single_root=self.single_root, threads=torch.get_num_threads()
        )
        log_z, marginals = tensors(tuple(sums), arcs.device)
        return log_z, (marginals,), eliminated


@dataclass(frozen=True)
class NonprojectiveInTorch(Nonprojective):
    """Sums in torch operations on the scores' device, whichever it is; everything else by the CPU's kernels."""

    saves_for_hessian: ClassVar[bool] = False

    def log_partition(self, parts: Tensors, lengths: Tensor) -> Tensor:
        return dense.log_partition(parts[0], lengths, single_root=self.single_root)

    def log_partition_and_marginals(self, parts: Tensors, lengths: Tensor) -> tuple[Tensor, Tensors]:
        log_z, marginals = dense.log_partition_and_marginals(parts[0], lengths, single_root=self.single_root)
        return log_z, (marginals,)

    def hessian_vector_product(self, parts: Tensors, lengths: Tensor, vectors: Tensors, saved: Any = None) -> Tensors:
        return (dense.hessian_vector_product(parts[0], lengths, vectors[0], single_root=self.single_root),)
