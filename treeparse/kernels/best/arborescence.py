"""Best trees in O(n^2), and the check that a head list is a tree.

Where every word's best head makes a tree, as for most sentences of a confident parser, that is the best tree. Otherwise
cycles are contracted.
"""

import numpy as np

from treeparse.kernels.array_types import FloatArray, IntArray
from treeparse.kernels.best.contraction import (
    HEAD,
    STATUS,
    TIED,
    VALUE,
    choose_word_head,
    contract,
    expand,
    new_memory,
)
from treeparse.kernels.compile import exact_kernel
from treeparse.kernels.threads import run_batch


def best_trees(scores: FloatArray, lengths: IntArray, *, single_root: bool, threads: int = 1) -> IntArray:
    """Return heads of the best trees, ``(B, n+1, n+1) -> (B, n+1)``; -1 at node 0, at padding and without a tree."""
    heads = np.full(scores.shape[:2], -1)
    run_batch(_best_trees, lambda n: 4 * n**2, lengths, scores, single_root, heads, threads=threads)
    return heads


def are_trees(heads: IntArray, lengths: IntArray, *, single_root: bool, threads: int = 1) -> np.ndarray:
    """Return ``(B,)`` bool: which head lists ``(B, n+1)`` are trees of ``lengths`` words, -1 at node 0 and padding."""
    result = np.empty(len(heads), np.bool_)
    run_batch(_are_trees, lambda n: 2 * n, lengths, heads, single_root, result, threads=threads)
    return result


@exact_kernel
def _are_trees(start, stop, lengths, heads, single_root, result):
    visited = np.empty(heads.shape[1], np.int64)
    for b in range(start, stop):
        n = lengths[b]
        result[b] = _fits(heads[b], n) and _is_tree(heads[b], n, single_root, visited)


@exact_kernel
def _fits(heads, n):
    """Whether heads are in range and -1 at node 0 and at padding."""
    fits = heads[0] == -1
    for j in range(1, n + 1):
        fits &= 0 <= heads[j] <= n
    for j in range(n + 1, len(heads)):
        fits &= heads[j] == -1
    return fits


@exact_kernel
def _is_tree(heads, n, single_root, visited):
    """Whether heads in range form a tree; ``visited`` is working memory."""
    roots = 0
    for j in range(1, n + 1):
        roots += heads[j] == 0
        visited[j] = 0
    if single_root and roots > 1:
        return False
    visited[0] = -1  # -1: leads to the root; otherwise the word from which a walk came by
    for j in range(1, n + 1):
        node = j
        while visited[node] == 0:
            visited[node] = j
            node = heads[node]
        if visited[node] == j:
            return False
        node = j
        while visited[node] != -1:
            visited[node] = -1
            node = heads[node]
    return True


@exact_kernel
def _best_trees(start, stop, lengths, scores, single_root, heads):
    weights, nodes = new_memory(scores.shape[1])
    for b in range(start, stop):
        find_best_tree(scores[b], lengths[b], single_root, weights, nodes, heads[b])


@exact_kernel
def find_best_tree(scores, n, single_root, weights, nodes, heads):
    """Write the heads of the best tree, -1 if there is none; return whether there is one.

    ``weights`` and ``nodes`` are working memory (``contraction.new_memory``).
    """
    keyed = find_word_heads(scores, n, weights[VALUE], nodes[HEAD])
    is_clear = not keyed and _take_best_heads(scores, n, weights, nodes, heads)
    if is_clear and _is_tree(heads, n, single_root, nodes[STATUS]):
        return True
    # Ignored entries of the diagonal are arcs inside a node, which are never read.
    arcs, count = scores.T, TIED
    while count == TIED:
        for j in range(1, n + 1 if keyed else 1):
            choose_word_head(arcs, keyed, j, n, weights, nodes)
        count = contract(arcs, keyed, n, single_root, weights, nodes)
        keyed = True
    if count:
        expand(count, nodes, heads)
    else:
        heads.fill(-1)
    return count > 0


@exact_kernel
def find_word_heads(scores, n, value, head):
    """Fill every word's best head among the other words, 0 and -inf if no arc is left; return whether scores tie."""
    tied = False
    for j in range(n + 1):
        value[j], head[j] = -np.inf, 0
    for i in range(1, n + 1):
        for j in range(1, n + 1):
            score, best = scores[i, j], value[j]
            tied |= (score == best) & (score > -np.inf) & (i != j)
            better = (score > best) & (i != j)
            value[j] = score if better else best
            head[j] = i if better else head[j]
    return tied


@exact_kernel
def _take_best_heads(scores, n, weights, nodes, heads):
    """Give every word its best head, node 0 included; return whether there is a single best one."""
    is_clear = True
    for j in range(1, n + 1):
        is_clear &= scores[0, j] != weights[VALUE, j]  # a tie, or -inf both
        heads[j] = 0 if scores[0, j] > weights[VALUE, j] else nodes[HEAD, j]
    return is_clear
