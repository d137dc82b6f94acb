"""Best projective trees with scores of siblings and of grandparents, in O(n^4) ([Lec]; Koo and Collins 2010).

The recurrences are those of ``treeparse.kernels.sums.grandparent_charts``, with maxima of summed scores in the place of
sums of products, and rows of contexts as there. The chart is that of ``spans``.
"""

from typing import Any, NamedTuple

import numpy as np

from treeparse.kernels import ties
from treeparse.kernels.arrays import AnyFloatArray, FloatArray, IntArray
from treeparse.kernels.best.spans import fill_by_keys, read_tree
from treeparse.kernels.compile import exact_kernel
from treeparse.kernels.copies import copy_short
from treeparse.kernels.rows import fill_row, over_rows
from treeparse.kernels.spans import (
    ARC,
    FULL,
    GRANDPARENTS,
    MID,
    AllowedArcs,
    ScoredSentence,
    cells_of,
    contexts_width,
    find_allowed,
    is_used,
    new_allowed,
    packed_size,
    place_of,
    row_of,
)
from treeparse.kernels.stacks import over_stacks
from treeparse.kernels.threads import run_batch
from treeparse.kernels.vectors import LANES


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


@exact_kernel
def _best_trees(start, stop, lengths, items, arcs, siblings, grandparents, single_root, heads):
    size = arcs.shape[1]
    stack, arc_keys = np.empty(4 * size, np.int64), np.empty((0, 0), np.int64)
    packed, row = np.empty(packed_size(size - 1)), np.empty(contexts_width(size))
    memory = _Memory(packed, row, np.empty(3 * size), new_allowed(size - 1))
    chart = np.empty(0)
    for b in range(start, stop):
        others = siblings[items[b]], grandparents[items[b]]
        sentence = ScoredSentence(lengths[b], GRANDPARENTS, single_root, arcs[b], *others)
        cells = cells_of(sentence)
        if cells > len(chart):
            chart = np.empty(cells)
        if not _fill(sentence, chart, memory) or read_tree(sentence, arc_keys, chart, None, stack, heads[b]):
            continue
        if len(arc_keys) == 0:
            arc_keys = ties.arc_keys(size)
        keys = np.empty(cells, np.int64)
        fill_by_keys(sentence, arc_keys, chart[:cells], keys)
        read_tree(sentence, arc_keys, chart[:cells], keys, stack, heads[b])


class _Memory(NamedTuple):
    """Working memory."""

    siblings: FloatArray  # the scores of siblings, packed as in ``spans``
    row: FloatArray  # of contexts
    splits: FloatArray  # (3, n+1) of an arc's splits: the scores of MID, of siblings, and of the span FULL below
    allowed: AllowedArcs


@over_rows(2, 1)
def _raise_row(builder: Any, best: Any, row: Any, numbers: Any, inside: Any) -> Any:
    """``_raise_row(best, at, row, row_at, number, count)``: raise a row to another one plus a number."""
    return (_larger(builder, best, builder.fadd(row, numbers)),)


@over_rows(2, 1)
def _add_to_row(builder: Any, row: Any, added: Any, numbers: Any, inside: Any) -> Any:
    """``_add_to_row(row, at, added, added_at, number, count)``: add a number, and then another row, to a row."""
    return (builder.fadd(added, builder.fadd(numbers, row)),)


@over_stacks(2, 1, 3, picked=True)
def _raise_to_splits(builder: Any, arcs: Any, fulls: Any, shorter: Any, mids: Any, siblings: Any, below: Any) -> Any:
    """Raise ARC and FULL to the best split; the scores of the arc and of its grandparents are added to ARC later."""
    arcs = _larger(builder, arcs, builder.fadd(builder.fadd(shorter, mids), siblings))
    return arcs, _larger(builder, fulls, builder.fadd(shorter, below))


@over_stacks(1, 2)
def _raise_to_sums(builder: Any, best: Any, x: Any, y: Any) -> Any:
    return (_larger(builder, best, builder.fadd(x, y)),)


def _larger(builder: Any, best: Any, scores: Any) -> Any:
    return builder.select(builder.fcmp_ordered(">", scores, best), scores, best)


@exact_kernel
def _fill(sentence, chart, memory):
    """Fill the chart; return whether there is a tree."""
    n, width = sentence.words, contexts_width(sentence.words)
    allowed = memory.allowed
    find_allowed(sentence.arcs, n, allowed)
    _load(sentence, chart, memory.siblings)
    for j in range(n + 1):
        fill_row(chart, row_of(n, FULL, j, j), 0.0, width)
    for count in range(1, n + 1):
        for i in range(n + 1 - count):
            j = i + count
            _fill_arc(sentence, i, j, i == 0 and sentence.single_root, chart, memory)
            if i > 0:
                _fill_arc(sentence, j, i, False, chart, memory)
                mid, left, right = row_of(n, MID, i, j), row_of(n, FULL, i, i), row_of(n, FULL, j, i + 1)
                fill_row(chart, mid, -np.inf, width)
                heads = allowed.heads[i] & allowed.heads[j]
                for at in range(0, width if heads != 0 else 0, LANES):
                    if is_used(heads, at, i, j):
                        _raise_to_sums(chart, mid + at, chart, left + at, width, chart, right + at, width, count)
    return chart[row_of(n, FULL, 0, n)] > -np.inf


@exact_kernel
def _load(sentence, chart, siblings):
    """Pack the scores of siblings, and fill those of grandparents into the spans ARC, in the order of their memory.

    Nodes that cannot be the head of an arc's head have -inf.
    """
    n, nodes = sentence.words, sentence.siblings.shape[1]
    for h in range(n + 1):
        for m in range(1, n + 1):
            if m == h:
                continue
            source, arc, (at, first, count) = (h * nodes + m) * nodes, row_of(n, ARC, h, m), place_of(n, h, m)
            fill_row(chart, arc, -np.inf, contexts_width(n))
            if not sentence.arcs[h, m] > -np.inf:
                continue
            copy_short(siblings, at, sentence.siblings, source + first, count)
            if h == 0:
                chart[arc] = 0.0
                continue
            i, j = min(h, m), max(h, m)
            copy_short(chart, arc, sentence.grandparents, source, i)
            copy_short(chart, arc + j + 1, sentence.grandparents, source + j + 1, n - j)


@exact_kernel
def _fill_arc(sentence, h, m, only_one, chart, memory):
    """Fill the spans ARC and FULL of head h up to m; with ``only_one`` h has no second dependent."""
    n, width, size, allowed = sentence.words, contexts_width(sentence.words), len(sentence.arcs), memory.allowed
    i, j, (at, first, _) = min(h, m), max(h, m), place_of(n, h, m)
    arc, full, inner = row_of(n, ARC, h, m), row_of(n, FULL, h, m), row_of(n, FULL, m, h + 1 if h < m else h - 1) + h
    is_arc, is_full = sentence.arcs[h, m] > -np.inf, False
    fill_row(memory.row, 0, chart[inner] + memory.siblings[at + h - first] if is_arc else -np.inf, width)
    fill_row(chart, full, -np.inf, width)
    if not only_one:
        dependents, start, heads = allowed.dependents[h], allowed.before[h, i + 1], allowed.heads[h]
        count, siblings, below = allowed.before[h, j] - start, size, 2 * size
        for index in range(count):
            k = dependents[start + index]
            memory.splits[index] = chart[row_of(n, MID, min(k, m), max(k, m)) + h] if is_arc else -np.inf
            memory.splits[siblings + index] = memory.siblings[at + k - first]
            memory.splits[below + index] = chart[row_of(n, FULL, k, m) + h]
            is_full = is_full or memory.splits[below + index] > -np.inf
        numbers = memory.splits, 0, memory.splits, siblings, memory.splits, below
        shorter = row_of(n, ARC, h, 0)
        for lane in range(0, width if count > 0 and (is_arc or is_full) else 0, LANES):
            if is_used(heads, lane, i, j):
                best = memory.row, lane, chart, full + lane
                _raise_to_splits(*best, chart, shorter + lane, width, dependents, start, *numbers, count)
    elif m == n:
        for k in range(1, n):
            _raise_row(chart, full, chart, row_of(n, ARC, 0, k), chart[row_of(n, FULL, k, n)], 1)
    _add_to_row(chart, arc, memory.row, 0, sentence.arcs[h, m], width)
    if not only_one or m == n:
        _raise_row(chart, full, chart, arc, 0.0, width)
