"""The K best projective trees, exactly and lazily: Huang and Chiang 2005, algorithm 3, over Eisner's chart.

Every tree is one derivation of the whole sentence's span (see ``eisner``), so the list of that span's derivations is
the list of trees. Only the chart of best scores is filled beforehand; all else is computed when it is needed, and
stored.
"""

from typing import NamedTuple, Self

import numpy as np

from treeparse.kernels.arrays import FloatArray, IntArray
from treeparse.kernels.best.eisner import (
    BETWEEN,
    KINDS,
    RIGHT,
    SPLIT_KINDS,
    chart_of,
    fill_chart,
    parts_of_span,
    span,
)
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
    Charts,
    Pool,
    best_derivation,
    clear,
    find_next,
    has_room,
    look_up_half,
)
from treeparse.kernels.threads import run_batch
from treeparse.kernels.ties import arc_keys

FACTS = 3
MADE, LAST, FULL = range(FACTS)  # of a batch item: the trees made, the last one's derivation, whether its pool is full
ROOM_A_WORD = 64  # derivations in a pool at first; memory that is not used is not taken
STEPS_A_WORD = 300  # about what one more tree costs


class AllCharts(NamedTuple):
    """The ``Charts`` of all items; the charts of spans are one after the other."""

    arcs: FloatArray  # (B, n+1, n+1)
    arc_keys: IntArray  # (n+1, n+1)
    begins: IntArray  # (B + 1,) where every item's spans of one kind begin
    scores: FloatArray  # (4 S,)
    keys: IntArray  # (4 S,)
    best: IntArray  # (3 S,)

    @classmethod
    def empty(cls, scores: FloatArray, lengths: IntArray) -> Self:
        """Return empty charts of the spans of these items."""
        begins = _begins_of((lengths + 1) ** 2)
        spans = int(begins[-1])
        charts = np.empty(KINDS * spans), np.empty(KINDS * spans, np.int64), np.full(SPLIT_KINDS * spans, UNKNOWN)
        return cls(scores.copy(), arc_keys(scores.shape[1]), begins, *charts)


class AllPools(NamedTuple):
    """The ``Pool`` of every item, one after the other."""

    begins: IntArray  # (B + 1,)
    values: FloatArray  # (R,)
    links: IntArray  # (R, 9)

    @classmethod
    def empty(cls, rooms: IntArray) -> Self:
        """Return empty pools for ``(B,)`` derivations an item."""
        begins = _begins_of(rooms)
        return cls(begins, np.empty(begins[-1]), np.empty((begins[-1], LINKS), np.int64))

    def enlarged(self, full: np.ndarray) -> Self:
        """Return pools of twice the size for the items ``(B,)`` whose pool is full."""
        result = self.empty(np.diff(self.begins) * np.where(full, 2, 1))
        for old, new in zip(self.begins[:-1], result.begins[:-1], strict=True):
            used = self.links[old, USED]
            result.values[new : new + used] = self.values[old : old + used]
            result.links[new : new + used] = self.links[old : old + used]
        return result


class ProjectiveKBest:
    """The best projective trees of every item of a batch, best first and distinct: a list that grows.

    Args:
        scores: ``(B, n+1, n+1)``, which are copied.
        lengths: ``(B,)`` words.
        single_root: whether exactly one word hangs from node 0.
    """

    def __init__(self, scores: FloatArray, lengths: IntArray, *, single_root: bool) -> None:
        batch, size = scores.shape[:2]
        self._lengths, self._single_root = lengths.copy(), single_root
        self._made = 0
        self._heads, self._tree_scores = np.empty((batch, 0, size), np.int64), np.empty((batch, 0))
        self._state = np.zeros((batch, FACTS), np.int64)
        self._charts, self._pools = AllCharts.empty(scores, lengths), AllPools.empty(ROOM_A_WORD * (lengths + 1))

    @property
    def heads(self) -> IntArray:
        """``(B, K, n+1)``; -1 at node 0, at padding and past the number of trees."""
        return self._heads[:, : self._made]

    @property
    def scores(self) -> FloatArray:
        """``(B, K)``, sums over the words in order; -inf past the number of trees."""
        return self._tree_scores[:, : self._made]

    def extend(self, count: int, threads: int = 1) -> None:
        """Extend the list of every item to ``count`` trees, or to all that it has."""
        if count <= self._made:
            return
        self._lengthen_lists(count)
        steps = STEPS_A_WORD * (count - self._made)
        if self._made == 0:
            begin = self._charts, self._single_root, self._pools
            run_batch(_begin, lambda n: n**3, self._lengths, *begin, threads=threads)
        self._state[:, FULL] = True
        while self._state[:, FULL].any():
            go_on = self._charts, self._pools, count, self._state, self._heads, self._tree_scores
            run_batch(_extend, lambda n: steps * n, self._lengths, *go_on, threads=threads)
            if self._state[:, FULL].any():
                self._pools = self._pools.enlarged(self._state[:, FULL] == 1)
        self._made = count

    def _lengthen_lists(self, count: int) -> None:
        batch, old, size = self._heads.shape
        if count > old:
            heads, tree_scores = self._heads, self._tree_scores
            self._heads = np.full((batch, max(count, 2 * old), size), -1)
            self._tree_scores = np.full(self._heads.shape[:2], -np.inf)
            self._heads[:, :old], self._tree_scores[:, :old] = heads, tree_scores


def _begins_of(sizes: IntArray) -> IntArray:
    """Return the first index of each of consecutive blocks of these sizes, and the end of the last one."""
    return np.concatenate(([0], np.cumsum(sizes)))


@jit
def _charts_of(b, n, charts):
    """Return the charts of one item."""
    begin = charts.begins[b]
    scores, keys = chart_of(charts.scores[KINDS * begin :], KINDS, n), chart_of(charts.keys[KINDS * begin :], KINDS, n)
    best = chart_of(charts.best[SPLIT_KINDS * begin :], SPLIT_KINDS, n)
    return Charts(charts.arcs[b], scores, charts.arc_keys, keys, best)


@jit
def _pool_of(b, pools):
    """Return the pool of one item."""
    begin, end = pools.begins[b], pools.begins[b + 1]
    return Pool(pools.values[begin:end], pools.links[begin:end])


@jit
def _begin(start, stop, lengths, all_charts, single_root, all_pools):
    """Fill the charts and clear the pools."""
    for b in range(start, stop):
        charts = _charts_of(b, lengths[b], all_charts)
        fill_chart(charts.arcs, lengths[b], single_root, charts.scores, charts.arc_keys, charts.keys)
        clear(_pool_of(b, all_pools))


@jit
def _extend(start, stop, lengths, all_charts, all_pools, count, state, heads, tree_scores):
    """Extend the lists of items whose pool was full to ``count`` trees or to their end."""
    stack = np.empty(2 * heads.shape[2], np.int64)
    for b in range(start, stop):
        if state[b, FULL]:
            n, charts, pool = lengths[b], _charts_of(b, lengths[b], all_charts), _pool_of(b, all_pools)
            state[b, FULL] = not _extend_item(n, charts, pool, count, state[b], stack, heads[b], tree_scores[b])


@jit
def _extend_item(n, charts, pool, count, state, stack, heads, tree_scores):
    """Extend the list of one item to ``count`` trees or to its end; return False if the pool is full."""
    while state[MADE] < count:
        if state[MADE] == 0:
            derivation = best_derivation(span(RIGHT, 0, n), charts, pool) if has_room(n, pool.links) else UNKNOWN
        else:
            find_next(state[LAST], n, charts, pool, stack)
            derivation = pool.links[state[LAST], NEXT]
        if derivation == NONE:
            return True
        made = state[MADE]
        if derivation == UNKNOWN or not _write_heads(derivation, n, charts, pool, stack, heads[made]):
            return False
        tree_scores[made] = _score(heads[made], n, charts.arcs)
        state[LAST] = derivation
        state[MADE] += 1
    return True


@jit
def _write_heads(derivation, n, charts, pool, stack, heads):
    """Write the heads of a tree; return False if the pool is full, and then call it again with a larger one."""
    links = pool.links
    stack[0] = derivation
    depth = 1
    while depth > 0:
        if not has_room(n, links):
            return False
        depth -= 1
        derivation = stack[depth]
        kind, i, j = parts_of_span(links[derivation, SPAN])
        if kind != BETWEEN:
            heads[links[derivation, SPLIT]] = i if kind == RIGHT else j
        for which in (FIRST, SECOND):
            if links[derivation, which] == UNKNOWN:
                look_up_half(derivation, which, charts, pool)
            stack[depth] = links[derivation, which]
            depth += stack[depth] != NONE
    return True


@jit
def _score(heads, n, arcs):
    """Return the sum of a tree's scores over its words in order."""
    total = 0.0
    for j in range(1, n + 1):
        total += arcs[heads[j], j]
    return total
