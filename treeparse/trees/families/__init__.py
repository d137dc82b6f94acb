"""Families of trees, each with a backend: all that a distribution asks of them, and the only place that chooses."""

from typing import Literal

import torch

from treeparse.core import TreeparseError
from treeparse.trees.families.family import DistinctMethod as DistinctMethod
from treeparse.trees.families.family import Family as Family
from treeparse.trees.families.family import KBest as KBest
from treeparse.trees.families.family import LabelDraws as LabelDraws
from treeparse.trees.families.family import Method as Method
from treeparse.trees.families.family import Parts as Parts
from treeparse.trees.families.nonprojective import Nonprojective
from treeparse.trees.families.on_device import NonprojectiveOnDevice
from treeparse.trees.families.projective import Projective

Backend = Literal["numba", "torch", "cuda"]


def check_backend(backend: str | None) -> None:
    """Raise for a backend that does not exist."""
    if backend not in (None, "numba", "torch", "cuda"):
        raise TreeparseError(f"There is no backend {backend!r}: choose 'numba', 'torch', 'cuda', or None.")


def nonprojective(device: torch.device, *, single_root: bool, backend: Backend | None = None) -> Family:
    """All trees; with None the compiled kernels of the scores' kind of device, or torch where there are none.

    Raises:
        TreeparseError: for "cuda" and scores that are elsewhere; also whatever hinders the CUDA kernels.
    """
    if backend == "cuda" or (backend is None and device.type == "cuda"):
        family = _nonprojective_on_cuda(device, single_root=single_root, is_wanted=backend == "cuda")
        if family is not None:
            return family
    if backend == "torch" or (backend is None and device.type != "cpu"):
        return NonprojectiveOnDevice(single_root)
    return Nonprojective(single_root)


def _nonprojective_on_cuda(device: torch.device, *, single_root: bool, is_wanted: bool) -> Family | None:
    """The family by CUDA kernels; None where they cannot be had and nobody asked for them by name."""
    if device.type != "cuda":
        raise TreeparseError(f"The backend 'cuda' is for scores on a CUDA device, not for {device.type!r}.")
    from treeparse.device import cuda  # only now, for CUDA tensors
    from treeparse.trees.families.on_cuda import NonprojectiveOnCuda

    index = torch.cuda.current_device() if device.index is None else device.index
    launcher = cuda.launcher_of(index) if is_wanted else cuda.launcher_or_none(index)
    return None if launcher is None else NonprojectiveOnCuda(single_root, launcher)


def projective(*, single_root: bool) -> Family:
    """Trees without crossing arcs, by the compiled kernels wherever the scores are."""
    return Projective(single_root)
