"""How many blocks run a kernel, and where their working memory lies."""

import torch
from torch import Tensor

from treeparse.device.launcher import Launcher, Shape


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
