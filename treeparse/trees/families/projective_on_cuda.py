"""Dependency trees without crossing arcs, by CUDA kernels on the scores' device."""

from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor

from treeparse.device import best, projective, samples
from treeparse.device.launcher import Launcher
from treeparse.trees.families.family import DistinctMethod, DistinctTrees, Family, KBest, LabelDraws, Method, Parts
from treeparse.trees.families.projective import Projective
from treeparse.trees.families.samplers import check_projective_method
from treeparse.trees.looks import moved


@dataclass(frozen=True)
class ProjectiveOnCuda(Family):
    """Sums, best trees and samples with replacement by kernels; for all else tensors are copied to the CPU and back."""

    single_root: bool
    launcher: Launcher
    crossing: ClassVar[bool] = False

    def log_partition(self, parts: Parts, lengths: Tensor) -> Tensor:
        (arcs,) = parts
        return projective.log_partition(arcs, lengths, **self._options)

    def log_partition_and_marginals(self, parts: Parts, lengths: Tensor) -> tuple[Tensor, Parts]:
        (arcs,) = parts
        log_z, marginals = projective.log_partition_and_marginals(arcs, lengths, **self._options)
        return log_z, (marginals,)

    def hessian_vector_product(self, parts: Parts, lengths: Tensor, vectors: Parts, rest: Any = None) -> Parts:
        (arcs,), (vector,) = parts, vectors
        return (projective.hessian_vector_product(arcs, lengths, vector, **self._options),)

    def log_marginals(self, parts: Parts, lengths: Tensor) -> Parts:
        (arcs,) = parts
        return (projective.log_marginals(arcs, lengths, **self._options),)

    def best_trees(self, parts: Parts, lengths: Tensor) -> Tensor:
        (arcs,) = parts
        return best.best_projective_trees(arcs, lengths, **self._options)

    def k_best(self, parts: Parts, lengths: Tensor) -> KBest:
        return self._others.k_best(parts, lengths)

    def sample(self, parts: Parts, lengths: Tensor, seeds: Tensor, count: int, method: Method | None = None) -> Tensor:
        check_projective_method(method)
        (arcs,) = parts
        drawn = samples.sample_projective_trees
        return drawn(arcs, lengths, moved(seeds, arcs.device), count, **self._options)

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
        return self._others.sample_without_replacement(parts, lengths, seeds, count, method=method, labels=labels)

    def are_trees(self, heads: Tensor, lengths: Tensor) -> Tensor:
        return best.are_trees(heads, lengths, crossing=False, **self._options)

    @property
    def _options(self) -> Any:
        return {"single_root": self.single_root, "launcher": self.launcher}

    @property
    def _others(self) -> Projective:
        return Projective(self.single_root)
