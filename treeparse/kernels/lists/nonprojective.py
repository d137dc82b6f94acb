"""The K best non-projective trees, exact, distinct and in order, O(n^2) a tree ([KBest] Figs. 5, 7 and 9, mended).

The trees that are not yet in the list are split into classes; a class holds the trees that have some arcs, the forced
ones, and lack others. Its best tree is known. Its second-best tree lacks one arc of the best, the one that is cheapest
to change ([KBest] Fig. 5), and waits in a heap. Popped, it splits its class in two: the trees without that arc, whose
best it is, and the trees with the arc, which have the best of the class. So no tree comes twice whatever rounding does.

With one root, trees are compared by (number of root arcs, score) as in `contraction`, and the list ends where a second
root arc would come in; [KBest] Fig. 9 needs a case of its own for the root's arc.
"""

from typing import NamedTuple, Self

import numpy as np

from treeparse.kernels.arrays import FloatArray, IntArray
from treeparse.kernels.best.contraction import (
    HEAD,
    KEY,
    TIED,
    VALUE,
    choose_word_head,
    contract,
    expand,
    load_arcs,
    new_tables,
)
from treeparse.kernels.compile import exact_kernel
from treeparse.kernels.heap import is_tied, pop, push
from treeparse.kernels.lists.second_best import cheapest_change
from treeparse.kernels.threads import run_batch
from treeparse.kernels.ties import arc_keys, tree_key

# Of a class: the class that it is a part of, and the arc that its trees have (FORCED) or lack.
CLASS_FACTS = 4
PARENT, DEPENDENT, ARC_HEAD, FORCED = range(CLASS_FACTS)
# Of a class in the heap: its best tree and the dependent of the arc that its second-best tree lacks.
WAITING_FACTS = 2
TREE, CHANGED = range(WAITING_FACTS)
# Of an item: trees made, classes made, size of the heap, whether keys are needed, the class last split off, if any,
# whose second-best tree is still to be found, and its best tree.
ITEM_FACTS = 6
MADE, CLASSES, HEAP_SIZE, KEYED, OPEN_CLASS, OPEN_TREE = range(ITEM_FACTS)


class Lists(NamedTuple):
    """The trees so far and the classes of all others, of all items, or of one without the first axis.

    K trees fit in, and C = 2 K + 1 classes, because a tree adds two at most.
    """

    heads: IntArray  # (B, K, n+1) best first; -1 at node 0, at padding and past the last tree
    scores: FloatArray  # (B, K) -inf past the last tree
    classes: IntArray  # (B, C, 4)
    waiting: IntArray  # (B, C, 2)
    bounds: FloatArray  # (B, C) the scores of the second-best trees of classes in the heap
    keys: IntArray  # (B, C) and their keys
    heap: IntArray  # (B, C)
    facts: IntArray  # (B, 6)

    @classmethod
    def empty(cls, items: int, nodes: int) -> Self:
        """Return a list with capacity 0."""
        numbers = np.empty((items, 1), np.int64)
        classes, waiting = (np.empty((items, 1, facts), np.int64) for facts in (CLASS_FACTS, WAITING_FACTS))
        trees = np.empty((items, 0, nodes), np.int64), np.empty((items, 0))
        state = numbers, numbers, np.zeros((items, ITEM_FACTS), np.int64)
        return cls(*trees, classes, waiting, np.empty((items, 1)), *state)

    def with_room(self, count: int) -> Self:
        """Return the same list with capacity ``count``."""
        more = count - self.scores.shape[1]
        trees = _grown(self.heads, more, -1), _grown(self.scores, more, -np.inf)
        classes, waiting, bounds, keys, heap = (_grown(array, 2 * more, 0) for array in self[2:-1])
        return type(self)(*trees, classes, waiting, bounds, keys, heap, self.facts)


class ItemGraph(NamedTuple):
    """The graph of one item, and of its current class."""

    base: FloatArray  # (n+1, n+1) scores, ``[dependent, head]``
    arcs: FloatArray  # (n+1, n+1) the same without the arcs that the class does not allow
    words: int
    single_root: bool
    # Of every word the best arc from another word in ``base`` (n+1,).
    values: FloatArray
    heads: IntArray
    keys: IntArray


class NonprojectiveKBest:
    """The best trees of every item of a batch, a list that grows without doing work twice.

    Args:
        scores: ``(B, n+1, n+1)``, which are copied.
        lengths: ``(B,)``.
        single_root: whether exactly one word hangs from the root.
    """

    def __init__(self, scores: FloatArray, lengths: IntArray, *, single_root: bool) -> None:
        self._arc_scores, self._lengths, self._single_root = scores.copy(), lengths.copy(), single_root
        self._made = Lists.empty(*scores.shape[:2])

    @property
    def heads(self) -> IntArray:
        """``(B, K, n+1)``, best first; -1 at node 0, at padding, and past the number of trees."""
        return self._made.heads

    @property
    def scores(self) -> FloatArray:
        """``(B, K)``, the trees' summed scores; -inf past the number of trees."""
        return self._made.scores

    def extend(self, count: int, threads: int = 1) -> None:
        """Make the best ``count`` trees of every item available."""
        more = count - self.scores.shape[1]
        if more <= 0:
            return
        self._made = self._made.with_room(count)
        arguments = self._arc_scores, self._single_root, self._made
        run_batch(_extend, lambda n: 16.0 * more * n**2, self._lengths, *arguments, threads=threads)


def _grown(array: np.ndarray, more: int, fill: float) -> np.ndarray:
    """Return a copy that is longer along the second axis."""
    return np.concatenate([array, np.full((len(array), more, *array.shape[2:]), fill, array.dtype)], 1)


@exact_kernel
def _extend(start, stop, lengths, scores, single_root, made):
    size = scores.shape[1]
    base, arcs = np.empty((size, size)), np.empty((size, size))
    arc_key_table = np.empty((0, 0), np.int64)
    tables = new_tables(size)
    for b in range(start, stop):
        n, lists = lengths[b], _lists_of(b, made)
        load_arcs(scores[b], n, base)
        if not lists.facts[KEYED] and _make_trees(base, arcs, None, n, single_root, lists, tables):
            lists.facts[:] = 0
            lists.facts[KEYED] = 1
        if lists.facts[KEYED]:
            if len(arc_key_table) == 0:
                arc_key_table = np.ascontiguousarray(arc_keys(size).T)
            _make_trees(base, arcs, arc_key_table, n, single_root, lists, tables)


@exact_kernel
def _lists_of(b, made):
    """Return the lists of one item."""
    heads, scores, classes, waiting, bounds, keys, heap, facts = made
    return Lists(heads[b], scores[b], classes[b], waiting[b], bounds[b], keys[b], heap[b], facts[b])


@exact_kernel
def _make_trees(base, arcs, keys, n, single_root, lists, tables):
    """Fill the list with trees; return whether only keys could break a tie, so that the list ended early."""
    weights, nodes, facts = tables.weights, tables.nodes, lists.facts
    for j in range(1, n + 1):
        if choose_word_head(base, keys, j, n, tables) and keys is None:
            return True
    best = weights[VALUE, : n + 1].copy(), nodes[HEAD, : n + 1].copy(), nodes[KEY, : n + 1].copy()
    graph = ItemGraph(base, arcs, n, single_root, *best)
    if facts[CLASSES] == 0:
        facts[CLASSES] = 1
        if _make_tree(0, graph, keys, lists, tables):
            return True
    while facts[MADE] < len(lists.heads):
        if facts[OPEN_CLASS] and _close_class(graph, keys, lists, tables):
            return True
        size = facts[HEAP_SIZE]
        if size == 0:
            break
        if keys is None and is_tied(lists.heap, size, lists.bounds):
            return True
        split = pop(lists.heap, size, lists.bounds, lists.keys)
        facts[HEAP_SIZE] -= 1
        tree, j = lists.waiting[split, TREE], lists.waiting[split, CHANGED]
        head = lists.heads[tree, j]
        facts[OPEN_CLASS], facts[OPEN_TREE] = _new_class(split, j, head, 1, lists), tree
        if _make_tree(_new_class(split, j, head, 0, lists), graph, keys, lists, tables):
            return True
    return False


@exact_kernel
def _new_class(parent, dependent, head, forced, lists):
    classes, new = lists.classes, lists.facts[CLASSES]
    classes[new, PARENT], classes[new, DEPENDENT] = parent, dependent
    classes[new, ARC_HEAD], classes[new, FORCED] = head, forced
    lists.facts[CLASSES] += 1
    return new


@exact_kernel
def _make_tree(new, graph, keys, lists, tables):
    """Append the best tree of a class, and let its second best wait; return whether a tie needs keys."""
    owner = np.empty(len(lists.heads[0]), np.int64)
    nodes = _contract_class(new, graph, keys, lists.classes, tables)
    if nodes <= 0:
        return nodes == TIED
    tree = lists.facts[MADE]
    expand(nodes, tables.nodes, lists.heads[tree], owner)
    lists.scores[tree] = _total(graph.base, lists.heads[tree], graph.words)
    lists.facts[MADE] += 1
    return _wait_for_second(new, tree, graph, keys, owner, lists, tables)


@exact_kernel
def _close_class(graph, keys, lists, tables):
    """Queue the second-best tree of the class that was split off last; return whether a tie needs keys."""
    new, tree = lists.facts[OPEN_CLASS], lists.facts[OPEN_TREE]
    heads = lists.heads[tree]
    found, owner = np.empty_like(heads), np.empty_like(heads)
    lists.facts[OPEN_CLASS] = 0
    nodes = _contract_class(new, graph, keys, lists.classes, tables)
    if nodes == TIED:
        return True
    expand(nodes, tables.nodes, found, owner)
    for j in range(1, graph.words + 1):
        if found[j] != heads[j]:  # no matter of keys: rounding made two trees of a class change places
            _wait_for_second_by_arcs(new, tree, graph, keys, lists, tables)
            return False
    return _wait_for_second(new, tree, graph, keys, owner, lists, tables)


@exact_kernel
def _contract_class(new, graph, keys, classes, tables):
    """Contract the graph of a class: forced arcs without their rivals, without the arcs that its trees lack."""
    base, arcs, n = graph.base, graph.arcs, graph.words
    weights, nodes = tables.weights, tables.nodes
    for j in range(1, n + 1):
        weights[VALUE, j], nodes[HEAD, j], nodes[KEY, j] = graph.values[j], graph.heads[j], graph.keys[j]
        for i in range(n + 1):
            arcs[j, i] = base[j, i]
    part = new
    while part:
        j, head = classes[part, DEPENDENT], classes[part, ARC_HEAD]
        if classes[part, FORCED]:
            arcs[j, :head] = -np.inf
            arcs[j, head + 1 : n + 1] = -np.inf
        else:
            arcs[j, head] = -np.inf
        part = classes[part, PARENT]
    part = new
    while part:
        j = classes[part, DEPENDENT]
        if choose_word_head(arcs, keys, j, n, tables) and keys is None:
            return TIED
        part = classes[part, PARENT]
    return contract(arcs, keys, n, graph.single_root, tables)


@exact_kernel
def _wait_for_second(new, tree, graph, keys, owner, lists, tables):
    """Put a class into the heap by the score of its second-best tree, if any; return whether a tie needs keys."""
    n, heads = graph.words, lists.heads[tree]
    loss, key_loss, changed, tied = cheapest_change(graph.arcs, keys, n, graph.single_root, heads, owner, tables)
    if tied and keys is None:
        return True
    if loss < np.inf:
        key = 0 if keys is None else tree_key(heads, n) - key_loss
        _wait(new, tree, changed, lists.scores[tree] - loss, key, lists)
    return False


@exact_kernel
def _wait(new, tree, changed, bound, key, lists):
    lists.waiting[new, TREE], lists.waiting[new, CHANGED] = tree, changed
    lists.bounds[new], lists.keys[new] = bound, key
    push(lists.heap, lists.facts[HEAP_SIZE], new, lists.bounds, lists.keys)
    lists.facts[HEAP_SIZE] += 1


@exact_kernel
def _wait_for_second_by_arcs(new, tree, graph, keys, lists, tables):
    """Find the second-best tree of a class by leaving out each arc of the best in turn."""
    n, heads = graph.words, lists.heads[tree]
    found, owner = np.empty_like(heads), np.empty_like(heads)
    bound, key, changed = -np.inf, 0, 0
    for j in range(1, n + 1):
        trial = _new_class(new, j, heads[j], 0, lists)
        count = _contract_class(trial, graph, keys, lists.classes, tables)
        lists.facts[CLASSES] -= 1
        if count > 0:
            expand(count, tables.nodes, found, owner)
            total, total_key = _total(graph.base, found, n), tree_key(found, n)
            if total > bound or (total == bound and total_key > key):
                bound, key, changed = total, total_key, j
    if changed:
        _wait(new, tree, changed, bound, key, lists)


@exact_kernel
def _total(base, heads, n):
    """Return the summed score of a tree."""
    total = 0.0
    for j in range(1, n + 1):
        total += base[j, heads[j]]
    return total
