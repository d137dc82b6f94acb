"""The K best non-projective trees, exact, distinct and in order, O(n^2) a tree ([KBest] Figs. 5, 7 and 9, mended).

The trees that are still to come are split into classes; a class holds the trees that have some arcs, its forced ones,
and lack others. Its best tree is known. Its second-best tree lacks one arc of the best, the one that is cheapest to
change ([KBest] Fig. 5), and waits in a heap. Popped, it splits its class in two: the trees without that arc, whose best
it is, and those with the arc, whose best is that of the class. So no tree comes twice whatever rounding does.

With one root, trees are compared by (number of root arcs, score) as in `contraction`, and the list ends where a second
root arc would come in; [KBest] Fig. 9 needs a case of its own for the root's arc.
"""

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
from treeparse.kernels.compile import ONE, ZERO, jit, part_jit
from treeparse.kernels.heap import is_tied, pop, push
from treeparse.kernels.lists.second_best import cheapest_change
from treeparse.kernels.threads import run_batch
from treeparse.kernels.ties import arc_keys, tree_key

# Of a class: the class that it is a part of, and the arc that its trees have (FORCED) or lack.
PARENT, DEPENDENT, ARC_HEAD, FORCED = range(4)
# Of a class in the heap: its best tree and the dependent of the arc that its second-best tree lacks.
TREE, CHANGED = range(2)
# Of an item: trees made, classes made, size of the heap, whether keys are needed, the class last split off, if any,
# whose second-best tree is still to be found, and its best tree.
MADE, CLASSES, HEAP_SIZE, KEYED, OPEN_CLASS, OPEN_TREE = range(6)


class NonprojectiveKBest:
    """The best trees of every item of a batch, as many as were asked for; more are made without doing any work twice.

    Args:
        scores: ``(B, n+1, n+1)``; a copy is kept.
        lengths: ``(B,)``.
        single_root: whether exactly one word hangs from the root.

    Attributes:
        heads: ``(B, made, n+1)``, best first; -1 at node 0, at padding, and where there are no more trees.
        scores: ``(B, made)``, their summed scores; -inf where there are no more trees.
    """

    def __init__(self, scores: FloatArray, lengths: IntArray, *, single_root: bool) -> None:
        batch, size = scores.shape[:2]
        self._arc_scores, self._lengths, self._single_root = scores.copy(), lengths.copy(), single_root
        self.heads = np.empty((batch, 0, size), np.int64)
        self.scores = np.empty((batch, 0))
        # A tree adds two classes at most.
        self._classes = np.empty((batch, 1, 4), np.int64)
        self._waiting = np.empty((batch, 1, 2), np.int64)
        self._bounds = np.empty((batch, 1))
        self._keys = np.empty((batch, 1), np.int64)
        self._heap = np.empty((batch, 1), np.int64)
        self._counts = np.zeros((batch, 6), np.int64)

    def extend(self, count: int, threads: int = 1) -> None:
        """Make the best ``count`` trees of every item available."""
        more = count - self.scores.shape[1]
        if more <= 0:
            return
        self.heads = _grown(self.heads, more, -1)
        self.scores = _grown(self.scores, more, -np.inf)
        for name in ("_classes", "_waiting", "_bounds", "_keys", "_heap"):
            setattr(self, name, _grown(getattr(self, name), 2 * more, 0))
        state = self._classes, self._waiting, self._bounds, self._keys, self._heap, self._counts
        arguments = self._arc_scores, self._single_root, self.heads, self.scores, *state
        run_batch(_extend, lambda n: 16.0 * more * n**2, self._lengths, *arguments, threads=threads)


def _grown(array: np.ndarray, more: int, fill: float) -> np.ndarray:
    """A copy with more places along the second axis."""
    return np.concatenate([array, np.full((len(array), more, *array.shape[2:]), fill, array.dtype)], 1)


@jit
def _extend(start, stop, lengths, scores, single_root, heads, totals, classes, waiting, bounds, keys, heap, counts):
    size = scores.shape[1]
    base, arcs = np.empty((size, size)), np.empty((size, size))
    arc_key_table = np.empty((0, 0), np.int64)
    tables = new_tables(size)
    for b in range(start, stop):
        n = lengths[b]
        load_arcs(scores[b], n, base)
        item = classes[b], waiting[b], bounds[b], keys[b], heap[b], counts[b], totals[b]
        if not counts[b, KEYED] and _make_trees(base, arcs, None, n, single_root, heads[b], item, tables):
            counts[b] = 0
            counts[b, KEYED] = 1
        if counts[b, KEYED]:
            if len(arc_key_table) == 0:
                arc_key_table = np.ascontiguousarray(arc_keys(size).T)
            _make_trees(base, arcs, arc_key_table, n, single_root, heads[b], item, tables)


@part_jit
def _make_trees(base, arcs, keys, n, single_root, heads, item, tables):
    """Make as many trees as ``heads`` has room for; whether it was given up, since only keys can break a tie."""
    classes, waiting, bounds, bound_keys, heap, counts, _ = item
    weights, nodes = tables[0], tables[1]
    for j in range(1, n + 1):
        word_keys = None if keys is None else keys[j]
        if choose_word_head(base[j], word_keys, j, n, weights, nodes) and keys is None:
            return True
    best = weights[VALUE, : n + 1].copy(), nodes[HEAD, : n + 1].copy(), nodes[KEY, : n + 1].copy()
    graph = base, arcs, n, single_root, best
    if counts[CLASSES] == 0:
        counts[CLASSES] = 1
        if _make_tree(ZERO, graph, keys, heads, item, tables):
            return True
    while counts[MADE] < len(heads):
        if counts[OPEN_CLASS] and _close_class(graph, keys, heads, item, tables):
            return True
        size = counts[HEAP_SIZE]
        if size == 0:
            break
        if keys is None and is_tied(heap, size, bounds):
            return True
        split = pop(heap, size, bounds, bound_keys)
        counts[HEAP_SIZE] -= 1
        tree, j = waiting[split, TREE], waiting[split, CHANGED]
        counts[OPEN_CLASS], counts[OPEN_TREE] = _new_class(split, j, heads[tree, j], ONE, classes, counts), tree
        without = _new_class(split, j, heads[tree, j], ZERO, classes, counts)
        if _make_tree(without, graph, keys, heads, item, tables):
            return True
    return False


@part_jit
def _new_class(parent, dependent, head, forced, classes, counts):
    new = counts[CLASSES]
    classes[new, PARENT], classes[new, DEPENDENT] = parent, dependent
    classes[new, ARC_HEAD], classes[new, FORCED] = head, forced
    counts[CLASSES] += 1
    return new


@part_jit
def _make_tree(new, graph, keys, heads, item, tables):
    """Make the best tree of a class, and let its second best wait; whether there was a tie that needs keys."""
    counts, totals = item[5], item[6]
    owner = np.empty(len(heads[0]), np.int64)
    nodes = _contract_class(new, graph, keys, item[0], tables)
    if nodes <= 0:
        return nodes == TIED
    tree = counts[MADE]
    expand(nodes, tables[1], heads[tree], owner)
    totals[tree] = _total(graph[0], heads[tree], graph[2])
    counts[MADE] += 1
    return _wait_for_second(new, tree, graph, keys, heads, owner, item, tables)


@part_jit
def _close_class(graph, keys, heads, item, tables):
    """Let the second-best tree of the class split off last wait, whose best is known; whether a tie needs keys."""
    counts = item[5]
    new, tree = counts[OPEN_CLASS], counts[OPEN_TREE]
    found, owner = np.empty_like(heads[0]), np.empty_like(heads[0])
    counts[OPEN_CLASS] = 0
    nodes = _contract_class(new, graph, keys, item[0], tables)
    if nodes == TIED:
        return True
    expand(nodes, tables[1], found, owner)
    for j in range(1, graph[2] + 1):
        if found[j] != heads[tree, j]:  # no matter of keys: rounding made two trees of a class change places
            _wait_for_second_by_arcs(new, tree, graph, keys, heads, item, tables)
            return False
    return _wait_for_second(new, tree, graph, keys, heads, owner, item, tables)


@part_jit
def _contract_class(new, graph, keys, classes, tables):
    """Contract the graph of a class: forced arcs without their rivals, without the arcs that its trees lack."""
    base, arcs, n, single_root, best = graph
    weights, nodes = tables[0], tables[1]
    for j in range(1, n + 1):
        weights[VALUE, j], nodes[HEAD, j], nodes[KEY, j] = best[0][j], best[1][j], best[2][j]
        arcs[j, : n + 1] = base[j, : n + 1]
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
        word_keys = None if keys is None else keys[j]
        if choose_word_head(arcs[j], word_keys, j, n, weights, nodes) and keys is None:
            return TIED
        part = classes[part, PARENT]
    return contract(arcs, keys, n, single_root, tables)


@part_jit
def _wait_for_second(new, tree, graph, keys, heads, owner, item, tables):
    """Put a class into the heap by the score of its second-best tree, if any; whether a tie needs keys."""
    _, arcs, n, single_root, _ = graph
    loss, key_loss, changed, tied = cheapest_change(arcs, keys, n, single_root, heads[tree], owner, tables)
    if tied and keys is None:
        return True
    if loss < np.inf:
        key = 0 if keys is None else tree_key(heads[tree], n) - key_loss
        _wait(new, tree, changed, item[6][tree] - loss, key, item)
    return False


@part_jit
def _wait(new, tree, changed, bound, key, item):
    _, waiting, bounds, bound_keys, heap, counts, _ = item
    waiting[new, TREE], waiting[new, CHANGED] = tree, changed
    bounds[new], bound_keys[new] = bound, key
    push(heap, counts[HEAP_SIZE], new, bounds, bound_keys)
    counts[HEAP_SIZE] += 1


@part_jit
def _wait_for_second_by_arcs(new, tree, graph, keys, heads, item, tables):
    """Find the second-best tree of a class by leaving out each arc of the best in turn."""
    base, n = graph[0], graph[2]
    classes, counts = item[0], item[5]
    found, owner = np.empty_like(heads[0]), np.empty_like(heads[0])
    bound, key, changed = -np.inf, 0, 0
    for j in range(1, n + 1):
        trial = _new_class(new, j, heads[tree, j], ZERO, classes, counts)
        count = _contract_class(trial, graph, keys, classes, tables)
        counts[CLASSES] -= 1
        if count > 0:
            expand(count, tables[1], found, owner)
            total, total_key = _total(base, found, n), tree_key(found, n)
            if total > bound or (total == bound and total_key > key):
                bound, key, changed = total, total_key, j
    if changed:
        _wait(new, tree, changed, bound, key, item)


@part_jit
def _total(base, heads, n):
    """The summed score of a tree."""
    total = 0.0
    for j in range(1, n + 1):
        total += base[j, heads[j]]
    return total
