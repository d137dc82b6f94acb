"""Families by CUDA kernels on the scores' device; lists of the best trees are the CPU's."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import torch
from torch import Tensor

from treeparse.batch import moved
from treeparse.device import cuda, nonprojective, projective
from treeparse.device.launcher import Launcher
from treeparse.trees.families.arc_families import KernelFamily, KernelFunctions, Nonprojective, Projective
from treeparse.trees.families.beam import Reach
from treeparse.trees.families.family import Family, Method


@dataclass(frozen=True)
class _OnCuda(KernelFamily):
    """``call`` for functions that launch CUDA kernels."""

    launcher: Launcher

    def call(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        device = arguments[0].device
        on_device = (moved(value, device) if isinstance(value, Tensor) else value for value in arguments)
        return function(*on_device, single_root=self.single_root, launcher=self.launcher, **options)


def _sample(*arguments: Any, method: Method | None = None, **options: Any) -> Tensor:
    kernel = "walks" if method in ("wilson", "wilson_marginal") else method
    return nonprojective.sample_trees(*arguments, method=kernel, **options)


@dataclass(frozen=True)
class NonprojectiveOnCuda(_OnCuda, Nonprojective):
    """All dependency trees, crossing arcs included; different trees by the beam unless a method is named."""

    functions: ClassVar[KernelFunctions] = KernelFunctions(
        log_partition=nonprojective.log_partition,
        log_partition_and_marginals=nonprojective.log_partition_and_marginals,
        hessian_vector_product=nonprojective.hessian_vector_product,
        log_marginals=nonprojective.log_marginals,
        best_trees=nonprojective.best_trees,
        are_trees=nonprojective.are_trees,
        sample=_sample,
    )

    @property
    def reach(self) -> Reach:
        return partial(nonprojective.reach, launcher=self.launcher)


@dataclass(frozen=True)
class ProjectiveOnCuda(_OnCuda, Projective):
    """Dependency trees without crossing arcs; different trees by the CPU's kernels."""

    functions: ClassVar[KernelFunctions] = KernelFunctions(
        log_partition=projective.log_partition,
        log_partition_and_marginals=projective.log_partition_and_marginals,
        hessian_vector_product=projective.hessian_vector_product,
        log_marginals=projective.log_marginals,
        best_trees=projective.best_trees,
        are_trees=partial(nonprojective.are_trees, crossing=False),
        sample=projective.sample_trees,
    )


FAMILIES: Mapping[str, Callable[[bool, Launcher], Family]] = {
    "nonprojective": NonprojectiveOnCuda,
    "projective": ProjectiveOnCuda,
}


def launcher_of(device: torch.device, *, is_required: bool) -> Launcher | None:
    """Return the launcher of kernels on a device; None if kernels cannot run and ``is_required`` is False."""
    index = torch.cuda.current_device() if device.index is None else device.index
    return cuda.launcher_of(index) if is_required else cuda.launcher_or_none(index)
