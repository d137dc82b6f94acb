"""Dependency trees without crossing arcs, by the compiled kernels."""

from dataclasses import dataclass, field
from functools import partial
from typing import Any

from torch import Tensor

from treeparse.kernels.best import eisner
from treeparse.kernels.lists.projective import ProjectiveKBest
from treeparse.kernels.samples import projective as sampling
from treeparse.kernels.samples import without_replacement
from treeparse.kernels.sums import inside_outside
from treeparse.trees.families.arrays import floats, integers, run, seed_bits
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
from treeparse.trees.families.samplers import check_distinct_method, check_projective_method, draw_on_cpu


@dataclass(frozen=True)
class Projective(Family):
    """Sums and best trees in O(n^3) over Eisner's chart, on the CPU; other tensors are copied there and back."""

    single_root: bool
    crossing: bool = field(default=False, init=False)
    name: str = field(default="projective", init=False)

    def log_partition(self, parts: Tensors, lengths: Tensor) -> Tensor:
        return run(inside_outside.log_partition, *parts, lengths, single_root=self.single_root)

    def log_partition_and_marginals(self, parts: Tensors, lengths: Tensor) -> tuple[Tensor, Tensors]:
        log_z, marginals = run(
            inside_outside.log_partition_and_marginals, *parts, lengths, single_root=self.single_root
        )
        return log_z, (marginals,)

    def hessian_vector_product(self, parts: Tensors, lengths: Tensor, vectors: Tensors, saved: Any = None) -> Tensors:
        return (run(inside_outside.hessian_vector_product, *parts, lengths, *vectors, single_root=self.single_root),)

    def log_marginals(self, parts: Tensors, lengths: Tensor) -> Tensors:
        return (run(inside_outside.log_marginals, *parts, lengths, single_root=self.single_root),)

    def best_trees(self, parts: Tensors, lengths: Tensor) -> Tensor:
        return run(eisner.best_trees, *parts, lengths, single_root=self.single_root)

    def k_best(self, parts: Tensors, lengths: Tensor) -> KBest:
        (arcs,) = parts
        return ProjectiveKBest(floats(arcs), integers(lengths), single_root=self.single_root)

    def sample(
        self, parts: Tensors, lengths: Tensor, seeds: Tensor, count: int, method: Method | None = None
    ) -> Tensor:
        check_projective_method(method)
        return run(sampling.sample_trees, *parts, lengths, seed_bits(seeds), count, single_root=self.single_root)

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
        """Draw different trees; the method None takes "repeat"."""
        check_distinct_method(method, crossing=False)
        (arcs,) = parts
        trie = partial(without_replacement.sample_distinct_trees, projective=True)
        kernels = DrawKernels.of(
            sampling.sample_trees, inside_outside.log_partition, trie, single_root=self.single_root
        )
        return draw_on_cpu(kernels, arcs, lengths, seeds, count, method=method or "repeat", labels=labels)

    def are_trees(self, heads: Tensor, lengths: Tensor) -> Tensor:
        return run(eisner.are_projective_trees, heads, lengths, single_root=self.single_root)
