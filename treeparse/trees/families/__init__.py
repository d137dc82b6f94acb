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

Backend = Literal["numba", "torch"]


def check_backend(backend: str | None) -> None:
    """Raise for a backend that does not exist."""
    if backend not in (None, "numba", "torch"):
        raise TreeparseError(f"There is no backend {backend!r}: choose 'numba', 'torch', or None.")


def nonprojective(device: torch.device, *, single_root: bool, backend: Backend | None = None) -> Family:
    """All trees; with None the compiled kernels for scores in CPU memory, torch for others."""
    if backend == "torch" or (backend is None and device.type != "cpu"):
        return NonprojectiveOnDevice(single_root)
    return Nonprojective(single_root)


def projective(*, single_root: bool) -> Family:
    """Trees without crossing arcs, by the compiled kernels wherever the scores are."""
    return Projective(single_root)
