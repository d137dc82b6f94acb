"""Exact samples of projective trees: from the whole sentence down through the charts of inside sums.

The weight of a span is the sum over its splits; a split is drawn in proportion to its term, and so on within its halves
(Goodman 1998). A tree has one derivation, so trees are drawn in proportion to their weight. Spans are filled once an
item; a tree then takes O(n^2) at worst. Plain weights are used where they are safe, logs otherwise.
"""

from typing import Any

import numpy as np

from treeparse.kernels import IntArray
from treeparse.kernels.compile import exact_kernel
from treeparse.kernels.logspace import exp
from treeparse.kernels.random import choose, choose_by_logs, new_stream, uniform
from treeparse.kernels.spans import (
    ARC,
    ARCS,
    FULL,
    GRANDPARENTS,
    MID,
    SIBLINGS,
    SentenceShape,
    arc_of,
    cell,
    cells_of,
    halves,
    parts_of_span,
    push_halves,
    push_whole,
    splits,
    three_parts,
    whole,
)
from treeparse.kernels.sums import charts, grandparent_charts, spans_in_logs
from treeparse.kernels.threads import run_batch
from treeparse.kernels.tree_weights import square

FULL_SPANS, FULL_T, ARC_SPANS = range(3)  # of plain weights: full spans [head, end], transposed beside, and arcs'


def sample_trees(*arguments: Any, single_root: bool, threads: int = 1) -> IntArray:
    """Draw heads ``(B, count, n+1)`` of trees with replacement; -1 where an item has no tree.

    The arguments are parts and lengths as for ``inside_outside``, then seeds ``(B,)`` of 64 bits, and the count. The
    s-th tree of an item depends on its scores, its seed and s alone.
    """
    *parts, lengths, seeds, count = arguments
    order, heads = len(parts), np.full((len(lengths), count, parts[0].shape[1]), -1)
    kernel, steps = _sample_arcs if order == ARCS else _sample, max(order + 1, 3)
    draws = lengths, order, *three_parts(parts), seeds.view(np.uint64), single_root, heads
    run_batch(kernel, lambda n: 2 * n**steps + count * n**2, *draws, threads=threads)
    return heads


@exact_kernel
def _sample_arcs(start, stop, lengths, order, arcs, siblings, grandparents, seeds, single_root, heads):
    """Draw trees with scores of arcs alone."""
    size = arcs.shape[1]
    (memory, lines), spans = charts.new_memory(size, None), np.empty((3, size, size))
    packed, starts = charts.new_packed(size, None)
    stack, terms = np.empty((4 * size, 2), np.int64), np.empty(size)
    for b in range(start, stop):
        n = lengths[b]
        plain = charts.charts_of(memory, n, None)
        charts.load_arcs(arcs[b], n, plain[charts.WEIGHT])
        log_scale = charts.weigh_words(plain[charts.WEIGHT], n)
        if log_scale == -np.inf:
            continue
        if charts.inside(plain, None, packed, starts, n, single_root, lines) > charts.SAFE:
            _order_spans(plain, n, spans)
            for sample in range(heads.shape[1] if n > 0 else 0):
                _draw_plain(spans, plain[charts.WEIGHT], n, new_stream(seeds[b], sample), stack, heads[b, sample])
        else:
            shape, scores = SentenceShape(n, order, single_root), (arcs[b], siblings[b], grandparents[b])
            _draw_trees(shape, scores, np.empty(cells_of(shape)), False, seeds[b], stack, terms, heads[b])


@exact_kernel
def _order_spans(plain, n, spans):
    """Fill the rows that draws read."""
    for j in range(n + 1):
        spans[FULL_SPANS, j, j] = spans[FULL_T, j, j] = 1.0
        for i in range(j):
            spans[FULL_SPANS, i, j] = spans[FULL_T, j, i] = plain[charts.RIGHT, j, i]
            spans[FULL_SPANS, j, i] = spans[FULL_T, i, j] = plain[charts.LEFT, j, i]
            spans[ARC_SPANS, i, j] = plain[charts.RIGHT_ARC, j, i]
            spans[ARC_SPANS, j, i] = plain[charts.LEFT_ARC, j, i]


@exact_kernel
def _draw_plain(spans, weights, n, stream, stack, heads):
    """Draw one tree: take a full span, or what an arc spans, off the stack, draw its split, and push the halves.

    The stack has head and end of full spans, and of arcs ``-1 - head`` and the dependent. A split is drawn by the
    products of two rows, whose sum is known.
    """
    stack[0, 0], stack[0, 1], height = 0, n, 1
    while height:
        height -= 1
        h, m = stack[height, 0], stack[height, 1]
        is_full, end = h >= 0, max(h, -1 - h)
        left, right = min(end, m), max(end, m)
        if is_full:
            begin, count, total = min(h + 1, m), right - left, spans[FULL_SPANS, h, m]
            x, row, y, other, offset = ARC_SPANS, h, FULL_T, m, begin
        else:
            begin, count, total = left, right - left, spans[ARC_SPANS, end, m] / weights[m, end]
            x, row, y, other, offset = FULL_SPANS, left, FULL_SPANS, right, left + 1
        stream, u = uniform(stream)
        rest, k = u * total, begin
        for place in range(count):
            term = spans[x, row, begin + place] * spans[y, other, offset + place]
            if term > 0.0:
                k = begin + place  # the last possible one by rounding alone
                rest -= term
                if rest < 0.0:
                    break
        if is_full:
            heads[k] = h
            if k != m:
                stack[height, 0], stack[height, 1] = k, m
                height += 1
            stack[height, 0], stack[height, 1] = -1 - h, k
            height += 1
        else:
            if k != left:
                stack[height, 0], stack[height, 1] = left, k
                height += 1
            if k + 1 != right:
                stack[height, 0], stack[height, 1] = right, k + 1
                height += 1


@exact_kernel
def _sample(start, stop, lengths, order, arcs, siblings, grandparents, seeds, single_root, heads):
    """Draw trees with scores of siblings too, and of grandparents if there are any."""
    size = arcs.shape[1]
    nodes = size if order == SIBLINGS else 1
    memory = *charts.new_memory(nodes, siblings), *charts.new_packed(nodes, siblings)
    more_memory = np.empty(grandparent_charts.memory_size(size if order == GRANDPARENTS else 1))
    weights, stack, terms = np.empty(size * size), np.empty((4 * size, 2), np.int64), np.empty(size)
    for b in range(start, stop):
        shape = SentenceShape(lengths[b], order, single_root)
        scores = arcs[b], siblings[b], grandparents[b]
        spans = np.empty(cells_of(shape))
        if order == SIBLINGS:
            is_plain = _fill(shape, scores, memory, spans)
        else:
            n = shape.words
            is_plain = _fill_all(shape, scores, grandparent_charts.charts_of(more_memory, n), square(weights, n), spans)
        _draw_trees(shape, scores, spans, is_plain, seeds[b], stack, terms, heads[b])


@exact_kernel
def _fill(shape, scores, memory, spans):
    """Fill the weights of all spans, up to what all splits of a span share; return whether these are safe."""
    (buffer, lines, packed, starts), (n, _, single_root), (arcs, siblings, _) = memory, shape, scores
    plain = charts.charts_of(buffer, n, siblings)
    charts.load_arcs(arcs, n, plain[charts.WEIGHT])
    charts.load_siblings(siblings, n, single_root, plain, packed, starts)
    if charts.weigh_words(plain[charts.WEIGHT], n) == -np.inf:
        buffer[:] = 0.0
        return False
    if not charts.inside(plain, siblings, packed, starts, n, single_root, lines) > charts.SAFE:
        return False
    cells = spans.reshape(len(spans) // ((n + 1) * (n + 1)), n + 1, n + 1)
    for j in range(n + 1):
        cells[FULL, j, j] = 1.0
        for i in range(j):
            cells[FULL, i, j], cells[FULL, j, i] = plain[charts.RIGHT, j, i], plain[charts.LEFT, j, i]
            cells[ARC, i, j], cells[ARC, j, i] = plain[charts.RIGHT_ARC, j, i], plain[charts.LEFT_ARC, j, i]
            cells[MID, i, j] = plain[charts.BETWEEN_T, i, j]
    return True


@exact_kernel
def _fill_all(shape, scores, plain, weights, spans):
    """Do the same with grandparents."""
    n, _, single_root = shape
    log_scale = grandparent_charts.load(*scores, n, single_root, plain, weights)
    if log_scale == -np.inf or not grandparent_charts.inside(plain, weights, n, single_root) > charts.SAFE:
        return False
    cells = plain.reshape(plain.size)
    for here in range(len(spans)):
        spans[here] = cells[here]
    return True


@exact_kernel
def _draw_trees(shape, scores, spans, is_plain, seed, stack, terms, heads):
    """Draw all trees of an item by the weights of its spans, or by logs that are computed first."""
    if not is_plain:
        spans_in_logs.inside(shape, *scores, spans, terms)
        if spans[cell(shape, whole(shape))] == -np.inf:
            return
    flat, (_, siblings, _) = stack.reshape(stack.size), scores
    for sample in range(len(heads)):
        stream, depth = new_stream(seed, sample), push_whole(shape, flat)
        while depth > 0:
            depth -= 1
            number = flat[depth]
            begin, end = splits(shape, number)
            if is_plain:
                total = _fill_terms(shape, siblings, number, spans, terms)
                stream, place = choose(terms, total, end - begin, stream)
            else:
                spans_in_logs.log_terms(shape, *scores, number, spans, terms)
                stream, place = choose_by_logs(terms, end - begin, stream)
            head, dependent = arc_of(shape, number, begin + place)
            if dependent > 0:
                heads[sample, dependent] = head
            depth = push_halves(shape, number, begin + place, flat, depth)


@exact_kernel
def _fill_terms(shape, siblings, number, spans, terms):
    """Fill the terms of a span's splits, up to what all share; return their sum."""
    (begin, end), (kind, _, h, m), total = splits(shape, number), parts_of_span(number), 0.0
    for k in range(begin, end):
        first, second = halves(shape, number, k)
        terms[k - begin] = spans[cell(shape, first)] * spans[cell(shape, second)]
    if kind == ARC:
        top = -np.inf
        for k in range(begin, end):
            top = max(top, siblings[h, m, k])
        for k in range(begin, end):
            terms[k - begin] *= exp(siblings[h, m, k] - top)
    for place in range(end - begin):
        total += terms[place]
    return total
