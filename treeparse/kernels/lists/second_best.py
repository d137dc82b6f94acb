"""The arc whose change makes the best tree the second best one ([KBest] Fig. 5, mended), in O(n^2)."""

import numpy as np

from treeparse.kernels.best.contraction import KEY, SECOND, SECOND_KEY, VALUE
from treeparse.kernels.compile import exact_kernel


@exact_kernel
def cheapest_change(arcs, keys, n, single_root, heads, owner, tables):
    """Return loss (score and key) and dependent of the cheapest change of an arc of the best tree, and whether it ties.

    An arc changes to the best other arc into the node that it was chosen for. That arc comes neither from below the
    dependent nor, with a single root, from the root instead of a word.
    """
    weights, nodes, rows, row_keys = tables.weights, tables.nodes, tables.rows, tables.row_keys
    first, last = _preorder(heads, n)
    loss, key_loss, changed, tied = np.inf, 0, 0, False
    for j in range(1, n + 1):
        node, head = owner[j], heads[j]
        best, key = weights[SECOND, node], nodes[SECOND_KEY, node]
        row = arcs[j] if node <= n else rows[node - n - 1]
        for i in range(1 if single_root else 0, n + 1):
            if row[i] >= best and row[i] > -np.inf and i != head and (first[i] < first[j] or first[i] > last[j]):
                new_key = 0
                if keys is not None:
                    new_key = keys[j, i] if node <= n else row_keys[node - n - 1, i]
                tied |= row[i] == best
                if row[i] > best or new_key > key:
                    best, key = row[i], new_key
        cost, key_cost = weights[VALUE, node] - best, nodes[KEY, node] - key
        tied |= cost == loss and cost < np.inf
        if cost < loss or (cost == loss and keys is not None and key_cost < key_loss):
            loss, key_loss, changed = cost, key_cost, j
    return loss, key_loss, changed, tied


@exact_kernel
def _preorder(heads, n):
    """Return every node's index in preorder, and the index of its last descendant."""
    child, sibling = np.full(n + 1, 0), np.full(n + 1, 0)
    for j in range(n, 0, -1):
        sibling[j], child[heads[j]] = child[heads[j]], j
    first, last = np.empty(n + 1, np.int64), np.empty(n + 1, np.int64)
    node, place = 0, 0
    first[0] = 0
    while True:
        if child[node]:
            node = child[node]
            place += 1
            first[node] = place
            continue
        while node and not sibling[node]:
            last[node] = place
            node = heads[node]
        last[node] = place
        if node == 0:
            return first, last
        node = sibling[node]
        place += 1
        first[node] = place
