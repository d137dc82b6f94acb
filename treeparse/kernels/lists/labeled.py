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

from typing import NamedTuple, Self

import numpy as np

from treeparse.kernels.arrays import FloatArray, IntArray
from treeparse.kernels.compile import exact_kernel
from treeparse.kernels.threads import run_batch
from treeparse.kernels.ties import tree_key

COUNTS = 3  # of every item:
TREES, LABELINGS, WAITING = range(COUNTS)  # trees looked at, labellings made, waiting children


class Labelings(NamedTuple):
    """The labelled trees so far, of all items, or of one without the first axis; K is their capacity."""

    trees: IntArray  # (B, K) which tree of the list; -1 past the last labelled tree
    ranks: IntArray  # (B, K, n+1) of every word's label
    scores: FloatArray  # (B, K) -inf past the last labelled tree
    keys: IntArray  # (B, K) the tree's summed arc keys
    raised: IntArray  # (B, K) the last word whose rank is above 0, 1 if there is none
    child_words: IntArray  # (B, K) the word that the waiting child raises
    child_scores: FloatArray  # (B, K)
    heap: IntArray  # (B, K) labellings by their waiting children, the first on top

    @classmethod
    def empty(cls, items: int, nodes: int) -> Self:
        """Return a list with capacity 0."""
        numbers, scores = np.empty((items, 0), np.int64), np.empty((items, 0))
        ranks = np.empty((items, 0, nodes), np.int64)
        return cls(numbers, ranks, scores, numbers, numbers, numbers, scores, numbers)

    def with_room(self, count: int) -> Self:
        """Return the same labelled trees with capacity ``count``."""
        fills = -1, 0, -np.inf, 0, 0, 0, 0.0, 0
        return type(self)(*(_padded(array, count, fill) for array, fill in zip(self, fills, strict=True)))


class LabeledTrees:
    """A growing list of the best labelled trees of a batch.

    Args:
        lengths: ``(B,)`` numbers of words.
        nodes: n + 1.
    """

    def __init__(self, lengths: IntArray, nodes: int) -> None:
        self._lengths = np.ascontiguousarray(lengths)
        self._made = Labelings.empty(len(lengths), nodes)
        self._counts = np.zeros((len(lengths), COUNTS), np.int64)

    @property
    def trees(self) -> IntArray:
        """The index of each labelled tree in the list of trees ``(B, K)``, -1 past the last."""
        return self._made.trees

    @property
    def ranks(self) -> IntArray:
        """The ranks of the words' labels ``(B, K, n+1)``."""
        return self._made.ranks

    @property
    def scores(self) -> FloatArray:
        """Summed scores ``(B, K)``, descending, -inf past the last."""
        return self._made.scores

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
        if count > self.scores.shape[1]:
            self._made = self._made.with_room(count)
        starved = np.zeros(len(heads), np.bool_)
        others = np.zeros(heads.shape[:2]) if others is None else others
        given = (np.ascontiguousarray(array) for array in (heads, rows, values, others))
        arguments = count, *given, self._made, self._counts, starved
        run_batch(_extend, lambda n: count * n**2, self._lengths, *arguments, threads=threads)
        return bool(starved.any())


def _padded(array: np.ndarray, count: int, fill: float) -> np.ndarray:
    result = np.full((len(array), count, *array.shape[2:]), fill, array.dtype)
    result[:, : array.shape[1]] = array
    return result


@exact_kernel
def _extend(start, stop, lengths, count, heads, rows, values, others, made, counts, starved):
    sums = np.empty(heads.shape[2])
    for b in range(start, stop):
        item = Labelings(
            made.trees[b],
            made.ranks[b],
            made.scores[b],
            made.keys[b],
            made.raised[b],
            made.child_words[b],
            made.child_scores[b],
            made.heap[b],
        )
        starved[b] = _extend_item(lengths[b], count, heads[b], rows[b], values, others[b], item, counts[b], sums)


@exact_kernel
def _extend_item(n, count, heads, rows, values, others, made, counts, sums):
    """Whether the list of trees ended too early."""
    while counts[LABELINGS] < count:
        tree, new = counts[TREES], counts[LABELINGS]
        if tree == len(heads):
            return True
        exists = heads[tree, 1] >= 0 if n > 0 else tree == 0
        if exists and _take_tree(tree, new, n, heads[tree], rows[tree], values, others, made, counts):
            counts[TREES] += 1
        elif counts[WAITING]:
            _take_child(new, n, rows, values, others, made, counts, sums)
        else:
            return False
        counts[LABELINGS] += 1
        if _find_child(new, n, rows, values, others, made, np.inf, n + 1, sums):
            made.heap[counts[WAITING]] = new
            counts[WAITING] += 1
            _sift_up(counts[WAITING] - 1, n, made)
    return False


@exact_kernel
def _take_tree(tree, new, n, heads, rows, values, others, made, counts):
    """Make the next tree under its best labels labelling ``new``, unless a waiting child comes before it."""
    score = others[tree]
    for j in range(1, n + 1):
        score += values[rows[j], 0]
    key = tree_key(heads, n)
    if counts[WAITING]:
        first = made.heap[0]
        waiting = made.child_scores[first]
        if score < waiting or (score == waiting and key <= made.keys[first]):
            return False
    made.trees[new], made.scores[new], made.keys[new] = tree, score, key
    made.ranks[new] = 0
    made.raised[new] = 1
    return True


@exact_kernel
def _take_child(new, n, rows, values, others, made, counts, sums):
    """Make the first of the waiting children labelling ``new``; its next sibling waits instead, if there is one."""
    parent = made.heap[0]
    word, score = made.child_words[parent], made.child_scores[parent]
    made.trees[new], made.scores[new], made.keys[new] = made.trees[parent], score, made.keys[parent]
    for j in range(made.ranks.shape[1]):
        made.ranks[new, j] = made.ranks[parent, j]
    made.ranks[new, word] += 1
    made.raised[new] = word
    if not _find_child(parent, n, rows, values, others, made, score, word, sums):
        counts[WAITING] -= 1
        made.heap[0] = made.heap[counts[WAITING]]
    _sift_down(counts[WAITING], n, made)


@exact_kernel
def _find_child(parent, n, rows, values, others, made, score, word, sums):
    """Find a labelling's best child after that of ``score``, which raises ``word``; returns whether there is one.

    Among equal scores a child that raises a later word comes first, as its ranks do.
    """
    rows, ranks, first = rows[made.trees[parent]], made.ranks[parent], made.raised[parent]
    last_rank = values.shape[1] - 1
    total = others[made.trees[parent]]
    for j in range(1, n + 1):
        value = values[rows[j], ranks[j]]
        for raised in range(first, j):
            sums[raised] += value
        if j >= first:
            sums[j] = total + (values[rows[j], ranks[j] + 1] if ranks[j] < last_rank else -np.inf)
        total += value
    best, choice = -np.inf, 0
    for j in range(n, first - 1, -1):
        if sums[j] > best and (sums[j] < score or (sums[j] == score and j < word)):
            best, choice = sums[j], j
    made.child_scores[parent], made.child_words[parent] = best, choice
    return choice > 0


@exact_kernel
def _comes_first(a, b, n, made):
    """Whether the waiting child of labelling ``a`` comes before that of ``b``."""
    if made.child_scores[a] != made.child_scores[b]:
        return made.child_scores[a] > made.child_scores[b]
    if made.keys[a] != made.keys[b]:
        return made.keys[a] > made.keys[b]
    if made.trees[a] != made.trees[b]:
        return made.trees[a] < made.trees[b]
    for j in range(1, n + 1):
        rank = made.ranks[a, j] + (made.child_words[a] == j)
        other = made.ranks[b, j] + (made.child_words[b] == j)
        if rank != other:
            return rank < other
    return False


@exact_kernel
def _sift_up(place, n, made):
    heap = made.heap
    while place > 0:
        above = (place - 1) // 2
        if not _comes_first(heap[place], heap[above], n, made):
            return
        heap[place], heap[above] = heap[above], heap[place]
        place = above


@exact_kernel
def _sift_down(size, n, made):
    """Sift the labelling on top of the heap down."""
    heap = made.heap
    place = 0
    while 2 * place + 1 < size:
        below = 2 * place + 1
        if below + 1 < size and _comes_first(heap[below + 1], heap[below], n, made):
            below += 1
        if not _comes_first(heap[below], heap[place], n, made):
            return
        heap[place], heap[below] = heap[below], heap[place]
        place = below
