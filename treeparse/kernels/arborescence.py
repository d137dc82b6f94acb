"""Best trees: Chu-Liu-Edmonds with contraction in Tarjan's dense O(n^2) form, and the check that a head list is a tree.

One root: compare trees by (number of root arcs, score), so that the fewest root arcs come first and then the highest
score. That is the reweighting of Stanojević and Cohen 2021 with an infinite constant, so no precision is lost. Arcs
between words keep 0 as their first component under every contraction, so the rule comes down to: take a root arc only
where no other arc is left.

Among equal scores every choice of a head, for a word or a contracted cycle, takes the lowest. The result
depends on the item alone.
"""

import numpy as np

from treeparse.kernels._compile import FloatArray, IntArray, jit, run_batch

FRESH, ON_PATH, FINISHED = 0, 1, 2


def best_trees(scores: FloatArray, lengths: IntArray, *, single_root: bool, threads: int = 1) -> IntArray:
    """Heads of the best trees, ``(B, n+1, n+1) -> (B, n+1)``; -1 at node 0, at padding and where there is no tree."""
    heads = np.full(scores.shape[:2], -1)
    run_batch(_best_trees, lambda n: 4 * n**2, lengths, scores, single_root, heads, threads=threads)
    return heads


def are_trees(heads: IntArray, lengths: IntArray, *, single_root: bool) -> np.ndarray:
    """Which head lists ``(B, n+1)`` are trees of ``lengths`` words, -1 at node 0 and at padding, ``(B,)`` bool."""
    result = np.empty(len(heads), np.bool_)
    run_batch(_are_trees, lambda n: 2 * n, lengths, heads, single_root, result, threads=1)
    return result


@jit
def _are_trees(start, stop, lengths, heads, single_root, result):
    visited = np.empty(heads.shape[1], np.int64)
    for b in range(start, stop):
        n = lengths[b]
        result[b] = _fits(heads[b], n) and _is_tree(heads[b], n, single_root, visited)


@jit
def _fits(heads, n):
    """Whether heads are in range and -1 at node 0 and at padding."""
    fits = heads[0] == -1
    for j in range(1, n + 1):
        fits &= 0 <= heads[j] <= n
    for j in range(n + 1, len(heads)):
        fits &= heads[j] == -1
    return fits


@jit
def _is_tree(heads, n, single_root, visited):
    """Whether heads in range form a tree; ``visited`` is working memory."""
    roots = 0
    for j in range(1, n + 1):
        roots += heads[j] == 0
        visited[j] = 0
    if roots == 0 or (single_root and roots > 1):
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


@jit
def _best_trees(start, stop, lengths, scores, single_root, heads):
    size = scores.shape[1]
    # Of every node, words first and contracted cycles after them: the score of its chosen arc; that arc's head and the
    # word it enters; the cycle it is in; where its row is; its status. Of every word: the node it is in now; the next
    # word of the ring that makes up this node.
    value = np.empty(2 * size)
    nodes = np.empty((7, 2 * size), np.int64)
    rows = np.empty(size * size)
    entries = np.empty(size * size, np.int64)
    for b in range(start, stop):
        n = lengths[b]
        _best_word_heads(scores[b], n, value, nodes[0])
        if _take_best_heads(scores[b], n, single_root, value, nodes[0], nodes[1], heads[b]):
            continue
        area = (n + 1) * (n + 1)
        rows_here, entries_here = rows[:area].reshape(n + 1, n + 1), entries[:area].reshape(n + 1, n + 1)
        count = _contract(scores[b], n, single_root, value, nodes, rows_here, entries_here)
        if count:
            _expand(count, nodes, heads[b])
        else:
            heads[b].fill(-1)


@jit
def _best_word_heads(scores, n, value, head):
    """Every word's best head among the other words, and its score; head 0 and -inf where no arc is left."""
    for j in range(1, n + 1):
        value[j] = -np.inf
        head[j] = 0
    for i in range(1, n + 1):
        for j in range(1, i):
            better = scores[i, j] > value[j]
            value[j] = scores[i, j] if better else value[j]
            head[j] = i if better else head[j]
        for j in range(i + 1, n + 1):
            better = scores[i, j] > value[j]
            value[j] = scores[i, j] if better else value[j]
            head[j] = i if better else head[j]


@jit
def _take_best_heads(scores, n, single_root, value, head, visited, heads):
    """Give every word its best head, node 0 included; whether that is a tree already, as a sure parser's mostly is."""
    for j in range(1, n + 1):
        if scores[0, j] == -np.inf and value[j] == -np.inf:
            return False
        heads[j] = 0 if scores[0, j] >= value[j] else head[j]
    return _is_tree(heads, n, single_root, visited)


@jit
def _contract(scores, n, single_root, value, nodes, rows, entries):
    """Choose an arc into every node, contracting cycles; returns the number of nodes, or 0 if there is no tree.

    Nodes from n + 1 on are contracted cycles. A path of chosen arcs grows backwards from an unfinished word. Where it
    meets itself, the cycle becomes one node at its end; where it meets what is joined to the root, it is finished.
    A contracted node keeps its arcs from the words outside in the row of one of its words, its ``slot``.
    """
    head, word, slot, status, top, member = nodes[0], nodes[1], nodes[3], nodes[4], nodes[5], nodes[6]
    path = np.empty(n + 1, np.int64)
    for j in range(n + 1):
        slot[j], word[j], top[j], member[j], status[j] = j, j, j, j, FRESH
    status[0] = FINISHED
    count = n + 1
    roots = 0
    for first in range(1, n + 1):
        node = top[first]
        depth = 0
        while status[node] != FINISHED:
            if node > n:
                _choose_head(node, n, single_root, value, head, word, rows[slot[node]], entries[slot[node]])
            elif value[node] == -np.inf or (not single_root and scores[0, node] >= value[node]):
                head[node], value[node] = 0, scores[0, node]
            roots += head[node] == 0
            if value[node] == -np.inf or (single_root and roots > 1):
                return 0
            path[depth] = node
            depth += 1
            status[node] = ON_PATH
            node = top[head[node]]
            if status[node] == ON_PATH:
                depth = _merge_cycle(scores, n, node, count, path, depth, value, nodes, rows, entries)
                node = count
                count += 1
        for step in range(depth):
            status[path[step]] = FINISHED
    return count


@jit
def _choose_head(node, n, single_root, value, head, word, row, entry):
    """The best arc from outside into a contracted node, by the rule for root arcs."""
    best, choice = -np.inf, 0
    for i in range(0 if not single_root else 1, n + 1):
        if row[i] > best:
            best, choice = row[i], i
    head[node], word[node] = choice, entry[choice]
    value[node] = row[choice]


@jit
def _merge_cycle(scores, n, last, new, path, depth, value, nodes, rows, entries):
    """Contract the end of the path from node ``last`` on into node ``new``; returns the length of the path left."""
    parent, slot, status, top, member = nodes[2], nodes[3], nodes[4], nodes[5], nodes[6]
    home = slot[last]
    row, entry = rows[home], entries[home]
    if last <= n:
        _load_row(scores, n, last, row, entry)
    node = -1
    while node != last:
        depth -= 1
        node = path[depth]
        parent[node] = new
        if node != last:
            other = slot[node]
            if node <= n:
                _load_row(scores, n, node, rows[other], entries[other])
            _merge_rows(n, value[last] - value[node], row, entry, rows[other], entries[other])
            member[home], member[other] = member[other], member[home]
    inside = home
    while True:
        top[inside] = new
        row[inside] = -np.inf
        inside = member[inside]
        if inside == home:
            break
    slot[new], status[new] = home, FRESH
    return depth


@jit
def _load_row(scores, n, word, row, entry):
    for i in range(n + 1):
        row[i] = scores[i, word]
        entry[i] = word


@jit
def _merge_rows(n, shift, row, entry, other_row, other_entry):
    """From every head, the better way into two nodes of a cycle; ``shift`` makes their scores comparable."""
    for i in range(n + 1):
        candidate = other_row[i] + shift
        better = candidate > row[i]
        row[i] = candidate if better else row[i]
        entry[i] = other_entry[i] if better else entry[i]


@jit
def _expand(count, nodes, heads):
    """Open the contracted nodes, the last one first; the arc into a node replaces an arc of each cycle within."""
    head, word, parent, covered = nodes[0], nodes[1], nodes[2], nodes[4]
    for node in range(count):
        covered[node] = 0
    for node in range(count - 1, 0, -1):
        if not covered[node]:
            heads[word[node]] = head[node]
            inside = word[node]
            while inside != node:
                covered[inside] = 1
                inside = parent[inside]
