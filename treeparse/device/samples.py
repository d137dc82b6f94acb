"""Samples of trees on a CUDA device: ``treeparse.kernels.samples``, a thread a tree.

Functions take float64 scores ``(B, n+1, n+1)`` and int64 lengths ``(B,)`` on the launcher's device and return
tensors there, without a device sync. Random streams equal the CPU kernels', so the same seeds give the same trees,
unless a draw falls within rounding of the border between two.
"""

from typing import Literal

import torch
from torch import Tensor

from treeparse.device.launcher import LANES, Launcher, Shape, chart_doubles, chart_warps
from treeparse.device.nonprojective import DOUBLE_LINES, NUMBER_LINES
from treeparse.device.projective import INSIDE_CHARTS, LINES

Method = Literal["expansion", "walks"]

MOST_DRAWERS = 256  # threads a block that draw
FIRST_WALK = 3  # as in sources/nonprojective_samples.cu
NODE_LINES = 3  # of ``Lines`` in sources/drawn.cuh


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
    """Draw heads ``(B, count, n+1)`` of non-projective trees with replacement, -1 where there is none.

    Seeds ``(B,)`` are the bits of the CPU's uint64 as int64: the s-th tree of an item depends on its scores, its seed,
    the method and s alone. Without a method, the choice for an item is that of the CPU's kernels.
    """
    items, size, _ = scores.shape
    heads = torch.empty(items, count, size, dtype=torch.int64, device=scores.device)
    if not heads.numel():
        return heads
    with_bins = method == "walks" or (method is None and (count > FIRST_WALK or not single_root))
    warps, drawers = _drawers(count, max(size // 8, 2), launcher)
    n, stride = size - 1, size | 1
    area = (n + NUMBER_LINES + DOUBLE_LINES) * stride
    more = _lines(size, drawers) + (size * stride + -(-n * stride // 2) if with_bins else 0)
    shape, *memory = _memory(items * -(-count // drawers), warps, area, more, launcher, scores.device)
    constants = scores.detach().contiguous(), lengths.contiguous(), items, size, single_root
    options = (None, "expansion", "walks").index(method), count, with_bins
    launcher.launch("nonprojective_samples", shape, *constants, *memory, seeds.contiguous(), *options, heads)
    return heads


def sample_projective_trees(
    scores: Tensor, lengths: Tensor, seeds: Tensor, count: int, *, single_root: bool, launcher: Launcher
) -> Tensor:
    """Draw heads of trees without crossing arcs, as ``sample_trees``; there is one method."""
    items, size, _ = scores.shape
    heads = torch.empty(items, count, size, dtype=torch.int64, device=scores.device)
    if heads.numel():
        warps, drawers = _drawers(count, chart_warps(size, launcher), launcher)
        area, more = LINES * size + chart_doubles(INSIDE_CHARTS, size), _lines(size, drawers)
        shape, *memory = _memory(items * -(-count // drawers), warps, area, more, launcher, scores.device)
        constants = scores.detach().contiguous(), lengths.contiguous(), items, size, single_root
        launcher.launch("projective_samples", shape, *constants, *memory, seeds.contiguous(), count, heads)
    return heads


def _drawers(count: int, warps: int, launcher: Launcher) -> tuple[int, int]:
    """Return the number of a block's warps, and the number of trees of an item that it draws at a time."""
    warps = min(max(warps, min(-(-count // LANES), MOST_DRAWERS // LANES)), launcher.most_warps)
    return warps, min(LANES * warps, count)


def _lines(size: int, drawers: int) -> int:
    """Return how many doubles a block needs for its threads' lines of nodes."""
    return -(-NODE_LINES * (size + 1) * drawers // 4)


def _memory(
    tasks: int, warps: int, area: int, more: int, launcher: Launcher, device: torch.device
) -> tuple[Shape, Tensor | None, int, Tensor | None, int]:
    """Return the blocks' shape, and working memory and doubles a block for sums and for draws.

    Sums come first onto the chip.
    """
    most = launcher.most_shared_bytes // 8
    if area + more <= most:
        return Shape(tasks, warps, 8 * (area + more)), None, area, None, more
    blocks = min(tasks, launcher.most_blocks)
    more_work = torch.empty(blocks, more, dtype=torch.float64, device=device)
    if area <= most:
        return Shape(blocks, warps, 8 * area), None, area, more_work, more
    work = torch.empty(blocks, area, dtype=torch.float64, device=device)
    return Shape(blocks, warps, 0), work, area, more_work, more
