"""Sums over projective trees with scores of adjacent siblings, in O(n^3) ([Lec]; McDonald and Pereira 2006).

``treeparse.kernels.spans`` has the spans and their splits, here with one context. Their weights, i < j, are

    arc(i, j) = w(i -> j) * (sum over i <= k < j of arc(i, k) mid(k, j) e(i -> j, k))
    arc(j, i) = w(j -> i) * (sum over i < k <= j of mid(i, k) arc(j, k) e(j -> i, k))
    mid(i, j) = sum over i <= k < j of full(i, k) full(j, k + 1)
    full(i, j) = sum over i < k <= j of arc(i, k) full(k, j)
    full(j, i) = sum over i <= k < j of arc(j, k) full(k, i)

where e are the weights of siblings and full(i, i) = 1. A first dependent, k = i or k = j, has a term of its own, with
what it heads towards the head in the place of arc and mid: full(j, i + 1) or full(i, j - 1). All other sums of a pair
run over i < k < j, over rows of whole vectors (``rows``), and pairs of one length do not wait for one another.

Marginals follow by reverse mode, and products with the Hessian by dual numbers, as in ``inside_outside``. A weight w is
multiplied by the largest of its arc's e, which are divided by it, and then each word's weights are divided by their
sum. The heads of a tree determine its siblings, so no span's weight is above 1, and what underflows changes no
probability by more than 1e-28 if Z is above ``SAFE``. Otherwise the item is done in logs (``in_logs.spans``).

The e lie one after the other by the lengths of arcs, in the order of their use.
"""

from typing import Any, NamedTuple

import numpy as np

from treeparse.kernels.arrays import AnyFloatArray, FloatArray, IntArray, places_of_nan
from treeparse.kernels.compile import exact_kernel, kernel
from treeparse.kernels.copies import copy_below_max, copy_multiple
from treeparse.kernels.exponential import exponentiate
from treeparse.kernels.rows import over_rows, whole
from treeparse.kernels.spans import packed_at, packed_size, place_of
from treeparse.kernels.sums.centring import MIN_SCALE
from treeparse.kernels.sums.in_logs.spans import LOG_MARGINALS, LOG_PARTITION, MARGINALS, PRODUCT, sum_items
from treeparse.kernels.sums.inside_outside import SAFE, STEP
from treeparse.kernels.threads import run_batch
from treeparse.kernels.vectors import LANES, constant, multiply_add
from treeparse.kernels.weights import square, weigh_sums, word_rows

CHARTS = 8
FULL, ARC, MID, FULL_T, OUTER_FULL, OUTER_ARC, OUTER_MID, OUTER_FULL_T = range(CHARTS)  # begins as in ``spans``


def log_partition(
    arcs: FloatArray, siblings: AnyFloatArray, lengths: IntArray, *, single_root: bool, threads: int = 1
) -> FloatArray:
    """Return the log of the summed weight of all trees ``(B,)``, -inf without a tree.

    Scores are ``(B, n+1, n+1)`` of arcs and ``(B, n+1, n+1, n+1)`` of siblings, float32 or float64.
    """
    log_z = np.empty(len(lengths))
    arguments = lengths, arcs, siblings, single_root, log_z, arcs[:0], siblings[:0]
    run_batch(_sum_trees, lambda n: 2 * n**3, *arguments, threads=threads)
    batch, options = ((arcs, siblings), lengths, places_of_nan(log_z)), {"single_root": single_root, "threads": threads}
    sum_items(*batch, LOG_PARTITION, log_z, **options)
    return log_z


def log_partition_and_marginals(
    arcs: FloatArray, siblings: AnyFloatArray, lengths: IntArray, *, single_root: bool, threads: int = 1
) -> tuple[FloatArray, FloatArray, AnyFloatArray]:
    """Return the log partition ``(B,)`` and the probabilities of all arcs and siblings, 0 without a tree."""
    log_z, results = np.empty(len(lengths)), (np.zeros_like(arcs), np.zeros_like(siblings))
    arguments = lengths, arcs, siblings, single_root, log_z, *results
    run_batch(_sum_trees, lambda n: 5 * n**3, *arguments, threads=threads)
    batch, options = ((arcs, siblings), lengths, places_of_nan(log_z)), {"single_root": single_root, "threads": threads}
    sum_items(*batch, MARGINALS, log_z, results, **options)
    return log_z, *results


def log_marginals(
    arcs: FloatArray, siblings: AnyFloatArray, lengths: IntArray, *, single_root: bool, threads: int = 1
) -> tuple[FloatArray, AnyFloatArray]:
    """Return the log probabilities of all arcs and siblings in nats, -inf exactly where no tree has them."""
    results = np.full_like(arcs, -np.inf), np.full_like(siblings, -np.inf)
    batch, options = (arcs, siblings), {"single_root": single_root, "threads": threads}
    sum_items(batch, lengths, np.arange(len(arcs)), LOG_MARGINALS, np.empty(len(arcs)), results, **options)
    return results


def hessian_vector_product(
    arcs: FloatArray,
    siblings: AnyFloatArray,
    lengths: IntArray,
    arc_vectors: FloatArray,
    sibling_vectors: AnyFloatArray,
    *,
    single_root: bool,
    threads: int = 1,
) -> tuple[FloatArray, AnyFloatArray]:
    """Return the Hessian of the log partition in all scores times vectors of these shapes.

    Ignored entries, forbidden parts and items without a tree have 0, whatever the vectors hold there.
    """
    parts, vectors = (arcs, siblings), (arc_vectors, sibling_vectors)
    results, in_logs = (np.zeros_like(arcs), np.zeros_like(siblings)), np.zeros(len(lengths), np.bool_)
    arguments = lengths, *parts, *vectors, single_root, in_logs, *results
    run_batch(_multiply, lambda n: 20 * n**3, *arguments, threads=threads)
    batch, options = (parts, lengths, in_logs.nonzero()[0]), {"single_root": single_root, "threads": threads}
    sum_items(*batch, PRODUCT, np.empty(len(lengths)), results, vectors, **options)
    return results


class SiblingMemory(NamedTuple):
    """Working memory for items of up to n words."""

    charts: FloatArray
    packed: FloatArray  # the weights of siblings
    weights: FloatArray  # of arcs, ``word_rows``


@exact_kernel
def new_memory(n):
    """Return memory for items of up to n words.

    It is 0 at first: vectors are read beyond the ends of rows, and products of denormal numbers, as which other data
    reads, take an Intel processor so long that short sentences took twice the time.
    """
    return SiblingMemory(np.zeros(charts_size(n)), np.zeros(packed_size(n)), np.zeros((n + 1) * whole(n + 1)))


@exact_kernel
def weights_of(memory, n):
    """Return the weights of arcs ``[dependent, head]``."""
    return word_rows(memory.weights, n)


@exact_kernel
def load(arcs, siblings, n, single_root, memory):
    """Fill all weights; return the log of what they are divided by in a tree, as ``weigh_sums`` does."""
    w = weights_of(memory, n)
    load_siblings(arcs, siblings, n, single_root, w, memory.packed)
    return weigh_sums(arcs, w, n)


@exact_kernel
def _sum_trees(start, stop, lengths, arcs, siblings, single_root, log_z, arc_results, sibling_results):
    """Store the log partition, NaN where plain weights are not safe, and marginals where there is room for them."""
    memory = new_memory(arcs.shape[1] - 1)
    charts, packed = memory.charts, memory.packed
    for b in range(start, stop):
        n = lengths[b]
        log_z[b] = load(arcs[b], siblings[b], n, single_root, memory)
        if not log_z[b] > -np.inf:
            continue
        w = weights_of(memory, n)
        total = inside(charts, w, packed, n, single_root)
        log_z[b] += np.log(total) if total > SAFE else np.nan
        if total > SAFE and len(arc_results) > 0:
            outside(charts, w, packed, n, single_root)
            _store(charts, packed, n, 1.0, arc_results[b], sibling_results[b])


@exact_kernel
def _multiply(
    start,
    stop,
    lengths,
    arcs,
    siblings,
    arc_vectors,
    sibling_vectors,
    single_root,
    in_logs,
    arc_results,
    sibling_results,
):
    size = arcs.shape[1]
    memory = new_memory(size - 1)
    charts, packed = np.zeros(len(memory.charts), np.complex128), np.zeros(len(memory.packed), np.complex128)
    weights = np.empty(size * size, np.complex128)
    for b in range(start, stop):
        n = lengths[b]
        log_scale = load(arcs[b], siblings[b], n, single_root, memory)
        in_logs[b] = np.isnan(log_scale)
        if not log_scale > -np.inf:
            continue
        w = square(weights, n)
        vectors = arc_vectors[b], sibling_vectors[b]
        scale = _load_vectors(weights_of(memory, n), memory.packed, *vectors, n, w, packed)
        in_logs[b] = not inside(charts, w, packed, n, single_root).real > SAFE
        if not in_logs[b]:
            outside(charts, w, packed, n, single_root)
            memory.charts[:], memory.packed[:] = charts.imag, packed.imag
            _store(memory.charts, memory.packed, n, scale / STEP, arc_results[b], sibling_results[b])


@exact_kernel
def row_width(n):
    """Return the distance of a chart's rows, whose whole vectors then overlap in no other row."""
    return whole(n + LANES)


@exact_kernel
def charts_size(n):
    """Return the size of all charts of n words."""
    return CHARTS * (n + 1) * row_width(n)


@exact_kernel
def _only(score, packed, at):
    """Store the only possible sibling's score less itself, and return it."""
    packed[at] = 0.0 if score > -np.inf else -np.inf
    return score


@exact_kernel
def load_siblings(arcs, siblings, n, single_root, log_w, packed):
    """Fill the weights of siblings over the arc's largest, and log weights of arcs ``[dependent, head]`` with that."""
    nodes = siblings.shape[1]
    for d in range(1, n + 1):
        log_w[d, d] = -np.inf
    for count in range(1, n + 1):
        at = packed_at(n, 0, count)
        for i in range(n + 1 - count):  # in the order of their places: each copy writes over what follows it
            j = i + count
            if count == 1:
                if i > 0:
                    log_w[i, j] = arcs[j, i] + _only(siblings[j, i, j], packed, at)
                    at += 1
                log_w[j, i] = arcs[i, j] + _only(siblings[i, j, i], packed, at)
                at += 1
                continue
            if i > 0:
                source = (j * nodes + i) * nodes + i + 1
                log_w[i, j] = arcs[j, i] + copy_below_max(packed, at, siblings, source, count)
                at += count
            if i == 0 and single_root:
                packed[at : at + count] = -np.inf
                log_w[j, i] = arcs[i, j] + _only(siblings[i, j, i], packed, at)
            else:
                log_w[j, i] = arcs[i, j] + copy_below_max(packed, at, siblings, (i * nodes + j) * nodes + i, count)
            at += count
    exponentiate(packed[: packed_size(n) - LANES])


@over_rows(4, sums=2)
def _side_sums(builder: Any, arcs: Any, fulls: Any, arc: Any, mid: Any, weight: Any, full: Any, inside: Any) -> Any:
    """The sums of ``arc * mid * weight`` and of ``arc * full``."""
    zeros = constant(arc, 0.0)
    arcs = builder.fadd(arcs, builder.select(inside, builder.fmul(builder.fmul(arc, mid), weight), zeros))
    return arcs, builder.fadd(fulls, builder.select(inside, builder.fmul(arc, full), zeros))


@over_rows(2, sums=1)
def _inner_product(builder: Any, total: Any, x: Any, y: Any, inside: Any) -> Any:
    return (builder.fadd(total, builder.select(inside, builder.fmul(x, y), constant(x, 0.0))),)


@exact_kernel
def inside(charts, w, packed, n, single_root):
    """Fill the charts of spans; returns Z."""
    width = row_width(n)
    chart = (n + 1) * width
    arc_at, mid_at, full_t_at = ARC * chart, MID * chart, FULL_T * chart  # and full spans at 0
    for j in range(n + 1):
        charts[j * width + j] = 1.0
    for count in range(1, n):
        for i in range(1, n + 1 - count):
            j, row_i, row_j, at = i + count, i * width, (i + count) * width, packed_at(n, i, i + count)
            inner_i, inner_j = charts[row_i + j - 1], charts[row_j + i + 1]
            right_arc, left_arc = inner_j * packed[at], inner_i * packed[at - 1]
            if count == 1:
                right_arc, left_arc, mid = w[j, i] * right_arc, w[i, j] * left_arc, inner_j
                right, left = right_arc, left_arc
            else:
                i_next, j_next = row_i + i + 1, row_j + i + 1
                rows = charts, arc_at + i_next, charts, mid_at + j_next, packed, at + 1, charts, full_t_at + j_next
                arcs, right = _side_sums(*rows, count - 1)
                right_arc = w[j, i] * (right_arc + arcs)
                right += right_arc
                rows = charts, arc_at + j_next, charts, mid_at + i_next, packed, at - count, charts, full_t_at + i_next
                arcs, left = _side_sums(*rows, count - 1)
                left_arc = w[i, j] * (left_arc + arcs)
                left += left_arc
                mid = inner_j + _inner_product(charts, i_next, charts, j_next + 1, count - 1)
            charts[arc_at + row_i + j], charts[arc_at + row_j + i] = right_arc, left_arc
            charts[row_i + j] = charts[full_t_at + row_j + i] = right
            charts[row_j + i] = charts[full_t_at + row_i + j] = left
            charts[mid_at + row_i + j] = charts[mid_at + row_j + i] = mid
    for j in range(1, n + 1):
        row_j, at = j * width, packed_at(n, 0, j)
        arc = charts[row_j + 1] * packed[at]
        if not single_root:
            rows = charts, arc_at + 1, charts, mid_at + row_j + 1, packed, at + 1, charts, full_t_at + row_j + 1
            arc += _side_sums(*rows, j - 1)[0]
        charts[arc_at + j] = arc = w[j, 0] * arc
        if j == n or not single_root:
            charts[j] = arc + _inner_product(charts, arc_at + 1, charts, full_t_at + row_j + 1, j - 1)
            charts[full_t_at + row_j] = charts[j]
    return charts[n]


@over_rows(7, 2)
def _share_side(
    builder: Any,
    weight: Any,
    outer_arc: Any,
    outer_mid: Any,
    outer_full: Any,
    arc: Any,
    mid: Any,
    full: Any,
    arc_factor: Any,
    full_factor: Any,
    inside: Any,
) -> Any:
    """Add the derivatives of ``_side_sums`` times two factors; the first one's terms replace the weights."""
    weight_and_arc = builder.fmul(builder.fmul(arc_factor, weight), arc)
    weight_and_mid = builder.fmul(builder.fmul(arc_factor, weight), mid)
    added = multiply_add(builder, full_factor, full, weight_and_mid)
    return (
        builder.select(inside, builder.fmul(weight_and_arc, mid), weight),
        builder.select(inside, builder.fadd(outer_arc, added), outer_arc),
        builder.select(inside, builder.fadd(outer_mid, weight_and_arc), outer_mid),
        builder.select(inside, multiply_add(builder, full_factor, arc, outer_full), outer_full),
    )


@over_rows(4, 1)
def _share_factors(builder: Any, outer_x: Any, outer_y: Any, x: Any, y: Any, factor: Any, inside: Any) -> Any:
    """Add the derivatives of ``_inner_product`` times a factor."""
    return (
        builder.select(inside, multiply_add(builder, factor, y, outer_x), outer_x),
        builder.select(inside, multiply_add(builder, factor, x, outer_y), outer_y),
    )


@exact_kernel
def outside(charts, w, packed, n, single_root):
    """Fill the charts of derivatives, and turn arcs and siblings into their marginals: ``inside`` in reverse.

    The derivative of a span is the sum of its two places, ``[h, m]`` and ``[m, h]`` of the transposed chart, each as
    far behind it as the charts of derivatives are behind the others.
    """
    width = row_width(n)
    chart = (n + 1) * width
    arc_at, mid_at, full_t_at, outer = ARC * chart, MID * chart, FULL_T * chart, OUTER_FULL * chart
    for place in range(outer, 2 * outer):
        charts[place] = 0.0
    charts[outer + n] = 1.0 / charts[n]
    for j in range(n, 0, -1):
        row_j, at = j * width, packed_at(n, 0, j)
        of_full = charts[outer + j] + charts[outer + full_t_at + row_j]
        of_arc = charts[outer + arc_at + j] + of_full
        charts[arc_at + j] *= of_arc
        of_arc *= w[j, 0]
        charts[outer + row_j + 1] += of_arc * packed[at]
        packed[at] *= of_arc * charts[row_j + 1]
        if not single_root:
            rows = arc_at + 1, mid_at + row_j + 1, full_t_at + row_j + 1
            _share(charts, packed, at + 1, rows, outer, of_arc, of_full, j - 1)
        elif j == n:
            _share_product(charts, arc_at + 1, full_t_at + row_j + 1, outer, of_full, j - 1)
    for count in range(n - 1, 0, -1):
        for i in range(1, n + 1 - count):
            j, row_i, row_j, at = i + count, i * width, (i + count) * width, packed_at(n, i, i + count)
            i_next, j_next = row_i + i + 1, row_j + i + 1
            of_full = charts[outer + row_i + j] + charts[outer + full_t_at + row_j + i]
            of_arc = charts[outer + arc_at + row_i + j] + of_full
            charts[arc_at + row_i + j] *= of_arc
            of_arc *= w[j, i]
            of_mid = charts[outer + mid_at + row_i + j] + charts[outer + mid_at + row_j + i]
            charts[outer + j_next] += of_arc * packed[at] + of_mid
            packed[at] *= of_arc * charts[j_next]
            rows = arc_at + i_next, mid_at + j_next, full_t_at + j_next
            _share(charts, packed, at + 1, rows, outer, of_arc, of_full, count - 1)
            of_full = charts[outer + row_j + i] + charts[outer + full_t_at + row_i + j]
            of_arc = charts[outer + arc_at + row_j + i] + of_full
            charts[arc_at + row_j + i] *= of_arc
            of_arc *= w[i, j]
            charts[outer + row_i + j - 1] += of_arc * packed[at - 1]
            packed[at - 1] *= of_arc * charts[row_i + j - 1]
            rows = arc_at + j_next, mid_at + i_next, full_t_at + i_next
            _share(charts, packed, at - count, rows, outer, of_arc, of_full, count - 1)
            _share_product(charts, i_next, j_next + 1, outer, of_mid, count - 1)


@exact_kernel
def _share(charts, packed, at, rows, outer, of_arc, of_full, count):
    """Share the derivatives of an arc's span, over its weight, and of the full span among the terms of one side."""
    arc, mid, full = rows
    if count > 0:
        derivatives = charts, outer + arc, charts, outer + mid, charts, outer + full
        _share_side(packed, at, *derivatives, charts, arc, charts, mid, charts, full, of_arc, of_full, count)


@exact_kernel
def _share_product(charts, x, y, outer, factor, count):
    """Share the derivative of an inner product of two rows among them."""
    _share_factors(charts, outer + x, charts, outer + y, charts, x, charts, y, factor, count)


@kernel
def _load_vectors(weights, real, arc_vectors, sibling_vectors, n, w, packed):
    """Fill dual weights, whose tangents are along the vectors over their largest magnitude; return that."""
    scale = MIN_SCALE
    for h in range(n + 1):
        for d in range(1, n + 1):
            if d != h and weights[d, h] > 0.0:
                scale = max(scale, abs(arc_vectors[h, d]))
                at, first, count = place_of(n, h, d)
                for k in range(count):
                    scale = max(scale, abs(sibling_vectors[h, d, first + k]) if real[at + k] > 0.0 else 0.0)
    for h in range(n + 1):
        for d in range(1, n + 1):
            w[d, h] = with_tangent(weights[d, h], arc_vectors[h, d], scale)
            if d != h:
                at, first, count = place_of(n, h, d)
                for k in range(count):
                    packed[at + k] = with_tangent(real[at + k], sibling_vectors[h, d, first + k], scale)
    w[0, 0] = 0.0
    return scale


@exact_kernel
def with_tangent(weight, vector, scale):
    """Return a weight with the tangent along a vector over its scale."""
    return complex(weight, weight * STEP * (vector / scale) if weight > 0.0 else 0.0)


@exact_kernel
def _store(charts, packed, n, factor, arc_results, sibling_results):
    """Store what the charts of arcs and the weights of siblings hold, times a factor."""
    arc_0, width, nodes = ARC * (n + 1) * row_width(n), row_width(n), sibling_results.shape[1]
    for h in range(n + 1):
        for d in range(1, n + 1):
            if d != h:
                arc_results[h, d] = charts[arc_0 + h * width + d] * factor
                at, first, count = place_of(n, h, d)
                copy_multiple(sibling_results, (h * nodes + d) * nodes + first, packed, at, factor, count)
