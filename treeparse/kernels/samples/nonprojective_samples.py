"""Unbiased samples of non-projective trees with replacement: loop-erased random walks, or expansion.

The walks are those of Wilson (1996), *Generating random spanning trees more quickly than the cover time*.

From every word in turn, a walk goes up to random heads, each in proportion to its arc's weight, until it meets the tree
so far; the loops that it made are erased. That takes ``sum_j degree_j inverse(L)_jj`` steps on average, L the
Laplacian: few where scores are flat, but about ``e^g`` where two words prefer each other by ``g`` nats. So there is a
limit. Past it the tree is drawn by ``expansion`` instead, with the same root word if that was given. The erased
loops and the number of steps are independent of the tree, so the law of the trees stays the same.

With any number of roots, walks end at node 0. For a single one, its word is drawn first, and walks end there. ([Unb]
Alg. 3 has them end at node 0, so they never end where the root's weights are small.)
"""

import numpy as np

from treeparse.kernels import FloatArray, IntArray
from treeparse.kernels.compile import exact_kernel, kernel
from treeparse.kernels.logspace import exp
from treeparse.kernels.random import new_stream, uniform
from treeparse.kernels.samples.expansion import NO_STAGES, TABLES, draw_root, draw_tree, new_memory, set_up
from treeparse.kernels.threads import run_batch
from treeparse.kernels.tree_weights import matrices

AUTO, EXPANSION, WILSON, WILSON_MARGINAL = range(4)

TRIAL = 8  # times n: steps in which a first walk ends if walking is faster than expansion
AUTO_LIMIT = 32  # times n: the limit of the steps for one tree where expansion can draw it too
FIRST_WALK = 3  # the first sample for which walks are prepared, besides expansion
NO_SAMPLE = 2**62  # the number of the stream for the trial
STEPS_A_PAIR = 4.0  # times n^2: the limit of the steps for one tree, a multiple of what expansion takes
# Rows of ``other`` that are of no word: whether a node is joined to the tree, and working memory.
JOINED, WAITING = 0, -1


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


@exact_kernel
def new_bins(size):
    """Return ``keep`` and ``other`` for items of up to ``size`` nodes: random heads in constant time.

    By the alias method, one of the bins of word ``j`` is chosen at random; bin ``i`` is head ``i`` with probability
    ``keep[j, i]``, else head ``other[j, i]``.
    """
    return np.empty((size, size)), np.empty((size + 1, size), np.int64)


@exact_kernel
def walk(n, root, limit, max_roots, stream, keep, other, heads):
    """Fill ``heads`` with a tree; return the stream, the steps, and the number of roots.

    Walks end at word ``root``, or at node 0. The number of roots is -1 if there is no tree after ``limit`` steps; with
    more than ``max_roots`` the tree is left unfinished.
    """
    first = 1 if root > 0 else 0
    count, steps, roots, j = n + 1 - first, 0, 0, 1
    for node in range(n + 1):
        other[JOINED, node] = 0
    other[JOINED, root] = 1
    heads[root] = 0
    heads[0] = -1
    while j <= n and 0 <= roots <= max_roots:
        node = j
        while other[JOINED, node] == 0 and steps < limit:
            stream, u = uniform(stream)
            scaled = u * count
            i = int(scaled)
            is_own = scaled - i < keep[node, first + i]
            heads[node] = first + i if is_own else other[node, first + i]
            node = heads[node]
            steps += 1
        roots = roots if other[JOINED, node] > 0 else -1
        node = j
        while roots >= 0 and other[JOINED, node] == 0:
            other[JOINED, node] = 1
            node = heads[node]
            roots += node == 0
        j += 1
    return stream, steps, roots


@exact_kernel
def fill_bins(scores, n, first, shift, keep, other):
    """Fill the bins for walks up to heads from ``first`` on; ``shift`` is added to the root's scores."""
    _load_probabilities(scores, n, first, shift, keep)
    for j in range(1, n + 1):
        _pair_bins(keep, other, j, first, n + 1, other[WAITING])


@kernel
def _load_probabilities(scores, n, first, shift, keep):
    """Fill ``keep`` with weights relative to each word's largest one; all 0 if a word has no head."""
    keep[: n + 1] = -np.inf
    for i in range(first, n + 1):
        added = shift if i == 0 else 0.0
        for j in range(1, n + 1):
            keep[j, i] = scores[i, j] + added if i != j else -np.inf
    for j in range(1, n + 1):
        top = -np.inf
        for i in range(n + 1):
            top = keep[j, i] if keep[j, i] > top else top
        for i in range(n + 1):
            keep[j, i] = exp(keep[j, i] - top) if top > -np.inf else 0.0


@exact_kernel
def _pair_bins(keep, other, j, first, stop, waiting):
    """Fill up the bins of light heads from those of heavy ones (Vose 1991); a word without heads stays where it is."""
    total = 0.0
    for i in range(first, stop):
        total += keep[j, i]
    scale = (stop - first) / total if total > 0.0 else 0.0
    lights, heavies = 0, stop  # light ones wait from the start, heavy ones from the end
    for i in range(first, stop):
        keep[j, i] *= scale
        other[j, i] = i if total > 0.0 else j
        if keep[j, i] < 1.0:
            waiting[lights] = i
            lights += 1
        else:
            heavies -= 1
            waiting[heavies] = i
    while lights > 0 and heavies < stop:
        light, heavy = waiting[lights - 1], waiting[heavies]
        other[j, light] = heavy
        keep[j, heavy] -= 1.0 - keep[j, light]
        lights -= 1
        if keep[j, heavy] < 1.0:
            heavies += 1
            waiting[lights] = heavy
            lights += 1
