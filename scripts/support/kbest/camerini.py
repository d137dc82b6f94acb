"""K-best spanning trees as in the literature: Camerini et al. 1980, and the simplification of it in [KBest] §3.

Camerini, Fratta and Maffioli 1980, *The K best spanning arborescences of a network*. Both algorithms split the set of
trees at the arc whose replacement costs the best tree least: the trees without the arc go on with another best tree,
those with it keep theirs. Camerini et al. find that arc while they contract the graph once more, and must know the best
tree by then, so every further tree takes three contractions. [KBest] Fig. 5 finds it while it expands the contracted
graph, which gives the best tree itself: two contractions.

For a fair comparison both are compiled alike and share the contraction, Tarjan's in its dense O(n^2) form with the two
best parallel arcs of every pair of nodes. Any number of words may hang from the root. Where scores tie, trees may be
lost and repeated, as in the literature. [KBest] is Zmigrod, Vieira and Cotterell 2021, *On Finding the K-best
Non-projective Dependency Trees*.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scripts.support.compile import jit

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
FRESH, ON_PATH, FINISHED = 0, 1, 2
UNKNOWN = -1


class Forest(NamedTuple):
    """Nodes are the root and the words, then contracted cycles in order of their making."""

    # Into every node, from every head: the weights of the two best arcs, and the word that the best one enters.
    best: FloatArray
    second: FloatArray
    entry: IntArray
    # Of every node: its chosen arc's weight and head, the word it enters; the cycle the node is in; its status.
    value: FloatArray
    head: IntArray
    word: IntArray
    parent: IntArray
    status: IntArray
    # Of every word: the node that it is in now; when a walk through the tree enters and leaves it.
    top: IntArray
    enter: IntArray
    leave: IntArray
    path: IntArray


class Queue(NamedTuple):
    """Sets of trees, each but for its best tree, which is there already: ``2 K`` of them."""

    # The weight of the second-best tree of the set, -inf if there is none; the arc that it lacks; the best tree.
    weight: FloatArray
    head: IntArray
    word: IntArray
    tree: IntArray
    # What sets this set apart in a larger one: that set, an arc, and whether trees have the arc.
    parent: IntArray
    split_head: IntArray
    split_word: IntArray
    included: IntArray


def k_best(scores: FloatArray, lengths: IntArray, k: int, *, original: bool) -> tuple[IntArray, FloatArray]:
    """The k best head lists (B, k, n+1) and their scores (B, k) under scores (B, n+1, n+1); -1 and -inf past the last.

    ``original`` is Camerini et al.'s algorithm, otherwise [KBest]'s. Every sentence must have a tree.
    """
    size = scores.shape[1]
    heads, totals = np.full((len(scores), k, size), -1), np.full((len(scores), k), -np.inf)
    _k_best_of_batch(scores, lengths, k, original, _new_forest(size), _new_queue(2 * k), heads, totals)
    return heads, totals


def _new_forest(size: int) -> Forest:
    nodes, words = np.empty((4, 2 * size), np.int64), np.empty((4, size), np.int64)
    best, second = np.empty((2, 2 * size, size))
    return Forest(best, second, np.empty((2 * size, size), np.int64), np.empty(2 * size), *nodes, *words)


def _new_queue(size: int) -> Queue:
    return Queue(np.empty(size), *np.empty((7, size), np.int64))


@jit
def _k_best_of_batch(scores, lengths, k, original, forest, queue, heads, totals):
    for b in range(len(lengths)):
        _k_best(scores[b], lengths[b], k, original, forest, queue, heads[b], totals[b])


@jit
def _k_best(scores, n, k, original, forest, queue, heads, totals):
    """Fill heads and totals."""
    again = np.empty(n + 1, np.int64)
    chosen, new = -1, 0  # a set with two trees or more, and the first of two sets in its place
    queue.parent[new] = -1
    for made in range(k):
        if made > 0:
            new = 2 * made - 1
            chosen = _greatest(queue.weight, new)
            if queue.weight[chosen] == -np.inf:
                return
            _split(queue, chosen, new)
        count = _solve(scores, n, forest, queue, new, heads[made])
        totals[made] = _total(scores, n, heads[made])
        if made + 1 == k:
            return
        queue.tree[new] = made
        _find_split(scores, n, original, count, forest, queue, new, heads[made])
        if made > 0:
            if not original:
                count = _solve(scores, n, forest, queue, new + 1, again)
            queue.tree[new + 1] = queue.tree[chosen]
            _find_split(scores, n, original, count, forest, queue, new + 1, heads[queue.tree[chosen]])


@jit
def _total(scores, n, heads):
    """A tree's score."""
    total = 0.0
    for j in range(1, n + 1):
        total += scores[heads[j], j]
    return total


@jit
def _greatest(weights, count):
    """Where the greatest of the first weights is."""
    best = 0
    for i in range(1, count):
        if weights[i] > weights[best]:
            best = i
    return best


@jit
def _split(queue, chosen, new):
    """Put two sets in the place of one: first the trees without its arc, then those with the arc."""
    for number in range(new, new + 2):
        queue.parent[number] = chosen
        queue.split_head[number], queue.split_word[number] = queue.head[chosen], queue.word[chosen]
        queue.included[number] = number - new
    queue.weight[chosen] = -np.inf


@jit
def _solve(scores, n, forest, queue, number, heads):
    """The best tree of a set, by a contraction and its expansion, and the walk through it; the number of nodes."""
    queue.tree[number] = UNKNOWN
    _load(scores, n, forest, queue, number)
    count = _contract(n, forest, heads, queue, number)
    _expand(count, forest, heads)
    _walk(n, heads, forest)
    return count


@jit
def _find_split(scores, n, original, count, forest, queue, number, heads):
    """The arc whose replacement costs a set's best tree least; for [KBest]'s algorithm the set has just been solved."""
    queue.weight[number] = -np.inf
    if original:
        _walk(n, heads, forest)
        _load(scores, n, forest, queue, number)
        _contract(n, forest, heads, queue, number)
    else:
        for node in range(1, count):
            if forest.status[node] == FINISHED:
                _weigh_replacement(n, forest, node, queue, number)
    queue.weight[number] += _total(scores, n, heads)


@jit
def _load(scores, n, forest, queue, number):
    """The arcs into the words, without those that the set rules out."""
    for i in range(n + 1):
        for j in range(1, n + 1):
            forest.best[j, i] = scores[i, j] if i != j else -np.inf
            forest.second[j, i], forest.entry[j, i] = -np.inf, j
    while queue.parent[number] >= 0:
        head, word = queue.split_head[number], queue.split_word[number]
        for i in range(n + 1):
            if (i == head) != queue.included[number]:
                forest.best[word, i] = -np.inf
        number = queue.parent[number]


@jit
def _contract(n, forest, heads, queue, number):
    """Choose an arc into every node, contracting cycles; returns the number of nodes.

    Where the set's best tree is known, its arcs are weighed against their replacements as they are chosen.
    """
    for j in range(n + 1):
        forest.top[j], forest.parent[j], forest.status[j] = j, 0, FRESH
    forest.status[0] = FINISHED
    count = n + 1
    for first in range(1, n + 1):
        node, depth = forest.top[first], 0
        while forest.status[node] != FINISHED:
            head = _greatest(forest.best[node], n + 1)
            forest.head[node], forest.value[node] = head, forest.best[node, head]
            forest.word[node] = forest.entry[node, head]
            if queue.tree[number] != UNKNOWN and heads[forest.word[node]] == head:
                _weigh_replacement(n, forest, node, queue, number)
            forest.path[depth] = node
            depth += 1
            forest.status[node] = ON_PATH
            node = forest.top[head]
            if forest.status[node] == ON_PATH:
                depth = _merge_cycle(n, forest, node, count, depth)
                node = count
                count += 1
        for step in range(depth):
            forest.status[forest.path[step]] = FINISHED
    return count


@jit
def _merge_cycle(n, forest, last, new, depth):
    """Contract the end of the path from node ``last`` on into node ``new``; returns the length of the path left."""
    best, second, entry = forest.best[new], forest.second[new], forest.entry[new]
    for i in range(n + 1):
        best[i], second[i] = -np.inf, -np.inf
    node = -1
    while node != last:
        depth -= 1
        node = forest.path[depth]
        forest.parent[node] = new
        shift = forest.value[last] - forest.value[node]
        for i in range(n + 1):
            candidate, next_best = forest.best[node, i] + shift, forest.second[node, i] + shift
            if candidate > best[i]:
                second[i] = max(best[i], next_best)
                best[i], entry[i] = candidate, forest.entry[node, i]
            else:
                second[i] = max(second[i], candidate)
    for i in range(1, n + 1):
        if forest.parent[forest.top[i]] == new:
            forest.top[i] = new
            best[i], second[i] = -np.inf, -np.inf
    forest.parent[new], forest.status[new] = 0, FRESH
    return depth


@jit
def _expand(count, forest, heads):
    """Open the contracted nodes, the last one first; leaves status FINISHED at the nodes whose chosen arc is taken."""
    for node in range(count):
        forest.status[node] = FINISHED
    for node in range(count - 1, 0, -1):
        if forest.status[node] == FINISHED:
            inside = forest.word[node]
            heads[inside] = forest.head[node]
            while inside != node:
                forest.status[inside] = FRESH
                inside = forest.parent[inside]


@jit
def _walk(n, heads, forest):
    """Number the words in the order of a walk down the tree, so that descendants are a range."""
    child, sibling = np.zeros(n + 1, np.int64), np.zeros(n + 1, np.int64)
    for j in range(1, n + 1):
        sibling[j] = child[heads[j]]
        child[heads[j]] = j
    node = time = 0
    forest.enter[0] = 0
    while True:
        if child[node]:
            down = child[node]
            child[node] = sibling[down]
            node = down
            time += 1
            forest.enter[node] = time
        else:
            forest.leave[node] = time
            if node == 0:
                return
            node = heads[node]


@jit
def _weigh_replacement(n, forest, node, queue, number):
    """Let the set split at a node's chosen arc if its best replacement costs least so far; weights are minus costs."""
    head, word = forest.head[node], forest.word[node]
    weight = forest.second[node, head]
    for i in range(n + 1):
        blue = not forest.enter[word] <= forest.enter[i] <= forest.leave[word]
        if i != head and blue:
            weight = max(weight, forest.best[node, i])
    if weight - forest.value[node] > queue.weight[number]:
        queue.weight[number] = weight - forest.value[node]
        queue.head[number], queue.word[number] = head, word
