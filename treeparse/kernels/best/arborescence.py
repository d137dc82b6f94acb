"""Best trees in O(n^2), by Gabow and Tarjan's 1984 `constrain` ([Root], [KBest] Fig. 3), and the check of head lists.

First the best tree with any number of root arcs: every node chooses its best arc, and where the arcs chosen close a
cycle, it becomes one node, which chooses again. For a single root then, while more than one node hangs from the root,
the one that loses least by it takes its best arc from a word instead, which may close cycles again. In this order nodes
leave the root when all root arcs are made dearer by the same growing amount, so the first tree with one root arc is the
best one.

Everything is compared by (score, key), see `ties`; keys are computed only if scores tie. Nothing is shared with
`contraction`: each checks the other.

Nodes are the root, the words, and contracted cycles in the order of contraction. Into a contracted cycle, an arc's
value is its score less the scores of the arcs that it replaces inside, up to a constant.
"""

import numpy as np

from treeparse.kernels import FloatArray, IntArray
from treeparse.kernels.compile import exact_kernel
from treeparse.kernels.threads import run_batch
from treeparse.kernels.ties import arc_key

BY_WORD, BY_ROOT = 0, 1  # the two arcs between which a node chooses

# Lines of ``weights``: the values of the two arcs into every node, then in ROWS + j of every arc into the cycle that
# uses the row of word j.
VALUE, ROWS = 0, 2
# Lines of ``nodes``. Of every node, for each of the two arcs: its key, its head, and the word that it enters; then the
# arc that is chosen, the cycle that the node is in, the word whose row it uses, and the last walk that came by.
# Of every word: the node that it is in, and the next word of the ring that makes up this node.
KEY, HEAD, WORD = 0, 2, 4
CHOICE, PARENT, HOME, WALK, TOP, MEMBER = range(6, 12)
TIE, LINKS = 12, 13  # whether equal values have been compared; for each row the words entered, and keys


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
def new_memory(size):
    """Return ``weights`` and ``nodes`` for graphs of up to ``size`` nodes, the root included."""
    return np.empty((ROWS + size, 2 * size)), np.empty((LINKS + 2 * size, 2 * size), np.int64)


@exact_kernel
def find_best_tree(scores, n, single_root, weights, nodes, heads):
    """Write the heads of the best tree, if there is one; return whether there is."""
    count = 0
    for keyed in (False, True):
        if not keyed or nodes[TIE, 0]:
            count = _solve(scores, n, single_root, keyed, weights, nodes)
    if count > 0:
        _expand(count, nodes, heads)
    return count > 0


@exact_kernel
def _solve(scores, n, single_root, keyed, weights, nodes):
    """Choose an arc into every node; return the number of nodes, or 0 if there is no tree.

    Unless ``keyed``, keys are not computed, and the result is wrong after a tie.
    """
    nodes[TIE, 0] = 0
    _find_word_arcs(scores, n, keyed, weights, nodes)
    if not _choose(1, n + 1, weights, nodes) or (nodes[TIE, 0] and not keyed):
        return 0
    count = n + 1
    while True:
        count = _contract_cycles(scores, n, keyed, count, weights, nodes)
        if count == 0 or not single_root:
            return count
        roots, node = _cheapest_swap(n, weights, nodes)
        if roots == 1:
            return count
        if node == 0:
            return 0
        nodes[CHOICE, node] = BY_WORD


@exact_kernel
def _find_word_arcs(scores, n, keyed, weights, nodes):
    """Fill every word's best arcs from another word and from the root."""
    for j in range(n + 1):
        weights[VALUE + BY_WORD, j], weights[VALUE + BY_ROOT, j] = -np.inf, scores[0, j]
        nodes[KEY + BY_WORD, j], nodes[KEY + BY_ROOT, j] = 0, arc_key(0, j)
        nodes[HEAD + BY_WORD, j], nodes[HEAD + BY_ROOT, j] = 0, 0
        nodes[WORD + BY_WORD, j], nodes[WORD + BY_ROOT, j] = j, j
        nodes[HOME, j], nodes[TOP, j], nodes[MEMBER, j] = j, j, j
    if not keyed:
        nodes[TIE, 0] = _find_word_heads(scores, n, weights[VALUE + BY_WORD], nodes[HEAD + BY_WORD])
        return
    for i in range(1, n + 1):
        for j in range(1, n + 1):
            best, best_key = weights[VALUE + BY_WORD, j], nodes[KEY + BY_WORD, j]
            if i != j and _beats(scores[i, j], arc_key(i, j), best, best_key, nodes):
                weights[VALUE + BY_WORD, j] = scores[i, j]
                nodes[KEY + BY_WORD, j], nodes[HEAD + BY_WORD, j] = arc_key(i, j), i


@exact_kernel
def _find_word_heads(scores, n, value, head):
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
def _beats(value, key, other, other_key, nodes):
    """Whether one (value, key) is greater than another one."""
    if value == other and value > -np.inf:
        nodes[TIE, 0] = 1
        return key > other_key
    return value > other


@exact_kernel
def _choose(first, last, weights, nodes):
    """Choose the better of the two arcs into each node from ``first`` up to ``last``; False if both are forbidden."""
    for node in range(first, last):
        best, root = weights[VALUE + BY_WORD, node], weights[VALUE + BY_ROOT, node]
        if best == -np.inf and root == -np.inf:
            return False
        by_root = _beats(root, nodes[KEY + BY_ROOT, node], best, nodes[KEY + BY_WORD, node], nodes)
        nodes[CHOICE, node] = BY_ROOT if by_root else BY_WORD
    return True


@exact_kernel
def _contract_cycles(scores, n, keyed, count, weights, nodes):
    """Contract all cycles of chosen arcs; return the number of nodes, or 0 if no tree exists."""
    for node in range(2 * n):  # there will be no more nodes
        nodes[WALK, node] = 0
    nodes[WALK, 0] = -1
    first, node = 1, nodes[TOP, 1]
    while True:
        first, node = _find_cycle(first, node, n, nodes)
        if node == 0:
            return count
        _contract(scores, n, keyed, node, count, weights, nodes)
        node = count
        count += 1
        if not _choose(node, count, weights, nodes):
            return 0


@exact_kernel
def _find_cycle(first, node, n, nodes):
    """Continue the walk of word ``first`` at a node, then of the next words; return the first node met again.

    A walk follows the chosen arcs upwards to a node of an earlier walk. Without a cycle, 0 is returned.
    """
    for word in range(first, n + 1):
        if word > first:
            node = nodes[TOP, word]
        while nodes[WALK, node] == 0:
            nodes[WALK, node] = word
            node = nodes[TOP, nodes[HEAD + nodes[CHOICE, node], node]]
            if nodes[WALK, node] == word:
                return word, node
    return n, 0


@exact_kernel
def _cheapest_swap(n, weights, nodes):
    """Return the number of nodes that hang from the root, and the one that loses least by an arc from a word, or 0."""
    roots, cheapest = 0, 0
    best, best_key = -np.inf, 0
    for word in range(1, n + 1):
        node = nodes[TOP, word]
        if nodes[HOME, node] == word and nodes[CHOICE, node] == BY_ROOT:
            roots += 1
            gain = weights[VALUE + BY_WORD, node] - weights[VALUE + BY_ROOT, node]
            key_gain = nodes[KEY + BY_WORD, node] - nodes[KEY + BY_ROOT, node]
            if _beats(gain, key_gain, best, best_key, nodes):
                best, best_key, cheapest = gain, key_gain, node
    return roots, cheapest


@exact_kernel
def _contract(scores, n, keyed, last, new, weights, nodes):
    """Contract the cycle through node ``last`` into node ``new`` and find the best arcs into it."""
    home = nodes[HOME, last]
    if last <= n:
        _load_row(scores, n, keyed, last, weights, nodes)
    nodes[PARENT, last], nodes[HOME, new] = new, home
    node = nodes[TOP, nodes[HEAD + BY_WORD, last]]
    while node != last:
        if node <= n:
            _load_row(scores, n, keyed, node, weights, nodes)
        shift = weights[VALUE + BY_WORD, last] - weights[VALUE + BY_WORD, node]
        key_shift = nodes[KEY + BY_WORD, last] - nodes[KEY + BY_WORD, node]
        _merge_rows(n, keyed, shift, key_shift, home, nodes[HOME, node], weights, nodes)
        nodes[PARENT, node] = new
        node = nodes[TOP, nodes[HEAD + BY_WORD, node]]
    _enclose(new, home, weights, nodes)
    _find_best_arcs(n, new, home, weights, nodes)


@exact_kernel
def _load_row(scores, n, keyed, word, weights, nodes):
    for i in range(n + 1):
        weights[ROWS + word, i], nodes[LINKS + 2 * word, i] = scores[i, word], word
    if keyed:
        for i in range(n + 1):
            nodes[LINKS + 2 * word + 1, i] = arc_key(i, word)


@exact_kernel
def _merge_rows(n, keyed, shift, key_shift, home, other, weights, nodes):
    """Join two nodes' rings; take from every head the better way in. The shifts make the values comparable."""
    nodes[MEMBER, home], nodes[MEMBER, other] = nodes[MEMBER, other], nodes[MEMBER, home]
    if not keyed:
        if _merge_scores(n, shift, ROWS + home, ROWS + other, LINKS + 2 * home, LINKS + 2 * other, weights, nodes):
            nodes[TIE, 0] = 1
        return
    link, other_link = LINKS + 2 * home, LINKS + 2 * other
    for i in range(n + 1):
        value, key = weights[ROWS + other, i] + shift, nodes[other_link + 1, i] + key_shift
        if _beats(value, key, weights[ROWS + home, i], nodes[link + 1, i], nodes):
            weights[ROWS + home, i], nodes[link + 1, i], nodes[link, i] = value, key, nodes[other_link, i]


@exact_kernel
def _merge_scores(n, shift, row, other, link, other_link, weights, nodes):
    """Do ``_merge_rows`` without keys; return whether there was a tie."""
    tied = False
    for i in range(n + 1):
        value, best = weights[other, i] + shift, weights[row, i]
        better = value > best
        tied |= (value == best) & (value > -np.inf)
        weights[row, i] = value if better else best
        nodes[link, i] = nodes[other_link, i] if better else nodes[link, i]
    return tied


@exact_kernel
def _enclose(node, home, weights, nodes):
    """Put the words of a ring into a node and forbid arcs from them."""
    word = home
    while True:
        nodes[TOP, word] = node
        weights[ROWS + home, word] = -np.inf
        word = nodes[MEMBER, word]
        if word == home:
            break


@exact_kernel
def _find_best_arcs(n, node, home, weights, nodes):
    """Find the best arcs into a contracted node, from a word outside and from the root."""
    row, link = ROWS + home, LINKS + 2 * home
    best, best_key, head = -np.inf, 0, 0
    for i in range(1, n + 1):
        if _beats(weights[row, i], nodes[link + 1, i], best, best_key, nodes):
            best, best_key, head = weights[row, i], nodes[link + 1, i], i
    weights[VALUE + BY_WORD, node], nodes[KEY + BY_WORD, node] = best, best_key
    weights[VALUE + BY_ROOT, node], nodes[KEY + BY_ROOT, node] = weights[row, 0], nodes[link + 1, 0]
    nodes[HEAD + BY_WORD, node], nodes[WORD + BY_WORD, node] = head, nodes[link, head]
    nodes[HEAD + BY_ROOT, node], nodes[WORD + BY_ROOT, node] = 0, nodes[link, 0]


@exact_kernel
def _expand(count, nodes, heads):
    """Open the contracted nodes, the last one first; the arc into a node replaces an arc of each cycle within."""
    for node in range(count):
        nodes[HOME, node] = 0  # whether the node is opened
    for node in range(count - 1, 0, -1):
        if nodes[HOME, node] == 0:
            choice = nodes[CHOICE, node]
            word = inside = nodes[WORD + choice, node]
            heads[word] = nodes[HEAD + choice, node]
            while inside != node:
                nodes[HOME, inside] = 1
                inside = nodes[PARENT, inside]
