"""The contraction of cycles of Chu and Liu and of Edmonds, in Tarjan's dense O(n^2) form.

One root: compare trees by (number of root arcs, score), so that the fewest root arcs come first and then the highest
score. That is the reweighting of Stanojević and Cohen 2021 with an infinite constant, so no precision is lost. Arcs
between words keep 0 as their first component under every contraction, so the rule comes down to: take a root arc only
where no other arc is left.

Nodes are the root, the words, and contracted cycles in the order of contraction. Into a node, an arc weighs its score
plus the offset of the word that it enters: what it gains over the arcs that it replaces inside the node, up to a
constant of the node. Every weight has a key (``ties``), which is offset in the same way; keys are computed only where
``keyed``. Scores of arcs are stored by dependent: ``arcs[j, i]`` is i -> j.

Working memory is ``weights`` and ``nodes``, whose lines are named below.

Numba counts references to the arrays of each function that calls others, which costs more than a short loop. So inner
functions call none.
"""

import numpy as np

from treeparse.kernels.compile import exact_kernel
from treeparse.kernels.ties import arc_key

FRESH, ON_PATH, FINISHED = 0, 1, 2  # statuses
TIED = -1

# Lines of ``weights``: of nodes, the weight of the chosen arc, and the weight of the best other arc from the same head;
# of words, the offset, and a line for callers. From ROWS on: the best arc from every node outside into one word, and
# then into each contracted cycle.
VALUE, SECOND, OFFSET, OF_CALLERS, ROWS = range(5)
# Lines of ``nodes``: the keys of these; of nodes, the chosen arc's head, the word that it enters, the cycle that the
# node is in, 0 for none, and its status; of words, the node that the word is in, the next word of the ring that makes
# up this node, and the node whose chosen arc enters the word in the end; the path of chosen arcs. There are lines for
# callers, and from LINKS on, for each of the rows, the words that its arcs enter, and their keys.
KEY, SECOND_KEY, OFFSET_KEY, HEAD, WORD, PARENT, STATUS, TOP, MEMBER, OWNER, PATH = range(11)
NODES_OF_CALLERS, LINKS = 11, 18


@exact_kernel
def new_memory(size):
    """Return ``weights`` and ``nodes`` for graphs of up to ``size`` nodes, the root included."""
    return np.empty((ROWS + size, 2 * size)), np.empty((LINKS + 2 * size, 2 * size), np.int64)


@exact_kernel
def choose_word_head(arcs, keyed, word, n, weights, nodes):
    """Choose a word's best head among the other words, 0 and -inf if no arc is left; return whether there was a tie."""
    _load_row(arcs, keyed, word, n, weights, nodes)
    return _choose_best(keyed, word > 0, word, n, weights, nodes)


@exact_kernel
def _load_row(arcs, keyed, word, n, weights, nodes):
    """Fill row 0 by the arcs into a word."""
    for i in range(n + 1):
        weights[ROWS, i] = arcs[word, i]
        nodes[LINKS, i] = word
    weights[ROWS, word] = -np.inf
    if keyed:
        for i in range(n + 1):
            nodes[LINKS + 1, i] = arc_key(i, word)


@exact_kernel
def _choose_best(keyed, only_words, node, n, weights, nodes):
    """Choose the best arc of a node's row, 0 and -inf if no arc is left; return whether there was a tie."""
    row = max(node - n, 0)
    line, keys = ROWS + row, LINKS + 2 * row + 1
    best, head, tied = -np.inf, 0, False
    for i in range(1 if only_words else 0, n + 1):
        if weights[line, i] > best:
            best, head = weights[line, i], i
        elif weights[line, i] == best and best > -np.inf:
            tied = True
            if keyed and nodes[keys, i] > nodes[keys, head]:
                head = i
    weights[VALUE, node], nodes[HEAD, node] = best, head
    if keyed:
        nodes[KEY, node] = nodes[keys, head]
    return tied


@exact_kernel
def contract(arcs, keyed, n, single_root, weights, nodes):
    """Choose an arc into every node, contracting cycles; return the number of nodes, or 0 if there is no tree.

    Every word's best head among the other words is already chosen. A path of chosen arcs grows backwards from an
    unfinished word. Where it meets itself, the cycle becomes one node at its end; where it meets a node joined to
    the root, it is finished. Unless ``keyed``, ``TIED`` is returned if keys are needed.
    """
    _start(n, weights, nodes)
    count, roots = n + 1, 0
    for first in range(1, n + 1):
        node, depth = nodes[TOP, first], 0
        while nodes[STATUS, node] != FINISHED:
            if node <= n:
                root_key = arc_key(0, node) if keyed else 0
                tied = _choose_word_arc(arcs, root_key, keyed, single_root, node, weights, nodes)
            else:
                tied = _choose_best(keyed, single_root, node, n, weights, nodes)
                tied |= _find_second(arcs, keyed, n, node, weights, nodes)
            if tied and not keyed:
                return TIED
            roots += nodes[HEAD, node] == 0
            if weights[VALUE, node] == -np.inf or (single_root and roots > 1):
                return 0
            nodes[PATH, depth], nodes[STATUS, node] = node, ON_PATH
            depth += 1
            node = nodes[TOP, nodes[HEAD, node]]
            if nodes[STATUS, node] == ON_PATH:
                depth, tied = _contract_cycle(arcs, keyed, n, node, count, depth, weights, nodes)
                if tied and not keyed:
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
def _choose_word_arc(arcs, root_key, keyed, single_root, word, weights, nodes):
    """Choose the root arc if it is better than the arc from a word that is chosen; return whether there was a tie."""
    value, root, key, head = weights[VALUE, word], arcs[word, 0], nodes[KEY, word], nodes[HEAD, word]
    tied = root == value and value > -np.inf and not single_root
    from_root = value == -np.inf or (root > value and not single_root) or (tied and keyed and root_key > key)
    nodes[HEAD, word], nodes[KEY, word] = (0, root_key) if from_root else (head, key)
    weights[VALUE, word] = root if from_root else value
    return tied


@exact_kernel
def _find_second(arcs, keyed, n, node, weights, nodes):
    """Find the word that the chosen arc into a contracted node enters, and the best arc from its head into another one.

    Return whether there was a tie.
    """
    head, tied = nodes[HEAD, node], False
    weights[VALUE, node] = weights[ROWS + node - n, head]
    if weights[VALUE, node] == -np.inf:
        return False
    word = nodes[WORD, node] = nodes[LINKS + 2 * (node - n), head]
    best, key, new_key = -np.inf, 0, 0
    inside = nodes[MEMBER, word]
    while inside != word:
        value = arcs[inside, head] + weights[OFFSET, inside]
        if keyed:
            new_key = arc_key(head, inside) + nodes[OFFSET_KEY, inside]
        tied |= value == best and value > -np.inf
        if value > best or (value == best and new_key > key):
            best, key = value, new_key
        inside = nodes[MEMBER, inside]
    weights[SECOND, node], nodes[SECOND_KEY, node] = best, key
    return tied


@exact_kernel
def _contract_cycle(arcs, keyed, n, last, new, depth, weights, nodes):
    """Contract the path from node ``last`` on into node ``new``; return the remaining length and whether any tie."""
    ring, shift_key, tied, node = nodes[WORD, last], 0, False, -1
    for i in range(n + 1):
        weights[ROWS + new - n, i] = -np.inf
    while node != last:
        depth -= 1
        node = nodes[PATH, depth]
        nodes[PARENT, node] = new
        shift = weights[VALUE, last] - weights[VALUE, node]
        if keyed:
            shift_key = nodes[KEY, last] - nodes[KEY, node]
        if node <= n:
            _load_row(arcs, keyed, node, n, weights, nodes)
        tied |= _merge(n, shift, shift_key, keyed, max(node - n, 0), new - n, weights, nodes)
        if node != last:
            _join_ring(nodes[WORD, node], ring, shift, shift_key, weights, nodes)
    nodes[WORD, new], nodes[STATUS, new], nodes[PARENT, new] = ring, FRESH, 0
    inside = ring
    while True:
        nodes[TOP, inside] = new
        weights[ROWS + new - n, inside] = -np.inf
        inside = nodes[MEMBER, inside]
        if inside == ring:
            break
    return depth, tied


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
def _merge(n, shift, shift_key, keyed, other, row, weights, nodes):
    """Take from every head the better way into a contracted node, of two rows; return whether there was a tie."""
    value_line, other_line, link, other_link = ROWS + row, ROWS + other, LINKS + 2 * row, LINKS + 2 * other
    tied = False
    if not keyed:
        for i in range(n + 1):
            value, best = weights[other_line, i] + shift, weights[value_line, i]
            tied |= (value == best) & (value > -np.inf)
            better = value > best
            weights[value_line, i] = value if better else best
            nodes[link, i] = nodes[other_link, i] if better else nodes[link, i]
        return tied
    for i in range(n + 1):
        value, best = weights[other_line, i] + shift, weights[value_line, i]
        key = nodes[other_link + 1, i] + shift_key
        if value > best or (value == best and key > nodes[link + 1, i]):
            weights[value_line, i], nodes[link, i], nodes[link + 1, i] = value, nodes[other_link, i], key
    return tied


@exact_kernel
def expand(count, nodes, heads):
    """Open the contracted nodes, the last one first; the arc into a node replaces an arc of each cycle within.

    Sets the words' ``heads`` and owners.
    """
    for node in range(count):
        nodes[STATUS, node] = FRESH
    for node in range(count - 1, 0, -1):
        if nodes[STATUS, node] == FRESH:
            word = nodes[WORD, node]
            heads[word], nodes[OWNER, word] = nodes[HEAD, node], node
            inside = word
            while inside != node:
                nodes[STATUS, inside] = FINISHED
                inside = nodes[PARENT, inside]
