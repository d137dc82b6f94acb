"""Best projective trees with scores of adjacent siblings, in O(n^3) ([Lec]; McDonald and Pereira 2006).

A span's score is the best one of its splits (``treeparse.kernels.spans``). The chart is ``(4, n+1, n+1)`` [kind, head,
last]: the kinds of spans, and the full spans transposed, so that all loops run along rows.
"""

import numpy as np

from treeparse.kernels.array_types import AnyFloatArray, FloatArray, IntArray
from treeparse.kernels.best.best_spans import SPLIT_LINES, find_best_tree
from treeparse.kernels.compile import exact_kernel
from treeparse.kernels.spans import ARC, FULL, KINDS, MID, SIBLINGS, SentenceShape
from treeparse.kernels.threads import run_batch

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
    memory, stack, nothing = np.empty(CHARTS * size * size), np.empty(4 * size, np.int64), siblings[:0, 0]
    splits = np.empty((SPLIT_LINES, size + 1)), np.empty(size + 1, np.int64)
    for b in range(start, stop):
        n, item = lengths[b], items[b]
        square = (n + 1) * (n + 1)
        if _fill(arcs[b], siblings[item], n, single_root, memory[: CHARTS * square].reshape(CHARTS, n + 1, n + 1)):
            shape, scores = SentenceShape(n, SIBLINGS, single_root), memory[: KINDS * square]
            find_best_tree(shape, arcs[b], siblings[item], nothing, scores, stack, *splits, heads[b])


@exact_kernel
def _fill(arcs, siblings, n, single_root, chart):
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
