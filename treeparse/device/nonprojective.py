"""Non-projective trees on a CUDA device, as by ``treeparse.kernels``: sums and best trees, a block a sentence; samples.

Functions take float64 scores ``(B, n+1, n+1)`` and int64 lengths ``(B,)`` on the launcher's device and return
tensors there, without a device sync and without autograd. An item's results do not depend on its batch. Best trees are
those of the CPU's kernels, ties included. Samples have the CPU kernels' random streams, so the same seeds give the same
trees, unless a draw falls within rounding of the border between two.
"""

import math
from typing import Literal

import torch
from torch import Tensor

from treeparse.device.launcher import Launcher, blocks_for, draw, launch

# The layout of ``Work`` in sources/item.cuh: a matrix, lines of the matrix' numbers, lines of doubles.
NUMBER_LINES, DOUBLE_LINES = 13, 3
ROWS_A_WARP = 8  # at most, which each warp of a block then updates in a step
CHECKED_AT_ONCE = 4  # head lists a block
FIRST_WALK = 3  # as in sources/nonprojective_samples.cu

Method = Literal["expansion", "walks"]


def log_partition(scores: Tensor, lengths: Tensor, *, single_root: bool, launcher: Launcher) -> Tensor:
    """Return the log of the summed weight of all trees, ``(B, n+1, n+1) -> (B,)``; -inf where there is none."""
    log_z = _like(scores, len(scores))
    _launch("nonprojective_log_partition", scores, lengths, log_z, single_root=single_root, launcher=launcher)
    return log_z


def log_partition_and_marginals(
    scores: Tensor, lengths: Tensor, *, single_root: bool, launcher: Launcher
) -> tuple[Tensor, Tensor]:
    """Return the log partition ``(B,)`` and the probability of every arc ``(B, n+1, n+1)``, 0 without a tree."""
    results = _like(scores, len(scores)), _like(scores, *scores.shape)
    _launch("nonprojective_marginals", scores, lengths, *results, single_root=single_root, launcher=launcher)
    return results


def hessian_vector_product(
    scores: Tensor, lengths: Tensor, vectors: Tensor, *, single_root: bool, launcher: Launcher
) -> Tensor:
    """Return the Hessian of the log partition times ``vectors``, all ``(B, n+1, n+1)``.

    Ignored entries, forbidden arcs and items without a tree have 0, whatever ``vectors`` hold there.
    """
    product = _like(scores, *scores.shape)
    directions = vectors.detach().contiguous()
    options = {"single_root": single_root, "launcher": launcher, "is_dual": True}
    _launch("nonprojective_product", scores, lengths, directions, product, **options)
    return product


def log_marginals(scores: Tensor, lengths: Tensor, *, single_root: bool, launcher: Launcher) -> Tensor:
    """Return the log probability of every arc ``(B, n+1, n+1)`` in nats; it is -inf exactly where no tree has the arc.

    Right to relative accuracy however improbable the arc. A block for sqrt(n) words makes this O(n^3.5), in sqrt(n)
    times as many blocks as the other sums have.
    """
    logs = torch.full_like(scores, -torch.inf, memory_format=torch.contiguous_format)
    n = scores.shape[-1] - 1
    words = math.isqrt(n)
    own = _own_doubles(n, words)
    options = {"single_root": single_root, "launcher": launcher, "tasks": words + 2, "own": own}
    _launch("nonprojective_log_marginals", scores, lengths, words, own, logs, **options)
    return logs


def reach(weights: Tensor, rooted: Tensor, *, launcher: Launcher) -> Tensor:
    """Return the log factors of word 1's heads besides their arcs' weights, ``(B, K, m+1, m+1) -> (B, K, m+1)``.

    This is ``g`` of ``treeparse.kernels.sums.conditionals``, up to a factor, for log weights of m words; ``rooted``
    ``(B, K)`` bool is true where any number of words may hang from node 0. It is -inf where there is no tree.
    """
    *batch, size, _ = weights.shape
    result = torch.full((*batch, size), -torch.inf, dtype=torch.float64, device=weights.device)
    items, n = rooted.numel(), size - 1
    if items:
        warps, own = _warps(n, launcher), _own_doubles(n, 1)
        area = _doubles(n, is_dual=False) + warps * own
        shape, work = blocks_for(items, warps, area, launcher, weights.device)
        constants = weights.contiguous(), rooted.to(torch.int64).contiguous(), items, size
        launcher.launch("nonprojective_reach", shape, *constants, work, area, own, result)
    return result


def best_trees(scores: Tensor, lengths: Tensor, *, single_root: bool, launcher: Launcher) -> Tensor:
    """Return heads of the best trees, ``(B, n+1, n+1) -> (B, n+1)``; -1 at node 0, at padding and without a tree."""
    size = scores.shape[-1]
    heads = torch.empty(scores.shape[:2], dtype=torch.int64, device=scores.device)
    # The layout of ``Graph`` in sources/nonprojective_best.cu, where lines are of twice as many nodes.
    doubles = 13 * size + size**2 + (size**2 + 3) // 4
    options = {"single_root": single_root, "launcher": launcher, "warps": 1, "doubles": doubles}
    launch("nonprojective_best_trees", scores, lengths, heads, **options)
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
        shape, work = blocks_for(-(-items // warps), warps, warps * size, launcher, heads.device)
        constants = heads.to(torch.int64).contiguous(), lengths.contiguous(), items, size, single_root
        launcher.launch("are_trees", shape, *constants, work, size, crossing, result)
    return result


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
    """Draw heads ``(B, count, n+1)`` of trees with replacement, -1 where there is none.

    Seeds ``(B,)`` are the bits of the CPU's uint64 as int64: the s-th tree of an item depends on its scores, its seed,
    the method and s alone. Without a method, the choice for an item is that of the CPU's kernels.
    """
    with_bins = method == "walks" or (method is None and (count > FIRST_WALK or not single_root))
    size = scores.shape[-1]
    n, stride = size - 1, size | 1
    doubles = (n + NUMBER_LINES + DOUBLE_LINES) * stride
    bins = size * stride + -(-n * stride // 2) if with_bins else 0
    numbers = (None, "expansion", "walks").index(method), count, with_bins
    options = {"single_root": single_root, "launcher": launcher, "warps": max(size // 8, 2), "more": bins}
    return draw("nonprojective_samples", scores, lengths, seeds, count, *numbers, doubles=doubles, **options)


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
    """Run a kernel of sums; each warp has ``own`` doubles besides its block's."""
    n = scores.shape[-1] - 1
    warps = _warps(n, launcher)
    options = {"single_root": single_root, "launcher": launcher, "tasks": tasks}
    doubles = _doubles(n, is_dual) + warps * own
    launch(kernel, scores, lengths, *arguments, warps=warps, doubles=doubles, **options)


def _warps(n: int, launcher: Launcher) -> int:
    return min(max(-(-n // ROWS_A_WARP), 2), launcher.most_warps)


def _own_doubles(n: int, words: int) -> int:
    """Return how many doubles a warp needs besides: ``Own`` in sources/nonprojective_conditionals.cu."""
    return (words + 1) * ((words + 1) | 1) + n + 1


def _doubles(n: int, is_dual: bool) -> int:
    """Return how many doubles, an even number, a block needs for a sentence of n words."""
    stride = (n + 1) | 1
    total = (n + NUMBER_LINES) * stride * (2 if is_dual else 1) + DOUBLE_LINES * stride
    return total + total % 2


def _like(scores: Tensor, *shape: int) -> Tensor:
    return torch.empty(shape, dtype=torch.float64, device=scores.device)
