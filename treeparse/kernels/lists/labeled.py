"""The best labelled trees of a list of trees, best first: a worse label on the same arcs is another labelled tree.

The labels of an arc are sorted, best first, so a labelling of a tree is the *rank* of every word's label. Each
labelling but the best, which has rank 0 everywhere, has one parent: the last word whose rank is above 0 goes down by
one. So the children of a labelling raise one word, from its last raised word on, and every labelling is made once.
Of each labelling only the best child waits, and the next best one replaces it once it is taken (lazily, as in Huang and
Chiang 2005, algorithm 3). A score is what the tree scores by other parts than arcs, and then the sum over the words in
order, which rounding or not grows with each term, so that no child is above its parent: the order is exact for the
scores as they are computed.

Labelled trees are ordered by score, then by the summed keys of the arcs (``ties``), then by ranks as in a dictionary,
the lower first. Trees come best first, each under its best labels; the next one is read only once it comes before all
that waits. So for K labelled trees, no more than K unlabelled ones are read.
"""

import numpy as np

from treeparse.kernels import FloatArray, IntArray, lengthened
from treeparse.kernels.compile import exact_kernel
from treeparse.kernels.threads import run_batch
from treeparse.kernels.ties import tree_key

COUNTS = 3  # of every item:
TREES, LABELINGS, WAITING = range(COUNTS)  # trees looked at, labellings made, waiting children
VALUES = 2  # of a labelling, lines (B, 2, K): its score, and its waiting child's, -inf past the last labelling
SCORE, CHILD_SCORE = range(VALUES)
# Of a labelling, lines (B, 5, K): which tree of the list, -1 past the last labelling; that tree's summed arc keys; the
# last word whose rank is above 0, 1 if there is none; the word that the waiting child raises. And the heap: labellings
# by their waiting children, the first on top.
FACTS = 5
TREE, KEY, RAISED, CHILD_WORD, HEAP = range(FACTS)


class LabeledTrees:
    """A growing list of the best labelled trees of a batch.

    Args:
        lengths: ``(B,)`` numbers of words.
        nodes: n + 1.

    Attributes:
        ranks: the ranks of the words' labels ``(B, K, n+1)``.
    """

    def __init__(self, lengths: IntArray, nodes: int) -> None:
        self._lengths = np.ascontiguousarray(lengths)
        batch = len(lengths)
        self.ranks: IntArray = np.empty((batch, 0, nodes), np.int64)
        self._values = np.empty((batch, VALUES, 0))
        self._facts, self._counts = np.empty((batch, FACTS, 0), np.int64), np.zeros((batch, COUNTS), np.int64)

    @property
    def trees(self) -> IntArray:
        """The index of each labelled tree in the list of trees ``(B, K)``, -1 past the last."""
        return self._facts[:, TREE]

    @property
    def scores(self) -> FloatArray:
        """Summed scores ``(B, K)``, descending, -inf past the last."""
        return self._values[:, SCORE]

    def extend(
        self,
        count: int,
        heads: IntArray,
        rows: IntArray,
        values: FloatArray,
        *,
        others: FloatArray | None = None,
        threads: int = 1,
    ) -> bool:
        """Find ``count`` labelled trees an item, or all of them; return whether an item needs more trees for that.

        Args:
            count: the length of the list, trees of earlier calls included.
            heads: the list of trees so far ``(B, T, n+1)``, best first, -1 past the last; it begins with the trees of
                earlier calls.
            rows: ``(B, T, n+1)`` index of each word's arc in ``values``.
            values: ``(A, L)`` for an arc and each of its labels, best first, the sum of both scores; -inf forbids.
            others: ``(B, T)`` what trees score besides, by other parts than arcs; 0 if None.
            threads: how many threads to use at most.
        """
        more = count - self.scores.shape[1]
        if more > 0:
            self.ranks = lengthened(self.ranks, more, 1, 0)
            self._values = lengthened(self._values, more, 2, -np.inf)
            self._facts = lengthened(self._facts, more, 2, -1)
        starved = np.zeros(len(heads), np.bool_)
        others = np.zeros(heads.shape[:2]) if others is None else others
        given = (np.ascontiguousarray(array) for array in (heads, rows, values, others))
        arguments = count, *given, self.ranks, self._values, self._facts, self._counts, starved
        run_batch(_extend, lambda n: count * n**2, self._lengths, *arguments, threads=threads)
        return bool(starved.any())


@exact_kernel
def _extend(start, stop, lengths, count, heads, rows, scores, others, ranks, values, facts, counts, starved):
    sums = np.empty(heads.shape[2])
    for b in range(start, stop):
        starved[b] = _extend_item(
            lengths[b], count, heads[b], rows[b], scores, others[b], ranks[b], values[b], facts[b], counts[b], sums
        )


@exact_kernel
def _extend_item(n, count, heads, rows, scores, others, ranks, values, facts, counts, sums):
    """Whether the list of trees ended too early."""
    while counts[LABELINGS] < count:
        tree, new = counts[TREES], counts[LABELINGS]
        if tree == len(heads):
            return True
        exists = heads[tree, 1] >= 0 if n > 0 else tree == 0
        if exists and _take_tree(tree, new, n, heads[tree], rows, scores, others, ranks, values, facts, counts):
            counts[TREES] += 1
        elif counts[WAITING]:
            _take_child(new, n, rows, scores, others, ranks, values, facts, counts, sums)
        else:
            return False
        counts[LABELINGS] += 1
        if _find_child(new, n, rows, scores, others, ranks, values, facts, np.inf, n + 1, sums):
            facts[HEAP, counts[WAITING]] = new
            counts[WAITING] += 1
            _sift_up(counts[WAITING] - 1, n, ranks, values, facts)
    return False


@exact_kernel
def _take_tree(tree, new, n, heads, rows, scores, others, ranks, values, facts, counts):
    """Make the next tree under its best labels labelling ``new``, unless a waiting child comes before it."""
    score = others[tree]
    for j in range(1, n + 1):
        score += scores[rows[tree, j], 0]
    key = tree_key(heads, n)
    if counts[WAITING]:
        first = facts[HEAP, 0]
        waiting = values[CHILD_SCORE, first]
        if score < waiting or (score == waiting and key <= facts[KEY, first]):
            return False
    facts[TREE, new], values[SCORE, new], facts[KEY, new], facts[RAISED, new] = tree, score, key, 1
    for j in range(ranks.shape[1]):
        ranks[new, j] = 0
    return True


@exact_kernel
def _take_child(new, n, rows, scores, others, ranks, values, facts, counts, sums):
    """Make the first of the waiting children labelling ``new``; its next sibling waits instead, if there is one."""
    parent = facts[HEAP, 0]
    word, score = facts[CHILD_WORD, parent], values[CHILD_SCORE, parent]
    facts[TREE, new], values[SCORE, new], facts[KEY, new] = facts[TREE, parent], score, facts[KEY, parent]
    for j in range(ranks.shape[1]):
        ranks[new, j] = ranks[parent, j]
    ranks[new, word] += 1
    facts[RAISED, new] = word
    if not _find_child(parent, n, rows, scores, others, ranks, values, facts, score, word, sums):
        counts[WAITING] -= 1
        facts[HEAP, 0] = facts[HEAP, counts[WAITING]]
    _sift_down(counts[WAITING], n, ranks, values, facts)


@exact_kernel
def _find_child(parent, n, rows, scores, others, ranks, values, facts, score, word, sums):
    """Find a labelling's next child after the one that has ``score`` and raises ``word``; return whether there is one.

    Among equal scores a child that raises a later word comes first, as its ranks do.
    """
    tree, first, last_rank = facts[TREE, parent], facts[RAISED, parent], scores.shape[1] - 1
    total = others[tree]
    for j in range(1, n + 1):
        row, rank = rows[tree, j], ranks[parent, j]
        value = scores[row, rank]
        for raised in range(first, j):
            sums[raised] += value
        if j >= first:
            sums[j] = total + (scores[row, rank + 1] if rank < last_rank else -np.inf)
        total += value
    best, choice = -np.inf, 0
    for j in range(n, first - 1, -1):
        if sums[j] > best and (sums[j] < score or (sums[j] == score and j < word)):
            best, choice = sums[j], j
    values[CHILD_SCORE, parent], facts[CHILD_WORD, parent] = best, choice
    return choice > 0


@exact_kernel
def _comes_first(a, b, n, ranks, values, facts):
    """Whether the waiting child of labelling ``a`` comes before that of ``b``."""
    if values[CHILD_SCORE, a] != values[CHILD_SCORE, b]:
        return values[CHILD_SCORE, a] > values[CHILD_SCORE, b]
    if facts[KEY, a] != facts[KEY, b]:
        return facts[KEY, a] > facts[KEY, b]
    if facts[TREE, a] != facts[TREE, b]:
        return facts[TREE, a] < facts[TREE, b]
    for j in range(1, n + 1):
        rank = ranks[a, j] + (facts[CHILD_WORD, a] == j)
        other = ranks[b, j] + (facts[CHILD_WORD, b] == j)
        if rank != other:
            return rank < other
    return False


@exact_kernel
def _sift_up(place, n, ranks, values, facts):
    while place > 0:
        above = (place - 1) // 2
        if not _comes_first(facts[HEAP, place], facts[HEAP, above], n, ranks, values, facts):
            return
        facts[HEAP, place], facts[HEAP, above] = facts[HEAP, above], facts[HEAP, place]
        place = above


@exact_kernel
def _sift_down(size, n, ranks, values, facts):
    """Sift the labelling on top of the heap down."""
    place = 0
    while 2 * place + 1 < size:
        below = 2 * place + 1
        if below + 1 < size and _comes_first(facts[HEAP, below + 1], facts[HEAP, below], n, ranks, values, facts):
            below += 1
        if not _comes_first(facts[HEAP, below], facts[HEAP, place], n, ranks, values, facts):
            return
        facts[HEAP, place], facts[HEAP, below] = facts[HEAP, below], facts[HEAP, place]
        place = below
