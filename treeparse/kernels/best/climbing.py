"""Hill-climbing of trees with scores of adjacent siblings: the best change of one arc, again and again.

A step gives a word another head or, with a single root, makes another word the root word, below which the old one then
hangs (Zhang et al. 2014, *Greed is good if randomized: new inference for dependency parsing*). Every step keeps a tree
and raises its score; all changes of a tree together take O(n^2), because a word's loss at its old head and its gain
at a new one do not depend on one another.
"""

from typing import NamedTuple

import numpy as np

from treeparse.kernels.arrays import FloatArray, IntArray
from treeparse.kernels.compile import exact_kernel

LEAST_GAIN = 1e-12  # of a step, as a share of the score's size: rounding alone must not make steps


class ClimbingTables(NamedTuple):
    """Working memory for one sentence."""

    lists: IntArray  # (4, n+1)
    gains: FloatArray  # (n+1, n+1) [head, dependent] what a new arc adds at its head
    losses: FloatArray  # (n+1,) what removing a word's arc takes away at its head
    below: np.ndarray  # (n+1, n+1) bool [head, word] whether the word is the head or descends from it


# Lines of ``ClimbingTables.lists``: of words, the next dependent of their head towards it, itself if there is none, and
# the next one away from it, -1 if there is none; a path.
INNER, OUTER, PATH, ORDER = range(4)


@exact_kernel
def new_climbing_tables(size):
    """Return working memory for sentences of up to ``size`` nodes, the root included."""
    below = np.empty((size, size), np.bool_)
    return ClimbingTables(np.empty((4, size), np.int64), np.empty((size, size)), np.empty(size), below)


@exact_kernel
def score_of_heads(arcs, siblings, heads, n):
    """Return the score of a tree."""
    total = 0.0
    for d in range(1, n + 1):
        h = heads[d]
        total += arcs[h, d] + siblings[h, d, sibling_of(heads, h, d)]
    return total


@exact_kernel
def sibling_of(heads, h, d):
    """Return the next dependent of h from d towards h, h if there is none."""
    step = 1 if h < d else -1
    for s in range(d - step, h, -step):
        if heads[s] == h:
            return s
    return h


@exact_kernel
def climb(arcs, siblings, n, single_root, heads, tables):
    """Change a tree of finite score until no single change raises its score; return that score."""
    score = score_of_heads(arcs, siblings, heads, n)
    while True:
        gain = step(arcs, siblings, n, single_root, heads, tables)
        if gain <= LEAST_GAIN * (1.0 + abs(score)):
            return score_of_heads(arcs, siblings, heads, n)
        score += gain


@exact_kernel
def step(arcs, siblings, n, single_root, heads, tables):
    """Make the best change, if one raises the score; return by how much, 0 if none does."""
    _fill_tables(arcs, siblings, n, heads, tables)
    gains, losses, below = tables.gains, tables.losses, tables.below
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
            if h != heads[d] and not below[d, h]:
                gain = gains[h, d] - losses[d]
                if gain > best:
                    best, dependent, head = gain, d, h
    swapped = 0
    if single_root:
        of_root = arcs[0, root] + siblings[0, root, 0]
        for d in range(1, n + 1):
            if d == root:
                continue
            base = arcs[0, d] + siblings[0, d, 0] - of_root - losses[d]
            for h in range(1, n + 1):
                if below[d, h] and base + gains[h, root] > best:
                    best, dependent, head, swapped = base + gains[h, root], root, h, d
    if best > 0.0:
        heads[dependent] = head
        if swapped:
            heads[swapped] = 0
    return best


@exact_kernel
def _fill_tables(arcs, siblings, n, heads, tables):
    """Fill the tables of a tree."""
    inner, outer = tables.lists[INNER], tables.lists[OUTER]
    for h in range(n + 1):
        _find_neighbours(heads, h, n + 1, 1, inner, outer)
        _find_neighbours(heads, h, 0, -1, inner, outer)
        _find_gains(arcs, siblings, heads, h, n + 1, 1, inner, tables.gains)
        _find_gains(arcs, siblings, heads, h, 0, -1, inner, tables.gains)
    for d in range(1, n + 1):
        h, before, after = heads[d], inner[d], outer[d]
        loss = arcs[h, d] + siblings[h, d, before]
        if after >= 0:
            loss += np.float64(siblings[h, after, d]) - siblings[h, after, before]
        tables.losses[d] = loss
    _find_descendants(heads, n, tables)


@exact_kernel
def _find_neighbours(heads, h, end, step, inner, outer):
    """Fill the neighbours of the dependents of a head on one side."""
    last = h
    for d in range(h + step, end, step):
        if d > 0 and heads[d] == h:
            inner[d], outer[d] = last, -1
            if last != h:
                outer[last] = d
            last = d


@exact_kernel
def _find_gains(arcs, siblings, heads, h, end, step, inner, gains):
    """Fill what every word of one side would add as a dependent of h, beside those that h has."""
    last, first = h, h + step
    for stop in range(h + step, end + step, step):
        is_end = stop == end
        if not is_end and heads[stop] != h:
            continue
        for d in range(first, stop, step):
            gain = arcs[h, d] + siblings[h, d, last]
            if not is_end:
                gain += np.float64(siblings[h, stop, d]) - siblings[h, stop, last]
            gains[h, d] = gain
        last, first = stop, stop + step


@exact_kernel
def _find_descendants(heads, n, tables):
    """Fill which words are below which: every word is below itself and below what its head is below."""
    below, path = tables.below, tables.lists[PATH]
    is_done = tables.lists[ORDER]
    for node in range(n + 1):
        is_done[node] = node == 0
        for word in range(n + 1):
            below[node, word] = node == word
    for first in range(1, n + 1):
        depth, node = 0, first
        while not is_done[node]:
            path[depth] = node
            depth += 1
            node = heads[node]
        while depth > 0:
            depth -= 1
            word = path[depth]
            is_done[word] = 1
            if heads[word] > 0:
                for above in range(1, n + 1):
                    below[above, word] |= below[above, heads[word]]
