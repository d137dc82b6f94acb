"""Families by CUDA kernels on the scores' device."""

from dataclasses import dataclass
from typing import Any

from torch import Tensor

from treeparse.device import best, nonprojective, projective, samples
from treeparse.device.launcher import Launcher
from treeparse.trees.families.family import Method, Parts
from treeparse.trees.families.nonprojective import Nonprojective
from treeparse.trees.families.on_device import OnDevice
from treeparse.trees.families.projective import Projective
from treeparse.trees.families.samplers import check_method, check_projective_method
from treeparse.trees.looks import moved


@dataclass(frozen=True)
class OnCuda(OnDevice):
    """Sums, best trees and samples with replacement by kernels; all else as ``OnDevice`` says."""

    launcher: Launcher

    @property
    def options(self) -> dict[str, Any]:
        return {"single_root": self.single_root, "launcher": self.launcher}

    def log_marginals(self, parts: Parts, lengths: Tensor) -> Parts:
        return (self.sums.log_marginals(*parts, lengths, **self.options),)

    def best_trees(self, parts: Parts, lengths: Tensor) -> Tensor:
        (arcs,) = parts
        find = best.best_trees if self.crossing else best.best_projective_trees
        return find(arcs, lengths, **self.options)

    def are_trees(self, heads: Tensor, lengths: Tensor) -> Tensor:
        return best.are_trees(heads, lengths, crossing=self.crossing, **self.options)

    def sample(self, parts: Parts, lengths: Tensor, seeds: Tensor, count: int, method: Method | None = None) -> Tensor:
        """Walks with rejection and Colbourn's method, which are for comparison, are the CPU's."""
        (arcs,) = parts
        arguments = arcs, lengths, moved(seeds, arcs.device), count
        if not self.crossing:
            check_projective_method(method)
            return samples.sample_projective_trees(*arguments, **self.options)
        if method in ("wilson_reject", "colbourn"):
            return self.rest.sample(parts, lengths, seeds, count, method)
        check_method(method, single_root=self.single_root)
        way = "walks" if method in ("wilson", "wilson_marginal") else method
        return samples.sample_trees(*arguments, method=way, **self.options)


def nonprojective_on_cuda(launcher: Launcher, *, single_root: bool) -> OnCuda:
    """All dependency trees, crossing arcs included."""
    return OnCuda(single_root, True, nonprojective, Nonprojective(single_root), launcher)


def projective_on_cuda(launcher: Launcher, *, single_root: bool) -> OnCuda:
    """Dependency trees without crossing arcs."""
    return OnCuda(single_root, False, projective, Projective(single_root), launcher)
