"""Families of trees, one class for each kind of tree and backend, and the choice of a backend by device."""

from typing import Literal

import torch

from treeparse.errors import TreeparseError
from treeparse.trees.families.arc_families import Nonprojective, NonprojectiveInTorch, Projective
from treeparse.trees.families.family import DistinctMethod, Family, KBest, LabelDraws, Method, Tensors

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
        family = _on_cuda("nonprojective", device, single_root, is_required=backend == "cuda")
        if family is not None:
            return family
    if backend == "torch" or (backend is None and device.type != "cpu"):
        return NonprojectiveInTorch(single_root)
    return Nonprojective(single_root)


def projective(device: torch.device, *, single_root: bool) -> Family:
    """Return the family of trees without crossing arcs, by the compiled kernels of CUDA devices or of the CPU."""
    if device.type != "cuda" or torch.compiler.is_compiling():
        return Projective(single_root)
    return _on_cuda("projective", device, single_root, is_required=False) or Projective(single_root)


def _on_cuda(name: str, device: torch.device, single_root: bool, *, is_required: bool) -> Family | None:
    """Return the family of a name by CUDA kernels; None if they cannot run and ``is_required`` is False."""
    if device.type != "cuda":
        raise TreeparseError(f"The backend 'cuda' needs scores on a CUDA device, got {device.type!r}.")
    from treeparse.trees.families import on_cuda  # imported for CUDA tensors only

    launcher = on_cuda.launcher_of(device, is_required=is_required)
    return None if launcher is None else on_cuda.FAMILIES[name](single_root, launcher)
