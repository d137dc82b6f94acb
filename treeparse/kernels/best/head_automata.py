"""Best dependents of every head by itself, with scores of adjacent siblings: heads and dependents need not form a tree.

A head chooses its dependents from itself outwards, on either side, and may have none. With d the last dependent chosen:

    best(d) = arc(head, d) + the greatest of sibling(head, d, head) and best(s) + sibling(head, d, s)

where s is a node between them (Koo et al. 2010, *Dual decomposition for parsing with non-projective head automata*).
Node 0 has one dependent with a single root, and one or more otherwise.
"""

import numpy as np

from treeparse.kernels.compile import exact_kernel


@exact_kernel
def choose_dependents(arcs, siblings, h, n, single_root, best, previous, chosen):
    """Fill ``chosen[d]`` for all words d by whether d is one of the best dependents of h; return their score.

    ``arcs[h, d]`` may be any scores; ``best`` and ``previous`` are working memory of n+1 numbers.
    """
    for d in range(n + 1):
        chosen[d] = False
    if h == 0:
        last, score = _run_outwards(arcs, siblings, 0, n + 1, 1, single_root, best, previous)
        _mark(last, 0, previous, chosen)
        return score
    total = 0.0
    for end, step in ((n + 1, 1), (0, -1)):
        last, score = _run_outwards(arcs, siblings, h, end, step, False, best, previous)
        if score > 0.0:
            total += score
            _mark(last, h, previous, chosen)
    return total


@exact_kernel
def _run_outwards(arcs, siblings, h, end, step, only_one, best, previous):
    """Return the last of the best dependents on one side, 0 if there is none, and the score of all of them."""
    last, highest = 0, -np.inf
    for d in range(h + step, end, step):
        arc = arcs[h, d]
        best[d] = -np.inf
        if arc == -np.inf:
            continue
        score, before = np.float64(siblings[h, d, h]), h
        if not only_one:
            for s in range(h + step, d, step):
                other = best[s] + siblings[h, d, s]
                if other > score:
                    score, before = other, s
        best[d], previous[d] = arc + score, before
        if best[d] > highest:
            highest, last = best[d], d
    return last, highest


@exact_kernel
def _mark(last, h, previous, chosen):
    """Mark a dependent and all that were chosen before it."""
    while last != h:
        chosen[last] = True
        last = previous[last]
