"""The K best projective trees, exactly and lazily: Huang and Chiang 2005, algorithm 3, over Eisner's chart.

Every tree is one derivation of the whole sentence's span (see ``eisner``), so the list of that span's derivations is
the list of trees. Only the chart of best scores is filled beforehand; all else is found when it is needed, and kept.
"""

import numpy as np

from treeparse.kernels.arrays import FloatArray, IntArray
from treeparse.kernels.best.eisner import INNER, RIGHT, chart_of, fill_chart, parts_of_span, span
from treeparse.kernels.compile import jit
from treeparse.kernels.lists.derivations import (
    FIRST,
    LINKS,
    NEXT,
    NONE,
    SECOND,
    SPAN,
    SPLIT,
    UNKNOWN,
    USED,
    best_derivation,
    clear_pool,
    find_next,
    has_room,
    look_up_half,
)
from treeparse.kernels.threads import run_batch
from treeparse.kernels.ties import arc_keys

MADE, LAST, FULL = range(3)  # of a batch item: the trees made, the last one's derivation, whether its pool is full
ROOM_A_WORD = 64  # derivations in a pool at first; memory that is not used is not taken
STEPS_A_WORD = 300  # about what one more tree costs


class ProjectiveKBest:
    """The best projective trees of every item of a batch, best first and distinct, as many as were asked for so far.

    Args:
        scores: ``(B, n+1, n+1)``; a copy is kept.
        lengths: ``(B,)`` words.
        single_root: whether exactly one word hangs from node 0.
    """

    def __init__(self, scores: FloatArray, lengths: IntArray, *, single_root: bool) -> None:
        batch, size = scores.shape[:2]
        self._scores, self._lengths, self._single_root = scores.copy(), lengths.copy(), single_root
        self._made = 0
        self._heads, self._tree_scores = np.empty((batch, 0, size), np.int64), np.empty((batch, 0))
        self._state = np.zeros((batch, 3), np.int64)
        self._arc_keys = arc_keys(size)
        self._spans = _starts((lengths + 1) ** 2)  # where every item's spans of one kind begin
        total = int(self._spans[-1])
        self._charts = np.empty(4 * total), np.empty(4 * total, np.int64), np.full(3 * total, UNKNOWN)
        self._rooms = _starts(ROOM_A_WORD * (lengths + 1))  # where every item's pool begins
        self._pools = _new_pools(int(self._rooms[-1]))

    @property
    def heads(self) -> IntArray:
        """``(B, made, n+1)``; -1 at node 0, at padding and past the number of trees."""
        return self._heads[:, : self._made]

    @property
    def scores(self) -> FloatArray:
        """``(B, made)``, sums over the words in order; -inf past the number of trees."""
        return self._tree_scores[:, : self._made]

    def extend(self, count: int, threads: int = 1) -> None:
        """Go on until ``count`` trees are made of every item that has so many."""
        if count <= self._made:
            return
        self._lengthen_lists(count)
        items = self._scores, self._arc_keys, self._spans, *self._charts
        steps = STEPS_A_WORD * (count - self._made)
        if self._made == 0:
            begin = items, self._single_root, self._rooms, self._pools
            run_batch(_begin, lambda n: n**3, self._lengths, *begin, threads=threads)
        self._state[:, FULL] = True
        while self._state[:, FULL].any():
            go_on = items, self._rooms, self._pools, count, self._state, self._heads, self._tree_scores
            run_batch(_extend, lambda n: steps * n, self._lengths, *go_on, threads=threads)
            self._enlarge_pools(self._state[:, FULL] == 1)
        self._made = count

    def _lengthen_lists(self, count: int) -> None:
        batch, old, size = self._heads.shape
        if count > old:
            heads, tree_scores = self._heads, self._tree_scores
            self._heads = np.full((batch, max(count, 2 * old), size), -1)
            self._tree_scores = np.full(self._heads.shape[:2], -np.inf)
            self._heads[:, :old], self._tree_scores[:, :old] = heads, tree_scores

    def _enlarge_pools(self, full: np.ndarray) -> None:
        """Twice the room for the items whose pool ran out."""
        if not full.any():
            return
        old_rooms, old_pools = self._rooms, self._pools
        self._rooms = _starts(np.diff(old_rooms) * np.where(full, 2, 1))
        self._pools = _new_pools(int(self._rooms[-1]))
        for old, new in zip(old_rooms[:-1], self._rooms[:-1], strict=True):
            used = old_pools[1][old, USED]
            for old_pool, pool in zip(old_pools, self._pools, strict=True):
                pool[new : new + used] = old_pool[old : old + used]


def _starts(sizes: IntArray) -> IntArray:
    """Where blocks of these sizes begin one after the other, and where the last one ends."""
    return np.concatenate(([0], np.cumsum(sizes)))


def _new_pools(room: int) -> tuple[FloatArray, IntArray]:
    """Room for so many derivations: their scores and their links."""
    return np.empty(room), np.empty((room, LINKS), np.int64)


@jit
def _item(b, n, items):
    """What belongs to one batch item: scores, their chart, arc keys, theirs, and the spans' best derivations."""
    scores, arc_keys, spans, charts, key_charts, best = items
    chart, keys = chart_of(charts[4 * spans[b] :], 4, n), chart_of(key_charts[4 * spans[b] :], 4, n)
    return scores[b], chart, arc_keys, keys, chart_of(best[3 * spans[b] :], 3, n)


@jit
def _begin(start, stop, lengths, items, single_root, rooms, pools):
    """Fill the charts and clear the pools."""
    values, links = pools
    for b in range(start, stop):
        scores, chart, arc_keys, keys, _ = _item(b, lengths[b], items)
        fill_chart(scores, lengths[b], single_root, chart, arc_keys, keys)
        clear_pool(values[rooms[b] : rooms[b + 1]], links[rooms[b] : rooms[b + 1]])


@jit
def _extend(start, stop, lengths, items, rooms, pools, count, state, heads, tree_scores):
    """Bring the lists of those whose pool was called full to ``count`` trees or to their end."""
    all_values, all_links = pools
    stack = np.empty(2 * heads.shape[2], np.int64)
    for b in range(start, stop):
        if state[b, FULL]:
            values, links = all_values[rooms[b] : rooms[b + 1]], all_links[rooms[b] : rooms[b + 1]]
            item, n = _item(b, lengths[b], items), lengths[b]
            state[b, FULL] = not _extend_item(n, item, values, links, count, state[b], stack, heads[b], tree_scores[b])


@jit
def _extend_item(n, item, values, links, count, state, stack, heads, tree_scores):
    """Bring the list of one item to ``count`` trees or to its end; False if the pool is full."""
    while state[MADE] < count:
        if state[MADE] == 0:
            derivation = best_derivation(span(RIGHT, 0, n), item, values, links) if has_room(n, links) else UNKNOWN
        else:
            find_next(state[LAST], n, item, values, links, stack)
            derivation = links[state[LAST], NEXT]
        if derivation == NONE:
            return True
        made = state[MADE]
        if derivation == UNKNOWN or not _write_heads(derivation, n, item, values, links, stack, heads[made]):
            return False
        tree_scores[made] = _score(heads[made], n, item[0])
        state[LAST] = derivation
        state[MADE] += 1
    return True


@jit
def _write_heads(derivation, n, item, values, links, stack, heads):
    """Write the heads of a tree; False if the pool is full, and then it is to be done again."""
    stack[0] = derivation
    depth = 1
    while depth > 0:
        if not has_room(n, links):
            return False
        depth -= 1
        derivation = stack[depth]
        kind, i, j = parts_of_span(links[derivation, SPAN])
        if kind != INNER:
            heads[links[derivation, SPLIT]] = i if kind == RIGHT else j
        for which in (FIRST, SECOND):
            if links[derivation, which] == UNKNOWN:
                look_up_half(derivation, which, item, values, links)
            stack[depth] = links[derivation, which]
            depth += stack[depth] != NONE
    return True


@jit
def _score(heads, n, scores):
    """The sum of a tree's scores over its words in order."""
    total = 0.0
    for j in range(1, n + 1):
        total += scores[heads[j], j]
    return total
