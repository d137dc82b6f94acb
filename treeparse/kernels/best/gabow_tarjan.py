"""Best single-root trees by Gabow and Tarjan's 1984 `constrain` ([Root], [KBest] Fig. 3), in dense O(n^2) form.

First the best tree with any number of root arcs: every node chooses its best arc, and where the arcs chosen close a
cycle, it becomes one node, which chooses again. Then, while more than one node hangs from the root, the one that loses
least by it takes its best arc from a word instead, which may close cycles again. In this order nodes leave the root
when all root arcs are made dearer by the same growing amount, so the first tree with one root arc is the best one.

Everything is compared by (score, key), see `ties`; keys are computed only if scores tie. Nothing is shared with
`contraction`: each checks the other.
"""

from typing import NamedTuple

import numpy as np

from treeparse.kernels.arrays import FloatArray, IntArray
from treeparse.kernels.best.arborescence import offer_head
from treeparse.kernels.compile import exact_kernel
from treeparse.kernels.threads import run_batch
from treeparse.kernels.ties import arc_key

BY_WORD, BY_ROOT = 0, 1  # the two arcs between which a node chooses


class Graph(NamedTuple):
    """Working memory for one graph. Nodes are the root, the words, and contracted cycles in the order of contraction.

    Into a contracted cycle, an arc's value is its score less the scores of the arcs that it replaces inside, up to a
    constant.
    """

    # The best arcs (2, nodes) into every node, from a word outside and from the root: value, key, head, word entered.
    value: FloatArray
    key: IntArray
    head: IntArray
    word: IntArray
    # Of every node: which arc it has chosen, the cycle it is in, the word whose row it uses, and the last walk there.
    choice: IntArray
    parent: IntArray
    home: IntArray
    walk: IntArray
    # Of every word: the node it is in now, and the next word of the ring that makes up this node.
    top: IntArray
    member: IntArray
    # Of every contracted cycle, in its home's row, the best arc from every node outside: value, key, word entered.
    rows: FloatArray
    row_keys: IntArray
    entries: IntArray
    tied: np.ndarray  # whether equal values have been compared, a single element


def best_trees(scores: FloatArray, lengths: IntArray, *, threads: int = 1) -> IntArray:
    """Return heads of the best single-root trees, ``(B, n+1, n+1) -> (B, n+1)``; -1 at node 0 and padding.

    Items without a tree have -1 everywhere.
    """
    heads = np.full(scores.shape[:2], -1)
    run_batch(_best_trees, lambda n: 4 * n**2, lengths, scores, heads, threads=threads)
    return heads


@exact_kernel
def _best_trees(start, stop, lengths, scores, heads):
    graph = _new_graph(scores.shape[1])
    for b in range(start, stop):
        count = _solve(scores[b], lengths[b], False, graph)
        if graph.tied[0]:
            count = _solve(scores[b], lengths[b], True, graph)
        if count > 0:
            _expand(count, graph, heads[b])


@exact_kernel
def _new_graph(size):
    """Working memory for graphs of up to ``size`` nodes, the root included."""
    key, head, word = np.zeros((3, 2, 2 * size), np.int64)
    choice, parent, home, walk = np.zeros((4, 2 * size), np.int64)
    top, member = np.zeros((2, size), np.int64)
    row_keys, entries = np.zeros((2, size, size), np.int64)
    value, rows, tied = np.empty((2, 2 * size)), np.empty((size, size)), np.empty(1, np.bool_)
    return Graph(value, key, head, word, choice, parent, home, walk, top, member, rows, row_keys, entries, tied)


@exact_kernel
def _solve(scores, n, keyed, graph):
    """Choose an arc into every node; returns the number of nodes, or 0 if there is no tree.

    Unless ``keyed``, keys are not computed, and the result is wrong after a tie.
    """
    graph.tied[0] = False
    _find_word_arcs(scores, n, keyed, graph)
    if not _choose(1, n + 1, graph) or (graph.tied[0] and not keyed):
        return 0
    count = n + 1
    while True:
        count = _contract_cycles(scores, n, keyed, count, graph)
        roots, node = _cheapest_swap(n, graph)
        if count == 0 or roots == 1:
            return count
        if node == 0:
            return 0
        graph.choice[node] = BY_WORD


@exact_kernel
def _find_word_arcs(scores, n, keyed, graph):
    """Fill every word's best arcs from another word and from the root."""
    for j in range(n + 1):
        graph.value[BY_WORD, j], graph.value[BY_ROOT, j] = -np.inf, scores[0, j]
        graph.key[BY_WORD, j], graph.key[BY_ROOT, j] = 0, arc_key(0, j)
        graph.head[BY_WORD, j], graph.head[BY_ROOT, j] = 0, 0
        graph.word[BY_WORD, j], graph.word[BY_ROOT, j] = j, j
        graph.home[j], graph.top[j], graph.member[j] = j, j, j
    value, key, head = graph.value[BY_WORD], graph.key[BY_WORD], graph.head[BY_WORD]
    for i in range(1, n + 1):
        if keyed:
            for j in range(1, n + 1):
                if i != j and _beats(scores[i, j], arc_key(i, j), value[j], key[j], graph.tied):
                    value[j], key[j], head[j] = scores[i, j], arc_key(i, j), i
        else:
            tied = offer_head(scores[i], i, 1, i, value, head)
            graph.tied[0] |= tied | offer_head(scores[i], i, i + 1, n + 1, value, head)


@exact_kernel
def _beats(value, key, other, other_key, tied):
    """Whether one (value, key) is greater than another one."""
    if value == other and value > -np.inf:
        tied[0] = True
        return key > other_key
    return value > other


@exact_kernel
def _choose(first, last, graph):
    """Choose the better of the two arcs into each node from ``first`` up to ``last``; False if both are forbidden."""
    value, key, choice = graph.value, graph.key, graph.choice
    for node in range(first, last):
        best, root = value[BY_WORD, node], value[BY_ROOT, node]
        if best == -np.inf and root == -np.inf:
            return False
        by_root = _beats(root, key[BY_ROOT, node], best, key[BY_WORD, node], graph.tied)
        choice[node] = BY_ROOT if by_root else BY_WORD
    return True


@exact_kernel
def _contract_cycles(scores, n, keyed, count, graph):
    """Contract all cycles of chosen arcs; return the number of nodes, or 0 if no tree exists."""
    graph.walk[: 2 * n] = 0  # there will be no more nodes
    graph.walk[0] = -1
    first, node = 1, graph.top[1]
    while True:
        first, node = _find_cycle(first, node, n, graph)
        if node == 0:
            return count
        _contract(scores, n, keyed, node, count, graph)
        node = count
        count += 1
        if not _choose(node, count, graph):
            return 0


@exact_kernel
def _find_cycle(first, node, n, graph):
    """Continue the walk of word ``first`` at a node, then of the next words; return the first node met again.

    A walk follows the chosen arcs upwards to a node of an earlier walk. Without a cycle, 0 is returned.
    """
    walk, choice, head, top = graph.walk, graph.choice, graph.head, graph.top
    for word in range(first, n + 1):
        if word > first:
            node = top[word]
        while walk[node] == 0:
            walk[node] = word
            node = top[head[choice[node], node]]
            if walk[node] == word:
                return word, node
    return n, 0


@exact_kernel
def _cheapest_swap(n, graph):
    """Return the number of nodes that hang from the root, and the one that loses least by an arc from a word, or 0."""
    roots, cheapest = 0, 0
    best, best_key = -np.inf, 0
    for word in range(1, n + 1):
        node = graph.top[word]
        if graph.home[node] == word and graph.choice[node] == BY_ROOT:
            roots += 1
            gain = graph.value[BY_WORD, node] - graph.value[BY_ROOT, node]
            key_gain = graph.key[BY_WORD, node] - graph.key[BY_ROOT, node]
            if _beats(gain, key_gain, best, best_key, graph.tied):
                best, best_key, cheapest = gain, key_gain, node
    return roots, cheapest


@exact_kernel
def _contract(scores, n, keyed, last, new, graph):
    """Contract the cycle through node ``last`` into node ``new`` and find the best arcs into it."""
    home = graph.home[last]
    if last <= n:
        _load_row(scores, n, keyed, last, graph)
    graph.parent[last], graph.home[new] = new, home
    node = graph.top[graph.head[BY_WORD, last]]
    while node != last:
        if node <= n:
            _load_row(scores, n, keyed, node, graph)
        shift = graph.value[BY_WORD, last] - graph.value[BY_WORD, node]
        key_shift = graph.key[BY_WORD, last] - graph.key[BY_WORD, node]
        _merge_rows(n, keyed, shift, key_shift, home, graph.home[node], graph)
        graph.parent[node] = new
        node = graph.top[graph.head[BY_WORD, node]]
    _enclose(new, home, graph)
    _find_best_arcs(n, new, home, graph)


@exact_kernel
def _load_row(scores, n, keyed, word, graph):
    row, row_keys, entries = graph.rows[word], graph.row_keys[word], graph.entries[word]
    for i in range(n + 1):
        row[i], entries[i] = scores[i, word], word
    if keyed:
        for i in range(n + 1):
            row_keys[i] = arc_key(i, word)


@exact_kernel
def _merge_rows(n, keyed, shift, key_shift, home, other, graph):
    """Join two nodes' rings; take from every head the better way in. The shifts make the values comparable."""
    graph.member[home], graph.member[other] = graph.member[other], graph.member[home]
    row, row_keys, entries = graph.rows[home], graph.row_keys[home], graph.entries[home]
    if not keyed:
        graph.tied[0] |= _merge_scores(n, shift, row, graph.rows[other], entries, graph.entries[other])
        return
    for i in range(n + 1):
        value, key = graph.rows[other, i] + shift, graph.row_keys[other, i] + key_shift
        if _beats(value, key, row[i], row_keys[i], graph.tied):
            row[i], row_keys[i], entries[i] = value, key, graph.entries[other, i]


@exact_kernel
def _merge_scores(n, shift, row, other_row, entries, other_entries):
    """Do ``_merge_rows`` without keys; return whether there was a tie."""
    tied = False
    for i in range(n + 1):
        value = other_row[i] + shift
        better = value > row[i]
        tied |= (value == row[i]) & (value > -np.inf)
        row[i] = value if better else row[i]
        entries[i] = other_entries[i] if better else entries[i]
    return tied


@exact_kernel
def _enclose(node, home, graph):
    """Put the words of a ring into a node and forbid arcs from them."""
    word = home
    while True:
        graph.top[word] = node
        graph.rows[home, word] = -np.inf
        word = graph.member[word]
        if word == home:
            break


@exact_kernel
def _find_best_arcs(n, node, home, graph):
    """Find the best arcs into a contracted node, from a word outside and from the root."""
    row, row_keys = graph.rows[home], graph.row_keys[home]
    best, best_key, best_head = -np.inf, 0, 0
    for i in range(1, n + 1):
        if _beats(row[i], row_keys[i], best, best_key, graph.tied):
            best, best_key, best_head = row[i], row_keys[i], i
    graph.value[BY_WORD, node], graph.key[BY_WORD, node] = best, best_key
    graph.value[BY_ROOT, node], graph.key[BY_ROOT, node] = row[0], row_keys[0]
    graph.head[BY_WORD, node], graph.word[BY_WORD, node] = best_head, graph.entries[home, best_head]
    graph.head[BY_ROOT, node], graph.word[BY_ROOT, node] = 0, graph.entries[home, 0]


@exact_kernel
def _expand(count, graph, heads):
    """Open the contracted nodes, the last one first; the arc into a node replaces an arc of each cycle within."""
    covered = graph.home
    covered[:count] = 0
    for node in range(count - 1, 0, -1):
        if not covered[node]:
            choice = graph.choice[node]
            word = graph.word[choice, node]
            heads[word] = graph.head[choice, node]
            inside = word
            while inside != node:
                covered[inside] = 1
                inside = graph.parent[inside]
