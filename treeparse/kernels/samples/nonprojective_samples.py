"""Unbiased samples of non-projective trees with replacement: expansion, walks, and the choice between them."""

import numpy as np

from treeparse.kernels.array_types import FloatArray, IntArray
from treeparse.kernels.compile import exact_kernel
from treeparse.kernels.random import new_stream
from treeparse.kernels.samples.expansion import NO_STAGES, TABLES, draw_root, draw_tree, new_memory, set_up
from treeparse.kernels.samples.walks import STEPS_A_PAIR, fill_bins, new_bins, walk
from treeparse.kernels.threads import run_batch
from treeparse.kernels.tree_weights import matrices

AUTO, EXPANSION, WILSON, WILSON_MARGINAL = range(4)

TRIAL = 8  # times n: steps in which a first walk ends if walking is faster than expansion
AUTO_LIMIT = 32  # times n: the limit of the steps for one tree where expansion can draw it too
FIRST_WALK = 3  # the first sample for which walks are prepared, besides expansion
NO_SAMPLE = 2**62  # the number of the stream for the trial


def sample_trees(
    scores: FloatArray,
    lengths: IntArray,
    seeds: np.ndarray,
    count: int,
    *,
    single_root: bool,
    method: int = AUTO,
    steps_a_pair: float = STEPS_A_PAIR,
    threads: int = 1,
) -> tuple[IntArray, IntArray]:
    """Draw trees, each with probability proportional to its weight, independently of one another.

    Args:
        scores: ``(B, n+1, n+1)`` log weights.
        lengths: ``(B,)`` words.
        seeds: ``(B,)`` uint64. The s-th tree of an item depends on its scores, its seed, the method and s alone.
        count: trees an item.
        single_root: whether exactly one word hangs from node 0.
        method: how trees are drawn; ``AUTO`` chooses a fast method for each item.
        steps_a_pair: times n^2, the steps of walks for a tree at most; then expansion draws it.
        threads: how many threads share the items.

    Returns:
        Heads ``(B, count, n+1)``, -1 at node 0, at padding and where there is no tree; and for every tree the steps of
        its walks ``(B, count)``, or the number of words if walks did not draw it.

    Raises:
        ValueError: if the method draws trees with another number of roots.
    """
    if method == WILSON and single_root:
        raise ValueError("Wilson's sampler draws trees with any number of roots, not with a single one.")
    if method == WILSON_MARGINAL and not single_root:
        raise ValueError("This sampler draws trees with a single root, not with any number of them.")
    heads = np.full((len(lengths), count, scores.shape[1]), -1)
    steps = np.zeros((len(lengths), count), np.int64)
    draws = scores, seeds, single_root, method, float(steps_a_pair), heads, steps
    run_batch(_sample_freely, lambda n: n**3 + 5 * count * n**2, lengths, *draws, threads=threads)
    return heads, steps


@exact_kernel
def _sample_freely(start, stop, lengths, scores, seeds, single_root, method, steps_a_pair, heads, steps):
    """Draw trees by walks, expansion, or both.

    With a single root the root word always comes from the stages of expansion. With any number of roots these are
    computed when they are first needed; without a tree, no walk ends.
    """
    memory, numbers, nodes = new_memory(scores.shape[1])
    (keep, other), count = new_bins(scores.shape[1]), heads.shape[1]
    for b in range(start, stop):
        n = lengths[b]
        if n == 0:
            continue
        tables = matrices(memory, TABLES, n)
        stages = set_up(scores[b], n, single_root, numbers, tables) if single_root else NO_STAGES
        first_walk, limit = _walks_of(method, single_root, count, steps_a_pair, n)
        for s in range(count if stages.exists or not single_root else 0):
            tree = heads[b, s]
            if s == first_walk:
                fill_bins(scores[b], n, 1 if single_root else 0, 0.0, keep, other)
                if method == AUTO and not _ends_soon(n, seeds[b], tables, stages, nodes, keep, other, tree):
                    first_walk = count
            stream, root, roots = new_stream(seeds[b], s), 0, -1
            if single_root:
                stream, root = draw_root(tables, stages, n, stream, nodes)
            if s >= first_walk:
                stream, steps[b, s], roots = walk(n, root, limit, n, stream, keep, other, tree)
            if roots >= 0:
                continue
            if not stages.exists:
                stages = set_up(scores[b], n, single_root, numbers, tables)
            if not stages.exists:
                tree[:] = -1
                steps[b, s] = 0
                break
            draw_tree(tables, stages, n, stream, nodes, tree)
            steps[b, s] = max(steps[b, s], n)


@exact_kernel
def _walks_of(method, single_root, count, steps_a_pair, n):
    """Return the first sample that walks draw, and the limit of their steps."""
    if method == AUTO:
        return FIRST_WALK if single_root else 0, AUTO_LIMIT * n
    return count if method == EXPANSION else 0, np.int64(steps_a_pair * n * n)


@exact_kernel
def _ends_soon(n, seed, tables, stages, nodes, keep, other, heads):
    """Return whether a trial walk ends so soon that walks are faster than expansion."""
    stream, root = new_stream(seed, NO_SAMPLE), 0
    if stages.exists:
        stream, root = draw_root(tables, stages, n, stream, nodes)
    _, _, roots = walk(n, root, TRIAL * n, n, stream, keep, other, heads)
    return roots >= 0
