"""Families by CUDA kernels on the scores' device."""

from dataclasses import dataclass
from functools import partial
from typing import Any

from torch import Tensor

from treeparse.batch import moved
from treeparse.device import best, nonprojective, projective, samples
from treeparse.device.launcher import Launcher
from treeparse.trees.families.beam import sample_by_beam
from treeparse.trees.families.family import DistinctMethod, DistinctTrees, LabelDraws, Method, Tensors
from treeparse.trees.families.nonprojective import Nonprojective
from treeparse.trees.families.on_device import OnDevice
from treeparse.trees.families.projective import Projective
from treeparse.trees.families.samplers import check_method, check_projective_method


@dataclass(frozen=True)
class OnCuda(OnDevice):
    """Sums, best trees, samples with replacement and the beam by CUDA kernels; everything else by the CPU's family."""

    launcher: Launcher

    @property
    def options(self) -> dict[str, Any]:
        return {"single_root": self.single_root, "launcher": self.launcher}

    def log_marginals(self, parts: Tensors, lengths: Tensor) -> Tensors:
        return (self.sums.log_marginals(*parts, lengths, **self.options),)

    def best_trees(self, parts: Tensors, lengths: Tensor) -> Tensor:
        (arcs,) = parts
        find = best.best_trees if self.crossing else best.best_projective_trees
        return find(arcs, lengths, **self.options)

    def are_trees(self, heads: Tensor, lengths: Tensor) -> Tensor:
        return best.are_trees(heads, lengths, crossing=self.crossing, **self.options)

    def sample(
        self, parts: Tensors, lengths: Tensor, seeds: Tensor, count: int, method: Method | None = None
    ) -> Tensor:
        (arcs,) = parts
        arguments = arcs, lengths, moved(seeds, arcs.device), count
        if not self.crossing:
            check_projective_method(method)
            return samples.sample_projective_trees(*arguments, **self.options)
        check_method(method, single_root=self.single_root)
        way = "walks" if method in ("wilson", "wilson_marginal") else method
        return samples.sample_trees(*arguments, method=way, **self.options)

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
        """Draw different trees: non-projective ones by the beam on the device unless a method is named.

        The methods "repeat" and "trie" run on the CPU, because each round needs a device sync. Trees without crossing
        arcs have no beam.
        """
        if not self.crossing or method not in (None, "beam"):
            return self.cpu.sample_without_replacement(parts, lengths, seeds, count, method=method, labels=labels)
        (arcs,) = parts
        reach = partial(nonprojective.reach, launcher=self.launcher)
        logs = None if labels is None else labels.log_probs()
        options = {"single_root": self.single_root, "label_logs": logs, "reach": reach}
        return DistinctTrees(*sample_by_beam(arcs, lengths, seeds, count, **options))


def nonprojective_on_cuda(launcher: Launcher, *, single_root: bool) -> OnCuda:
    """All dependency trees, crossing arcs included."""
    return OnCuda(single_root, True, "nonprojective", nonprojective, Nonprojective(single_root), launcher)


def projective_on_cuda(launcher: Launcher, *, single_root: bool) -> OnCuda:
    """Dependency trees without crossing arcs."""
    return OnCuda(single_root, False, "projective", projective, Projective(single_root), launcher)
