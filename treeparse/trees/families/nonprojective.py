"""All dependency trees, crossing arcs included, by the compiled kernels."""

from dataclasses import dataclass, field
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
from treeparse.trees.families import beam
from treeparse.trees.families.arrays import floats, integers, run, seed_bits, tensors
from treeparse.trees.families.distinct import DrawKernels
from treeparse.trees.families.family import (
    DistinctMethod,
    DistinctTrees,
    Family,
    KBest,
    LabelDraws,
    Method,
    Tensors,
)
from treeparse.trees.families.samplers import METHODS, check_distinct_method, check_method, draw_on_cpu

MOST_SAVED = 2**25  # numbers, 256 MiB


@dataclass(frozen=True)
class Nonprojective(Family):
    """Sums by elimination in O(n^3), best trees in O(n^2), on the CPU; other tensors are copied there and back."""

    single_root: bool
    crossing: bool = field(default=True, init=False)
    name: str = field(default="nonprojective", init=False)
    saves_for_hessian: ClassVar[bool] = True

    def log_partition(self, parts: Tensors, lengths: Tensor) -> Tensor:
        return run(elimination.log_partition, *parts, lengths, single_root=self.single_root)

    def log_partition_and_marginals(self, parts: Tensors, lengths: Tensor) -> tuple[Tensor, Tensors]:
        log_z, marginals = run(elimination.log_partition_and_marginals, *parts, lengths, single_root=self.single_root)
        return log_z, (marginals,)

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

    def hessian_vector_product(self, parts: Tensors, lengths: Tensor, vectors: Tensors, saved: Any = None) -> Tensors:
        options = {"single_root": self.single_root, "eliminated": saved}
        return (run(hessian.hessian_vector_product, *parts, lengths, *vectors, **options),)

    def log_marginals(self, parts: Tensors, lengths: Tensor) -> Tensors:
        return (run(conditionals.log_marginals, *parts, lengths, single_root=self.single_root),)

    def best_trees(self, parts: Tensors, lengths: Tensor) -> Tensor:
        """Return heads of the best trees ``(B, n+1)``: for a single root by the algorithm of Gabow and Tarjan."""
        if self.single_root:
            return run(gabow_tarjan.best_trees, *parts, lengths)
        return run(arborescence.best_trees, *parts, lengths, single_root=False)

    def k_best(self, parts: Tensors, lengths: Tensor) -> KBest:
        (arcs,) = parts
        return NonprojectiveKBest(floats(arcs), integers(lengths), single_root=self.single_root)

    def sample(
        self, parts: Tensors, lengths: Tensor, seeds: Tensor, count: int, method: Method | None = None
    ) -> Tensor:
        check_method(method, single_root=self.single_root)
        options = {"single_root": self.single_root, "method": METHODS.index(method)}
        heads, _ = run(sampling.sample_trees, *parts, lengths, seed_bits(seeds), count, **options)
        return heads

    def sample_without_replacement(
        self,
        parts: Tensors,
        lengths: Tensor,
        seeds: Tensor,
        count: int,
        *,
        method: DistinctMethod | None = None,
        labels: LabelDraws | None = None,
    ) -> DistinctTrees:
        """Draw different trees; the method None takes "repeat" on the CPU and "beam" on other devices."""
        check_distinct_method(method, crossing=True)
        (arcs,) = parts
        method = method or ("repeat" if arcs.device.type == "cpu" else "beam")
        if method == "beam":
            logs = None if labels is None else labels.log_probs()
            return DistinctTrees(
                *beam.sample_by_beam(arcs, lengths, seeds, count, single_root=self.single_root, label_logs=logs)
            )
        kernels = DrawKernels.of(
            _sample, elimination.log_partition, without_replacement.sample_distinct_trees, single_root=self.single_root
        )
        return draw_on_cpu(kernels, arcs, lengths, seeds, count, method=method, labels=labels)

    def are_trees(self, heads: Tensor, lengths: Tensor) -> Tensor:
        return run(arborescence.are_trees, heads, lengths, single_root=self.single_root)


def _sample(scores: FloatArray, lengths: IntArray, seeds: np.ndarray, count: int, **options: Any) -> IntArray:
    heads, _ = sampling.sample_trees(scores, lengths, seeds, count, **options)
    return heads
