"""Best trees and tree checks on a CUDA device: ``treeparse.kernels.best`` with the same bits, ties included.

Functions take int64 lengths ``(B,)`` and other tensors on the launcher's device and return tensors there, without a
device sync.
"""

import torch
from torch import Tensor

from treeparse.device.launcher import Launcher, blocks_for, chart_doubles, chart_warps

PROJECTIVE_CHARTS = 8  # of sources/projective_best.cu, of scores and of keys
CHECKED_AT_ONCE = 4  # head lists a block


def best_trees(scores: Tensor, lengths: Tensor, *, single_root: bool, launcher: Launcher) -> Tensor:
    """Return heads of the best trees, ``(B, n+1, n+1) -> (B, n+1)``; -1 at node 0, at padding and without a tree."""
    items, size, _ = scores.shape
    heads = torch.empty(items, size, dtype=torch.int64, device=scores.device)
    if items:
        # The layout of ``Graph`` in sources/nonprojective_best.cu, where lines are of twice as many nodes.
        doubles = 13 * size + size**2 + (size**2 + 3) // 4
        shape, work = blocks_for(items, 1, doubles, launcher, scores.device)
        constants = scores.detach().contiguous(), lengths.contiguous(), items, size, single_root
        launcher.launch("nonprojective_best_trees", shape, *constants, work, doubles, heads)
    return heads


def best_projective_trees(scores: Tensor, lengths: Tensor, *, single_root: bool, launcher: Launcher) -> Tensor:
    """Return heads of the best trees without crossing arcs, as ``best_trees``."""
    items, size, _ = scores.shape
    heads = torch.empty(items, size, dtype=torch.int64, device=scores.device)
    if items:
        doubles = chart_doubles(PROJECTIVE_CHARTS, size) + 2 * size  # a span and a head a node: four ints
        shape, work = blocks_for(items, chart_warps(size, launcher), doubles, launcher, scores.device)
        constants = scores.detach().contiguous(), lengths.contiguous(), items, size, single_root
        launcher.launch("projective_best_trees", shape, *constants, work, doubles, heads)
    return heads


def are_trees(
    heads: Tensor, lengths: Tensor, *, single_root: bool, launcher: Launcher, crossing: bool = True
) -> Tensor:
    """Return ``(B,)`` bool: which head lists ``(B, n+1)`` are trees of ``lengths`` words, -1 at node 0 and padding.

    Unless ``crossing``, arcs must not cross, with node 0 left of all words.
    """
    items, size = heads.shape
    result = torch.empty(items, dtype=torch.bool, device=heads.device)
    if items:
        warps = min(CHECKED_AT_ONCE, launcher.most_warps)
        tasks = (items + warps - 1) // warps
        shape, work = blocks_for(tasks, warps, warps * size, launcher, heads.device)
        constants = heads.to(torch.int64).contiguous(), lengths.contiguous(), items, size, single_root
        launcher.launch("are_trees", shape, *constants, work, size, crossing, result)
    return result
