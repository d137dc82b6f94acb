"""Exact samples of projective trees: from the whole sentence down through the chart of inside sums.

The weight of a span is the sum over its splits; a split is drawn in proportion to its term, and so on within its parts
(Goodman 1998). A chart cell holds many trees, but a tree has one derivation, so trees are drawn in proportion to their
weight. The chart is filled once an item; a tree then takes O(n^2) at worst. Plain weights are used where
`inside_outside` finds them safe, logs otherwise.

Charts hold a full span of head ``h`` up to ``m`` at ``[h, m]``, and the arc ``h -> m`` with all that it spans.
"""

import numpy as np

from treeparse.kernels.arrays import FloatArray, IntArray
from treeparse.kernels.compile import exact_kernel
from treeparse.kernels.random import choose, choose_by_logs, new_stream
from treeparse.kernels.sums.in_logs import charts as logs
from treeparse.kernels.sums.in_logs.charts import ARC, FULL, FULL_T
from treeparse.kernels.sums.inside_outside import CHARTS as LINEAR_CHARTS
from treeparse.kernels.sums.inside_outside import (
    LEFT,
    LEFT_ARC,
    RIGHT,
    RIGHT_ARC,
    SAFE,
    WEIGHTS,
    divide_by_sums,
    inside,
    load_scaled_weights,
    new_charts,
)
from treeparse.kernels.threads import run_batch
from treeparse.kernels.weights import column_maxima


def sample_trees(
    scores: FloatArray, lengths: IntArray, seeds: np.ndarray, count: int, *, single_root: bool, threads: int = 1
) -> IntArray:
    """Draw heads ``(B, count, n+1)`` of trees with replacement; -1 where an item has no tree.

    ``seeds`` ``(B,)`` uint64: the s-th tree of an item depends on its scores, its seed and s alone.
    """
    heads = np.full((len(lengths), count, scores.shape[1]), -1)
    run_batch(_sample, lambda n: n**3 / 2 + count * n**2, lengths, scores, seeds, single_root, heads, threads=threads)
    return heads


@exact_kernel
def _sample(start, stop, lengths, scores, seeds, single_root, heads):
    size = scores.shape[1]
    buffer, lines, top = np.empty(LINEAR_CHARTS * size * size), np.empty((3, size)), np.empty(size)
    stack = np.empty((3 * size, 2), np.int64)
    for b in range(start, stop):
        n = lengths[b]
        if column_maxima(scores[b], n, top) == -np.inf:
            continue
        charts = np.empty((logs.CHARTS, n + 1, n + 1))
        in_logs = not _fill_plain(scores[b], n, single_root, top, new_charts(buffer, n), lines, charts)
        if in_logs:
            logs.load(scores[b], n, top, charts[logs.WEIGHTS])
            logs.inside(charts, n, single_root, lines[0])
            if charts[FULL, 0, n] == -np.inf:
                continue
        for sample in range(heads.shape[1]):
            _draw_tree(charts, n, in_logs, new_stream(seeds[b], sample), stack, lines[0], heads[b, sample])


@exact_kernel
def _fill_plain(scores, n, single_root, top, plain, lines, charts):
    """Fill the charts with plain weights; return whether these are safe."""
    load_scaled_weights(scores, n, top, plain[WEIGHTS])
    divide_by_sums(plain[WEIGHTS], n)
    if not inside(plain, n, single_root, lines) > SAFE:
        return False
    full, full_t, arc = charts[FULL], charts[FULL_T], charts[ARC]
    for j in range(n + 1):
        full[j, j] = full_t[j, j] = 1.0
        for i in range(j):
            full[i, j] = full_t[j, i] = plain[RIGHT, j, i]
            full[j, i] = full_t[i, j] = plain[LEFT, j, i]
            arc[i, j], arc[j, i] = plain[RIGHT_ARC, j, i], plain[LEFT_ARC, j, i]
    return True


@exact_kernel
def _draw_tree(charts, n, in_logs, stream, stack, work, heads):
    """Draw one tree: take a full span off the stack, draw its outermost arc, and push the parts."""
    full, full_t, arc = charts[FULL], charts[FULL_T], charts[ARC]
    stack[0, 0], stack[0, 1] = 0, n
    height = 1
    while height:
        height -= 1
        h, m = stack[height]
        if h == m:
            continue
        first = min(h + 1, m)
        stream, place = _draw(arc[h], first, full_t[m], first, abs(m - h), in_logs, stream, work)
        k = first + place
        heads[k] = h
        left, right = min(h, k), max(h, k)
        stream, place = _draw(full[left], left, full[right], left + 1, right - left, in_logs, stream, work)
        split = left + place
        stack[height, 0], stack[height, 1] = k, m
        stack[height + 1, 0], stack[height + 1, 1] = left, split
        stack[height + 2, 0], stack[height + 2, 1] = right, split + 1
        height += 3


@exact_kernel
def _draw(x, start, y, offset, count, in_logs, stream, work):
    """Draw an index k with probability in proportion to the product of ``x[start + k]`` and ``y[offset + k]``."""
    if in_logs:
        for k in range(count):
            work[k] = x[start + k] + y[offset + k]
        return choose_by_logs(work, count, stream)
    total = 0.0
    for k in range(count):
        work[k] = x[start + k] * y[offset + k]
        total += work[k]
    return choose(work, total, count, stream)
