"""All dependency trees, crossing arcs included, with sums in torch operations on the scores' device."""

from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor

from treeparse.trees.families import dense
from treeparse.trees.families.family import DistinctMethod, DistinctTrees, Family, KBest, LabelDraws, Method, Parts
from treeparse.trees.families.nonprojective import Nonprojective


@dataclass(frozen=True)
class NonprojectiveOnDevice(Family):
    """Sums and draws without replacement stay on the device; for all else the compiled kernels serve."""

    single_root: bool
    crossing: ClassVar[bool] = True

    def log_partition(self, parts: Parts, lengths: Tensor) -> Tensor:
        (arcs,) = parts
        return dense.log_partition(arcs, lengths, single_root=self.single_root)

    def log_partition_and_marginals(self, parts: Parts, lengths: Tensor) -> tuple[Tensor, Parts]:
        (arcs,) = parts
        log_z, marginals = dense.log_partition_and_marginals(arcs, lengths, single_root=self.single_root)
        return log_z, (marginals,)

    def hessian_vector_product(self, parts: Parts, lengths: Tensor, vectors: Parts, rest: Any = None) -> Parts:
        (arcs,), (vector,) = parts, vectors
        return (dense.hessian_vector_product(arcs, lengths, vector, single_root=self.single_root),)

    def log_marginals(self, parts: Parts, lengths: Tensor) -> Parts:
        return self._kernels.log_marginals(parts, lengths)

    def best_trees(self, parts: Parts, lengths: Tensor) -> Tensor:
        return self._kernels.best_trees(parts, lengths)

    def k_best(self, parts: Parts, lengths: Tensor) -> KBest:
        return self._kernels.k_best(parts, lengths)

    def sample(self, parts: Parts, lengths: Tensor, seeds: Tensor, count: int, method: Method | None = None) -> Tensor:
        return self._kernels.sample(parts, lengths, seeds, count, method)

    def sample_without_replacement(
        self,
        parts: Parts,
        lengths: Tensor,
        seeds: Tensor,
        count: int,
        *,
        method: DistinctMethod | None = None,
        labels: LabelDraws | None = None,
    ) -> DistinctTrees:
        return self._kernels.sample_without_replacement(parts, lengths, seeds, count, method=method, labels=labels)

    def are_trees(self, heads: Tensor, lengths: Tensor) -> Tensor:
        return self._kernels.are_trees(heads, lengths)

    @property
    def _kernels(self) -> Nonprojective:
        return Nonprojective(self.single_root)
