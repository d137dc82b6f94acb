"""Trees by loop-erased random walks: Wilson 1996, *Generating random spanning trees more quickly than the cover time*.

From every word in turn, a walk goes up to random heads, each in proportion to its arc's weight, until it meets the tree
so far; the loops that it made are erased. That takes ``sum_j degree_j inverse(L)_jj`` steps on average, L the
Laplacian: few where scores are flat, but about ``e^g`` where two words prefer each other by ``g`` nats. So there is a
limit. Past it the tree is drawn by ``expansion`` instead, with the same root word if that was given. The erased
loops and the number of steps are independent of the tree, so the law of the trees stays the same.

With any number of roots, walks end at node 0. For a single one, its word is drawn first, and walks end there. ([Unb]
Alg. 3 has them end at node 0, so they never end where the root's weights are small.)
"""

import numpy as np

from treeparse.kernels.compile import exact_kernel, kernel
from treeparse.kernels.logspace import exp
from treeparse.kernels.random import uniform

STEPS_A_PAIR = 4.0  # times n^2: the limit of the steps for one tree, a multiple of what expansion takes


# Rows of ``other`` that are of no word: whether a node is joined to the tree, and working memory.
JOINED, WAITING = 0, -1


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
