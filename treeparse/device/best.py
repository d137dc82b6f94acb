"""Best trees and tree checks on a CUDA device: ``treeparse.kernels.best`` once more, to the bit, ties included.

Functions take int64 lengths ``(B,)`` and whatever else on the launcher's device and give tensors there; none waits for
the device.
"""

import torch
from torch import Tensor

from treeparse.device.blocks import blocks_for
from treeparse.device.launcher import Launcher

CHECKED_AT_ONCE = 4  # head lists a block


def best_trees(scores: Tensor, lengths: Tensor, *, single_root: bool, launcher: Launcher) -> Tensor:
    """Heads of the best trees, ``(B, n+1, n+1) -> (B, n+1)``; -1 at node 0, at padding and where there is no tree."""
    items, size, _ = scores.shape
    heads = torch.empty(items, size, dtype=torch.int64, device=scores.device)
    if items:
        # The layout of ``Graph`` in sources/nonprojective_best.cu, where lines are of twice as many nodes.
        doubles = 13 * size + size**2 + (size**2 + 3) // 4
        shape, work = blocks_for(items, 1, doubles, launcher, scores.device)
        constants = scores.detach().contiguous(), lengths.contiguous(), items, size, single_root
        launcher.launch("nonprojective_best_trees", shape, *constants, work, doubles, heads)
    return heads


def are_trees(heads: Tensor, lengths: Tensor, *, single_root: bool, launcher: Launcher) -> Tensor:
    """Which head lists ``(B, n+1)`` are trees of ``lengths`` words, -1 at node 0 and at padding, ``(B,)`` bool."""
    items, size = heads.shape
    result = torch.empty(items, dtype=torch.bool, device=heads.device)
    if items:
        warps = min(CHECKED_AT_ONCE, launcher.most_warps)
        tasks = (items + warps - 1) // warps
        shape, work = blocks_for(tasks, warps, warps * size, launcher, heads.device)
        constants = heads.to(torch.int64).contiguous(), lengths.contiguous(), items, size, single_root
        launcher.launch("are_trees", shape, *constants, work, size, result)
    return result
