"""Samples of trees on a CUDA device: ``treeparse.kernels.samples`` once more, a thread a tree.

Functions take float64 scores ``(B, n+1, n+1)`` and int64 lengths ``(B,)`` of the launcher's device and give tensors
there; none waits for the device. Random streams are those of the CPU's kernels, so the same seeds give the same trees,
but where a draw falls within rounding of the border between two.
"""

from typing import Literal

import torch
from torch import Tensor

from treeparse.device.launcher import Launcher, Shape
from treeparse.device.nonprojective import DOUBLE_LINES, NUMBER_LINES

Method = Literal["expansion", "walks"]

LANES = 32  # of a warp
MOST_DRAWERS = 256  # threads a block that draw
FIRST_WALK = 3  # as in sources/nonprojective_samples.cu
NODE_LINES = 3  # of ``Nodes`` in sources/expansion.cuh


def sample_trees(
    scores: Tensor,
    lengths: Tensor,
    seeds: Tensor,
    count: int,
    *,
    single_root: bool,
    launcher: Launcher,
    method: Method | None = None,
) -> Tensor:
    """Heads ``(B, count, n+1)`` of non-projective trees drawn with replacement, -1 where there is none.

    Seeds ``(B,)`` are the bits of the CPU's uint64 as int64: the s-th tree of an item depends on its scores, its seed,
    the method and s alone. Without a method, an item's trees are drawn as the CPU's kernels choose to.
    """
    items, size, _ = scores.shape
    heads = torch.empty(items, count, size, dtype=torch.int64, device=scores.device)
    if not heads.numel():
        return heads
    with_bins = method == "walks" or (method is None and (count > FIRST_WALK or not single_root))
    warps = min(max(_warps(size - 1), -(-count // LANES)), MOST_DRAWERS // LANES, launcher.most_warps)
    drawers = min(LANES * warps, count)
    shape, *memory = _memory(items * -(-count // drawers), warps, size - 1, drawers, with_bins, launcher, scores.device)
    constants = scores.detach().contiguous(), lengths.contiguous(), items, size, single_root
    options = (None, "expansion", "walks").index(method), count, with_bins
    launcher.launch("nonprojective_samples", shape, *constants, *memory, seeds.contiguous(), *options, heads)
    return heads


def _memory(
    tasks: int, warps: int, n: int, drawers: int, with_bins: bool, launcher: Launcher, device: torch.device
) -> tuple[Shape, Tensor | None, int, Tensor | None, int]:
    """The blocks' shape; working memory, and how many doubles a block, for elimination and for what drawing needs.

    Elimination is the first to have a place on the chip.
    """
    stride = (n + 1) | 1
    area = (n + NUMBER_LINES + DOUBLE_LINES) * stride
    entries = NODE_LINES * (n + 2) * drawers
    more = -(-entries // 4) + ((n + 1) * stride + -(-2 * n * stride // 4) if with_bins else 0)
    most = launcher.most_shared_bytes // 8
    if area + more <= most:
        return Shape(tasks, warps, 8 * (area + more)), None, area, None, more
    blocks = min(tasks, launcher.most_blocks)
    more_work = torch.empty(blocks, more, dtype=torch.float64, device=device)
    if area <= most:
        return Shape(blocks, warps, 8 * area), None, area, more_work, more
    work = torch.empty(blocks, area, dtype=torch.float64, device=device)
    return Shape(blocks, warps, 0), work, area, more_work, more


def _warps(n: int) -> int:
    """As many as elimination has a use for."""
    return max((n + 7) // 8, 2)
