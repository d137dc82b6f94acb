"""The contraction of cycles of Chu and Liu and of Edmonds, in Tarjan's dense O(n^2) form.

One root: compare trees by (number of root arcs, score), so that the fewest root arcs come first and then the highest
score. That is the reweighting of Stanojević and Cohen 2021 with an infinite constant, so no precision is lost. Arcs
between words keep 0 as their first component under every contraction, so the rule comes down to: take a root arc only
where no other arc is left.

Scores are compared with the arcs' keys beside them (`ties`). Arcs are stored by dependent: ``arcs[j, i]`` is i -> j.
"""

from typing import NamedTuple

import numpy as np

from treeparse.kernels.arrays import FloatArray, IntArray
from treeparse.kernels.compile import exact_kernel

FRESH, ON_PATH, FINISHED = 0, 1, 2  # statuses
TIED = -1

# Lines of ``Tables.weights``: of nodes, their chosen arc's weight and that of the best other arc from the same head; of
# words, the offset.
WEIGHT_LINES = 3
VALUE, SECOND, OFFSET = range(WEIGHT_LINES)
# Lines of ``Tables.nodes``: the keys of these; of nodes, their chosen arc's head, the word that it enters, the cycle
# that the node is in, 0 for none, and its status; of words, the node that the word is in now and the next word of the
# ring that makes up this node; the path of chosen arcs.
NODE_LINES = 10
KEY, SECOND_KEY, OFFSET_KEY, HEAD, WORD, PARENT, STATUS, TOP, MEMBER, PATH = range(NODE_LINES)


class Tables(NamedTuple):
    """Working memory for one graph. Nodes are the root, the words, and contracted cycles in the order of contraction.

    Into a node, an arc weighs its score plus the offset of the word that it enters: what it gains over the arcs that it
    replaces inside the node, up to a constant of the node. Every weight has a key, which is offset in the same way.
    """

    weights: FloatArray  # (3, 2n+2)
    nodes: IntArray  # (10, 2n+2)
    # The best arc into each contracted cycle from every node outside (cycles, n+1): weight, key, the word entered.
    rows: FloatArray
    row_keys: IntArray
    entries: IntArray
    words: IntArray  # (n+1, n+1) the words that arcs into single words enter: row j is j everywhere


@exact_kernel
def new_tables(size):
    """Return working memory for graphs of up to ``size`` nodes, the root included."""
    shape = size, size
    weights, nodes = np.empty((WEIGHT_LINES, 2 * size)), np.empty((NODE_LINES, 2 * size), np.int64)
    words = np.empty(shape, np.int64)
    for j in range(size):
        words[j] = j
    return Tables(weights, nodes, np.empty(shape), np.empty(shape, np.int64), np.empty(shape, np.int64), words)


@exact_kernel
def load_arcs(scores, n, arcs):
    """Fill scores by dependent: ``arcs[j, i]`` is i -> j; -inf if there is no arc."""
    for j in range(1, n + 1):
        for i in range(n + 1):
            arcs[j, i] = scores[i, j]
        arcs[j, j] = -np.inf


@exact_kernel
def choose_word_head(arcs, keys, word, n, tables):
    """Choose a word's best head among the other words, 0 and -inf if no arc is left; return whether there was a tie."""
    best, head, tied = _best_head(arcs, keys, word, 1, n)
    tables.weights[VALUE, word], tables.nodes[HEAD, word] = best, head
    if keys is not None:
        tables.nodes[KEY, word] = keys[word, head]
    return tied


@exact_kernel
def _best_head(rows, keys, index, first, n):
    """Return the best arc of a row, its head from ``first`` on (0 and -inf if none), and whether there was a tie."""
    row, best, head, tied = rows[index], -np.inf, 0, False
    for i in range(first, n + 1):
        if row[i] > best:
            best, head = row[i], i
        elif row[i] == best and best > -np.inf:
            tied = True
            if keys is not None and keys[index, i] > keys[index, head]:
                head = i
    return best, head, tied


@exact_kernel
def contract(arcs, keys, n, single_root, tables):
    """Choose an arc into every node, contracting cycles; returns the number of nodes, or 0 if there is no tree.

    Every word's best head among the other words is already chosen. A path of chosen arcs grows backwards from an
    unfinished word. Where it meets itself, the cycle becomes one node at its end; where it meets a node joined to
    the root, it is finished. ``keys`` None takes a third of the time; the function returns ``TIED`` if keys are needed.
    """
    weights, nodes = tables.weights, tables.nodes
    _start(n, weights, nodes)
    count = n + 1
    roots = 0
    for first in range(1, n + 1):
        node = nodes[TOP, first]
        depth = 0
        while nodes[STATUS, node] != FINISHED:
            if node <= n:
                tied = _choose_word_arc(arcs, keys, single_root, node, weights, nodes)
            else:
                tied = _choose_arc(arcs, keys, n, single_root, node, tables)
            if tied and keys is None:
                return TIED
            roots += nodes[HEAD, node] == 0
            if weights[VALUE, node] == -np.inf or (single_root and roots > 1):
                return 0
            nodes[PATH, depth] = node
            depth += 1
            nodes[STATUS, node] = ON_PATH
            node = nodes[TOP, nodes[HEAD, node]]
            if nodes[STATUS, node] == ON_PATH:
                depth, tied = _contract_cycle(arcs, keys, n, node, count, depth, tables)
                if tied:
                    return TIED
                node = count
                count += 1
        for step in range(depth):
            nodes[STATUS, nodes[PATH, step]] = FINISHED
    return count


@exact_kernel
def _start(n, weights, nodes):
    for j in range(n + 1):
        nodes[WORD, j], nodes[TOP, j], nodes[MEMBER, j], nodes[PARENT, j], nodes[STATUS, j] = j, j, j, 0, FRESH
        weights[OFFSET, j], nodes[OFFSET_KEY, j], weights[SECOND, j] = 0.0, 0, -np.inf
    nodes[STATUS, 0] = FINISHED


@exact_kernel
def _choose_arc(arcs, keys, n, single_root, node, tables):
    """Choose the best arc from outside into a contracted node, by the rule for root arcs; return if there was a tie."""
    weights, nodes, index = tables.weights, tables.nodes, node - n - 1
    row_keys = None if keys is None else tables.row_keys
    _, head, tied = _best_head(tables.rows, row_keys, index, 1 if single_root else 0, n)
    weights[VALUE, node], nodes[KEY, node] = tables.rows[index, head], tables.row_keys[index, head]
    nodes[HEAD, node] = head
    if weights[VALUE, node] > -np.inf:
        nodes[WORD, node] = tables.entries[index, head]
        tied |= _find_second(arcs, keys, node, weights, nodes)
    return tied


@exact_kernel
def _choose_word_arc(arcs, keys, single_root, word, weights, nodes):
    """Choose the root arc if it is better than the arc from a word that is chosen; return whether there was a tie."""
    value, root, tied = weights[VALUE, word], arcs[word, 0], False
    from_root = value == -np.inf
    if not single_root and not from_root:
        from_root, tied = root > value, root == value
        if keys is not None:
            from_root |= tied and keys[word, 0] > nodes[KEY, word]
    if from_root:
        nodes[HEAD, word], weights[VALUE, word] = 0, root
        if keys is not None:
            nodes[KEY, word] = keys[word, 0]
    return tied


@exact_kernel
def _find_second(arcs, keys, node, weights, nodes):
    """Find the best arc from the chosen head into another word of a contracted node; return if there was a tie."""
    head, word, tied = nodes[HEAD, node], nodes[WORD, node], False
    best, key, new_key = -np.inf, 0, 0
    inside = nodes[MEMBER, word]
    while inside != word:
        value = arcs[inside, head] + weights[OFFSET, inside]
        if keys is not None:
            new_key = keys[inside, head] + nodes[OFFSET_KEY, inside]
        tied |= value == best and value > -np.inf
        if value > best or (value == best and new_key > key):
            best, key = value, new_key
        inside = nodes[MEMBER, inside]
    weights[SECOND, node], nodes[SECOND_KEY, node] = best, key
    return tied


@exact_kernel
def _contract_cycle(arcs, keys, n, last, new, depth, tables):
    """Contract the path from node ``last`` on into node ``new``; return the remaining length and if keys are needed."""
    weights, nodes, rows = tables.weights, tables.nodes, tables.rows
    index, value, ring = new - n - 1, weights[VALUE, last], nodes[WORD, last]
    shift_key, tied = 0, False
    for i in range(n + 1):
        rows[index, i] = -np.inf
    node = -1
    while node != last:
        depth -= 1
        node = nodes[PATH, depth]
        nodes[PARENT, node] = new
        shift = value - weights[VALUE, node]
        if keys is not None:
            shift_key = nodes[KEY, last] - nodes[KEY, node]
        if node <= n:
            tied |= _merge(n, shift, shift_key, arcs, keys, tables.words, node, index, tables)
        else:
            row_keys = None if keys is None else tables.row_keys
            tied |= _merge(n, shift, shift_key, rows, row_keys, tables.entries, node - n - 1, index, tables)
        if node != last:
            _join_ring(nodes[WORD, node], ring, shift, shift_key, weights, nodes)
    nodes[WORD, new], nodes[STATUS, new], nodes[PARENT, new] = ring, FRESH, 0
    inside = ring
    while True:
        nodes[TOP, inside] = new
        rows[index, inside] = -np.inf
        inside = nodes[MEMBER, inside]
        if inside == ring:
            break
    return depth, tied and keys is None


@exact_kernel
def _join_ring(start, ring, shift, shift_key, weights, nodes):
    """Add the words of one ring to another one, and a number to their offsets."""
    inside = start
    while True:
        weights[OFFSET, inside] += shift
        nodes[OFFSET_KEY, inside] += shift_key
        inside = nodes[MEMBER, inside]
        if inside == start:
            break
    nodes[MEMBER, ring], nodes[MEMBER, start] = nodes[MEMBER, start], nodes[MEMBER, ring]


@exact_kernel
def _merge(n, shift, shift_key, arcs, keys, words, other, index, tables):
    """Take from every head the better way into a contracted node: as before, or by row ``other``; return if any tie.

    That row has arcs, their keys and the words that they enter.
    """
    rows, row_keys, entries, tied = tables.rows, tables.row_keys, tables.entries, False
    for i in range(n + 1):
        value, best = arcs[other, i] + shift, rows[index, i]
        if keys is None:
            tied |= (value == best) & (value > -np.inf)
            better = value > best
        else:
            key = keys[other, i] + shift_key
            better = (value > best) | ((value == best) & (key > row_keys[index, i]))
            row_keys[index, i] = key if better else row_keys[index, i]
        rows[index, i] = value if better else best
        entries[index, i] = words[other, i] if better else entries[index, i]
    return tied


@exact_kernel
def expand(count, nodes, heads, owner):
    """Open the contracted nodes, the last one first; the arc into a node replaces an arc of each cycle within.

    Sets the words' ``heads``, and for every word the node whose chosen arc enters it, its ``owner``.
    """
    covered = nodes[STATUS]
    for node in range(count):
        covered[node] = 0
    for node in range(count - 1, 0, -1):
        if not covered[node]:
            word = nodes[WORD, node]
            heads[word], owner[word] = nodes[HEAD, node], node
            inside = word
            while inside != node:
                covered[inside] = 1
                inside = nodes[PARENT, inside]
