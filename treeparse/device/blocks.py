"""How many blocks run a kernel, and where their working memory lies."""

import torch
from torch import Tensor

from treeparse.device.launcher import Launcher, Shape

LANES = 32  # of a warp
LANES_A_NODE = 4  # at most, which work on spans of one width at once: sources/spans.cuh


def blocks_for(
    tasks: int, warps: int, doubles: int, launcher: Launcher, device: torch.device
) -> tuple[Shape, Tensor | None]:
    """A block for each task if its working memory of so many doubles fits on the chip, else fewer that take turns.

    The working memory of those is the tensor.
    """
    if 8 * doubles <= launcher.most_shared_bytes:
        return Shape(tasks, warps, 8 * doubles), None
    blocks = min(tasks, launcher.most_blocks)
    return Shape(blocks, warps, 0), torch.empty(blocks, doubles, dtype=torch.float64, device=device)


def chart_doubles(charts: int, size: int) -> int:
    """How many doubles so many charts of spans need for up to ``size`` nodes: the layout of sources/spans.cuh."""
    return charts // 2 * size * ((size + 1) | 1)


def chart_warps(size: int, launcher: Launcher) -> int:
    """How many warps have work with the spans of one width."""
    return min(-(-LANES_A_NODE * size // LANES), launcher.most_warps)
