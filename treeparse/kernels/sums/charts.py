"""Sums over projective trees with scores of arcs, and of adjacent siblings, in O(n^3) (Eisner 1996; [Lec]).

A span from node i to node j is of one of five kinds, and its weight is the sum over its splits:

    right      complete, headed by i    right(i, j) = sum over i < k <= j of right_arc(i, k) right(k, j)
    left       complete, headed by j    left(i, j)  = sum over i <= k < j of left_arc(k, j) left(i, k)
    between    what an arc spans        between(i, j) = sum over i <= k < j of right(i, k) left(k+1, j)
    right_arc  the arc i -> j too       right_arc(i, j) = w(i -> j) inner_right(i, j)
    left_arc   the arc j -> i too       left_arc(i, j) = w(j -> i) inner_left(i, j)

where right(i, i) = left(i, i) = 1. Without siblings inner_right and inner_left are between. With the weights e of
siblings they are sums over the sibling k next to the dependent, or over its lack, whose weight is e(i -> j, i):

    inner_right(i, j) = e(i -> j, i) left(i+1, j) + sum over i < k < j of right_arc(i, k) between(k, j) e(i -> j, k)
    inner_left(i, j) = e(j -> i, j) right(i, j-1) + sum over i < k < j of between(i, k) left_arc(k, j) e(j -> i, k)

Every projective tree is one derivation of right(0, n) and no other, so that is Z. For a single root right(0, j) is 0
where 0 < j < n: after its first dependent node 0 cannot take a second one.

The outside of a span is the derivative of log Z in it, by reverse mode through the inside pass. The marginal of an arc
or a sibling is its weight times the derivative in it. Nothing is subtracted: small ones keep their relative accuracy.

A product with the Hessian is the derivative of the marginals along a vector v, by a complex step (Squire and Trapp
1998): the same passes run on ``w (1 + i STEP v)``. Imaginary parts are then ``STEP`` times the derivatives along v of
real parts, which themselves change by no more than rounding.

A weight w is multiplied by the largest e of its arc, which are divided by it; then the weights of every word are
divided by their sum. No span's weight is then above 1, and a cell loses 1e-308 at most by underflow: where Z is above
``SAFE``, no more than 1e-28 of any probability. Otherwise the log partition is NaN.

Spans from i to j are at ``[j, i]``, and rows are filled from the right to the left. As soon as the weight of a span is
known, it is combined with all spans that end where it begins, so every inner loop runs over contiguous cells. For sums
over siblings two charts are also transposed, and the weights of an arc's siblings are whole vectors, with zeros.
"""

import math

import numpy as np

from treeparse.kernels.compile import exact_kernel, kernel, maximum_kernel
from treeparse.kernels.logspace import exp
from treeparse.kernels.tree_weights import LANES, multiplied, padded

LARGEST_EXPONENT = 1023  # of a power of 2 that is finite
MIN_SCALE = 1e-300  # of vectors, because nothing is divided by 0
SAFE = 1e-280
STEP = 2.0**-40  # its square, times that of a thousand words, is below rounding
NODES, VECTORS = 2**40 - 1, 2**40 - LANES  # bits by which LLVM sees that an index is not negative, and vectorises
CHARTS = 8
WEIGHT, RIGHT, LEFT, RIGHT_ARC, LEFT_ARC, OUTER_RIGHT, OUTER_LEFT, OUTER_RIGHT_ARC = range(CHARTS)
SIBLING_CHARTS = 13
OUTER_BETWEEN_T, OUTER_RIGHT_ARC_T, BETWEEN_T, RIGHT_ARC_T, FIRST = range(CHARTS, SIBLING_CHARTS)
LINES = 4


@exact_kernel
def sum_trees(start, stop, lengths, arcs, siblings, single_root, log_z, arc_results, sibling_results):
    """Store the log partition, NaN where plain weights are not safe, and marginals where there is room for them.

    Without scores of siblings, these and their results are None: numba leaves out what is done with them.
    """
    memory, lines, (packed, starts) = *new_memory(arcs.shape[1], siblings), new_packed(arcs.shape[1], siblings)
    for b in range(start, stop):
        n = lengths[b]
        charts = charts_of(memory, n, siblings)
        load_arcs(arcs[b], n, charts[WEIGHT])
        if siblings is not None:
            load_siblings(siblings[b], n, single_root, charts, packed, starts)
        log_z[b] = weigh_words(charts[WEIGHT], n)
        if log_z[b] == -np.inf:
            memory[:] = 0.0
            continue
        total = inside(charts, siblings, packed, starts, n, single_root, lines)
        log_z[b] += np.log(total) if total > SAFE else np.nan
        if total > SAFE and len(arc_results) > 0:
            outside(charts, siblings, packed, starts, n, single_root, lines)
            store_arcs(charts, n, arc_results[b])
            if siblings is not None:
                unpack(charts[FIRST], packed, starts, n, sibling_results[b])


@exact_kernel
def multiply(
    start, stop, lengths, arcs, siblings, arc_vectors, sibling_vectors, single_root, log_z, arc_results, sibling_results
):
    """Store products of the Hessian with vectors; mark items that are not safe as ``sum_trees`` does."""
    size = arcs.shape[1]
    memory, lines, (packed, starts) = *new_memory(size, siblings), new_packed(size, siblings)
    packed_vectors, _ = new_packed(size, siblings)
    all_charts, all_lines = np.zeros(len(memory), np.complex128), np.zeros(lines.shape, np.complex128)
    all_packed = np.empty(len(packed), np.complex128)
    for b in range(start, stop):
        n = lengths[b]
        charts, duals = charts_of(memory, n, siblings), charts_of(all_charts, n, siblings)
        memory[:] = 0.0  # vectors of another item may have been NaN
        load_arcs(arcs[b], n, charts[WEIGHT])
        if siblings is not None:
            load_siblings(siblings[b], n, single_root, charts, packed, starts)
        log_z[b] = weigh_words(charts[WEIGHT], n)
        if log_z[b] == -np.inf:
            continue
        all_charts[:], all_lines[:] = 0.0, 0.0
        size = charts[WEIGHT].size
        load_arcs(arc_vectors[b], n, charts[RIGHT])
        centre(charts[WEIGHT], n, charts[RIGHT])
        scale = largest(charts[WEIGHT].reshape(size), charts[RIGHT].reshape(size), MIN_SCALE)
        if siblings is not None:
            used = starts[n + 1, 0]
            pack(sibling_vectors[b], n, charts[LEFT], packed_vectors, starts)
            scale = largest(charts[FIRST].reshape(size), charts[LEFT].reshape(size), scale)
            scale = largest(packed[:used], packed_vectors[:used], scale)
        scale = power_of_two(scale)
        add_tangents(charts[WEIGHT].reshape(size), charts[RIGHT].reshape(size), scale, duals[WEIGHT].reshape(size))
        if siblings is not None:
            used = starts[n + 1, 0]
            add_tangents(charts[FIRST].reshape(size), charts[LEFT].reshape(size), scale, duals[FIRST].reshape(size))
            add_tangents(packed[:used], packed_vectors[:used], scale, all_packed)
        total = inside(duals, siblings, all_packed, starts, n, single_root, all_lines).real
        log_z[b] += np.log(total) if total > SAFE else np.nan
        if total > SAFE:
            outside(duals, siblings, all_packed, starts, n, single_root, all_lines)
            take_tangents(all_charts, scale, memory[: charts.size])
            store_arcs(charts, n, arc_results[b])
            if siblings is not None:
                take_tangents(all_packed, scale, packed[: starts[n + 1, 0]])
                unpack(charts[FIRST], packed, starts, n, sibling_results[b])


@exact_kernel
def new_memory(size, siblings):
    """Return memory for the charts of items of up to ``size`` nodes, and lines.

    It is 0 at first and has no infinite numbers later, because padding is read and multiplied by 0.
    """
    width = padded(size - 1)
    return np.zeros((CHARTS if siblings is None else SIBLING_CHARTS) * size * width), np.zeros((LINES, width))


@exact_kernel
def new_packed(size, siblings):
    """Return memory for packed siblings, empty without scores of siblings, and for where they begin.

    It is never None: numba counts references to an array that may be None wherever it is used.
    """
    starts = np.empty((size + 1, size), np.int64)
    return np.zeros(0 if siblings is None else find_starts(size - 1, starts)), starts


@exact_kernel
def charts_of(memory, n, siblings):
    """Return charts whose strides depend on n alone, so an item has the same bits in a batch and alone."""
    count, width = CHARTS if siblings is None else SIBLING_CHARTS, padded(n)
    return memory[: count * (n + 1) * width].reshape(count, n + 1, width)


@exact_kernel
def find_starts(n, starts):
    """Fill where the packed siblings of arcs ``[head, dependent]`` begin; return the size of all."""
    at = 0
    for head in range(n + 1):
        for dependent in range(1, n + 1):
            starts[head, dependent] = at
            at += block_of(min(head, dependent), max(head, dependent))[1]
    starts[n + 1, 0] = at
    return at


@exact_kernel
def block_of(i, j):
    """Return where the vectors with the nodes between i and j begin, and how many nodes they have."""
    begin = (i + 1) & VECTORS
    return begin, (j + LANES - 1 - begin) & VECTORS if j > i + 1 else 0


@kernel
def load_arcs(scores, n, w):
    """Fill scores of arcs ``[dependent, head]``, -inf on the diagonal."""
    for i in range(n + 1):
        for j in range(1, n + 1):
            w[j, i] = scores[i, j]
    for j in range(n + 1):
        w[0, j] = w[j, j] = -np.inf


@kernel
def load_siblings(scores, n, single_root, charts, packed, starts):
    """Fill weights of siblings over each arc's largest, whose score is added to the arc's."""
    first, size = charts[FIRST], find_starts(n, starts)
    packed[:size] = -np.inf
    pack_below_largest(scores, n, single_root, charts[WEIGHT], first, packed, starts)
    for entry in range(size):
        packed[entry] = exp(packed[entry])
    for j in range(n + 1):
        for i in range(n + 1):
            first[j, i] = exp(first[j, i])


# A maximum is vectorised only without NaN.
@maximum_kernel
def pack_below_largest(scores, n, single_root, w, first, packed, starts):
    """Do ``pack`` for scores, less each arc's largest, which is added to ``w``; with a single root node 0 has none."""
    for head in range(n + 1):
        first[0, head] = first[head, head] = -np.inf
        for dependent in range(1, n + 1):
            if dependent == head:
                continue
            top, (k, count, at) = scores[head, dependent, head], siblings_of(head, dependent, starts)
            count = 0 if head == 0 and single_root else count
            for c in range(count):
                top = scores[head, dependent, k + c] if scores[head, dependent, k + c] > top else top
            w[dependent, head] += top
            shift = np.float64(top) if top > -np.inf else 0.0
            first[dependent, head] = scores[head, dependent, head] - shift
            for c in range(count):
                packed[at + c] = scores[head, dependent, k + c] - shift


@exact_kernel
def siblings_of(head, dependent, starts):
    """Return the first possible sibling of an arc, how many there are, and where the first one is packed."""
    first, stop = (min(head, dependent) + 1) & NODES, max(head, dependent)
    return first, stop - first, (starts[head, dependent] + first % LANES) & NODES


@kernel
def pack(numbers, n, first, packed, starts):
    """Fill what siblings have, and ``first[dependent, head]`` of no sibling."""
    for head in range(n + 1):
        first[0, head] = first[head, head] = -np.inf
        for dependent in range(1, n + 1):
            if dependent != head:
                k, count, at = siblings_of(head, dependent, starts)
                first[dependent, head] = numbers[head, dependent, head]
                for c in range(count):
                    packed[at + c] = numbers[head, dependent, k + c]


@kernel
def unpack(first, packed, starts, n, result):
    """Store what ``pack`` fills."""
    for head in range(n + 1):
        for dependent in range(1, n + 1):
            if dependent != head:
                k, count, at = siblings_of(head, dependent, starts)
                result[head, dependent, head] = first[dependent, head]
                for c in range(count):
                    result[head, dependent, k + c] = packed[at + c]


@kernel
def weigh_words(w, n):
    """Turn scores into weights that sum to 1 for every word; return the log of what they were divided by."""
    log_scale, product = 0.0, 1.0
    for i in range(n + 1):
        w[0, i] = 0.0
    for j in range(1, n + 1):
        top, total = -np.inf, 0.0
        for i in range(n + 1):
            top = w[j, i] if w[j, i] > top else top
        if top == -np.inf:
            return top
        for i in range(n + 1):
            weight = exp(w[j, i] - top)
            w[j, i] = weight
            total += weight
        scale = 1.0 / total
        for i in range(n + 1):
            w[j, i] *= scale
        log_scale += top
        product, log_scale = multiplied(product, log_scale, total)
    return log_scale + np.log(product)


@kernel
def centre(w, n, vectors):
    """Subtract from every column of a vector what its best arc has, ``[dependent, head]``.

    This changes nothing, for every tree has one arc into each word; and where the model is confident almost nothing is
    left to cancel.
    """
    for j in range(1, n + 1):
        best = 0
        for i in range(n + 1):
            best = i if w[j, i] > w[j, best] else best
        entry = vectors[j, best]
        for i in range(n + 1):
            vectors[j, i] -= entry


@kernel
def largest(weights, vectors, scale):
    """Return the largest magnitude of a vector, or a larger one."""
    for entry in range(len(weights)):
        magnitude = abs(vectors[entry]) if weights[entry] > 0.0 else 0.0
        scale = magnitude if magnitude > scale else scale
    return scale


@exact_kernel
def power_of_two(number):
    """Return the next power of 2, because a division by it does not round; infinity stays."""
    return math.ldexp(1.0, min(math.frexp(number)[1], LARGEST_EXPONENT)) if number < np.inf else number


@kernel
def add_tangents(weights, vectors, scale, duals):
    """Fill dual weights, whose tangents are along a vector over its scale."""
    for entry in range(len(weights)):
        weight = weights[entry]
        duals[entry] = complex(weight, STEP * weight * (vectors[entry] / scale) if weight > 0.0 else 0.0)


@exact_kernel
def take_tangents(duals, scale, result):
    """Fill what the tangents of results are along a vector."""
    for entry in range(len(result)):
        result[entry] = duals[entry].imag / STEP * scale


@kernel
def inside(charts, siblings, packed, starts, n, single_root, lines):
    """Fill the charts of spans; return Z."""
    w, right, left = charts[WEIGHT], charts[RIGHT], charts[LEFT]
    right_arc, left_arc = charts[RIGHT_ARC], charts[LEFT_ARC]
    between, rights, lefts = lines[0], lines[1], lines[2]
    right[0, 0] = left[0, 0] = 1.0
    for j in range(1, n + 1):
        for i in range(j):
            between[i] = right[j - 1, i]
            rights[i] = lefts[i] = 0.0
        left[j, j] = 1.0
        for i in range(j - 1, -1, -1):
            inner_right = inner_left = between[i]
            if siblings is not None:
                inner_right, inner_left = charts[FIRST, j, i] * left[j, i + 1], charts[FIRST, i, j] * right[j - 1, i]
                begin, count = block_of(i, j)
                row, at = charts[RIGHT_ARC_T, i], starts[i, j] & VECTORS
                for k in range(count):
                    inner_right += row[begin + k] * between[begin + k] * packed[at + k]
                row, at = charts[BETWEEN_T, i], starts[j, i] & VECTORS
                for k in range(count if i > 0 else 0):
                    inner_left += row[begin + k] * left_arc[j, begin + k] * packed[at + k]
                charts[BETWEEN_T, i, j], charts[RIGHT_ARC_T, i, j] = between[i], w[j, i] * inner_right
            right_arc[j, i], left_arc[j, i] = w[j, i] * inner_right, w[i, j] * inner_left
            right[j, i], left[j, i] = rights[i] + right_arc[j, i], lefts[i] + left_arc[j, i]
            row, factor = right[i - 1], left[j, i]
            for t in range(i):
                between[t] += row[t] * factor
            row, factor = right_arc[i], right[j, i]
            for t in range(i):
                rights[t] += row[t] * factor
            row, factor = left[i], left_arc[j, i]
            for t in range(i):
                lefts[t] += row[t] * factor
        right[j, j] = 1.0
        if single_root and j < n:
            right[j, 0] = 0.0
    return right[n, 0]


@kernel
def outside(charts, siblings, packed, starts, n, single_root, lines):
    """Fill the charts of derivatives, and turn arcs and siblings into their marginals: ``inside`` in reverse."""
    w, right, left = charts[WEIGHT], charts[RIGHT], charts[LEFT]
    right_arc, left_arc = charts[RIGHT_ARC], charts[LEFT_ARC]
    outer_right, outer_left, outer_right_arc = charts[OUTER_RIGHT], charts[OUTER_LEFT], charts[OUTER_RIGHT_ARC]
    outer_between, outer_left_arc, between = lines[0], lines[1], lines[2]
    charts[OUTER_RIGHT : CHARTS if siblings is None else BETWEEN_T] = 0.0
    outer_right[n, 0] = 1.0 / right[n, 0]
    for j in range(n, 0, -1):
        outer_rights, outer_lefts = outer_right[j], outer_left[j]
        if single_root and j < n:
            outer_rights[0] = 0.0
        if siblings is not None:
            outer_between[:], outer_left_arc[:] = 0.0, 0.0
            for i in range(j):
                between[i] = charts[BETWEEN_T, i, j]
        for i in range(j):
            row, factor, outer_row, total = right_arc[i], right[j, i], outer_right_arc[i], outer_rights[i]
            for t in range(i):
                total += outer_rights[t] * row[t]
                outer_row[t] += outer_rights[t] * factor
            outer_rights[i] = total
            row, factor, outer_row, total = right[i - 1], left[j, i], outer_right[i - 1], outer_lefts[i]
            for t in range(i):
                total += outer_between[t] * row[t]
                outer_row[t] += outer_between[t] * factor
            outer_lefts[i] = total
            row, factor, outer_row = left[i], left_arc[j, i], outer_left[i]
            for t in range(i):
                total += outer_lefts[t] * row[t]
                outer_row[t] += outer_lefts[t] * factor
            of_right_arc, of_left_arc = outer_right_arc[j, i] + outer_rights[i], total
            if siblings is not None:
                of_right_arc += charts[OUTER_RIGHT_ARC_T, i, j]
                of_left_arc += outer_left_arc[i]
                of_right, of_left = w[j, i] * of_right_arc, w[i, j] * of_left_arc
                begin, count = block_of(i, j)
                row, outer_row, at = charts[RIGHT_ARC_T, i], charts[OUTER_RIGHT_ARC_T, i], starts[i, j] & VECTORS
                for k in range(count):
                    weight = of_right * packed[at + k]
                    outer_row[begin + k] += weight * between[begin + k]
                    outer_between[begin + k] += weight * row[begin + k]
                    packed[at + k] = weight * between[begin + k] * row[begin + k]
                row, outer_row, at = charts[BETWEEN_T, i], charts[OUTER_BETWEEN_T, i], starts[j, i] & VECTORS
                for k in range(count if i > 0 else 0):
                    weight = of_left * packed[at + k]
                    outer_row[begin + k] += weight * left_arc[j, begin + k]
                    outer_left_arc[begin + k] += weight * row[begin + k]
                    packed[at + k] = weight * left_arc[j, begin + k] * row[begin + k]
                outer_left[j, i + 1] += of_right * charts[FIRST, j, i]
                outer_right[j - 1, i] += of_left * charts[FIRST, i, j]
                charts[FIRST, j, i] *= of_right * left[j, i + 1]
                charts[FIRST, i, j] *= of_left * right[j - 1, i]
                outer_between[i] += charts[OUTER_BETWEEN_T, i, j]
            else:
                outer_between[i] = w[j, i] * of_right_arc + w[i, j] * of_left_arc
            right_arc[j, i] *= of_right_arc
            left_arc[j, i] *= of_left_arc
        for i in range(j):
            outer_right[j - 1, i] += outer_between[i]


@kernel
def store_arcs(charts, n, result):
    """Store what the charts of arcs hold, ``[head, dependent]``."""
    for j in range(1, n + 1):
        for i in range(j):
            result[i, j] = charts[RIGHT_ARC, j, i]
        for i in range(1, j):
            result[j, i] = charts[LEFT_ARC, j, i]
