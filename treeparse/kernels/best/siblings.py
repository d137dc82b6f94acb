"""Best projective trees with scores of adjacent siblings, in O(n^3) ([Lec]; McDonald and Pereira 2006).

The recurrences are those of ``treeparse.kernels.sums.charts`` with maxima of summed scores in the place of sums of
products. The chart is that of ``spans`` with one context, and the full spans transposed after it.
"""

from typing import Any

import numpy as np

from treeparse.kernels import ties
from treeparse.kernels.arrays import AnyFloatArray, FloatArray, IntArray
from treeparse.kernels.best.spans import fill_by_keys, read_tree
from treeparse.kernels.compile import exact_kernel
from treeparse.kernels.copies import copy_short
from treeparse.kernels.rows import over_rows
from treeparse.kernels.spans import ARC, FULL, KINDS, MID, SIBLINGS, ScoredSentence
from treeparse.kernels.threads import run_batch
from treeparse.kernels.vectors import LANES, constant

FULL_T = KINDS
CHARTS = KINDS + 1


def best_trees(
    arcs: FloatArray,
    siblings: AnyFloatArray,
    lengths: IntArray,
    *,
    single_root: bool,
    items: IntArray | None = None,
    threads: int = 1,
) -> IntArray:
    """Return heads of the best trees ``(B, n+1)``, -1 at node 0, at padding, and where an item has no tree.

    Scores are ``(B, n+1, n+1)`` of arcs and ``(B, n+1, n+1, n+1)`` of siblings, float32 or float64. With ``items``
    ``(B,)``, item b has the siblings' scores of index ``items[b]``, so that no others need be copied.
    """
    heads = np.full(arcs.shape[:2], -1)
    items = np.arange(len(lengths)) if items is None else items
    arguments = lengths, items, arcs, siblings, single_root, heads
    run_batch(_best_trees, lambda n: n**3, *arguments, threads=threads)
    return heads


@exact_kernel
def _best_trees(start, stop, lengths, items, arcs, siblings, single_root, heads):
    size = arcs.shape[1]
    chart, row = np.empty(CHARTS * size * size + LANES), np.empty(size + LANES)
    stack, arc_keys, keys = np.empty(4 * size, np.int64), np.empty((0, 0), np.int64), np.empty(0, np.int64)
    for b in range(start, stop):
        n, item = lengths[b], items[b]
        if not _fill(arcs[b], siblings[item], n, single_root, chart, row):
            continue
        sentence = ScoredSentence(n, SIBLINGS, single_root, arcs[b], siblings[item], siblings[:0, 0])
        if read_tree(sentence, arc_keys, chart, None, stack, heads[b]):
            continue
        if len(arc_keys) == 0:
            arc_keys, keys = ties.arc_keys(size), np.empty(KINDS * size * size, np.int64)
        cells = KINDS * (n + 1) * (n + 1)
        fill_by_keys(sentence, arc_keys, chart[:cells], keys[:cells])
        read_tree(sentence, arc_keys, chart[:cells], keys[:cells], stack, heads[b])


@over_rows(4, maxima=2)
def _side_maxima(builder: Any, arcs: Any, fulls: Any, arc: Any, mid: Any, sibling: Any, full: Any, inside: Any) -> Any:
    """The maxima of ``arc + mid + sibling`` and of ``arc + full``."""
    arcs = _larger(builder, arcs, builder.fadd(builder.fadd(arc, mid), sibling), inside)
    return arcs, _larger(builder, fulls, builder.fadd(arc, full), inside)


@over_rows(2, maxima=1)
def _largest_sum(builder: Any, best: Any, x: Any, y: Any, inside: Any) -> Any:
    return (_larger(builder, best, builder.fadd(x, y), inside),)


def _larger(builder: Any, best: Any, scores: Any, inside: Any) -> Any:
    scores = builder.select(inside, scores, constant(scores, -np.inf))
    return builder.select(builder.fcmp_ordered(">", scores, best), scores, best)


@exact_kernel
def _fill(arcs, siblings, n, single_root, chart, row):
    """Fill the chart; return whether there is a tree."""
    nodes, across = n + 1, siblings.shape[1]
    square = nodes * nodes
    full_0, full_t_0, arc_0, mid_0 = FULL * square, FULL_T * square, ARC * square, MID * square
    for j in range(nodes):
        chart[full_0 + j * nodes + j] = 0.0
    for count in range(1, n + 1):
        for i in range(nodes - count):
            j = i + count
            row_i, row_j, between = i * nodes, j * nodes, i + 1
            full_i, full_j = full_0 + row_i, full_0 + row_j
            full_t_i, full_t_j = full_t_0 + row_i, full_t_0 + row_j
            arc_i, arc_j, mid_i, mid_j = arc_0 + row_i, arc_0 + row_j, mid_0 + row_i, mid_0 + row_j
            inner_i, inner_j = chart[full_i + j - 1], chart[full_j + i + 1]
            copy_short(row, 0, siblings, (i * across + j) * across + between, count - 1)
            others, full = _side_maxima(
                chart, arc_i + between, chart, mid_j + between, row, 0, chart, full_t_j + between, count - 1
            )
            score = inner_j + siblings[i, j, i]
            if i > 0 or not single_root:
                score = others if others > score else score
            score += arcs[i, j]
            chart[arc_i + j] = score
            full = score if score > full else full
            full = -np.inf if single_root and i == 0 and count < n else full
            chart[full_i + j] = chart[full_t_j + i] = full
            if i == 0:
                continue
            copy_short(row, 0, siblings, (j * across + i) * across + between, count - 1)
            others, full = _side_maxima(
                chart, arc_j + between, chart, mid_i + between, row, 0, chart, full_t_i + between, count - 1
            )
            score = inner_i + siblings[j, i, j]
            score = (others if others > score else score) + arcs[j, i]
            chart[arc_j + i] = score
            chart[full_j + i] = chart[full_t_i + j] = score if score > full else full
            inner = _largest_sum(chart, full_i + between, chart, full_j + between + 1, count - 1)
            chart[mid_i + j] = chart[mid_j + i] = inner if inner > inner_j else inner_j
    return chart[full_0 + n] > -np.inf
