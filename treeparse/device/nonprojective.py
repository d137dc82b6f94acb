"""Sums over non-projective trees on a CUDA device: ``treeparse.kernels.sums`` once more, a block a sentence.

Functions take float64 scores ``(B, n+1, n+1)`` and int64 lengths ``(B,)`` of the launcher's device and give tensors
there; none waits for the device, autograd sees nothing of what is done, and an item's results do not depend on its
batch.
"""

import math

import torch
from torch import Tensor

from treeparse.device.blocks import blocks_for
from treeparse.device.launcher import Launcher

# The layout of ``Work`` in sources/item.cuh: a matrix, lines of the matrix' numbers, lines of doubles.
NUMBER_LINES, DOUBLE_LINES = 13, 3
ROWS_A_WARP = 8  # at most, which each warp of a block then updates in a step


def log_partition(scores: Tensor, lengths: Tensor, *, single_root: bool, launcher: Launcher) -> Tensor:
    """Log of the summed weight of all trees, ``(B, n+1, n+1) -> (B,)``; -inf where there is none."""
    log_z = _like(scores, len(scores))
    _launch("nonprojective_log_partition", scores, lengths, log_z, single_root=single_root, launcher=launcher)
    return log_z


def log_partition_and_marginals(
    scores: Tensor, lengths: Tensor, *, single_root: bool, launcher: Launcher
) -> tuple[Tensor, Tensor]:
    """The log partition ``(B,)`` and the probability of every arc ``(B, n+1, n+1)``; all 0 where there is no tree."""
    results = _like(scores, len(scores)), _like(scores, *scores.shape)
    _launch("nonprojective_marginals", scores, lengths, *results, single_root=single_root, launcher=launcher)
    return results


def hessian_vector_product(
    scores: Tensor, lengths: Tensor, vectors: Tensor, *, single_root: bool, launcher: Launcher
) -> Tensor:
    """The Hessian of the log partition times ``vectors``, all ``(B, n+1, n+1)``: the marginals' derivative along them.

    Ignored entries, forbidden arcs and items without a tree have 0, whatever ``vectors`` hold there.
    """
    product = _like(scores, *scores.shape)
    directions = vectors.detach().contiguous()
    options = {"single_root": single_root, "launcher": launcher, "is_dual": True}
    _launch("nonprojective_product", scores, lengths, directions, product, **options)
    return product


def log_marginals(scores: Tensor, lengths: Tensor, *, single_root: bool, launcher: Launcher) -> Tensor:
    """The log probability of every arc, ``(B, n+1, n+1)``, in nats; it is -inf exactly where no tree has the arc.

    Right to relative accuracy however improbable the arc. A block for sqrt(n) words makes this O(n^3.5), in sqrt(n)
    times as many blocks as the other sums have.
    """
    logs = torch.full_like(scores, -torch.inf, memory_format=torch.contiguous_format)
    n = scores.shape[-1] - 1
    words = math.isqrt(n)
    own = (words + 1) * ((words + 1) | 1) + n + 1  # the layout of ``Own`` in sources/nonprojective_conditionals.cu
    options = {"single_root": single_root, "launcher": launcher, "tasks": words + 2, "own": own}
    _launch("nonprojective_log_marginals", scores, lengths, words, own, logs, **options)
    return logs


def _launch(
    kernel: str,
    scores: Tensor,
    lengths: Tensor,
    *arguments: Tensor | int,
    single_root: bool,
    launcher: Launcher,
    is_dual: bool = False,
    tasks: int = 1,
    own: int = 0,
) -> None:
    """Run a kernel by one block for each of the tasks of an item, or fewer blocks that take turns.

    Each warp has ``own`` doubles besides what its block has.
    """
    items, size, _ = scores.shape
    if not items:
        return
    n = size - 1
    warps = min(max(-(-n // ROWS_A_WARP), 2), launcher.most_warps)
    area = _doubles(n, is_dual) + warps * own
    shape, work = blocks_for(items * tasks, warps, area, launcher, scores.device)
    constants = scores.detach().contiguous(), lengths.contiguous(), items, size, single_root
    launcher.launch(kernel, shape, *constants, work, area, *arguments)


def _doubles(n: int, is_dual: bool) -> int:
    """How many doubles, an even number, a block needs for a sentence of n words."""
    stride = (n + 1) | 1
    total = (n + NUMBER_LINES) * stride * (2 if is_dual else 1) + DOUBLE_LINES * stride
    return total + total % 2


def _like(scores: Tensor, *shape: int) -> Tensor:
    return torch.empty(shape, dtype=torch.float64, device=scores.device)
