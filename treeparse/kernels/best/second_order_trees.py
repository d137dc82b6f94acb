"""Best projective trees with scores of adjacent siblings, in O(n^3), and of grandparents too, in O(n^4).

([Lec]; McDonald and Pereira 2006; Koo and Collins 2010.) A span's score is the best one of its splits
(``treeparse.kernels.spans``). With siblings the chart is ``(4, n+1, n+1)`` [kind, head, last]: the kinds of spans, and
the full spans transposed, so that all loops run along rows. With grandparents it is ``(3, n+1, n+1, contexts)``, and
loops run along whole rows of contexts. A span from i to j has the contexts before i and after j; nothing reads what is
between.
"""

from typing import Any

import numpy as np

from treeparse.kernels import AnyFloatArray, FloatArray, IntArray
from treeparse.kernels.best.best_spans import SPLIT_LINES, find_best_tree
from treeparse.kernels.compile import exact_kernel
from treeparse.kernels.spans import ARC, FULL, GRANDPARENTS, KINDS, MID, SIBLINGS, SentenceShape
from treeparse.kernels.threads import run_batch
from treeparse.kernels.tree_weights import padded

FULL_T = KINDS
CHARTS = KINDS + 1
TOGETHER = 4  # splits of a span, one row each; more than eight rows are not vectorised
# Of an arc's splits: the scores of MID, of the sibling, and of the span FULL below.
BETWEEN, SIBLING, BELOW = range(3)


def best_trees(
    arcs: FloatArray,
    siblings: AnyFloatArray,
    *grandparents_and_lengths: Any,
    single_root: bool,
    items: IntArray | None = None,
    threads: int = 1,
) -> IntArray:
    """Return heads of the best trees ``(B, n+1)``, -1 at node 0, at padding, and where an item has no tree.

    Scores are ``(B, n+1, n+1)`` of arcs and ``(B, n+1, n+1, n+1)`` of siblings and of grandparents, if any, these two
    float32 or both float64. With ``items`` ``(B,)``, item b has the scores of other parts than arcs of index
    ``items[b]``, so that no others need be copied.
    """
    *grandparents, lengths = grandparents_and_lengths
    heads = np.full(arcs.shape[:2], -1)
    items = np.arange(len(lengths)) if items is None else items
    kernel, cost = (_best_by_grandparents, lambda n: n**4 / 2) if grandparents else (_best_by_siblings, lambda n: n**3)
    run_batch(kernel, cost, lengths, items, arcs, siblings, *grandparents, single_root, heads, threads=threads)
    return heads


@exact_kernel
def _best_by_siblings(start, stop, lengths, items, arcs, siblings, single_root, heads):
    size = arcs.shape[1]
    memory, stack, nothing = np.empty(CHARTS * size * size), np.empty(4 * size, np.int64), siblings[:0, 0]
    splits = np.empty((SPLIT_LINES, size + 1)), np.empty(size + 1, np.int64)
    for b in range(start, stop):
        n, item = lengths[b], items[b]
        square = (n + 1) * (n + 1)
        chart = memory[: CHARTS * square].reshape(CHARTS, n + 1, n + 1)
        if _fill_by_siblings(arcs[b], siblings[item], n, single_root, chart):
            shape, scores = SentenceShape(n, SIBLINGS, single_root), memory[: KINDS * square]
            find_best_tree(shape, arcs[b], siblings[item], nothing, scores, stack, *splits, heads[b])


@exact_kernel
def _fill_by_siblings(arcs, siblings, n, single_root, chart):
    """Fill the chart; return whether there is a tree."""
    for j in range(n + 1):
        chart[FULL, j, j] = 0.0
        for i in range(j - 1, -1, -1):
            is_only = single_root and i == 0  # a dependent of node 0
            inner_left, inner_right = chart[FULL, i, j - 1], chart[FULL, j, i + 1]
            for h, m, inner in ((i, j, inner_right), (j, i, inner_left)):
                if m == 0:
                    break
                first = inner + siblings[h, m, h]
                best, full = first, -np.inf
                for k in range(i + 1, j):
                    score = chart[ARC, h, k] + chart[MID, m, k] + siblings[h, m, k]
                    best = score if score > best else best
                    score = chart[ARC, h, k] + chart[FULL_T, m, k]
                    full = score if score > full else full
                score = arcs[h, m] + (first if is_only else best)
                full = score if score > full else full
                full = -np.inf if is_only and m < n else full
                chart[ARC, h, m], chart[FULL, h, m], chart[FULL_T, m, h] = score, full, full
            best = inner_right
            for k in range(i + 1, j):
                score = chart[FULL, i, k] + chart[FULL, j, k + 1]
                best = score if score > best else best
            chart[MID, i, j] = chart[MID, j, i] = best
    return chart[FULL, 0, n] > -np.inf


@exact_kernel
def _best_by_grandparents(start, stop, lengths, items, arcs, siblings, grandparents, single_root, heads):
    size = arcs.shape[1]
    memory, row = np.empty(KINDS * size * size * padded(size - 1)), np.empty(padded(size - 1))
    stack, splits = np.empty(4 * size, np.int64), (np.empty((SPLIT_LINES, size + 1)), np.empty(size + 1, np.int64))
    numbers, dependents = np.empty((3, size + TOGETHER)), np.empty(size + TOGETHER, np.int64)
    for b in range(start, stop):
        n, item = lengths[b], items[b]
        width = padded(n)
        scores = memory[: KINDS * (n + 1) * (n + 1) * width]
        chart = scores.reshape(KINDS, n + 1, n + 1, width)
        _fill_by_grandparents(
            arcs[b], siblings[item], grandparents[item], n, single_root, chart, row[:width], numbers, dependents
        )
        if chart[FULL, 0, n, 0] > -np.inf:
            shape = SentenceShape(n, GRANDPARENTS, single_root)
            find_best_tree(shape, arcs[b], siblings[item], grandparents[item], scores, stack, *splits, heads[b])


# Functions that call others count references to their arrays; those that are called for every span call none.
@exact_kernel
def _fill_by_grandparents(arcs, siblings, grandparents, n, single_root, chart, row, numbers, dependents):
    """Fill the chart."""
    for j in range(n + 1):
        for c in range(chart.shape[3]):
            chart[FULL, j, j, c], chart[ARC, j, j, c] = 0.0, -np.inf  # this ARC is no span
        for i in range(j - 1, -1, -1):
            if i > 0:
                _fill_mid(i, j, chart)
            for h, m in ((j, i), (i, j)):
                if m == 0:
                    continue
                if h == 0 and single_root:
                    _fill_only(arcs, siblings, m, n, chart)
                    continue
                count = _list_splits(arcs, siblings, h, m, i, j, chart, numbers, dependents)
                _raise_to_splits(h, m, count, chart, row, numbers, dependents)
                _add_arc(arcs, grandparents, h, m, i, j, n, chart, row)


@exact_kernel
def _fill_mid(i, j, chart):
    """Fill the span MID from i to j."""
    for c in range(chart.shape[3]):
        chart[MID, i, j, c] = -np.inf
    for k in range(i, j, 2):
        other = min(k + 1, j - 1)
        for c in range(chart.shape[3]):
            best = chart[MID, i, j, c]
            score = chart[FULL, i, k, c] + chart[FULL, j, k + 1, c]
            best = score if score > best else best
            score = chart[FULL, i, other, c] + chart[FULL, j, other + 1, c]
            chart[MID, i, j, c] = score if score > best else best


@exact_kernel
def _fill_only(arcs, siblings, m, n, chart):
    """Fill the spans ARC and FULL of node 0 up to m, where it has one dependent."""
    best = chart[FULL, m, 1, 0] + siblings[0, m, 0] + arcs[0, m] if arcs[0, m] > -np.inf else -np.inf
    chart[ARC, 0, m, 0], chart[FULL, 0, m, 0] = best, -np.inf
    if m == n:
        for k in range(1, n):
            score = chart[ARC, 0, k, 0] + chart[FULL, k, n, 0]
            best = score if score > best else best
        chart[FULL, 0, n, 0] = best


@exact_kernel
def _list_splits(arcs, siblings, h, m, i, j, chart, numbers, dependents):
    """List the nodes between whose arcs from h are possible, and what their splits add to rows of ARC; return how many.

    The list is filled up to a multiple of ``TOGETHER``, and ends with the score of the split without a node.
    """
    count, is_arc = 0, arcs[h, m] > -np.inf
    for k in range(i + 1, j):
        mid, sibling = chart[MID, min(k, m), max(k, m), h], siblings[h, m, k]
        dependents[count] = k
        numbers[BETWEEN, count] = mid if is_arc else -np.inf
        numbers[SIBLING, count] = sibling if is_arc else 0.0
        numbers[BELOW, count] = chart[FULL, k, m, h]
        count += arcs[h, k] > -np.inf
    inner, sibling = chart[FULL, m, h + 1 if h < m else h - 1, h], siblings[h, m, h]
    for index in range(count, count + TOGETHER):
        dependents[index] = h
        numbers[BETWEEN, index], numbers[SIBLING, index], numbers[BELOW, index] = -np.inf, 0.0, -np.inf
    count = (count + TOGETHER - 1) // TOGETHER * TOGETHER
    numbers[BETWEEN, count] = inner + sibling if is_arc else -np.inf
    return count


@exact_kernel
def _raise_to_splits(h, m, count, chart, row, numbers, dependents):
    """Fill a row of ARC and FULL by the best split; the arc and its grandparents are added to it later."""
    for c in range(len(row)):
        row[c], chart[FULL, h, m, c] = numbers[0, count], -np.inf
    for at in range(0, count, TOGETHER):
        k0, k1, k2, k3 = dependents[at], dependents[at + 1], dependents[at + 2], dependents[at + 3]
        m0, m1, m2, m3 = numbers[0, at], numbers[0, at + 1], numbers[0, at + 2], numbers[0, at + 3]
        s0, s1, s2, s3 = numbers[1, at], numbers[1, at + 1], numbers[1, at + 2], numbers[1, at + 3]
        f0, f1, f2, f3 = numbers[2, at], numbers[2, at + 1], numbers[2, at + 2], numbers[2, at + 3]
        for c in range(len(row)):
            a0, a1, a2, a3 = chart[ARC, h, k0, c], chart[ARC, h, k1, c], chart[ARC, h, k2, c], chart[ARC, h, k3, c]
            x, y, z, w = a0 + m0 + s0, a1 + m1 + s1, a2 + m2 + s2, a3 + m3 + s3
            x, z, best = x if x > y else y, z if z > w else w, row[c]
            x = x if x > z else z
            row[c] = x if x > best else best
            x, y, z, w = a0 + f0, a1 + f1, a2 + f2, a3 + f3
            x, z, best = x if x > y else y, z if z > w else w, chart[FULL, h, m, c]
            x = x if x > z else z
            chart[FULL, h, m, c] = x if x > best else best


@exact_kernel
def _add_arc(arcs, grandparents, h, m, i, j, n, chart, row):
    """Complete the spans ARC and FULL by the scores of the arc and its grandparents."""
    arc = arcs[h, m]
    for c in range(i if h > 0 else 0):
        chart[ARC, h, m, c] = row[c] + (arc + grandparents[h, m, c])
    for c in range(i, len(row)):
        chart[ARC, h, m, c] = -np.inf
    for c in range(j + 1, n + 1 if h > 0 else 0):
        chart[ARC, h, m, c] = row[c] + (arc + grandparents[h, m, c])
    chart[ARC, h, m, 0] = row[0] + arc if h == 0 else chart[ARC, h, m, 0]
    for c in range(len(row)):
        best, score = chart[FULL, h, m, c], chart[ARC, h, m, c] if arc > -np.inf else -np.inf
        chart[ARC, h, m, c] = score
        chart[FULL, h, m, c] = score if score > best else best
