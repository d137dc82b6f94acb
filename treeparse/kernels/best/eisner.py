"""Best projective trees: Eisner's O(n^3) chart (Eisner 1996; 2000), and the check that head lists are projective trees.

A span from node i to node j is of one of four kinds, and its best score is the best over its splits:

    RIGHT      complete, headed by i    right(i, j) = max over i < k <= j of right_arc(i, k) + right(k, j)
    LEFT       complete, headed by j    left(i, j) = max over i <= k < j of left_arc(k, j) + left(i, k)
    BETWEEN    what an arc spans        between(i, j) = max over i <= k < j of right(i, k) + left(k+1, j)
    RIGHT_ARC  the arc i -> j too       right_arc(i, j) = between(i, j) + scores[i, j]

where left_arc(k, j) = between(k, j) + scores[j, k], and right(i, i) = left(i, i) = 0. Every projective tree is one
derivation of right(0, n) and no other, so the best derivations are the best trees. For a single root right(0, j) is
-inf where 0 < j < n: after its first dependent node 0 cannot take a second one.

A chart is ``(4, n+1, n+1)``, and ``chart[kind, j, i]`` the score of the span from i to j. Row j is filled from right to
left. As soon as a span from i to j is known, it is appended to all spans that end where it begins; so the inner loops
run over contiguous cells and are vectorised.
"""

import numpy as np

from treeparse.kernels import FloatArray, IntArray, ties
from treeparse.kernels.best.arborescence import are_trees
from treeparse.kernels.compile import exact_kernel
from treeparse.kernels.threads import run_batch

KINDS = 4  # of spans
RIGHT, LEFT, BETWEEN, RIGHT_ARC = range(KINDS)
NODE_BITS = 21  # for a node's number in a span's


def best_trees(scores: FloatArray, lengths: IntArray, *, single_root: bool, threads: int = 1) -> IntArray:
    """Return heads of the best projective trees, ``(B, n+1, n+1) -> (B, n+1)``; -1 at node 0 and padding.

    Items without a tree have -1 everywhere.
    """
    heads = np.full(scores.shape[:2], -1)
    run_batch(_best_trees, lambda n: n**3 / 4, lengths, scores, single_root, heads, threads=threads)
    return heads


def are_projective_trees(heads: IntArray, lengths: IntArray, *, single_root: bool, threads: int = 1) -> np.ndarray:
    """Return ``(B,)`` bool: which head lists ``(B, n+1)`` are projective trees.

    Head lists are trees in the sense of ``arborescence.are_trees``, and no two arcs cross with node 0 left of all
    words.
    """
    result = are_trees(heads, lengths, single_root=single_root, threads=threads)
    run_batch(_keep_projective, lambda n: 4 * n, lengths, heads, result, threads=threads)
    return result


@exact_kernel
def _keep_projective(start, stop, lengths, heads, result):
    stack, missing = np.empty((2, heads.shape[1]), np.int64)
    for b in range(start, stop):
        if result[b]:
            result[b] = _reduces(heads[b], lengths[b], stack, missing)


@exact_kernel
def _reduces(heads, n, stack, missing):
    """Whether arcs between neighbours on a stack build the tree (Nivre 2004, arc-standard), as all projective ones."""
    for j in range(n + 1):
        missing[j] = 0
    for j in range(1, n + 1):
        missing[heads[j]] += 1
    stack[0] = 0
    depth = 1
    for j in range(1, n + 1):
        stack[depth] = j
        depth += 1
        while depth > 1:
            top, below = stack[depth - 1], stack[depth - 2]
            if heads[top] == below and missing[top] == 0:
                missing[below] -= 1
            elif heads[below] == top and missing[below] == 0:
                missing[top] -= 1
                stack[depth - 2] = top
            else:
                break
            depth -= 1
    return depth == 1


@exact_kernel
def _best_trees(start, stop, lengths, scores, single_root, heads):
    size = scores.shape[1]
    buffer, stack = np.empty(KINDS * size * size), np.empty(size, np.int64)
    arc_keys, key_buffer = np.empty((0, 0), np.int64), np.empty(0, np.int64)
    for b in range(start, stop):
        n = lengths[b]
        chart = chart_of(buffer, KINDS, n)
        fill_chart(scores[b], n, single_root, chart, None, None)
        if chart[RIGHT, n, 0] == -np.inf or _read_tree(scores[b], n, chart, None, None, stack, heads[b]):
            continue
        if len(key_buffer) == 0:
            arc_keys, key_buffer = ties.arc_keys(size), np.empty(KINDS * size * size, np.int64)
        keys = chart_of(key_buffer, KINDS, n)
        fill_chart(scores[b], n, single_root, chart, arc_keys, keys)
        _read_tree(scores[b], n, chart, arc_keys, keys, stack, heads[b])


@exact_kernel
def chart_of(buffer, kinds, n):
    """Return a chart whose strides depend on n alone."""
    return buffer[: kinds * (n + 1) * (n + 1)].reshape(kinds, n + 1, n + 1)


@exact_kernel
def fill_chart(scores, n, single_root, chart, arc_keys, keys):
    """Fill the chart of one item; ``keys``, the chart of the arcs' keys, decide ties."""
    for j in range(n + 1):
        _begin_row(j, chart, -np.inf)
        if keys is None:
            _fill_row(j, scores, chart)
        else:
            _begin_row(j, keys, 0)
            _fill_row_by_keys(j, scores, chart, arc_keys, keys)
        if single_root and 0 < j < n:
            chart[RIGHT, j, 0] = -np.inf


@exact_kernel
def _begin_row(j, chart, worst):
    """Begin row j by the spans that end before j, and the span of j alone."""
    for i in range(j):
        chart[RIGHT, j, i] = chart[LEFT, j, i] = worst
        chart[BETWEEN, j, i] = chart[RIGHT, j - 1, i]
    chart[RIGHT, j, j] = chart[LEFT, j, j] = 0


@exact_kernel
def _fill_row(j, scores, chart):
    """Add the arcs between j and every i, then append the spans from i to j to those that end at i or i - 1.

    Spans with arcs into node 0, which are ignored, are never read.
    """
    for i in range(j - 1, -1, -1):
        left_arc, right_arc = chart[BETWEEN, j, i] + scores[j, i], chart[BETWEEN, j, i] + scores[i, j]
        left, right = chart[LEFT, j, i], chart[RIGHT, j, i]
        left, right = left_arc if left_arc > left else left, right_arc if right_arc > right else right
        chart[LEFT, j, i], chart[RIGHT, j, i], chart[RIGHT_ARC, j, i] = left, right, right_arc
        for begin in range(i):
            score, best = chart[RIGHT, i - 1, begin] + left, chart[BETWEEN, j, begin]
            chart[BETWEEN, j, begin] = score if score > best else best
        for begin in range(i):
            score, best = chart[LEFT, i, begin] + left_arc, chart[LEFT, j, begin]
            chart[LEFT, j, begin] = score if score > best else best
        for begin in range(i):
            score, best = chart[RIGHT_ARC, i, begin] + right, chart[RIGHT, j, begin]
            chart[RIGHT, j, begin] = score if score > best else best


@exact_kernel
def _fill_row_by_keys(j, scores, chart, arc_keys, keys):
    """Do ``_fill_row`` where keys decide between equal scores."""
    for i in range(j - 1, -1, -1):
        left_arc, right_arc = chart[BETWEEN, j, i] + scores[j, i], chart[BETWEEN, j, i] + scores[i, j]
        left_arc_key, right_arc_key = keys[BETWEEN, j, i] + arc_keys[j, i], keys[BETWEEN, j, i] + arc_keys[i, j]
        left, left_key = chart[LEFT, j, i], keys[LEFT, j, i]
        if _better(left_arc, left_arc_key, left, left_key):
            left, left_key = left_arc, left_arc_key
        right, right_key = chart[RIGHT, j, i], keys[RIGHT, j, i]
        if _better(right_arc, right_arc_key, right, right_key):
            right, right_key = right_arc, right_arc_key
        chart[LEFT, j, i], chart[RIGHT, j, i], chart[RIGHT_ARC, j, i] = left, right, right_arc
        keys[LEFT, j, i], keys[RIGHT, j, i], keys[RIGHT_ARC, j, i] = left_key, right_key, right_arc_key
        for begin in range(i):
            score, best = chart[RIGHT, i - 1, begin] + left, chart[BETWEEN, j, begin]
            key, best_key = keys[RIGHT, i - 1, begin] + left_key, keys[BETWEEN, j, begin]
            better = _better(score, key, best, best_key)
            chart[BETWEEN, j, begin] = score if better else best
            keys[BETWEEN, j, begin] = key if better else best_key
        for begin in range(i):
            score, best = chart[LEFT, i, begin] + left_arc, chart[LEFT, j, begin]
            key, best_key = keys[LEFT, i, begin] + left_arc_key, keys[LEFT, j, begin]
            better = _better(score, key, best, best_key)
            chart[LEFT, j, begin] = score if better else best
            keys[LEFT, j, begin] = key if better else best_key
        for begin in range(i):
            score, best = chart[RIGHT_ARC, i, begin] + right, chart[RIGHT, j, begin]
            key, best_key = keys[RIGHT_ARC, i, begin] + right_key, keys[RIGHT, j, begin]
            better = _better(score, key, best, best_key)
            chart[RIGHT, j, begin] = score if better else best
            keys[RIGHT, j, begin] = key if better else best_key


@exact_kernel
def _better(score, key, other, other_key):
    return (score > other) | ((score == other) & (key > other_key))  # no "or": loops with it are not vectorised


@exact_kernel
def span(kind, i, j):
    """Return a span as one number."""
    return (kind << 2 * NODE_BITS) | (j << NODE_BITS) | i


@exact_kernel
def parts_of_span(number):
    """Return kind, first and last node of a span."""
    mask = (1 << NODE_BITS) - 1
    return number >> 2 * NODE_BITS, number & mask, (number >> NODE_BITS) & mask


@exact_kernel
def split_range(kind, i, j):
    """Return the range of a span's splits; it is empty only if i = j."""
    return (i + 1, j + 1) if kind == RIGHT else (i, j)


@exact_kernel
def halves(kind, i, j, k):
    """The spans into which a split takes a span; the first is under the arc, if there is one."""
    if kind == RIGHT:
        return span(BETWEEN, i, k), span(RIGHT, k, j)
    if kind == LEFT:
        return span(BETWEEN, k, j), span(LEFT, i, k)
    return span(RIGHT, i, k), span(LEFT, k + 1, j)


@exact_kernel
def split_score(arcs, chart, kind, i, j, k):
    """The best score of a span split at k, or the key that goes with it; the same bits as in ``fill_chart``."""
    if kind == RIGHT:
        return chart[RIGHT_ARC, k, i] + chart[RIGHT, j, k]
    if kind == LEFT:
        return (chart[BETWEEN, j, k] + arcs[j, k]) + chart[LEFT, k, i]
    return chart[RIGHT, k, i] + chart[LEFT, j, k + 1]


@exact_kernel
def _read_tree(scores, n, chart, arc_keys, keys, stack, heads):
    """Write the best tree's heads, from the whole sentence's span down; return False at the first tie."""
    stack[0] = span(RIGHT, 0, n)
    depth = 1
    while depth > 0:
        depth -= 1
        kind, i, j = parts_of_span(stack[depth])
        k = _best_split(scores, chart, arc_keys, keys, kind, i, j)
        if k < 0:
            return False
        if kind != BETWEEN:
            heads[k] = i if kind == RIGHT else j
        for half in halves(kind, i, j, k):
            _, first, last = parts_of_span(half)
            if first < last:
                stack[depth] = half
                depth += 1
    return True


@exact_kernel
def _best_split(scores, chart, arc_keys, keys, kind, i, j):
    """Return the split that has the score of the span and, with keys, its key; -1 if two splits do."""
    split = -1
    begin, end = split_range(kind, i, j)
    for k in range(begin, end):
        if split_score(scores, chart, kind, i, j, k) == chart[kind, j, i]:
            if keys is None:
                if split >= 0:
                    return -1
                split = k
            elif split_score(arc_keys, keys, kind, i, j, k) == keys[kind, j, i]:
                split = k
    return split
