"""Trees with a single root by rejection ([Unb] section 4.3.1): Wilson's walks go on until a tree has a single root."""

import numpy as np

from treeparse.kernels.compile import exact_kernel
from treeparse.kernels.logspace import log_add
from treeparse.kernels.random import new_stream
from treeparse.kernels.samples.expansion import TABLES, draw_root, draw_tree, new_memory, set_up
from treeparse.kernels.samples.nonprojective_samples import fill_bins, new_bins, walk
from treeparse.kernels.sums.elimination import ADJOINTS, ORIGINAL, PIVOTS, WEIGHTS, differentiate, eliminate_item
from treeparse.kernels.tree_weights import aligned, matrices, padded, range_sum

SHIFT_STEP, MAX_SHIFTS = 1.0, 12  # nats, and how many of them are tried


@exact_kernel
def sample_by_rejection(start, stop, lengths, scores, seeds, single_root, method, steps_a_pair, heads, steps):
    """The kernel that draws trees with any number of roots until one has a single root.

    A constant added to all of the root's scores changes how often that is, and how long the walks are, but no tree's
    probability. That with the fewest expected steps is taken. The limit is for all tries together.
    """
    count = heads.shape[1]
    (memory, numbers, nodes), (keep, other) = new_memory(scores.shape[1]), new_bins(scores.shape[1])
    for b in range(start, stop):
        n = lengths[b]
        limit = np.int64(steps_a_pair * n * n)
        tables = matrices(memory, TABLES, n)
        stages = set_up(scores[b], n, single_root, numbers, tables)
        if stages.exists:
            fill_bins(scores[b], n, 0, _best_shift(scores[b], n), keep, other)
        for s in range(count if stages.exists else 0):
            stream, taken, roots = new_stream(seeds[b], s), 0, 2
            while roots > 1:
                stream, walked, roots = walk(n, 0, limit - taken, 1, stream, keep, other, heads[b, s])
                taken += walked
            if roots < 0:
                stream, _ = draw_root(tables, stages, n, stream, nodes)
                draw_tree(tables, stages, n, stream, nodes, heads[b, s])
            steps[b, s] = max(taken, n)


@exact_kernel
def _best_shift(scores, n):
    """Go downhill from where one word, as far as its own heads go, is expected to choose node 0."""
    scratch = np.empty((n + 1, n + 1)), matrices(aligned(3 * padded(n) ** 2), 3, n), np.empty((2, n + 1))
    best = _first_shift(scores, n)
    cost = _log_cost(scores, n, best, scratch)
    direction = -SHIFT_STEP
    for trial in range(MAX_SHIFTS):
        candidate = _log_cost(scores, n, best + direction, scratch)
        if candidate < cost:
            best, cost = best + direction, candidate
        elif trial == 0:
            direction = SHIFT_STEP
        else:
            break
    return best


@exact_kernel
def _first_shift(scores, n):
    """The constant by which the root's weights, each relative to those of the word's other heads, sum to 1."""
    total = -np.inf
    for j in range(1, n + 1):
        words = -np.inf
        for i in range(1, n + 1):
            words = log_add(words, scores[i, j]) if i != j else words
        if words > -np.inf:
            total = log_add(total, scores[0, j] - words)
    return -total if total > -np.inf else 0.0


@exact_kernel
def _log_cost(scores, n, shift, scratch):
    """Log of the expected tries times the expected steps of one, but for a constant; infinite if not safe to tell."""
    item, cut, vectors = scratch
    for i in range(n + 1):
        for j in range(1, n + 1):
            item[i, j] = scores[i, j] + (shift if i == 0 else 0.0)
    log_z, _ = eliminate_item(item, n, False, vectors, cut)
    differentiate(cut[WEIGHTS], n, False, vectors[PIVOTS], cut[ADJOINTS])
    steps = 0.0
    for j in range(1, n + 1):
        steps += range_sum(cut[ORIGINAL, j], 0, n + 1) * cut[ADJOINTS, j, 0]
    return np.inf if np.isnan(log_z) else log_z - shift + np.log(steps)
