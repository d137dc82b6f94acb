"""The K best projective trees, exactly and lazily: Huang and Chiang 2005, algorithm 3, over ``kernels.spans``.

Every tree is one derivation of the whole sentence's span, so the list of that span's derivations is the list of trees.
Only the chart of best scores is filled beforehand; all else is computed when it is needed, and stored.
"""

import numpy as np

from treeparse.kernels import FloatArray, IntArray, lengthened
from treeparse.kernels.best import eisner
from treeparse.kernels.best.best_spans import (
    SPLIT_LINES,
    add_split_keys,
    fill_by_keys,
    score_splits,
    splits_of,
)
from treeparse.kernels.compile import exact_kernel
from treeparse.kernels.lists.derivations import (
    BEST,
    DEPTH,
    DONE,
    FIRST,
    KEYS,
    LINKS,
    NEXT,
    NONE,
    SECOND,
    SPAN,
    SPLIT,
    UNKNOWN,
    USED,
    add_best,
    clear,
    find_next,
    has_room,
    look_up_halves,
)
from treeparse.kernels.spans import (
    ARCS,
    FULL,
    KINDS,
    MID,
    SentenceShape,
    arc_of,
    cell,
    cells_of,
    contexts_of,
    parts_of_span,
    score_of_tree,
    span,
    three_parts,
    whole,
)
from treeparse.kernels.threads import run_batch
from treeparse.kernels.ties import arc_keys

# Of a batch item: the trees made, the last one's derivation, and whether its pool is full.
FACTS = 3
MADE, LAST, FULL_POOL = range(FACTS)
ROOM_A_WORD = 64  # derivations in a pool at first; memory that is not used is not taken
STEPS_A_WORD = 300  # about what one more tree costs


class ProjectiveKBest:
    """The best projective trees of every item of a batch, best first and distinct: a list that grows.

    Args:
        arcs: scores ``(B, n+1, n+1)``, which, like others, are copied.
        lengths: ``(B,)`` words.
        others: scores ``(B, n+1, n+1, n+1)`` of siblings, and after them of grandparents.
        single_root: whether exactly one word hangs from node 0.

    Attributes:
        heads: ``(B, K, n+1)``; -1 at node 0, at padding and past the number of trees.
        scores: ``(B, K)``, sums over the words in order, of each kind of part; -inf past the number of trees.
    """

    def __init__(
        self, arcs: FloatArray, lengths: IntArray, *, others: tuple[FloatArray, ...] = (), single_root: bool
    ) -> None:
        batch, size = arcs.shape[:2]
        self._lengths, self._single_root = lengths.copy(), single_root
        self._order, self._parts = ARCS + len(others), three_parts(part.copy() for part in (arcs, *others))
        self.heads: IntArray = np.empty((batch, 0, size), np.int64)
        self.scores: FloatArray = np.empty((batch, 0))
        self._state = np.zeros((batch, FACTS), np.int64)
        # The charts and pools of all items, one after the other, and where each begins.
        self._chart_begins = _begins_of(_count_cells(lengths, self._order))
        self._span_scores = np.empty(self._chart_begins[-1])
        self._cells = np.full((2, self._chart_begins[-1]), UNKNOWN)
        self._pool_begins = _begins_of(ROOM_A_WORD * (lengths + 1))
        self._values = np.empty((self._pool_begins[-1], SPLIT_LINES))
        self._links = np.empty((self._pool_begins[-1], LINKS), np.int64)

    def extend(self, count: int, threads: int = 1) -> None:
        """Extend the list of every item to ``count`` trees, or to all that it has."""
        made = self.scores.shape[1]
        more = count - made
        if more <= 0:
            return
        self.heads, self.scores = lengthened(self.heads, more, 1, -1), lengthened(self.scores, more, 1, -np.inf)
        steps = STEPS_A_WORD * more
        scores = self._order, self._single_root, *self._parts, self._chart_begins, self._span_scores, self._cells
        if made == 0:
            pools = self._pool_begins, self._values, self._links
            run_batch(_begin, lambda n: n**3, self._lengths, *scores, *pools, threads=threads)
        self._state[:, FULL_POOL] = True
        while self._state[:, FULL_POOL].any():
            pools = self._pool_begins, self._values, self._links
            lists = self._state, self.heads, self.scores
            run_batch(_extend, lambda n: steps * n, self._lengths, *scores, *pools, count, *lists, threads=threads)
            self._enlarge_pools(self._state[:, FULL_POOL] == 1)

    def _enlarge_pools(self, full: np.ndarray) -> None:
        """Double the pools of the items ``(B,)`` whose pool is full, if there are any."""
        if not full.any():
            return
        begins = _begins_of(np.diff(self._pool_begins) * np.where(full, 2, 1))
        values, links = np.empty((begins[-1], SPLIT_LINES)), np.empty((begins[-1], LINKS), np.int64)
        for old, new in zip(self._pool_begins[:-1], begins[:-1], strict=True):
            used = self._links[old, USED]
            values[new : new + used] = self._values[old : old + used]
            links[new : new + used] = self._links[old : old + used]
        self._pool_begins, self._values, self._links = begins, values, links


@exact_kernel
def _count_cells(lengths, order):
    """Return the number of cells of every item."""
    result = np.empty(len(lengths), np.int64)
    for b in range(len(lengths)):
        result[b] = cells_of(SentenceShape(lengths[b], order, False))
    return result


def _begins_of(sizes: IntArray) -> IntArray:
    """Return the first index of each of consecutive blocks of these sizes, and the end of the last one."""
    return np.concatenate(([0], np.cumsum(sizes)))


@exact_kernel
def _begin(
    start, stop, lengths, order, single_root, arcs, siblings, grandparents, charts, scores, cells, pools, values, links
):
    """Fill the charts and clear the pools."""
    nodes, size = arcs.shape[1], arcs.shape[1] if order == ARCS else 0
    keys_of_arcs, splits, keys = arc_keys(size), np.empty((SPLIT_LINES, nodes)), np.empty(nodes, np.int64)
    buffer, key_buffer = np.empty(eisner.KINDS * size * size), np.empty(eisner.KINDS * size * size, np.int64)
    for b in range(start, stop):
        n, begin, end = lengths[b], charts[b], charts[b + 1]
        shape = SentenceShape(n, order, single_root)
        if order == ARCS:
            chart, key_chart = eisner.chart_of(buffer, eisner.KINDS, n), eisner.chart_of(key_buffer, eisner.KINDS, n)
            eisner.fill_chart(arcs[b], n, single_root, chart, keys_of_arcs, key_chart)
            _copy_chart(chart, n, scores[begin:end].reshape(KINDS, n + 1, n + 1))
            _copy_chart(key_chart, n, cells[KEYS, begin:end].reshape(KINDS, n + 1, n + 1))
        else:
            fill_by_keys(
                shape,
                arcs[b],
                siblings[b],
                grandparents[b],
                scores[begin:end],
                cells[:, begin:end],
                splits,
                keys,
            )
        for context in range(contexts_of(shape)):
            for j in range(n + 1):
                cells[BEST, begin + cell(shape, span(FULL, context, j, j))] = NONE
        clear(values[pools[b] : pools[b + 1]], links[pools[b] : pools[b + 1]])


@exact_kernel
def _copy_chart(chart, n, spans):
    """Copy Eisner's chart, ``[kind, last, first]``, to spans ``[kind, head, last]``."""
    for j in range(n + 1):
        spans[FULL, j, j] = 0
        for i in range(j):
            spans[FULL, i, j], spans[FULL, j, i] = chart[eisner.RIGHT, j, i], chart[eisner.LEFT, j, i]
            spans[MID, i, j] = chart[eisner.BETWEEN, j, i]


@exact_kernel
def _extend(
    start,
    stop,
    lengths,
    order,
    single_root,
    arcs,
    siblings,
    grandparents,
    charts,
    scores,
    cells,
    pools,
    values,
    links,
    count,
    state,
    heads,
    tree_scores,
):
    """Extend the lists of items whose pool was full to ``count`` trees or to their end."""
    size = heads.shape[2]
    stack, splits, keys = (np.empty(4 * size + 1, np.int64), np.empty((SPLIT_LINES, size)), np.empty(size, np.int64))
    for b in range(start, stop):
        if state[b, FULL_POOL]:
            state[b, FULL_POOL] = not _extend_item(
                SentenceShape(lengths[b], order, single_root),
                arcs[b],
                siblings[b],
                grandparents[b],
                scores[charts[b] : charts[b + 1]],
                cells[:, charts[b] : charts[b + 1]],
                values[pools[b] : pools[b + 1]],
                links[pools[b] : pools[b + 1]],
                splits,
                keys,
                stack,
                count,
                state[b],
                heads[b],
                tree_scores[b],
            )


@exact_kernel
def _extend_item(
    shape, arcs, siblings, grandparents, scores, cells, values, links, splits, keys, stack, count, state, heads, totals
):
    """Extend the list of one item to ``count`` trees or to its end; return False if the pool is full."""
    if shape.words == 0:  # the empty tree, which has no derivation
        totals[0], state[MADE] = 0.0, 1
        return True
    top, derivation, is_found, needed = cell(shape, whole(shape)), state[LAST], False, DONE
    if cells[BEST, top] == UNKNOWN:
        needed = whole(shape)
    stack[DEPTH], stack[1] = 1 if state[MADE] > 0 else 0, state[LAST]
    while state[MADE] < count:
        if needed >= 0 and has_room(shape.words, links):
            kind, context, h, m = parts_of_span(needed)
            where = splits_of(shape, needed)
            score_splits(shape.order, arcs, siblings, grandparents, kind, context, h, m, where, scores, splits)
            add_split_keys(shape, needed, where, cells, keys)
            cells[BEST, cell(shape, needed)] = add_best(needed, where.begin, where.end, splits, keys, values, links)
        elif needed != DONE:
            return False
        if is_found:
            needed = _write_heads(shape, cells, links, stack, heads[state[MADE]])
        else:
            needed = find_next(shape, cells, values, links, stack)
        if needed == DONE and is_found:
            totals[state[MADE]] = score_of_tree(shape, arcs, siblings, grandparents, heads[state[MADE]])
            state[MADE], state[LAST] = state[MADE] + 1, derivation
            is_found, stack[DEPTH], stack[1] = False, 1, derivation
        elif needed == DONE:
            derivation = links[state[LAST], NEXT] if state[MADE] > 0 else cells[BEST, top]
            if derivation == NONE:
                return True
            is_found, stack[DEPTH], stack[1] = True, 1, derivation
    return True


@exact_kernel
def _write_heads(shape, cells, links, stack, heads):
    """Write the heads of the tree whose derivation is on a stack; return ``DONE``, or as ``find_next``."""
    needed = DONE
    while stack[DEPTH] > 0 and needed == DONE:
        depth = stack[DEPTH]
        derivation = stack[depth]
        if links[derivation, FIRST] == UNKNOWN or links[derivation, SECOND] == UNKNOWN:
            needed = look_up_halves(derivation, shape, cells, links)
        if needed == DONE:
            head, dependent = arc_of(shape, links[derivation, SPAN], links[derivation, SPLIT])
            if dependent > 0:
                heads[dependent] = head
            depth -= 1
            for which in (FIRST, SECOND):
                if links[derivation, which] != NONE:
                    depth += 1
                    stack[depth] = links[derivation, which]
            stack[DEPTH] = depth
    return needed
