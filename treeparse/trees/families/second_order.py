"""Dependency trees without crossing arcs that score parts of several arcs, by the compiled kernels."""

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from torch import Tensor

from treeparse.kernels.arrays import FloatArray, IntArray
from treeparse.kernels.best import grandparents as best_with_grandparents
from treeparse.kernels.best import siblings as best_with_siblings
from treeparse.kernels.best.eisner import are_projective_trees
from treeparse.kernels.lists.projective import ProjectiveKBest
from treeparse.kernels.samples import second_order, without_replacement
from treeparse.kernels.sums import grandparents as sums_with_grandparents
from treeparse.kernels.sums import siblings as sums_with_siblings
from treeparse.trees.families.arrays import integers
from treeparse.trees.families.family import KBest, Tensors
from treeparse.trees.families.kernel_family import KernelFamily, KernelFunctions
from treeparse.trees.families.part_kinds import GRANDPARENTS, SIBLINGS
from treeparse.trees.parts import PartKind

_draw_distinct = partial(without_replacement.sample_distinct_trees, projective=True)


def _sample(arcs: FloatArray, *others: Any, **options: Any) -> IntArray:
    """Draw trees by scores of arcs and of other parts, lengths, seeds and the number of trees."""
    *parts, lengths, seeds, count = others
    return second_order.sample_trees(arcs, tuple(parts), lengths, seeds.view(np.uint64), count, **options)


def _list(arcs: FloatArray, *others: Any, single_root: bool) -> KBest:
    """Begin the list of the best trees by scores of arcs and of other parts, and lengths."""
    *parts, lengths = others
    return ProjectiveKBest(arcs, lengths, others=tuple(parts), single_root=single_root)


class _ProjectiveParts(KernelFamily):
    """What both families share: the kernels of best trees read the other parts of chosen items in place."""

    crossing: ClassVar[bool] = False

    def best_trees_of_items(self, arcs: Tensor, others: Tensors, lengths: Tensor, items: Tensor) -> Tensor:
        return self.call(self.functions.best_trees, arcs, *others, lengths, items=integers(items))


@dataclass(frozen=True)
class ProjectiveSiblings(_ProjectiveParts):
    """Sums and best trees in O(n^3) by spans whose last dependent is known."""

    name: ClassVar[str] = "sibling"
    kinds: ClassVar[tuple[PartKind, ...]] = (SIBLINGS,)
    functions = KernelFunctions(
        log_partition=sums_with_siblings.log_partition,
        log_partition_and_marginals=sums_with_siblings.log_partition_and_marginals,
        hessian_vector_product=sums_with_siblings.hessian_vector_product,
        log_marginals=sums_with_siblings.log_marginals,
        best_trees=best_with_siblings.best_trees,
        are_trees=are_projective_trees,
        sample=_sample,
    )
    drawing = _sample, sums_with_siblings.log_partition, _draw_distinct
    list_of_best = staticmethod(_list)


@dataclass(frozen=True)
class ProjectiveGrandparents(_ProjectiveParts):
    """Sums and best trees in O(n^4) by the same spans, whose head's head is known, too."""

    name: ClassVar[str] = "second-order"
    kinds: ClassVar[tuple[PartKind, ...]] = (SIBLINGS, GRANDPARENTS)
    functions = KernelFunctions(
        log_partition=sums_with_grandparents.log_partition,
        log_partition_and_marginals=sums_with_grandparents.log_partition_and_marginals,
        hessian_vector_product=sums_with_grandparents.hessian_vector_product,
        log_marginals=sums_with_grandparents.log_marginals,
        best_trees=best_with_grandparents.best_trees,
        are_trees=are_projective_trees,
        sample=_sample,
    )
    drawing = _sample, sums_with_grandparents.log_partition, _draw_distinct
    list_of_best = staticmethod(_list)
