"""Sums over projective trees with scores of siblings and of grandparents, in O(n^4) ([Lec]; Koo and Collins 2010).

``treeparse.kernels.spans`` has the spans and their splits. Their weights, where g is the context, are

    arc(g; h, m) = w(h -> m) eg(h -> m, g) (es(h -> m, h) full(h; m, next to h)
                                            + sum over k between of arc(g; h, k) mid(h; k, m) es(h -> m, k))
    full(g; h, m) = sum over k from h up to m of arc(g; h, k) full(h; k, m)
    mid(c; k, m) = sum over k <= r < m of full(c; k, r) full(c; m, r + 1)

where es and eg are the weights of siblings and grandparents and full(c; h, h) = 1. The numbers of all contexts are one
row, so that inner loops run over rows: eg is 0 where g cannot be the head of h, and so then are arc and full. Node 0
has no head: its arcs have the context 0, with an eg of 1. Forbidden arcs are skipped.

Derivatives, scaling and products with the Hessian are as in ``charts``; a weight w is multiplied by the largest eg of
its arc, too, which are divided by it.
"""

import numpy as np

from treeparse.kernels.compile import exact_kernel, kernel
from treeparse.kernels.logspace import exp
from treeparse.kernels.spans import ARC, FULL, KINDS, MID
from treeparse.kernels.sums.charts import (
    MIN_SCALE,
    SAFE,
    add_tangents,
    centre,
    largest,
    load_arcs,
    power_of_two,
    take_tangents,
    weigh_words,
)
from treeparse.kernels.tree_weights import padded, square

OUTER = KINDS  # from a chart of spans to that of their derivatives
SIBLING, GRANDPARENT = 2 * KINDS, 2 * KINDS + 1  # weights [head, dependent, node], later marginals
CHARTS = 2 * KINDS + 2


@exact_kernel
def sum_trees(
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
    size = arcs.shape[1]
    memory, weights = np.empty(memory_size(size)), np.empty(size * size)
    for b in range(start, stop):
        n = lengths[b]
        charts, w = charts_of(memory, n), square(weights, n)
        log_z[b] = load(arcs[b], siblings[b], grandparents[b], n, single_root, charts, w)
        if log_z[b] == -np.inf:
            continue
        total = inside(charts, w, n, single_root)
        log_z[b] += np.log(total) if total > SAFE else np.nan
        if total > SAFE and len(arc_results) > 0:
            outside(charts, w, n, single_root)
            store(charts, n, arc_results[b], sibling_results[b], grandparent_results[b])


@exact_kernel
def multiply(
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
    log_z,
    arc_results,
    sibling_results,
    grandparent_results,
):
    """Store products of the Hessian with vectors; mark items that are not safe as ``sum_trees`` does."""
    size = arcs.shape[1]
    memory, weights, vectors = np.empty(memory_size(size)), np.empty(size * size), np.empty(size * size)
    all_charts, all_weights = np.empty(len(memory), np.complex128), np.empty(size * size, np.complex128)
    for b in range(start, stop):
        n = lengths[b]
        charts, w, v = charts_of(memory, n), square(weights, n), square(vectors, n)
        duals, dual_w = charts_of(all_charts, n), square(all_weights, n)
        log_z[b] = load(arcs[b], siblings[b], grandparents[b], n, single_root, charts, w)
        if log_z[b] == -np.inf:
            continue
        load_arcs(arc_vectors[b], n, v)
        centre(w, n, v)
        load_vectors(sibling_vectors[b], n, charts[0])
        load_vectors(grandparent_vectors[b], n, charts[1])
        charts[1, 0] = 0.0  # arcs of node 0 have no grandparents
        rows, size = charts[0].size, w.size
        parts, of_parts = memory[SIBLING * rows : CHARTS * rows], memory[: 2 * rows]
        part_duals = all_charts[SIBLING * rows : CHARTS * rows]
        scale = largest(w.reshape(size), v.reshape(size), MIN_SCALE)
        scale = power_of_two(largest(parts, of_parts, scale))
        add_tangents(w.reshape(size), v.reshape(size), scale, dual_w.reshape(size))
        add_tangents(parts, of_parts, scale, part_duals)
        total = inside(duals, dual_w, n, single_root).real
        log_z[b] += np.log(total) if total > SAFE else np.nan
        if total > SAFE:
            outside(duals, dual_w, n, single_root)
            take_tangents(part_duals, scale, parts)
            store(charts, n, arc_results[b], sibling_results[b], grandparent_results[b])


@exact_kernel
def memory_size(size):
    """Return the size of the charts of an item of ``size`` nodes."""
    return CHARTS * size * size * padded(size - 1)


@exact_kernel
def charts_of(memory, n):
    """Return charts whose strides depend on n alone, so an item has the same bits in a batch and alone."""
    return memory[: memory_size(n + 1)].reshape(CHARTS, n + 1, n + 1, padded(n))


@exact_kernel
def load(arcs, siblings, grandparents, n, single_root, charts, w):
    """Fill all weights; return the log of what they are divided by in a tree, -inf if some word has no arc."""
    load_arcs(arcs, n, w)
    charts[SIBLING:] = -np.inf
    for h in range(n + 1):
        for d in range(1, n + 1):
            if w[d, h] == -np.inf:
                charts[SIBLING, h, d], charts[GRANDPARENT, h, d] = 0.0, 0.0
                continue
            i, j, row = min(h, d), max(h, d), charts[SIBLING, h, d]
            row[h] = siblings[h, d, h]
            for k in range(i + 1, i + 1 if h == 0 and single_root else j):
                row[k] = siblings[h, d, k]
            w[d, h] += weigh_row(row)
            row = charts[GRANDPARENT, h, d]
            if h == 0:
                row[0] = 0.0
            else:
                for g in range(i):
                    row[g] = grandparents[h, d, g]
                for g in range(j + 1, n + 1):
                    row[g] = grandparents[h, d, g]
            w[d, h] += weigh_row(row)
    return weigh_words(w, n)


@kernel
def weigh_row(row):
    """Turn log weights into weights whose largest is 1; return the largest log."""
    top = -np.inf
    for k in range(len(row)):
        top = row[k] if row[k] > top else top
    for k in range(len(row)):
        row[k] = exp(row[k] - (top if top > -np.inf else 0.0))
    return top


@kernel
def load_vectors(vectors, n, result):
    """Fill vectors of siblings or of grandparents."""
    result[:] = 0.0
    for h in range(n + 1):
        for d in range(1, n + 1):
            for k in range(n + 1):
                result[h, d, k] = vectors[h, d, k]


@kernel
def inside(charts, w, n, single_root):
    """Fill the charts of spans; return Z."""
    full, mid, width = charts[FULL], charts[MID], charts.shape[3]
    for j in range(n + 1):
        full[j, j] = 1.0
    for count in range(1, n + 1):
        for i in range(n + 1 - count):
            j = i + count
            add_arc(charts, w, n, i, j, i == 0 and single_root)
            if i == 0:
                continue
            add_arc(charts, w, n, j, i, False)
            mid[i, j] = 0.0
            if share_a_head(w, i, j):
                for r in range(i, j - 1, 2):
                    for c in range(width):
                        mid[i, j, c] += full[i, r, c] * full[j, r + 1, c] + full[i, r + 1, c] * full[j, r + 2, c]
                if count % 2 == 1:
                    for c in range(width):
                        mid[i, j, c] += full[i, j - 1, c] * full[j, j, c]
    return full[0, n, 0]


@kernel
def share_a_head(w, i, j):
    """Return whether some node may be the head of both words."""
    count = 0
    for head in range(len(w)):
        count += w[i, head] != 0.0 and w[j, head] != 0.0
    return count > 0


@kernel
def add_arc(charts, w, n, h, m, only_one):
    """Fill the spans ARC and FULL of head h up to m; with ``only_one`` h has no second dependent."""
    arc, full, mid, sibling = charts[ARC], charts[FULL], charts[MID], charts[SIBLING, h, m]
    i, j, width, grandparent = min(h, m), max(h, m), charts.shape[3], charts[GRANDPARENT, h, m]
    arc[h, m] = sibling[h] * full[m, h + 1 if h < m else h - 1, h]
    full[h, m] = 0.0
    for k in range(i + 1, i + 1 if only_one else j):
        if w[k, h] != 0.0:
            factor, below = sibling[k] * mid[min(k, m), max(k, m), h], full[k, m, h]
            for g in range(width):
                arc[h, m, g] += factor * arc[h, k, g]
                full[h, m, g] += below * arc[h, k, g]
    if only_one and m == n:
        for k in range(1, n):
            full[0, n, 0] += arc[0, k, 0] * full[k, n, 0]
    for g in range(width):
        arc[h, m, g] *= w[m, h] * grandparent[g]
    if not only_one or m == n:
        for g in range(width):
            full[h, m, g] += arc[h, m, g]


@kernel
def outside(charts, w, n, single_root):
    """Turn weights of siblings and of grandparents into marginals: ``inside`` in reverse."""
    full, outer_full, outer_mid, width = charts[FULL], charts[OUTER + FULL], charts[OUTER + MID], charts.shape[3]
    charts[OUTER:SIBLING] = 0.0
    outer_full[0, n, 0] = 1.0 / full[0, n, 0]
    for count in range(n, 0, -1):
        for i in range(n + 1 - count):
            j = i + count
            share_arc(charts, w, n, i, j, i == 0 and single_root)
            if i == 0:
                continue
            share_arc(charts, w, n, j, i, False)
            if share_a_head(w, i, j):
                for r in range(i, j):
                    for c in range(width):
                        outer_full[i, r, c] += outer_mid[i, j, c] * full[j, r + 1, c]
                        outer_full[j, r + 1, c] += outer_mid[i, j, c] * full[i, r, c]


@kernel
def share_arc(charts, w, n, h, m, only_one):
    """Share the derivatives of the spans ARC and FULL of head h up to m, as ``add_arc`` adds them up."""
    arc, full, mid, sibling = charts[ARC], charts[FULL], charts[MID], charts[SIBLING, h, m]
    outer_arc, outer_full, outer_mid = charts[OUTER + ARC], charts[OUTER + FULL], charts[OUTER + MID]
    i, j, width, grandparent = min(h, m), max(h, m), charts.shape[3], charts[GRANDPARENT, h, m]
    inner, of_sum = h + 1 if h < m else h - 1, 0.0 * w[0, 0]
    if not only_one or m == n:
        for g in range(width):
            outer_arc[h, m, g] += outer_full[h, m, g]
    for g in range(width):  # from here on derivatives of ARC are those of the sum that the weights multiply
        weight = grandparent[g] * w[m, h]
        grandparent[g] = arc[h, m, g] * outer_arc[h, m, g]
        outer_arc[h, m, g] *= weight
        of_sum += outer_arc[h, m, g]
    outer_full[m, inner, h] += of_sum * sibling[h]
    sibling[h] *= of_sum * full[m, inner, h]
    for k in range(i + 1, i + 1 if only_one else j):
        if w[k, h] == 0.0:
            sibling[k] = 0.0
            continue
        of_arc = of_full = 0.0 * w[0, 0]
        factor, below = sibling[k] * mid[min(k, m), max(k, m), h], full[k, m, h]
        for g in range(width):
            of_arc += outer_arc[h, m, g] * arc[h, k, g]
            of_full += outer_full[h, m, g] * arc[h, k, g]
            outer_arc[h, k, g] += factor * outer_arc[h, m, g] + below * outer_full[h, m, g]
        outer_full[k, m, h] += of_full
        outer_mid[min(k, m), max(k, m), h] += of_arc * sibling[k]
        sibling[k] = of_arc * factor
    if only_one and m == n:
        for k in range(1, n):
            outer_full[k, n, 0] += outer_full[0, n, 0] * arc[0, k, 0]
            outer_arc[0, k, 0] += outer_full[0, n, 0] * full[k, n, 0]


@kernel
def store(charts, n, arcs, siblings, grandparents):
    """Store what has replaced the weights."""
    for h in range(n + 1):
        for d in range(1, n + 1):
            if d == h:
                continue
            total = 0.0
            for k in range(min(h, d), max(h, d) + 1):
                if k != d:
                    siblings[h, d, k] = charts[SIBLING, h, d, k]
            for g in range(n + 1):
                total += charts[GRANDPARENT, h, d, g]
                if h > 0:
                    grandparents[h, d, g] = charts[GRANDPARENT, h, d, g]
            arcs[h, d] = total
