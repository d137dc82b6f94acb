"""Best trees in O(n^2), and the check that a head list is a tree.

Where every word's best head makes a tree, as for most sentences of a confident parser, that is the best tree. Otherwise
cycles are contracted.
"""

import numpy as np

from treeparse.kernels.arrays import FloatArray, IntArray
from treeparse.kernels.best.contraction import (
    HEAD,
    STATUS,
    TIED,
    VALUE,
    choose_word_head,
    contract,
    expand,
    load_arcs,
    new_tables,
)
from treeparse.kernels.compile import exact_kernel
from treeparse.kernels.threads import run_batch
from treeparse.kernels.ties import arc_keys


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
    size = scores.shape[1]
    tables, keys = new_tables(size), np.empty((0, 0), np.int64)
    arcs, owner = np.empty((size, size)), np.empty(size, np.int64)
    for b in range(start, stop):
        if find_best_tree(scores[b], lengths[b], single_root, keys, tables, arcs, owner, heads[b]) == TIED:
            keys = np.ascontiguousarray(arc_keys(size).T)
            find_best_tree(scores[b], lengths[b], single_root, keys, tables, arcs, owner, heads[b])


@exact_kernel
def find_best_tree(scores, n, single_root, keys, tables, arcs, owner, heads):
    """Write the heads of the best tree, -1 if there is none; return 0 in this case, else a positive number.

    Where scores tie, the result is TIED without ``keys[dependent, head]``, which may be empty until then. ``tables``,
    ``arcs`` and ``owner`` are working memory.
    """
    value, head, visited = tables.weights[VALUE], tables.nodes[HEAD], tables.nodes[STATUS]
    tied = _best_word_heads(scores, n, value, head)
    if not tied and _take_best_heads(scores, n, single_root, value, head, visited, heads):
        return 1
    # Ignored entries of the diagonal are arcs inside a node, which are never read.
    count = TIED if tied else contract(scores.T, None, n, single_root, tables)
    if count == TIED:
        if len(keys) == 0:
            return TIED
        load_arcs(scores, n, arcs)
        for j in range(1, n + 1):
            choose_word_head(arcs, keys, j, n, tables)
        count = contract(arcs, keys, n, single_root, tables)
    if count:
        expand(count, tables.nodes, heads, owner)
    else:
        heads.fill(-1)
    return count


@exact_kernel
def _best_word_heads(scores, n, value, head):
    """Fill every word's best head among the other words, 0 and -inf if no arc is left; return whether scores tie."""
    value[: n + 1] = -np.inf
    head[: n + 1] = 0
    tied = False
    for i in range(1, n + 1):
        tied |= offer_head(scores[i], i, 1, i, value, head)
        tied |= offer_head(scores[i], i, i + 1, n + 1, value, head)
    return tied


@exact_kernel
def offer_head(scores, i, first, last, value, head):
    """Let words from ``first`` up to ``last`` hang from word i if that is better; return whether there was a tie."""
    tied = False
    for j in range(first, last):
        tied |= (scores[j] == value[j]) & (scores[j] > -np.inf)
        better = scores[j] > value[j]
        value[j] = scores[j] if better else value[j]
        head[j] = i if better else head[j]
    return tied


@exact_kernel
def _take_best_heads(scores, n, single_root, value, head, visited, heads):
    """Give every word its best head, node 0 included; return whether that is a tree."""
    for j in range(1, n + 1):
        if scores[0, j] == value[j]:  # a tie, or -inf both
            return False
        heads[j] = 0 if scores[0, j] > value[j] else head[j]
    return _is_tree(heads, n, single_root, visited)
