"""The K best projective trees, exactly and lazily: Huang and Chiang 2005, algorithm 3, over ``kernels.spans``.

Every tree is one derivation of the whole sentence's span, so the list of that span's derivations is the list of trees.
Only the chart of best scores is filled beforehand; all else is computed when it is needed, and stored.
"""

from typing import NamedTuple, Self

import numpy as np

from treeparse.kernels.arrays import FloatArray, IntArray
from treeparse.kernels.best import eisner
from treeparse.kernels.best.spans import fill_by_keys
from treeparse.kernels.compile import exact_kernel
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
from treeparse.kernels.spans import (
    ARCS,
    FULL,
    KINDS,
    MID,
    ScoredSentence,
    arc_of,
    cells_of,
    score_of_tree,
    whole,
)
from treeparse.kernels.threads import run_batch
from treeparse.kernels.ties import arc_keys

FACTS = 3
MADE, LAST, FULL_POOL = range(
    FACTS
)  # of a batch item: the trees made, the last one's derivation, whether its pool is full
ROOM_A_WORD = 64  # derivations in a pool at first; memory that is not used is not taken
STEPS_A_WORD = 300  # about what one more tree costs


class AllCharts(NamedTuple):
    """The ``Charts`` of all items; the charts of spans are one after the other."""

    order: int
    single_root: bool
    arcs: FloatArray  # (B, n+1, n+1)
    siblings: FloatArray  # (B, n+1, n+1, n+1) or, like the next one, (B, 0, 0, 0)
    grandparents: FloatArray
    arc_keys: IntArray  # (n+1, n+1)
    begins: IntArray  # (B + 1,) where every item's spans begin
    scores: FloatArray  # (C,)
    keys: IntArray  # (C,)
    best: IntArray  # (C,)

    @classmethod
    def empty(cls, arcs: FloatArray, others: tuple[FloatArray, ...], lengths: IntArray, *, single_root: bool) -> Self:
        """Return empty charts of the spans of these items, and copies of their scores."""
        order, nothing = ARCS + len(others), (np.empty((len(arcs), 0, 0, 0)),) * 2
        siblings, grandparents = (*(part.astype(np.float64) for part in others), *nothing)[:2]
        begins = _begins_of(_cells_of(lengths, order))
        charts = np.empty(begins[-1]), np.empty(begins[-1], np.int64), np.full(begins[-1], UNKNOWN)
        keys = arc_keys(arcs.shape[1])
        return cls(order, single_root, arcs.copy(), siblings, grandparents, keys, begins, *charts)


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
        arcs: scores ``(B, n+1, n+1)``, which, like others, are copied.
        lengths: ``(B,)`` words.
        others: scores ``(B, n+1, n+1, n+1)`` of siblings, and after them of grandparents.
        single_root: whether exactly one word hangs from node 0.
    """

    def __init__(
        self, arcs: FloatArray, lengths: IntArray, *, others: tuple[FloatArray, ...] = (), single_root: bool
    ) -> None:
        batch, size = arcs.shape[:2]
        self._lengths = lengths.copy()
        self._made = 0
        self._heads, self._tree_scores = np.empty((batch, 0, size), np.int64), np.empty((batch, 0))
        self._state = np.zeros((batch, FACTS), np.int64)
        self._charts = AllCharts.empty(arcs, others, lengths, single_root=single_root)
        self._pools = AllPools.empty(ROOM_A_WORD * (lengths + 1))

    @property
    def heads(self) -> IntArray:
        """``(B, K, n+1)``; -1 at node 0, at padding and past the number of trees."""
        return self._heads[:, : self._made]

    @property
    def scores(self) -> FloatArray:
        """``(B, K)``, sums over the words in order, of each kind of part; -inf past the number of trees."""
        return self._tree_scores[:, : self._made]

    def extend(self, count: int, threads: int = 1) -> None:
        """Extend the list of every item to ``count`` trees, or to all that it has."""
        if count <= self._made:
            return
        self._lengthen_lists(count)
        steps = STEPS_A_WORD * (count - self._made)
        if self._made == 0:
            run_batch(_begin, lambda n: n**3, self._lengths, self._charts, self._pools, threads=threads)
        self._state[:, FULL_POOL] = True
        while self._state[:, FULL_POOL].any():
            go_on = self._charts, self._pools, count, self._state, self._heads, self._tree_scores
            run_batch(_extend, lambda n: steps * n, self._lengths, *go_on, threads=threads)
            if self._state[:, FULL_POOL].any():
                self._pools = self._pools.enlarged(self._state[:, FULL_POOL] == 1)
        self._made = count

    def _lengthen_lists(self, count: int) -> None:
        batch, old, size = self._heads.shape
        if count > old:
            heads, tree_scores = self._heads, self._tree_scores
            self._heads = np.full((batch, max(count, 2 * old), size), -1)
            self._tree_scores = np.full(self._heads.shape[:2], -np.inf)
            self._heads[:, :old], self._tree_scores[:, :old] = heads, tree_scores


@exact_kernel
def _cells_of(lengths, order):
    """Return the number of cells of every item."""
    result = np.empty(len(lengths), np.int64)
    nothing, of_parts = np.empty((0, 0)), np.empty((0, 0, 0))
    for b in range(len(lengths)):
        result[b] = cells_of(ScoredSentence(lengths[b], order, False, nothing, of_parts, of_parts))
    return result


def _begins_of(sizes: IntArray) -> IntArray:
    """Return the first index of each of consecutive blocks of these sizes, and the end of the last one."""
    return np.concatenate(([0], np.cumsum(sizes)))


@exact_kernel
def _charts_of(b, n, charts):
    """Return the charts of one item."""
    begin, end = charts.begins[b], charts.begins[b + 1]
    scores = charts.arcs[b], charts.siblings[b], charts.grandparents[b]
    sentence = ScoredSentence(n, charts.order, charts.single_root, *scores)
    return Charts(sentence, charts.scores[begin:end], charts.arc_keys, charts.keys[begin:end], charts.best[begin:end])


@exact_kernel
def _pool_of(b, pools):
    """Return the pool of one item."""
    begin, end = pools.begins[b], pools.begins[b + 1]
    return Pool(pools.values[begin:end], pools.links[begin:end])


@exact_kernel
def _begin(start, stop, lengths, all_charts, all_pools):
    """Fill the charts and clear the pools."""
    size = all_charts.arcs.shape[1] if all_charts.order == ARCS else 0
    buffer, key_buffer = np.empty(eisner.KINDS * size * size), np.empty(eisner.KINDS * size * size, np.int64)
    for b in range(start, stop):
        n, charts = lengths[b], _charts_of(b, lengths[b], all_charts)
        if all_charts.order == ARCS:
            chart, keys = eisner.chart_of(buffer, eisner.KINDS, n), eisner.chart_of(key_buffer, eisner.KINDS, n)
            eisner.fill_chart(charts.sentence.arcs, n, all_charts.single_root, chart, charts.arc_keys, keys)
            _copy_chart(chart, n, charts.scores)
            _copy_chart(keys, n, charts.keys)
        else:
            fill_by_keys(charts.sentence, charts.arc_keys, charts.scores, charts.keys)
        clear(_pool_of(b, all_pools))


@exact_kernel
def _copy_chart(chart, n, cells):
    """Copy Eisner's chart, ``[kind, last, first]``, to cells of spans."""
    spans = cells.reshape(KINDS, n + 1, n + 1)
    for j in range(n + 1):
        spans[FULL, j, j] = 0
        for i in range(j):
            spans[FULL, i, j], spans[FULL, j, i] = chart[eisner.RIGHT, j, i], chart[eisner.LEFT, j, i]
            spans[MID, i, j] = chart[eisner.BETWEEN, j, i]


@exact_kernel
def _extend(start, stop, lengths, all_charts, all_pools, count, state, heads, tree_scores):
    """Extend the lists of items whose pool was full to ``count`` trees or to their end."""
    stack = np.empty(4 * heads.shape[2], np.int64)
    for b in range(start, stop):
        if state[b, FULL_POOL]:
            charts, pool = _charts_of(b, lengths[b], all_charts), _pool_of(b, all_pools)
            state[b, FULL_POOL] = not _extend_item(charts, pool, count, state[b], stack, heads[b], tree_scores[b])


@exact_kernel
def _extend_item(charts, pool, count, state, stack, heads, tree_scores):
    """Extend the list of one item to ``count`` trees or to its end; return False if the pool is full."""
    sentence = charts.sentence
    if sentence.words == 0:  # the empty tree, which has no derivation
        tree_scores[0], state[MADE] = 0.0, 1
        return True
    while state[MADE] < count:
        if state[MADE] == 0:
            has_first = has_room(sentence.words, pool.links)
            derivation = best_derivation(whole(sentence), charts, pool) if has_first else UNKNOWN
        else:
            find_next(state[LAST], charts, pool, stack)
            derivation = pool.links[state[LAST], NEXT]
        if derivation == NONE:
            return True
        made = state[MADE]
        if derivation == UNKNOWN or not _write_heads(derivation, charts, pool, stack, heads[made]):
            return False
        tree_scores[made] = score_of_tree(sentence, heads[made])
        state[LAST] = derivation
        state[MADE] += 1
    return True


@exact_kernel
def _write_heads(derivation, charts, pool, stack, heads):
    """Write the heads of a tree; return False if the pool is full, and then call it again with a larger one."""
    links = pool.links
    stack[0] = derivation
    depth = 1
    while depth > 0:
        if not has_room(charts.sentence.words, links):
            return False
        depth -= 1
        derivation = stack[depth]
        head, dependent = arc_of(charts.sentence, links[derivation, SPAN], links[derivation, SPLIT])
        if dependent > 0:
            heads[dependent] = head
        for which in (FIRST, SECOND):
            if links[derivation, which] == UNKNOWN:
                look_up_half(derivation, which, charts, pool)
            stack[depth] = links[derivation, which]
            depth += stack[depth] != NONE
    return True
