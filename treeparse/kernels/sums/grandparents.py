"""Sums over projective trees with scores of siblings and of grandparents, in O(n^4) ([Lec]; Koo and Collins 2010).

``treeparse.kernels.spans`` has the spans and their splits. Their weights, where g is the context, are

    arc(g; h, m) = w(h -> m) eg(h -> m, g) (es(h -> m, h) full(h; m, next to h)
                                            + sum over k between of arc(g; h, k) mid(h; k, m) es(h -> m, k))
    full(g; h, m) = sum over k from h up to m of arc(g; h, k) full(h; k, m)
    mid(c; k, m) = sum over k <= r < m of full(c; k, r) full(c; m, r + 1)

where es and eg are the weights of siblings and grandparents and full(c; h, h) = 1. The numbers of all contexts are one
row, so that all loops are over rows: eg is 0 where g cannot be the head of h, and so then are arc and full. Node 0 has
no head: its arcs have the context 0, with an eg of 1.

Derivatives, scaling and what is done in logs are as in ``siblings``; a weight w is multiplied by the largest eg of its
arc, too, which are divided by it.
"""

from typing import Any, NamedTuple

import numpy as np

from treeparse.kernels.arrays import AnyFloatArray, FloatArray, IntArray, places_of_nan
from treeparse.kernels.compile import exact_kernel, kernel
from treeparse.kernels.copies import copy_multiple, copy_short
from treeparse.kernels.exponential import exponentiate_row
from treeparse.kernels.rows import add_row, fill_row, largest_of_row, over_rows, whole
from treeparse.kernels.spans import (
    ARC,
    FULL,
    KINDS,
    MID,
    AllowedArcs,
    contexts_width,
    find_allowed,
    is_used,
    new_allowed,
    packed_size,
    place_of,
    ranges_of_contexts,
    row_of,
)
from treeparse.kernels.stacks import over_stacks
from treeparse.kernels.sums import siblings as of_siblings
from treeparse.kernels.sums.centring import MIN_SCALE
from treeparse.kernels.sums.in_logs.spans import LOG_MARGINALS, LOG_PARTITION, MARGINALS, PRODUCT, sum_items
from treeparse.kernels.sums.inside_outside import SAFE, STEP
from treeparse.kernels.sums.siblings import with_tangent
from treeparse.kernels.threads import run_batch
from treeparse.kernels.vectors import LANES, multiply_add
from treeparse.kernels.weights import add_tops, square, weigh_sums, word_rows

CHARTS = 2 * KINDS  # of spans and of their derivatives, as in ``spans``
LOWEST_TOP = -1e308  # in the place of -inf, whose difference to itself is no number


def log_partition(
    arcs: FloatArray,
    siblings: AnyFloatArray,
    grandparents: AnyFloatArray,
    lengths: IntArray,
    *,
    single_root: bool,
    threads: int = 1,
) -> FloatArray:
    """Return the log of the summed weight of all trees ``(B,)``, -inf without a tree.

    Scores are ``(B, n+1, n+1)`` of arcs and ``(B, n+1, n+1, n+1)`` of siblings and of grandparents, these two float32
    or both float64.
    """
    parts, log_z = (arcs, siblings, grandparents), np.empty(len(lengths))
    no_results = tuple(part[:0] for part in parts)
    arguments = lengths, *parts, single_root, log_z, *no_results
    run_batch(_sum_trees, lambda n: n**4 / 2, *arguments, threads=threads)
    batch, options = (parts, lengths, places_of_nan(log_z)), {"single_root": single_root, "threads": threads}
    sum_items(*batch, LOG_PARTITION, log_z, **options)
    return log_z


def log_partition_and_marginals(
    arcs: FloatArray,
    siblings: AnyFloatArray,
    grandparents: AnyFloatArray,
    lengths: IntArray,
    *,
    single_root: bool,
    threads: int = 1,
) -> tuple[FloatArray, FloatArray, AnyFloatArray, AnyFloatArray]:
    """Return the log partition ``(B,)`` and the probabilities of all parts, 0 without a tree."""
    parts, log_z = (arcs, siblings, grandparents), np.empty(len(lengths))
    results = np.zeros_like(arcs), np.zeros_like(siblings), np.zeros_like(grandparents)
    arguments = lengths, *parts, single_root, log_z, *results
    run_batch(_sum_trees, lambda n: 2 * n**4, *arguments, threads=threads)
    batch, options = (parts, lengths, places_of_nan(log_z)), {"single_root": single_root, "threads": threads}
    sum_items(*batch, MARGINALS, log_z, results, **options)
    return log_z, *results


def log_marginals(
    arcs: FloatArray,
    siblings: AnyFloatArray,
    grandparents: AnyFloatArray,
    lengths: IntArray,
    *,
    single_root: bool,
    threads: int = 1,
) -> tuple[FloatArray, AnyFloatArray, AnyFloatArray]:
    """Return the log probabilities of all parts in nats, -inf exactly where no tree has them."""
    parts, options = (arcs, siblings, grandparents), {"single_root": single_root, "threads": threads}
    results = np.full_like(arcs, -np.inf), np.full_like(siblings, -np.inf), np.full_like(grandparents, -np.inf)
    sum_items(parts, lengths, np.arange(len(arcs)), LOG_MARGINALS, np.empty(len(arcs)), results, **options)
    return results


def hessian_vector_product(
    arcs: FloatArray,
    siblings: AnyFloatArray,
    grandparents: AnyFloatArray,
    lengths: IntArray,
    arc_vectors: FloatArray,
    sibling_vectors: AnyFloatArray,
    grandparent_vectors: AnyFloatArray,
    *,
    single_root: bool,
    threads: int = 1,
) -> tuple[FloatArray, AnyFloatArray, AnyFloatArray]:
    """Return the Hessian of the log partition in all scores times vectors of these shapes.

    Ignored entries, forbidden parts and items without a tree have 0, whatever the vectors hold there.
    """
    parts, vectors = (arcs, siblings, grandparents), (arc_vectors, sibling_vectors, grandparent_vectors)
    results = np.zeros_like(arcs), np.zeros_like(siblings), np.zeros_like(grandparents)
    in_logs = np.zeros(len(lengths), np.bool_)
    arguments = lengths, *parts, *vectors, single_root, in_logs, *results
    run_batch(_multiply, lambda n: 5 * n**4, *arguments, threads=threads)
    batch, options = (parts, lengths, in_logs.nonzero()[0]), {"single_root": single_root, "threads": threads}
    sum_items(*batch, PRODUCT, np.empty(len(lengths)), results, vectors, **options)
    return results


class GrandparentMemory(NamedTuple):
    """Working memory for items of up to n words."""

    charts: FloatArray
    siblings: FloatArray  # weights, packed as in ``spans``
    grandparents: FloatArray  # weights, rows of contexts ``[head, dependent]``
    weights: FloatArray  # of arcs, ``word_rows``
    allowed: AllowedArcs


@exact_kernel
def new_memory(n):
    """Return memory for items of up to n words."""
    size = n + 1
    rows = size * size * contexts_width(n)
    charts, packed, weights = np.empty(CHARTS * rows), np.empty(packed_size(n)), np.empty(rows)
    return GrandparentMemory(charts, packed, weights, np.empty(size * whole(size)), new_allowed(n))


@exact_kernel
def weights_of(memory, n):
    """Return the weights of arcs ``[dependent, head]``."""
    return word_rows(memory.weights, n)


@exact_kernel
def load(arcs, siblings, grandparents, n, single_root, memory):
    """Fill all weights; return the log of what they are divided by in a tree, as ``weigh_sums`` does."""
    w = weights_of(memory, n)
    find_allowed(arcs, n, memory.allowed)
    of_siblings.load_siblings(arcs, siblings, n, single_root, w, memory.siblings)
    _load_grandparents(grandparents, n, w, memory.grandparents)
    return weigh_sums(arcs, w, n)


@exact_kernel
def _load_grandparents(grandparents, n, log_w, weights):
    """Fill the weights of grandparents over the arc's largest, and add its score to the arc's."""
    width, nodes = contexts_width(n), grandparents.shape[1]
    for h in range(n + 1):
        for d in range(1, n + 1):
            if d == h:
                continue
            at, source, top = row_of(n, 0, h, d), (h * nodes + d) * nodes, 0.0
            if log_w[d, h] == -np.inf:
                fill_row(weights, at, 0.0, width)
                continue
            fill_row(weights, at, -np.inf, width)
            if h == 0:
                weights[at] = 0.0
            else:
                i, j = min(h, d), max(h, d)
                copy_short(weights, at, grandparents, source, i)
                copy_short(weights, at + j + 1, grandparents, source + j + 1, n - j)
                top = largest_of_row(weights, at, width)
                log_w[d, h] = add_tops(log_w[d, h], top)
            exponentiate_row(weights, at, max(top, LOWEST_TOP), width)


@exact_kernel
def _sum_trees(
    start,
    stop,
    lengths,
    arcs,
    siblings,
    grandparents,
    single_root,
    log_z,
    arc_results,
    sibling_results,
    grandparent_results,
):
    """Store the log partition, NaN where plain weights are not safe, and marginals where there is room for them."""
    memory = new_memory(arcs.shape[1] - 1)
    charts, packed, weights = memory.charts, memory.siblings, memory.grandparents
    for b in range(start, stop):
        n = lengths[b]
        log_z[b] = load(arcs[b], siblings[b], grandparents[b], n, single_root, memory)
        if not log_z[b] > -np.inf:
            continue
        w = weights_of(memory, n)
        total = inside(charts, w, packed, weights, memory.allowed, n, single_root)
        log_z[b] += np.log(total) if total > SAFE else np.nan
        if total > SAFE and len(arc_results) > 0:
            outside(charts, w, packed, weights, memory.allowed, n, single_root)
            results = arc_results[b], sibling_results[b], grandparent_results[b]
            _store(packed, weights, memory.allowed, n, 1.0, results)


@exact_kernel
def _multiply(
    start,
    stop,
    lengths,
    arcs,
    siblings,
    grandparents,
    arc_vectors,
    sibling_vectors,
    grandparent_vectors,
    single_root,
    in_logs,
    arc_results,
    sibling_results,
    grandparent_results,
):
    size = arcs.shape[1]
    memory = new_memory(size - 1)
    charts, weights = np.empty(len(memory.charts), np.complex128), np.empty(size * size, np.complex128)
    packed = np.empty(len(memory.siblings), np.complex128)
    of_grandparents = np.empty(len(memory.grandparents), np.complex128)
    for b in range(start, stop):
        n = lengths[b]
        log_scale = load(arcs[b], siblings[b], grandparents[b], n, single_root, memory)
        in_logs[b] = np.isnan(log_scale)
        if not log_scale > -np.inf:
            continue
        w = square(weights, n)
        vectors = arc_vectors[b], sibling_vectors[b], grandparent_vectors[b]
        scale = _load_vectors(memory, vectors, n, w, packed, of_grandparents)
        in_logs[b] = not inside(charts, w, packed, of_grandparents, memory.allowed, n, single_root).real > SAFE
        if not in_logs[b]:
            outside(charts, w, packed, of_grandparents, memory.allowed, n, single_root)
            memory.siblings[:], memory.grandparents[:] = packed.imag, of_grandparents.imag
            results = arc_results[b], sibling_results[b], grandparent_results[b]
            _store(memory.siblings, memory.grandparents, memory.allowed, n, scale / STEP, results)


@over_stacks(1, 2)
def _add_products(builder: Any, total: Any, x: Any, y: Any) -> Any:
    return (multiply_add(builder, x, y, total),)


@over_stacks(2, 1, 2, picked=True)
def _add_splits(builder: Any, arcs: Any, fulls: Any, shorter: Any, factors: Any, below: Any) -> Any:
    """Add the splits between head and dependent to the weights of ARC, but for those of the arc, and of FULL."""
    return multiply_add(builder, shorter, factors, arcs), multiply_add(builder, shorter, below, fulls)


@over_stacks(1, 1, 1, picked=True)
def _add_multiples(builder: Any, fulls: Any, shorter: Any, below: Any) -> Any:
    return (multiply_add(builder, shorter, below, fulls),)


@over_rows(2, 1)
def _multiply_row(builder: Any, row: Any, factors: Any, numbers: Any, inside: Any) -> Any:
    """``_multiply_row(row, at, factors, factors_at, number, count)``: multiply a row by another one and a number."""
    return (builder.fmul(builder.fmul(row, factors), numbers),)


@exact_kernel
def inside(charts, w, packed, weights, allowed, n, single_root):
    """Fill the charts of spans; returns Z."""
    width, one = contexts_width(n), w[0, 0] + 1.0  # w[0, 0] is 0
    for j in range(n + 1):
        fill_row(charts, row_of(n, FULL, j, j), one, width)
    for count in range(1, n + 1):
        for i in range(n + 1 - count):
            j = i + count
            _add_arc(charts, w, packed, weights, allowed, n, i, j, i == 0 and single_root)
            if i > 0:
                _add_arc(charts, w, packed, weights, allowed, n, j, i, False)
                mid, left, right = row_of(n, MID, i, j), row_of(n, FULL, i, i), row_of(n, FULL, j, i + 1)
                fill_row(charts, mid, 0.0 * one, width)
                heads = allowed.heads[i] & allowed.heads[j]
                for at in range(0, width if heads != 0 else 0, LANES):
                    if is_used(heads, at, i, j):
                        _add_products(charts, mid + at, charts, left + at, width, charts, right + at, width, count)
    return charts[row_of(n, FULL, 0, n)]


@exact_kernel
def _add_arc(charts, w, packed, weights, allowed, n, h, m, only_one):
    """Fill the spans ARC and FULL of head h up to m; with ``only_one`` h has no second dependent."""
    width, i, j, (at, first, _) = contexts_width(n), min(h, m), max(h, m), place_of(n, h, m)
    arc, full, inner = row_of(n, ARC, h, m), row_of(n, FULL, h, m), row_of(n, FULL, m, h + 1 if h < m else h - 1) + h
    is_arc, is_full = w[m, h] != 0.0, False
    fill_row(charts, arc, packed[at + h - first] * charts[inner], width)
    fill_row(charts, full, 0.0 * w[0, 0], width)
    if not only_one:
        factors, below = row_of(n, KINDS, 0, 0), row_of(n, KINDS, 0, 0) + n + 1  # where derivatives will lie
        dependents, start, heads = allowed.dependents[h], allowed.before[h, i + 1], allowed.heads[h]
        count = allowed.before[h, j] - start
        for index in range(count):
            k = dependents[start + index]
            charts[below + index] = charts[row_of(n, FULL, k, m) + h]
            is_full = is_full or charts[below + index] != 0.0
            if is_arc:
                charts[factors + index] = packed[at + k - first] * charts[row_of(n, MID, min(k, m), max(k, m)) + h]
        shorter = row_of(n, ARC, h, 0)
        for lane in range(0, width if count > 0 and (is_arc or is_full) else 0, LANES):
            if not is_used(heads, lane, i, j):
                continue
            stack = charts, shorter + lane, width, dependents, start
            if is_arc:
                _add_splits(charts, arc + lane, charts, full + lane, *stack, charts, factors, charts, below, count)
            else:
                _add_multiples(charts, full + lane, *stack, charts, below, count)
    elif m == n:
        for k in range(1, n):
            add_row(charts, full, charts, row_of(n, ARC, 0, k), charts[row_of(n, FULL, k, n)], 1)
    _multiply_row(charts, arc, weights, row_of(n, 0, h, m), w[m, h], width)
    if not only_one or m == n:
        add_row(charts, full, charts, arc, w[0, 0] + 1.0, width)


@over_rows(3)
def _to_marginals(builder: Any, weights: Any, arc: Any, outer: Any, inside: Any) -> Any:
    """Turn the weights of an arc's grandparents into marginals, and its span's derivatives into those over these."""
    marginals = builder.fmul(arc, outer)
    return marginals, arc, builder.fmul(weights, outer)


@over_rows(5)
def _share_products(builder: Any, of_x: Any, of_y: Any, x: Any, y: Any, outer: Any, inside: Any) -> Any:
    """Add to the derivatives of two rows what a sum of their products shares to them."""
    return multiply_add(builder, outer, y, of_x), multiply_add(builder, outer, x, of_y)


@over_rows(1, sums=1)
def _sum(builder: Any, total: Any, row: Any, inside: Any) -> Any:
    return (builder.fadd(total, row),)


@over_rows(4, 2, sums=2)
def _share_row(
    builder: Any,
    of_arcs: Any,
    of_fulls: Any,
    outer: Any,
    row: Any,
    outer_arc: Any,
    outer_full: Any,
    arc_factor: Any,
    full_factor: Any,
    inside: Any,
) -> Any:
    """Add to the derivatives of a row what two sums share to it; the sums are the derivatives of its two factors."""
    of_arcs, of_fulls = multiply_add(builder, outer_arc, row, of_arcs), multiply_add(builder, outer_full, row, of_fulls)
    outer = multiply_add(builder, arc_factor, outer_arc, multiply_add(builder, full_factor, outer_full, outer))
    return of_arcs, of_fulls, outer


@exact_kernel
def outside(charts, w, packed, weights, allowed, n, single_root):
    """Turn weights of siblings and of grandparents and the spans of arcs into marginals: ``inside`` in reverse."""
    outer = row_of(n, KINDS, 0, 0)
    for place in range(outer, 2 * outer):
        charts[place] = 0.0
    whole_sentence = row_of(n, FULL, 0, n)
    charts[outer + whole_sentence] = 1.0 / charts[whole_sentence]
    for count in range(n, 0, -1):
        for i in range(n + 1 - count):
            j = i + count
            _share_arc(charts, w, packed, weights, allowed, n, i, j, i == 0 and single_root)
            if i > 0:
                _share_arc(charts, w, packed, weights, allowed, n, j, i, False)
                mid, ranges = outer + row_of(n, MID, i, j), allowed.ranges
                for index in range(ranges_of_contexts(allowed, allowed.heads[i] & allowed.heads[j], n, i, j)):
                    at, length = ranges[2 * index], ranges[2 * index + 1] - ranges[2 * index]
                    for r in range(i, j):
                        x, y = row_of(n, FULL, i, r) + at, row_of(n, FULL, j, r + 1) + at
                        of_both = charts, outer + x, charts, outer + y
                        _share_products(*of_both, charts, x, charts, y, charts, mid + at, length)


@over_rows(3, 1, sums=1)
def _share_full(builder: Any, of_fulls: Any, outer: Any, row: Any, outer_full: Any, factor: Any, inside: Any) -> Any:
    """Add to the derivatives of a row what the sum FULL shares to it; the sum is the derivative of its factor."""
    return multiply_add(builder, outer_full, row, of_fulls), multiply_add(builder, factor, outer_full, outer)


@exact_kernel
def _share_arc(charts, w, packed, weights, allowed, n, h, m, only_one):
    """Share the derivatives of the spans ARC and FULL of head h up to m, as ``_add_arc`` adds them up."""
    i, j, has_full = min(h, m), max(h, m), not only_one or m == n
    if allowed.before[h, m] < allowed.before[h, m + 1]:
        _share_first(charts, w, packed, weights, n, h, m, has_full)
    ranges = allowed.ranges, ranges_of_contexts(allowed, allowed.heads[h], n, i, j)
    if w[m, h] != 0.0:
        _share_splits(charts, w, packed, ranges, n, h, m, only_one)
    elif has_full:
        for place in range(allowed.before[h, i + 1], allowed.before[h, j]):
            _share_split_of_full(charts, ranges, n, h, m, allowed.dependents[h, place])


@exact_kernel
def _share_first(charts, w, packed, weights, n, h, m, has_full):
    """Share the derivatives of ARC with m as the first dependent, and turn the weights of grandparents into marginals.

    From here on the derivatives of ARC are those of the sum that the weights multiply, but for w.
    """
    width, outer, arc, weight = contexts_width(n), row_of(n, KINDS, 0, 0), row_of(n, ARC, h, m), row_of(n, 0, h, m)
    at, first, count = place_of(n, h, m)
    if has_full:
        add_row(charts, outer + arc, charts, outer + row_of(n, FULL, h, m), w[0, 0] + 1.0, width)
    if w[m, h] == 0.0:
        fill_row(weights, weight, 0.0 * w[0, 0], width)
        for place in range(at, at + count):
            packed[place] = 0.0
        return
    _to_marginals(weights, weight, charts, arc, charts, outer + arc, width)
    of_first = w[m, h] * _sum(charts, outer + arc, width)
    inner = row_of(n, FULL, m, h + 1 if h < m else h - 1) + h
    charts[outer + inner] += of_first * packed[at + h - first]
    packed[at + h - first] *= of_first * charts[inner]


@exact_kernel
def _share_splits(charts, w, packed, ranges, n, h, m, only_one):
    """Share the derivatives of ARC and FULL with further dependents, and turn weights of siblings into marginals."""
    outer, arc, full = row_of(n, KINDS, 0, 0), row_of(n, ARC, h, m), row_of(n, FULL, h, m)
    has_full, (at, first, _) = not only_one or m == n, place_of(n, h, m)
    for k in range(min(h, m) + 1, max(h, m)):
        if w[k, h] == 0.0:
            packed[at + k - first] = 0.0
            continue
        row, full_factor = row_of(n, ARC, h, k), row_of(n, FULL, k, m) + h
        mid, arc_factor = row_of(n, MID, min(k, m), max(k, m)) + h, 0.0 * w[0, 0]
        if not only_one:
            arc_factor = w[m, h] * packed[at + k - first] * charts[mid]
        factor = charts[full_factor] if has_full else 0.0 * w[0, 0]
        of_arc = of_full = 0.0 * w[0, 0]
        for index in range(ranges[1]):
            lane, length = ranges[0][2 * index], ranges[0][2 * index + 1] - ranges[0][2 * index]
            rows = charts, outer + row + lane, charts, row + lane
            outer_rows = charts, outer + arc + lane, charts, outer + full + lane
            shares = _share_row(*rows, *outer_rows, arc_factor, factor, length)
            of_arc += shares[0]
            of_full += shares[1]
        if has_full:
            charts[outer + full_factor] += of_full
        if not only_one:
            charts[outer + mid] += of_arc * w[m, h] * packed[at + k - first]
            packed[at + k - first] = of_arc * arc_factor


@exact_kernel
def _share_split_of_full(charts, ranges, n, h, m, k):
    """Share the derivatives of FULL with the dependent k, where there is no arc from h to m."""
    outer, row, full, factor = (
        row_of(n, KINDS, 0, 0),
        row_of(n, ARC, h, k),
        row_of(n, FULL, h, m),
        row_of(n, FULL, k, m) + h,
    )
    if charts[factor] == 0.0:
        return
    for index in range(ranges[1]):
        lane, length = ranges[0][2 * index], ranges[0][2 * index + 1] - ranges[0][2 * index]
        rows = charts, outer + row + lane, charts, row + lane, charts, outer + full + lane
        charts[outer + factor] += _share_full(*rows, charts[factor], length)


@kernel
def _load_vectors(memory, vectors, n, w, packed, weights):
    """Fill dual weights, whose tangents are along the vectors over their largest magnitude; return that."""
    scale, real_weights, real_w = MIN_SCALE, memory.grandparents, weights_of(memory, n)
    of_arcs, sibling_vectors, grandparent_vectors = vectors
    for h in range(n + 1):
        for d in range(1, n + 1):
            if d == h or real_w[d, h] == 0.0:
                continue
            scale = max(scale, abs(of_arcs[h, d]))
            at, first, count = place_of(n, h, d)
            for k in range(count):
                is_used = memory.siblings[at + k] > 0.0
                scale = max(scale, abs(sibling_vectors[h, d, first + k]) if is_used else 0.0)
            row = row_of(n, 0, h, d)
            for g in range(n + 1 if h > 0 else 0):
                scale = max(scale, abs(grandparent_vectors[h, d, g]) if real_weights[row + g] > 0.0 else 0.0)
    for place in range(len(weights)):
        weights[place] = complex(real_weights[place], 0.0)
    for h in range(n + 1):
        for d in range(1, n + 1):
            w[d, h] = with_tangent(real_w[d, h], of_arcs[h, d], scale)
            if d == h:
                continue
            at, first, count = place_of(n, h, d)
            for k in range(count):
                vector = sibling_vectors[h, d, first + k]
                packed[at + k] = with_tangent(memory.siblings[at + k], vector, scale)
            row = row_of(n, 0, h, d)
            for g in range(n + 1 if h > 0 else 0):
                weights[row + g] = with_tangent(real_weights[row + g], grandparent_vectors[h, d, g], scale)
    w[0, 0] = 0.0
    return scale


@exact_kernel
def _store(packed, weights, allowed, n, factor, results):
    """Store the marginals of allowed arcs, which have taken the places of weights, times a factor."""
    of_arcs, siblings, grandparents = results
    width, nodes = contexts_width(n), siblings.shape[1]
    for h in range(n + 1):
        for index in range(allowed.before[h, n + 1]):
            d = allowed.dependents[h, index]
            row, source = row_of(n, 0, h, d), (h * nodes + d) * nodes
            of_arcs[h, d] = factor * _sum(weights, row, width)
            at, first, count = place_of(n, h, d)
            copy_multiple(siblings, source + first, packed, at, factor, count)
            if h > 0:
                copy_multiple(grandparents, source, weights, row, factor, n + 1)
