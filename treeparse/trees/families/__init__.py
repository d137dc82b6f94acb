"""Families of trees, one class for each kind of tree and backend, and the choice of a backend by device."""

from typing import TYPE_CHECKING, Literal

import torch

from treeparse.errors import TreeparseError
from treeparse.trees.families.arc_families import Nonprojective, NonprojectiveInTorch, Projective
from treeparse.trees.families.family import DistinctMethod, Family, KBest, LabelDraws, Method, Tensors

if TYPE_CHECKING:
    from treeparse.device.launcher import Launcher

__all__ = [
    "DistinctMethod",
    "Family",
    "KBest",
    "LabelDraws",
    "Method",
    "Tensors",
]


Backend = Literal["numba", "torch", "cuda"]


def nonprojective(device: torch.device, *, single_root: bool, backend: Backend | None = None) -> Family:
    """Return the family of all trees; None takes compiled kernels for the device, or torch if there are none.

    Raises:
        TreeparseError: for "cuda" and scores on another device, or if the CUDA kernels cannot run.
    """
    if torch.compiler.is_compiling():  # the operators of a program find their launcher where it runs
        return NonprojectiveInTorch(single_root) if backend == "torch" else Nonprojective(single_root)
    if backend == "cuda" or (backend is None and device.type == "cuda"):
        launcher = _launcher(device, is_required=backend == "cuda")
        if launcher is not None:
            from treeparse.trees.families.on_cuda import NonprojectiveOnCuda

            return NonprojectiveOnCuda(single_root, launcher)
    if backend == "torch" or (backend is None and device.type != "cpu"):
        return NonprojectiveInTorch(single_root)
    return Nonprojective(single_root)


def projective(device: torch.device, *, single_root: bool) -> Family:
    """Return the family of trees without crossing arcs, by the compiled kernels of CUDA devices or of the CPU."""
    if device.type != "cuda" or torch.compiler.is_compiling():
        return Projective(single_root)
    launcher = _launcher(device, is_required=False)
    if launcher is None:
        return Projective(single_root)
    from treeparse.trees.families.on_cuda import ProjectiveOnCuda

    return ProjectiveOnCuda(single_root, launcher)


def _launcher(device: torch.device, *, is_required: bool) -> "Launcher | None":
    """Return the launcher of CUDA kernels on a device; None if kernels cannot run and ``is_required`` is False."""
    if device.type != "cuda":
        raise TreeparseError(f"The backend 'cuda' needs scores on a CUDA device, got {device.type!r}.")
    from treeparse.device import cuda  # imported for CUDA tensors only

    index = torch.cuda.current_device() if device.index is None else device.index
    return cuda.launcher_of(index) if is_required else cuda.launcher_or_none(index)
