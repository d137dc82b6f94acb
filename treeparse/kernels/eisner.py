"""Best projective trees: Eisner's O(n^3) chart (Eisner 1996; 2000), and the check that head lists are projective trees.

A span from node i to node j is of one of four kinds, and its best score is the best over the places to split it:

    RIGHT  complete, headed by i    right(i, j)  = max over i < k <= j of right_arc(i, k) + right(k, j)
    LEFT   complete, headed by j    left(i, j)   = max over i <= k < j of left_arc(k, j) + left(i, k)
    INNER  what an arc spans        inner(i, j)  = max over i <= k < j of right(i, k) + left(k+1, j)
    RIGHT_ARC  the arc i -> j too   right_arc(i, j) = inner(i, j) + scores[i, j]

where left_arc(k, j) = inner(k, j) + scores[j, k], and right(i, i) = left(i, i) = 0. Every projective tree is one
derivation of right(0, n) and no other, so the best derivations are the best trees. For a single root right(0, j) is
-inf where 0 < j < n: after its first dependent node 0 cannot take a second one.

A chart is ``(4, cells)``: of every kind the rows j = 0 .. n one after the other, row j holding i = 0 .. j. A row is
filled from the right to the left. As soon as the score of a span from i to j is known, it is combined with whatever
ends where it begins, for all beginnings at once; so every inner loop runs over contiguous cells and is vectorised.
"""

import numpy as np

from treeparse.kernels._compile import FloatArray, IntArray, jit, run_batch
from treeparse.kernels.arborescence import are_trees
from treeparse.kernels.ties import arc_key

RIGHT, LEFT, INNER, RIGHT_ARC = 0, 1, 2, 3
BITS = 21  # for a node's number in a span's


def best_trees(scores: FloatArray, lengths: IntArray, *, single_root: bool, threads: int = 1) -> IntArray:
    """Heads of the best projective trees, ``(B, n+1, n+1) -> (B, n+1)``; -1 at node 0, padding and where none is."""
    heads = np.full(scores.shape[:2], -1)
    run_batch(_best_trees, lambda n: n**3 / 4, lengths, scores, single_root, heads, threads=threads)
    return heads


def are_projective_trees(heads: IntArray, lengths: IntArray, *, single_root: bool) -> np.ndarray:
    """Which head lists ``(B, n+1)`` are projective trees, ``(B,)`` bool.

    They are trees in the sense of ``arborescence.are_trees``, and no two arcs cross with node 0 left of all words.
    """
    result = are_trees(heads, lengths, single_root=single_root)
    run_batch(_keep_projective, lambda n: 4 * n, lengths, heads, result, threads=1)
    return result


@jit
def _keep_projective(start, stop, lengths, heads, result):
    stack, missing = np.empty((2, heads.shape[1]), np.int64)
    for b in range(start, stop):
        if result[b]:
            result[b] = _reduces(heads[b], lengths[b], stack, missing)


@jit
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


@jit
def _best_trees(start, stop, lengths, scores, single_root, heads):
    longest = 0
    for b in range(start, stop):
        longest = max(longest, lengths[b])
    buffer, stack = np.empty(4 * cells(longest)), np.empty(longest + 2, np.int64)
    arc_keys, key_buffer = np.empty((0, 0), np.int64), np.empty(0, np.int64)
    for b in range(start, stop):
        n = lengths[b]
        chart = chart_of(buffer, n)
        fill_chart(scores[b], n, single_root, chart, None, None)
        if chart[RIGHT, cell(0, n)] == -np.inf or _read_tree(scores[b], n, chart, None, None, stack, heads[b]):
            continue
        if len(key_buffer) == 0:
            arc_keys, key_buffer = all_arc_keys(longest), np.empty(4 * cells(longest), np.int64)
        keys = chart_of(key_buffer, n)
        fill_chart(scores[b], n, single_root, chart, arc_keys, keys)
        _read_tree(scores[b], n, chart, arc_keys, keys, stack, heads[b])


@jit
def cells(n):
    """The number of spans of one kind over nodes 0 to n."""
    return (n + 1) * (n + 2) // 2


@jit
def cell(i, j):
    """The place of the span from i to j in a chart."""
    return j * (j + 1) // 2 + i


@jit
def chart_of(buffer, n):
    """A chart whose strides depend on n alone."""
    return buffer[: 4 * cells(n)].reshape(4, cells(n))


@jit
def all_arc_keys(n):
    """Keys of all arcs between nodes 0 to n, ``(n+1, n+1)``."""
    keys = np.empty((n + 1, n + 1), np.int64)
    for i in range(n + 1):
        for j in range(n + 1):
            keys[i, j] = arc_key(i, j)
    return keys


@jit
def fill_chart(scores, n, single_root, chart, arc_keys, keys):
    """Fill the chart of one item; with ``keys``, a second chart for the summed keys, ties are broken by them."""
    for j in range(n + 1):
        _begin_row(j, chart, -np.inf)
        _begin_row(j, keys, 0)
        for i in range(j - 1, 0, -1):
            here = cell(i, j)
            left_arc = chart[INNER, here] + scores[j, i]
            left_key = 0 if keys is None else keys[INNER, here] + arc_keys[j, i]
            chart[RIGHT_ARC, here] = chart[INNER, here] + scores[i, j]
            if keys is not None:
                keys[RIGHT_ARC, here] = keys[INNER, here] + arc_keys[i, j]
            _raise(chart, keys, LEFT, here, left_arc, left_key)
            _raise(chart, keys, RIGHT, here, chart[RIGHT_ARC, here], _at(keys, RIGHT_ARC, here))
            _combine(chart, keys, INNER, i, j, RIGHT, i - 1, chart[LEFT, here], _at(keys, LEFT, here))
            _combine(chart, keys, LEFT, i, j, LEFT, i, left_arc, left_key)
            _combine(chart, keys, RIGHT, i, j, RIGHT_ARC, i, chart[RIGHT, here], _at(keys, RIGHT, here))
        if j > 0:
            _close_at_root(scores, n, single_root, chart, arc_keys, keys, j)


@jit
def _close_at_root(scores, n, single_root, chart, arc_keys, keys, j):
    """The spans from node 0 to word j, the last ones of row j."""
    here = cell(0, j)
    chart[RIGHT_ARC, here] = chart[INNER, here] + scores[0, j]
    if keys is not None:
        keys[RIGHT_ARC, here] = keys[INNER, here] + arc_keys[0, j]
    _raise(chart, keys, RIGHT, here, chart[RIGHT_ARC, here], _at(keys, RIGHT_ARC, here))
    if single_root and j < n:
        chart[RIGHT, here] = -np.inf


@jit
def _begin_row(j, chart, worst):
    """Row j before any span that ends at j is known but the one of j alone."""
    if chart is None:
        return
    begin = cell(0, j)
    for kind in (RIGHT, LEFT):
        for i in range(j):
            chart[kind, begin + i] = worst
        chart[kind, begin + j] = 0
    for i in range(j):
        chart[INNER, begin + i] = chart[RIGHT, begin - j + i]


@jit
def _at(chart, kind, place):
    return 0 if chart is None else chart[kind, place]


@jit
def _row(chart, kind, j, count):
    """The first cells of a row."""
    return chart[kind, cell(0, j) : cell(count, j)]


@jit
def _raise(chart, keys, kind, place, score, key):
    """Put a better score into a cell."""
    best = chart[kind, place]
    if keys is None:
        chart[kind, place] = score if score > best else best
    elif score > best or (score == best and key > keys[kind, place]):
        chart[kind, place], keys[kind, place] = score, key


@jit
def _combine(chart, keys, kind, i, j, other_kind, end, score, key):
    """Append a span that ends at j to those of another kind from 0 .. i-1 to ``end``, for spans to j of this kind."""
    best, other = _row(chart, kind, j, i), _row(chart, other_kind, end, i)
    if keys is None:
        for begin in range(i):
            candidate = other[begin] + score
            best[begin] = candidate if candidate > best[begin] else best[begin]
    else:
        best_keys, other_keys = _row(keys, kind, j, i), _row(keys, other_kind, end, i)
        for begin in range(i):
            candidate, candidate_key = other[begin] + score, other_keys[begin] + key
            better = candidate > best[begin] or (candidate == best[begin] and candidate_key > best_keys[begin])
            best[begin] = candidate if better else best[begin]
            best_keys[begin] = candidate_key if better else best_keys[begin]


@jit
def span(kind, i, j):
    """A span as one number."""
    return (kind << 2 * BITS) | (j << BITS) | i


@jit
def parts_of_span(number):
    """Kind, first and last node of a span."""
    mask = (1 << BITS) - 1
    return number >> 2 * BITS, number & mask, (number >> BITS) & mask


@jit
def split_range(kind, i, j):
    """Where a span can be split, as a range; at least one place unless i = j."""
    return (i + 1, j + 1) if kind == RIGHT else (i, j)


@jit
def halves(kind, i, j, k):
    """The spans into which a split takes a span; what lies under the arc, where there is one, is the first."""
    if kind == RIGHT:
        return span(INNER, i, k), span(RIGHT, k, j)
    if kind == LEFT:
        return span(INNER, k, j), span(LEFT, i, k)
    return span(RIGHT, i, k), span(LEFT, k + 1, j)


@jit
def split_score(arcs, chart, kind, i, j, k):
    """The best score of a span split at k, or the key that goes with it; the same bits as in ``fill_chart``."""
    if kind == RIGHT:
        return chart[RIGHT_ARC, cell(i, k)] + chart[RIGHT, cell(k, j)]
    if kind == LEFT:
        return (chart[INNER, cell(k, j)] + arcs[j, k]) + chart[LEFT, cell(i, k)]
    return chart[RIGHT, cell(i, k)] + chart[LEFT, cell(k + 1, j)]


@jit
def _read_tree(scores, n, chart, arc_keys, keys, stack, heads):
    """Write the best tree's heads, from the whole sentence's span down; False at the first tie there is."""
    stack[0] = span(RIGHT, 0, n)
    depth = 1
    while depth > 0:
        depth -= 1
        kind, i, j = parts_of_span(stack[depth])
        k = _best_split(scores, chart, arc_keys, keys, kind, i, j)
        if k < 0:
            return False
        if kind != INNER:
            heads[k] = i if kind == RIGHT else j
        for half in halves(kind, i, j, k):
            _, first, last = parts_of_span(half)
            if first < last:
                stack[depth] = half
                depth += 1
    return True


@jit
def _best_split(scores, chart, arc_keys, keys, kind, i, j):
    """The place whose split has the score of the span and, with keys, the key of it; -1 if that leaves two places."""
    here, found = cell(i, j), -1
    begin, end = split_range(kind, i, j)
    for k in range(begin, end):
        if split_score(scores, chart, kind, i, j, k) == chart[kind, here]:
            if keys is None:
                if found >= 0:
                    return -1
                found = k
            elif split_score(arc_keys, keys, kind, i, j, k) == keys[kind, here]:
                found = k
    return found
