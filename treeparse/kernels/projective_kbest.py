"""The K best projective trees, exactly and lazily: Huang and Chiang 2005, algorithm 3, over Eisner's chart.

Every tree is one derivation of the whole sentence's span (see ``eisner``), so the list of that span's derivations is
the list of trees. Only the chart of best scores is filled beforehand; all else is found when it is needed, and kept.
"""

import numpy as np

from treeparse.kernels._compile import FloatArray, IntArray, jit, run_batch
from treeparse.kernels._derivations import (
    FIRST,
    NEXT,
    NONE,
    SECOND,
    SPAN,
    SPLIT,
    UNKNOWN,
    best_derivation,
    find_next,
    half_of,
    has_room,
)
from treeparse.kernels.eisner import INNER, RIGHT, all_arc_keys, cells, fill_chart, parts_of_span, span

# Of a batch item: trees made; the last one's derivation; derivations in the pool; whether the pool ran out.
MADE, LAST, USED, FULL = range(4)
ROOM_A_WORD = 64  # derivations, in a new pool; memory that is never used is never taken
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
        self._state = np.zeros((batch, 4), np.int64)
        self._spans = _starts((lengths + 1) * (lengths + 2) // 2)  # where every item's cells begin, of one kind
        total = int(self._spans[-1])
        self._charts = np.empty(4 * total), np.empty(4 * total, np.int64), np.full(3 * total, UNKNOWN)
        self._arc_keys = all_arc_keys(size - 1)
        self._rooms = _starts(ROOM_A_WORD * (self._lengths + 1))  # where every item's pool begins
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
        if self._made == 0:
            run_batch(_fill_charts, lambda n: n**3, self._lengths, items, self._single_root, threads=threads)
        steps = STEPS_A_WORD * (count - self._made)
        self._state[:, FULL] = True
        while self._state[:, FULL].any():
            lists = count, self._state, self._heads, self._tree_scores
            run_batch(
                _extend, lambda n: steps * n, self._lengths, items, self._rooms, self._pools, *lists, threads=threads
            )
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
        for b, used in enumerate(self._state[:, USED]):
            for old, new in zip(old_pools, self._pools, strict=True):
                new[self._rooms[b] : self._rooms[b] + used] = old[old_rooms[b] : old_rooms[b] + used]


def _starts(sizes: IntArray) -> IntArray:
    """Where blocks of these sizes begin one after the other, and where the last one ends."""
    return np.concatenate(([0], np.cumsum(sizes)))


def _new_pools(room: int) -> tuple[FloatArray, IntArray, IntArray]:
    """Room for the scores, the keys and the links of so many derivations."""
    return np.empty(room), np.empty(room, np.int64), np.empty((room, 8), np.int64)


@jit
def _item(b, n, items):
    """What belongs to one batch item: scores, their chart, keys, theirs, and the spans' best derivations."""
    scores, arc_keys, spans, charts, key_charts, best = items
    begin, end = spans[b], spans[b + 1]
    chart = charts[4 * begin : 4 * end].reshape(4, cells(n))
    keys = key_charts[4 * begin : 4 * end].reshape(4, cells(n))
    return scores[b], chart, arc_keys, keys, best[3 * begin : 3 * end].reshape(3, cells(n))


@jit
def _fill_charts(start, stop, lengths, items, single_root):
    for b in range(start, stop):
        scores, chart, arc_keys, keys, _ = _item(b, lengths[b], items)
        fill_chart(scores, lengths[b], single_root, chart, arc_keys, keys)


@jit
def _extend(start, stop, lengths, items, rooms, pools, count, state, heads, tree_scores):
    values, keys, links = pools
    stack = np.empty(2 * heads.shape[2], np.int64)
    for b in range(start, stop):
        if state[b, FULL]:
            begin, end = rooms[b], rooms[b + 1]
            pool = values[begin:end], keys[begin:end], links[begin:end], state[b, USED : USED + 1]
            item = _item(b, lengths[b], items)
            fits = _extend_item(lengths[b], item, pool, count, state[b], stack, heads[b], tree_scores[b])
            state[b, FULL] = not fits


@jit
def _extend_item(n, item, pool, count, state, stack, heads, tree_scores):
    """Bring the list of one item to ``count`` trees or its end; False if the pool ran out."""
    scores, links = item[0], pool[2]
    while state[MADE] < count:
        if not has_room(n, pool):
            return False
        if state[MADE] == 0:
            derivation = best_derivation(span(RIGHT, 0, n), item, pool)
        else:
            if not find_next(state[LAST], n, item, pool, stack):
                return False
            derivation = links[state[LAST], NEXT]
        if derivation == NONE:
            return True
        if not _write_heads(derivation, n, item, pool, stack, heads[state[MADE]]):
            return False
        total = 0.0
        for j in range(1, n + 1):
            total += scores[heads[state[MADE], j], j]
        tree_scores[state[MADE]] = total
        state[LAST] = derivation
        state[MADE] += 1
    return True


@jit
def _write_heads(derivation, n, item, pool, stack, heads):
    """Write the heads of a tree; False if the pool ran out, and then it is to be done again."""
    links = pool[2]
    stack[0] = derivation
    depth = 1
    while depth > 0:
        if not has_room(n, pool):
            return False
        depth -= 1
        derivation = stack[depth]
        kind, i, j = parts_of_span(links[derivation, SPAN])
        if kind != INNER:
            heads[links[derivation, SPLIT]] = i if kind == RIGHT else j
        for which in (FIRST, SECOND):
            half = half_of(derivation, which, item, pool)
            if half != NONE:
                stack[depth] = half
                depth += 1
    return True
