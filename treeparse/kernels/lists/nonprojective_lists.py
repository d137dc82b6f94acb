"""The K best non-projective trees, exact, distinct and in order, O(n^2) a tree ([KBest] Figs. 5, 7 and 9, mended).

The trees that are not yet in the list are split into classes; a class holds the trees that have some arcs, the forced
ones, and lack others. Its best tree is known. Its second-best tree lacks one arc of the best, the one that is cheapest
to change ([KBest] Fig. 5), and waits in a heap. Popped, it splits its class in two: the trees without that arc, whose
best it is, and the trees with the arc, which have the best of the class. So no tree comes twice whatever rounding does.

With one root, trees are compared by (number of root arcs, score) as in `contraction`, and the list ends where a second
root arc would come in; [KBest] Fig. 9 needs a case of its own for the root's arc.
"""

import numpy as np

from treeparse.kernels import FloatArray, IntArray, lengthened
from treeparse.kernels.best.contraction import (
    HEAD,
    KEY,
    LINKS,
    NODES_OF_CALLERS,
    OF_CALLERS,
    OWNER,
    ROWS,
    SECOND,
    SECOND_KEY,
    TIED,
    VALUE,
    choose_word_head,
    contract,
    expand,
    new_memory,
)
from treeparse.kernels.compile import exact_kernel
from treeparse.kernels.heap import is_tied, pop, push
from treeparse.kernels.threads import run_batch
from treeparse.kernels.ties import arc_key, tree_key

# Lines of an item's classes: the class that each is a part of, and the arc that its trees have (FORCED) or lack; of
# those in the heap their best tree, the dependent of the arc that their second-best tree lacks, and its key; the heap.
CLASS_LINES = 8
PARENT, DEPENDENT, ARC_HEAD, FORCED, TREE, CHANGED, BOUND_KEY, HEAP = range(CLASS_LINES)
# Of an item: trees made, classes made, size of the heap, whether keys are needed, the class last split off, if any,
# whose second-best tree is still to be found, and its best tree.
ITEM_FACTS = 6
MADE, CLASSES, HEAP_SIZE, KEYED, OPEN_CLASS, OPEN_TREE = range(ITEM_FACTS)
# Lines of ``contraction``'s memory: every word's best arc from another word in the graph of the item; of the best tree
# of a class, every node's first and next child, its index in preorder, and that of its last descendant; another tree.
BEST_VALUE = OF_CALLERS
BEST_HEAD, BEST_KEY, CHILD, SIBLING, FIRST, LAST, FOUND = range(NODES_OF_CALLERS, LINKS)
BASE, ARCS = range(2)  # the scores of an item [dependent, head], and those without the arcs that a class does not allow


class NonprojectiveKBest:
    """The best trees of every item of a batch, a list that grows without doing work twice.

    Args:
        scores: ``(B, n+1, n+1)``, which are copied.
        lengths: ``(B,)``.
        single_root: whether exactly one word hangs from the root.

    Attributes:
        heads: ``(B, K, n+1)``, best first; -1 at node 0, at padding, and past the number of trees.
        scores: ``(B, K)``, the trees' summed scores; -inf past the number of trees.
    """

    def __init__(self, scores: FloatArray, lengths: IntArray, *, single_root: bool) -> None:
        batch, size = scores.shape[:2]
        self._arc_scores, self._lengths, self._single_root = scores.copy(), lengths.copy(), single_root
        self.heads: IntArray = np.empty((batch, 0, size), np.int64)
        self.scores: FloatArray = np.empty((batch, 0))
        # A tree adds two classes at most; of classes in the heap, the scores of their second-best trees.
        self._classes, self._bounds = np.empty((batch, CLASS_LINES, 1), np.int64), np.empty((batch, 1))
        self._facts = np.zeros((batch, ITEM_FACTS), np.int64)

    def extend(self, count: int, threads: int = 1) -> None:
        """Make the best ``count`` trees of every item available."""
        more = count - self.scores.shape[1]
        if more <= 0:
            return
        self.heads, self.scores = lengthened(self.heads, more, 1, -1), lengthened(self.scores, more, 1, -np.inf)
        self._classes = lengthened(self._classes, 2 * more, 2, 0)
        self._bounds = lengthened(self._bounds, 2 * more, 1, 0)
        lists = self.heads, self.scores, self._bounds, self._classes, self._facts
        arguments = self._lengths, self._arc_scores, self._single_root, *lists
        run_batch(_extend, lambda n: 16.0 * more * n**2, *arguments, threads=threads)


@exact_kernel
def _extend(start, stop, lengths, scores, single_root, heads, tree_scores, bounds, classes, facts):
    size = scores.shape[1]
    graph, (weights, nodes) = np.empty((2, size, size)), new_memory(size)
    for b in range(start, stop):
        for j in range(1, lengths[b] + 1):
            for i in range(lengths[b] + 1):
                graph[BASE, j, i] = scores[b, i, j] if i != j else -np.inf
        needs_keys = True
        while needs_keys:
            needs_keys = _make_trees(
                graph[BASE],
                graph[ARCS],
                facts[b, KEYED] == 1,
                lengths[b],
                single_root,
                heads[b],
                tree_scores[b],
                bounds[b],
                classes[b],
                facts[b],
                weights,
                nodes,
            )
            if needs_keys:
                facts[b] = 0
                facts[b, KEYED] = 1


@exact_kernel
def _make_trees(base, arcs, keyed, n, single_root, heads, tree_scores, bounds, classes, facts, weights, nodes):
    """Fill the list with trees; return whether only keys could break a tie, so that the list ended early."""
    new, heap, keys = facts[CLASSES], classes[HEAP], classes[BOUND_KEY]
    for j in range(1, n + 1):
        if choose_word_head(base, keyed, j, n, weights, nodes) and not keyed:
            return True
        weights[BEST_VALUE, j] = weights[VALUE, j]
        nodes[BEST_HEAD, j], nodes[BEST_KEY, j] = nodes[HEAD, j], nodes[KEY, j]
    if new == 0:
        facts[CLASSES] = 1
        if _make_tree(
            new, base, arcs, keyed, n, single_root, heads, tree_scores, bounds, classes, facts, weights, nodes
        ):
            return True
    while facts[MADE] < len(heads):
        if facts[OPEN_CLASS] and _close_class(
            base, arcs, keyed, n, single_root, heads, tree_scores, bounds, classes, facts, weights, nodes
        ):
            return True
        size = facts[HEAP_SIZE]
        if size == 0:
            break
        if not keyed and is_tied(heap, size, bounds):
            return True
        split = pop(heap, size, bounds, keys)
        facts[HEAP_SIZE] -= 1
        tree, j = classes[TREE, split], classes[CHANGED, split]
        facts[OPEN_CLASS], facts[OPEN_TREE] = _new_class(split, j, heads[tree, j], classes, facts), tree
        classes[FORCED, facts[OPEN_CLASS]] = 1
        new = _new_class(split, j, heads[tree, j], classes, facts)
        if _make_tree(
            new, base, arcs, keyed, n, single_root, heads, tree_scores, bounds, classes, facts, weights, nodes
        ):
            return True
    return False


@exact_kernel
def _new_class(parent, dependent, head, classes, facts):
    """Add the class of those trees of another one that lack an arc."""
    new = facts[CLASSES]
    classes[PARENT, new], classes[DEPENDENT, new] = parent, dependent
    classes[ARC_HEAD, new], classes[FORCED, new] = head, 0
    facts[CLASSES] += 1
    return new


@exact_kernel
def _make_tree(new, base, arcs, keyed, n, single_root, heads, tree_scores, bounds, classes, facts, weights, nodes):
    """Append the best tree of a class, and let its second best wait; return whether a tie needs keys."""
    count = _contract_class(new, base, arcs, keyed, n, single_root, classes, weights, nodes)
    if count <= 0:
        return count == TIED
    tree = facts[MADE]
    expand(count, nodes, heads[tree])
    tree_scores[tree] = _total(base, heads[tree], n)
    facts[MADE] += 1
    return _wait_for_second(
        new, tree, arcs, keyed, n, single_root, heads[tree], tree_scores, bounds, classes, facts, weights, nodes
    )


@exact_kernel
def _close_class(base, arcs, keyed, n, single_root, heads, tree_scores, bounds, classes, facts, weights, nodes):
    """Queue the second-best tree of the class that was split off last; return whether a tie needs keys."""
    new, tree = facts[OPEN_CLASS], facts[OPEN_TREE]
    best, found = heads[tree], nodes[FOUND]
    facts[OPEN_CLASS] = 0
    count = _contract_class(new, base, arcs, keyed, n, single_root, classes, weights, nodes)
    if count == TIED:
        return True
    expand(count, nodes, found)
    for j in range(1, n + 1):
        if found[j] != best[j]:  # no matter of keys: rounding made two trees of a class change places
            _wait_for_second_by_arcs(
                new, tree, base, arcs, keyed, n, single_root, best, bounds, classes, facts, weights, nodes
            )
            return False
    return _wait_for_second(
        new, tree, arcs, keyed, n, single_root, best, tree_scores, bounds, classes, facts, weights, nodes
    )


@exact_kernel
def _contract_class(new, base, arcs, keyed, n, single_root, classes, weights, nodes):
    """Contract the graph of a class: forced arcs without their rivals, without the arcs that its trees lack."""
    for j in range(1, n + 1):
        weights[VALUE, j] = weights[BEST_VALUE, j]
        nodes[HEAD, j], nodes[KEY, j] = nodes[BEST_HEAD, j], nodes[BEST_KEY, j]
        for i in range(n + 1):
            arcs[j, i] = base[j, i]
    part = new
    while part:
        j, head = classes[DEPENDENT, part], classes[ARC_HEAD, part]
        if classes[FORCED, part]:
            for i in range(n + 1):
                if i != head:
                    arcs[j, i] = -np.inf
        else:
            arcs[j, head] = -np.inf
        part = classes[PARENT, part]
    part = new
    while part:
        if choose_word_head(arcs, keyed, classes[DEPENDENT, part], n, weights, nodes) and not keyed:
            return TIED
        part = classes[PARENT, part]
    return contract(arcs, keyed, n, single_root, weights, nodes)


@exact_kernel
def _wait_for_second(
    new, tree, arcs, keyed, n, single_root, heads, tree_scores, bounds, classes, facts, weights, nodes
):
    """Put a class into the heap by the score of its second-best tree, if any; return whether a tie needs keys."""
    loss, key_loss, changed, tied = _cheapest_change(arcs, keyed, n, single_root, heads, weights, nodes)
    if tied and not keyed:
        return True
    if loss < np.inf:
        key = tree_key(heads, n) - key_loss if keyed else 0
        _wait(new, tree, changed, tree_scores[tree] - loss, key, bounds, classes, facts)
    return False


@exact_kernel
def _wait(new, tree, changed, bound, key, bounds, classes, facts):
    classes[TREE, new], classes[CHANGED, new] = tree, changed
    bounds[new], classes[BOUND_KEY, new] = bound, key
    push(classes[HEAP], facts[HEAP_SIZE], new, bounds, classes[BOUND_KEY])
    facts[HEAP_SIZE] += 1


@exact_kernel
def _wait_for_second_by_arcs(
    new, tree, base, arcs, keyed, n, single_root, heads, bounds, classes, facts, weights, nodes
):
    """Find the second-best tree of a class by leaving out each arc of the best in turn."""
    bound, key, changed, found = -np.inf, 0, 0, nodes[FOUND]
    for j in range(1, n + 1):
        trial = _new_class(new, j, heads[j], classes, facts)
        count = _contract_class(trial, base, arcs, keyed, n, single_root, classes, weights, nodes)
        facts[CLASSES] -= 1
        if count > 0:
            expand(count, nodes, found)
            total, total_key = _total(base, found, n), tree_key(found, n)
            if total > bound or (total == bound and total_key > key):
                bound, key, changed = total, total_key, j
    if changed:
        _wait(new, tree, changed, bound, key, bounds, classes, facts)


@exact_kernel
def _total(base, heads, n):
    """Return the summed score of a tree."""
    total = 0.0
    for j in range(1, n + 1):
        total += base[j, heads[j]]
    return total


@exact_kernel
def _cheapest_change(arcs, keyed, n, single_root, heads, weights, nodes):
    """Return loss (score and key) and dependent of the cheapest change of an arc of the best tree, and whether it ties.

    An arc changes to the best other arc into the node that it was chosen for ([KBest] Fig. 5, mended). That arc comes
    neither from below the dependent nor, with a single root, from the root instead of a word.
    """
    _fill_preorder(heads, n, nodes)
    loss, key_loss, changed, tied = np.inf, 0, 0, False
    for j in range(1, n + 1):
        node = nodes[OWNER, j]
        rows, row = (arcs, node) if node <= n else (weights, ROWS + node - n)
        best, key, is_tie = _best_other(rows, row, j, keyed, n, single_root, heads[j], weights, nodes)
        cost, key_cost = weights[VALUE, node] - best, nodes[KEY, node] - key
        tied |= is_tie or (cost == loss and cost < np.inf)
        if cost < loss or (cost == loss and keyed and key_cost < key_loss):
            loss, key_loss, changed = cost, key_cost, j
    return loss, key_loss, changed, tied


@exact_kernel
def _best_other(rows, row, j, keyed, n, single_root, head, weights, nodes):
    """Return score and key of the best arc of a row into the node of word j, but from its head, and whether it ties."""
    node = nodes[OWNER, j]
    best, key, tied = weights[SECOND, node], nodes[SECOND_KEY, node], False
    start, end = nodes[FIRST, j], nodes[LAST, j]
    for i in range(1 if single_root else 0, n + 1):
        value = rows[row, i]
        is_below = start <= nodes[FIRST, i] <= end
        if value >= best and value > -np.inf and i != head and not is_below:
            new_key = 0
            if keyed:
                new_key = nodes[LINKS + 2 * (node - n) + 1, i] if node > n else arc_key(i, j)
            tied |= value == best
            if value > best or new_key > key:
                best, key = value, new_key
    return best, key, tied


@exact_kernel
def _fill_preorder(heads, n, nodes):
    """Fill every node's index in preorder, and the index of its last descendant."""
    for node in range(n + 1):
        nodes[CHILD, node] = 0
    for j in range(n, 0, -1):
        nodes[SIBLING, j], nodes[CHILD, heads[j]] = nodes[CHILD, heads[j]], j
    nodes[SIBLING, 0] = 0
    node = index = nodes[FIRST, 0] = 0
    while True:
        if nodes[CHILD, node]:
            node = nodes[CHILD, node]
        else:
            while node and not nodes[SIBLING, node]:
                nodes[LAST, node] = index
                node = heads[node]
            nodes[LAST, node] = index
            if node == 0:
                return
            node = nodes[SIBLING, node]
        index += 1
        nodes[FIRST, node] = index
