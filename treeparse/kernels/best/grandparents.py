"""Best projective trees with scores of siblings and of grandparents, in O(n^4) ([Lec]; Koo and Collins 2010).

The recurrences are those of ``treeparse.kernels.sums.grandparents``, with maxima of summed scores in the place of sums
of products, and rows of contexts as there. The chart is that of ``spans``.
"""

from typing import Any

import numpy as np

from treeparse.kernels import ties
from treeparse.kernels.arrays import AnyFloatArray, FloatArray, IntArray
from treeparse.kernels.best.spans import fill_by_keys, read_tree
from treeparse.kernels.compile import jit, lent_jit
from treeparse.kernels.copies import copy_short
from treeparse.kernels.rows import fill_row, over_rows
from treeparse.kernels.spans import ARC, FULL, GRANDPARENTS, MID, ScoredSentence, cells_of, contexts_width, row_of
from treeparse.kernels.threads import run_batch


def best_trees(
    arcs: FloatArray,
    siblings: AnyFloatArray,
    grandparents: AnyFloatArray,
    lengths: IntArray,
    *,
    single_root: bool,
    items: IntArray | None = None,
    threads: int = 1,
) -> IntArray:
    """Return heads of the best trees ``(B, n+1)``, -1 at node 0, at padding, and where an item has no tree.

    Scores are ``(B, n+1, n+1)`` of arcs and ``(B, n+1, n+1, n+1)`` of siblings and of grandparents, these two float32
    or both float64. With ``items`` ``(B,)``, item b has the scores of other parts than arcs of index ``items[b]``.
    """
    heads = np.full(arcs.shape[:2], -1)
    items = np.arange(len(lengths)) if items is None else items
    arguments = lengths, items, arcs, siblings, grandparents, single_root, heads
    run_batch(_best_trees, lambda n: n**4 / 2, *arguments, threads=threads)
    return heads


@jit
def _best_trees(start, stop, lengths, items, arcs, siblings, grandparents, single_root, heads):
    size = arcs.shape[1]
    stack, arc_keys, row = np.empty(4 * size, np.int64), np.empty((0, 0), np.int64), np.empty(contexts_width(size))
    chart = np.empty(0)
    for b in range(start, stop):
        others = siblings[items[b]], grandparents[items[b]]
        sentence = ScoredSentence(lengths[b], GRANDPARENTS, single_root, arcs[b], *others)
        cells = cells_of(sentence)
        if cells > len(chart):
            chart = np.empty(cells)
        if not _fill(sentence, chart, row) or read_tree(sentence, arc_keys, chart, None, stack, heads[b]):
            continue
        if len(arc_keys) == 0:
            arc_keys = ties.arc_keys(size)
        keys = np.empty(cells, np.int64)
        fill_by_keys(sentence, arc_keys, chart[:cells], keys)
        read_tree(sentence, arc_keys, chart[:cells], keys, stack, heads[b])


@over_rows(2, 1)
def _raise_row(builder: Any, best: Any, row: Any, numbers: Any, inside: Any) -> Any:
    """``_raise_row(best, at, row, row_at, number, count)``: raise a row to another one plus a number."""
    return (_larger(builder, best, builder.fadd(row, numbers)),)


@over_rows(3, 3)
def _raise_rows(
    builder: Any, arcs: Any, fulls: Any, row: Any, mids: Any, siblings: Any, numbers: Any, inside: Any
) -> Any:
    """``_raise_rows(arcs, at, fulls, fulls_at, row, row_at, mid, sibling, number, count)``: raise two rows to a third.

    The first one is raised to the third plus ``mid`` and ``sibling``, the second one to the third plus ``number``.
    """
    arcs = _larger(builder, arcs, builder.fadd(builder.fadd(row, mids), siblings))
    return arcs, _larger(builder, fulls, builder.fadd(row, numbers))


@over_rows(3)
def _raise_to_sum(builder: Any, best: Any, x: Any, y: Any, inside: Any) -> Any:
    """``_raise_to_sum(best, at, x, x_at, y, y_at, count)``: raise a row to the sum of two others."""
    return (_larger(builder, best, builder.fadd(x, y)),)


@over_rows(2, 1)
def _add_to_row(builder: Any, row: Any, added: Any, numbers: Any, inside: Any) -> Any:
    """``_add_to_row(row, at, added, added_at, number, count)``: add another row plus a number to a row."""
    return (builder.fadd(row, builder.fadd(numbers, added)),)


def _larger(builder: Any, best: Any, scores: Any) -> Any:
    return builder.select(builder.fcmp_ordered(">", scores, best), scores, best)


@lent_jit
def _fill(sentence, chart, row):
    """Fill the chart; return whether there is a tree."""
    n, width = sentence.words, contexts_width(sentence.words)
    for j in range(n + 1):
        fill_row(chart, row_of(n, FULL, j, j), 0.0, width)
    for count in range(1, n + 1):
        for i in range(n + 1 - count):
            j = i + count
            _fill_arc(sentence, i, j, i == 0 and sentence.single_root, chart, row)
            if i > 0:
                _fill_arc(sentence, j, i, False, chart, row)
                mid = row_of(n, MID, i, j)
                fill_row(chart, mid, -np.inf, width)
                for r in range(i, j):
                    _raise_to_sum(chart, mid, chart, row_of(n, FULL, i, r), chart, row_of(n, FULL, j, r + 1), width)
    return chart[row_of(n, FULL, 0, n)] > -np.inf


@lent_jit
def _fill_arc(sentence, h, m, only_one, chart, row):
    """Fill the spans ARC and FULL of head h up to m; with ``only_one`` h has no second dependent."""
    n, width, step = sentence.words, contexts_width(sentence.words), 1 if h < m else -1
    arc, full = row_of(n, ARC, h, m), row_of(n, FULL, h, m)
    first = chart[row_of(n, FULL, m, h + step) + h] + sentence.siblings[h, m, h]
    fill_row(chart, arc, first, width)
    fill_row(chart, full, -np.inf, width)
    for k in range(h + step, m, step):
        shorter, below = row_of(n, ARC, h, k), chart[row_of(n, FULL, k, m) + h]
        if not only_one:
            mid, sibling = chart[row_of(n, MID, min(k, m), max(k, m)) + h], np.float64(sentence.siblings[h, m, k])
            _raise_rows(chart, arc, chart, full, chart, shorter, mid, sibling, below, width)
        elif m == n:
            _raise_row(chart, full, chart, shorter, below, width)
    _load_grandparents(sentence, h, m, row)
    _add_to_row(chart, arc, row, 0, sentence.arcs[h, m], width)
    if not only_one or m == n:
        _raise_row(chart, full, chart, arc, 0.0, width)


@lent_jit
def _load_grandparents(sentence, h, m, row):
    """Fill the scores of all contexts of an arc, -inf for nodes that cannot be the head of its head."""
    n, nodes = sentence.words, sentence.grandparents.shape[1]
    fill_row(row, 0, -np.inf, contexts_width(n))
    if h == 0:
        row[0] = 0.0
        return
    i, j, source = min(h, m), max(h, m), (h * nodes + m) * nodes
    copy_short(row, 0, sentence.grandparents, source, i)
    copy_short(row, j + 1, sentence.grandparents, source + j + 1, n - j)
