"""Families whose sums are computed on the scores' device."""

from dataclasses import dataclass
from types import ModuleType
from typing import Any

from torch import Tensor

from treeparse.trees.families import dense
from treeparse.trees.families.family import (
    DistinctMethod,
    DistinctTrees,
    Family,
    KBest,
    LabelDraws,
    Method,
    Tensors,
)
from treeparse.trees.families.nonprojective import Nonprojective


@dataclass(frozen=True)
class OnDevice(Family):
    """Sums by a module's functions on the scores' device; everything else by the CPU's family of the same trees.

    Lists of the best trees are always the CPU's: a list grows by one heap a sentence, one tree after another, and is
    read on the CPU. The scores are copied there once.

    Attributes:
        sums: ``log_partition``, ``log_partition_and_marginals`` and ``hessian_vector_product``.
        cpu: the CPU's family.
    """

    single_root: bool
    crossing: bool
    name: str
    sums: ModuleType
    cpu: Family

    @property
    def options(self) -> dict[str, Any]:
        """The functions' arguments besides tensors."""
        return {"single_root": self.single_root}

    def log_partition(self, parts: Tensors, lengths: Tensor) -> Tensor:
        return self.sums.log_partition(*parts, lengths, **self.options)

    def log_partition_and_marginals(self, parts: Tensors, lengths: Tensor) -> tuple[Tensor, Tensors]:
        log_z, marginals = self.sums.log_partition_and_marginals(*parts, lengths, **self.options)
        return log_z, (marginals,)

    def hessian_vector_product(self, parts: Tensors, lengths: Tensor, vectors: Tensors, saved: Any = None) -> Tensors:
        return (self.sums.hessian_vector_product(*parts, lengths, *vectors, **self.options),)

    def log_marginals(self, parts: Tensors, lengths: Tensor) -> Tensors:
        return self.cpu.log_marginals(parts, lengths)

    def best_trees(self, parts: Tensors, lengths: Tensor) -> Tensor:
        return self.cpu.best_trees(parts, lengths)

    def k_best(self, parts: Tensors, lengths: Tensor) -> KBest:
        return self.cpu.k_best(parts, lengths)

    def sample(
        self, parts: Tensors, lengths: Tensor, seeds: Tensor, count: int, method: Method | None = None
    ) -> Tensor:
        return self.cpu.sample(parts, lengths, seeds, count, method)

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
        return self.cpu.sample_without_replacement(parts, lengths, seeds, count, method=method, labels=labels)

    def are_trees(self, heads: Tensor, lengths: Tensor) -> Tensor:
        return self.cpu.are_trees(heads, lengths)


def nonprojective_on_device(*, single_root: bool) -> OnDevice:
    """All dependency trees, crossing arcs included, with sums in torch operations, for any device."""
    return OnDevice(single_root, True, "nonprojective", dense, Nonprojective(single_root))
