"""Hill-climbing of trees with scores of adjacent siblings: the best change of one arc, again and again.

A step gives a word another head or, with a single root, makes another word the root word, below which the old one then
hangs (Zhang et al. 2014, *Greed is good if randomized: new inference for dependency parsing*). Every step keeps a tree
and raises its score; all changes of a tree together take O(n^2), because a word's loss at its old head and its gain
at a new one do not depend on one another.
"""

import numpy as np

from treeparse.kernels.compile import exact_kernel

LEAST_GAIN = 1e-12  # of a step, as a share of the score's size: rounding alone must not make steps
# Lines of ``gains``, working memory for one sentence: what removing a word's arc takes away at its head, and from GAINS
# on, for every head, what a new arc to a word adds there.
LOSSES, GAINS = range(2)
# Lines of ``lists``: of words, the next dependent of their head towards it, itself if there is none, and the next one
# away from it, -1 if there is none; a path; whether a node is done. From BELOW on, for every node, whether a word is
# this node or descends from it.
INNER, OUTER, PATH, IS_DONE, BELOW = range(5)


@exact_kernel
def new_climbing_memory(size):
    """Return ``gains`` and ``lists`` for sentences of up to ``size`` nodes, the root included."""
    return np.empty((GAINS + size, size)), np.empty((BELOW + size, size), np.int64)


@exact_kernel
def score_of_heads(arcs, siblings, heads, n):
    """Return the score of a tree."""
    total = 0.0
    for d in range(1, n + 1):
        h = heads[d]
        step = 1 if h > d else -1
        s = d + step  # towards h, up to the next dependent of h
        while s != h and heads[s] != h:
            s += step
        total += arcs[h, d] + siblings[h, d, s]
    return total


@exact_kernel
def climb(arcs, siblings, n, single_root, heads, gains, lists):
    """Change a tree of finite score until no single change raises its score; return that score."""
    score = score_of_heads(arcs, siblings, heads, n)
    while True:
        gain = step(arcs, siblings, n, single_root, heads, gains, lists)
        if gain <= LEAST_GAIN * (1.0 + abs(score)):
            return score_of_heads(arcs, siblings, heads, n)
        score += gain


@exact_kernel
def step(arcs, siblings, n, single_root, heads, gains, lists):
    """Make the best change, if one raises the score; return by how much, 0 if none does."""
    for h in range(n + 1):
        for end, side in ((n + 1, 1), (0, -1)):
            _find_neighbours(heads, h, end, side, lists)
            _find_gains(arcs, siblings, heads, h, end, side, gains)
    _find_losses(arcs, siblings, n, heads, gains, lists)
    _find_descendants(heads, n, lists)
    return _make_best_change(arcs, siblings, n, single_root, heads, gains, lists)


@exact_kernel
def _make_best_change(arcs, siblings, n, single_root, heads, gains, lists):
    best, dependent, head = 0.0, 0, 0
    root = 0
    for d in range(1, n + 1):
        if heads[d] == 0:
            root = d
    first_head = 1 if single_root else 0
    for d in range(1, n + 1):
        if single_root and d == root:
            continue
        for h in range(first_head, n + 1):
            if h != heads[d] and not lists[BELOW + d, h]:
                gain = gains[GAINS + h, d] - gains[LOSSES, d]
                if gain > best:
                    best, dependent, head = gain, d, h
    swapped = 0
    if single_root:
        of_root = arcs[0, root] + siblings[0, root, 0]
        for d in range(1, n + 1):
            if d == root:
                continue
            base = arcs[0, d] + siblings[0, d, 0] - of_root - gains[LOSSES, d]
            for h in range(1, n + 1):
                if lists[BELOW + d, h] and base + gains[GAINS + h, root] > best:
                    best, dependent, head, swapped = base + gains[GAINS + h, root], root, h, d
    if best > 0.0:
        heads[dependent] = head
        if swapped:
            heads[swapped] = 0
    return best


@exact_kernel
def _find_losses(arcs, siblings, n, heads, gains, lists):
    """Fill what every word's arc adds at its head."""
    for d in range(1, n + 1):
        h, before, after = heads[d], lists[INNER, d], lists[OUTER, d]
        loss = arcs[h, d] + siblings[h, d, before]
        if after >= 0:
            loss += np.float64(siblings[h, after, d]) - siblings[h, after, before]
        gains[LOSSES, d] = loss


@exact_kernel
def _find_neighbours(heads, h, end, side, lists):
    """Fill the neighbours of the dependents of a head on one side."""
    last = h
    for d in range(h + side, end, side):
        if d > 0 and heads[d] == h:
            lists[INNER, d], lists[OUTER, d] = last, -1
            if last != h:
                lists[OUTER, last] = d
            last = d


@exact_kernel
def _find_gains(arcs, siblings, heads, h, end, side, gains):
    """Fill what every word of one side would add as a dependent of h, beside those that h has."""
    last, first = h, h + side
    for stop in range(h + side, end + side, side):
        is_end = stop == end
        if not is_end and heads[stop] != h:
            continue
        for d in range(first, stop, side):
            gain = arcs[h, d] + siblings[h, d, last]
            if not is_end:
                gain += np.float64(siblings[h, stop, d]) - siblings[h, stop, last]
            gains[GAINS + h, d] = gain
        last, first = stop, stop + side


@exact_kernel
def _find_descendants(heads, n, lists):
    """Fill which words are below which: every word is below itself and below what its head is below."""
    for node in range(n + 1):
        lists[IS_DONE, node] = node == 0
        for word in range(n + 1):
            lists[BELOW + node, word] = node == word
    for first in range(1, n + 1):
        depth, node = 0, first
        while not lists[IS_DONE, node]:
            lists[PATH, depth] = node
            depth += 1
            node = heads[node]
        while depth > 0:
            depth -= 1
            word = lists[PATH, depth]
            lists[IS_DONE, word] = 1
            if heads[word] > 0:
                for above in range(1, n + 1):
                    lists[BELOW + above, word] |= lists[BELOW + above, heads[word]]
