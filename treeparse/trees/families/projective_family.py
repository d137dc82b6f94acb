"""Dependency trees without crossing arcs, by the compiled kernels."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from treeparse.kernels.best import eisner
from treeparse.kernels.lists.projective_lists import ProjectiveKBest
from treeparse.kernels.samples import projective_samples as sampling
from treeparse.kernels.samples import without_replacement
from treeparse.kernels.sums import inside_outside
from treeparse.trees.families.family import KBest
from treeparse.trees.families.kernel_family import KernelFamily, KernelFunctions


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
        sample=sampling.sample_trees,
    )
    drawing: ClassVar[tuple[Callable[..., Any], ...]] = (
        sampling.sample_trees,
        inside_outside.log_partition,
        partial(without_replacement.sample_distinct_trees, projective=True),
    )
    list_of_best: ClassVar[Callable[..., KBest]] = ProjectiveKBest
