"""Sums over the spans of ``treeparse.kernels.spans`` in logs, slower than plain weights, which may underflow.

Each sum is taken at once, relative to its largest term. Going up, a span takes a log and, for products with the
Hessian, a *tangent*: its derivative along a vector, the mean of its splits' tangents by their shares. Going down, a
span takes the log of its marginal and that one's tangent, and gives each split its share of them.
"""

import numpy as np

from treeparse.kernels import AnyFloatArray, FloatArray, IntArray
from treeparse.kernels.compile import exact_kernel
from treeparse.kernels.logspace import log_add
from treeparse.kernels.spans import (
    ARCS,
    FULL,
    GRANDPARENTS,
    NO_SPAN,
    SPANS_OF_PAIR,
    SentenceShape,
    arc_of,
    cell,
    cells_of,
    contexts_of,
    halves,
    part_scores,
    parts_of_span,
    span,
    span_of_pair,
    splits,
    whole,
)
from treeparse.kernels.sums.charts import LARGEST_EXPONENT, MIN_SCALE
from treeparse.kernels.threads import run_batch

PartArrays = tuple[AnyFloatArray, ...]


def sum_items(
    parts: PartArrays,
    lengths: IntArray,
    items: IntArray,
    log_z: FloatArray,
    results: PartArrays = (),
    vectors: PartArrays = (),
    *,
    single_root: bool,
    threads: int,
) -> None:
    """Store log partitions and log marginals, or products with vectors, of some items of a batch.

    Args:
        parts: scores of arcs ``(B, n+1, n+1)``, and ``(B, n+1, n+1, n+1)`` of siblings and of grandparents, if any.
        lengths: ``(B,)``.
        items: ``(I,)``, which of them.
        log_z: ``(B,)``, where log partitions are stored.
        results: of the shapes of the parts; empty for log partitions alone.
        vectors: of the shapes of the parts, for products with the Hessian.
        single_root: whether exactly one word hangs from node 0.
        threads: how many threads to use at most.
    """
    scores = _chosen(parts, items)
    stored = _chosen([np.full_like(part, 0.0 if vectors else -np.inf) for part in results], items)
    logs, along = np.empty(len(items)), _chosen(vectors, items)
    scales = _scale(scores, along[: len(vectors)], lengths[items]) if vectors else np.ones(len(items))
    arguments = lengths[items], len(parts), single_root, *scores, *along, len(vectors) > 0, logs, *stored
    run_batch(_sum_items, lambda n: 50 * n ** (1 + len(parts)), *arguments, threads=threads)
    log_z[items] = logs
    for result, values in zip(results, stored, strict=False):
        result[items] = np.minimum(values, 0.0) if not vectors else _each(scales, values) * values


def _chosen(parts: PartArrays | list[AnyFloatArray], items: IntArray) -> list[FloatArray]:
    """Return the chosen items of the parts, completed to three by empty ones."""
    chosen = [part[items].astype(np.float64) for part in parts]
    shapes = [(len(items), 0, 0), (len(items), 0, 0, 0), (len(items), 0, 0, 0)]
    return chosen + [np.empty(shape) for shape in shapes[len(chosen) :]]


def _scale(scores: list[FloatArray], vectors: list[FloatArray], lengths: IntArray) -> FloatArray:
    """Divide the vectors by powers of 2, as large as their entries ``(I,)``, and centre them as ``charts.centre``."""
    nodes = np.arange(scores[0].shape[1])
    heads, words = nodes <= lengths[:, None], (nodes <= lengths[:, None]) & (nodes > 0)
    arcs = heads[:, :, None] & words[:, None] & (nodes[:, None] != nodes) & (scores[0] > -np.inf)
    best = np.where(arcs, scores[0], -np.inf).argmax(1)[:, None]
    with np.errstate(invalid="ignore", over="ignore"):
        vectors[0] -= np.take_along_axis(vectors[0], best, 1)
    vectors[0][~arcs] = 0.0
    sizes = np.full(len(lengths), MIN_SCALE)
    for vector in vectors:
        size = np.abs(np.where(np.isfinite(vector), vector, 0.0)).reshape(len(lengths), -1)
        sizes = np.maximum(sizes, size.max(1, initial=0.0))
    scales = np.ldexp(1.0, np.minimum(np.frexp(sizes)[1], LARGEST_EXPONENT))
    for vector in vectors:
        vector /= _each(scales, vector)
    return scales


def _each(numbers: FloatArray, values: FloatArray) -> FloatArray:
    """Return numbers ``(I,)`` in a shape that goes with values ``(I, ...)``."""
    return numbers.reshape(-1, *[1] * (values.ndim - 1))


@exact_kernel
def _sum_items(
    start,
    stop,
    lengths,
    order,
    single_root,
    arcs,
    siblings,
    grandparents,
    arc_vectors,
    sibling_vectors,
    grandparent_vectors,
    has_vectors,
    log_z,
    arc_results,
    sibling_results,
    grandparent_results,
):
    for b in range(start, stop):
        shape, scores = SentenceShape(lengths[b], order, single_root), (arcs[b], siblings[b], grandparents[b])
        vectors = arc_vectors[b], sibling_vectors[b], grandparent_vectors[b]
        results = arc_results[b], sibling_results[b], grandparent_results[b]
        logs, terms = np.empty(cells_of(shape)), np.empty(shape.words + 1)
        tangents = np.zeros(len(logs) if has_vectors else 0)
        inside(shape, *scores, logs, terms)
        log_z[b] = logs[cell(shape, whole(shape))]
        if log_z[b] > -np.inf and has_vectors:
            _fill_tangents(shape, scores, vectors, logs, tangents, terms)
        if log_z[b] > -np.inf and arc_results.shape[1] > 0:
            _outside(shape, scores, vectors, logs, tangents, terms, results)


@exact_kernel
def inside(shape, arcs, siblings, grandparents, logs, terms):
    """Fill the logs of all spans."""
    logs[:] = -np.inf
    for context in range(contexts_of(shape)):
        for j in range(shape.words + 1):
            logs[cell(shape, span(FULL, context, j, j))] = 0.0
    for j in range(1, shape.words + 1):
        for i in range(j - 1, -1, -1):
            for context in range(contexts_of(shape)):
                for which in range(SPANS_OF_PAIR):
                    number = span_of_pair(shape, context, i, j, which)
                    if number != NO_SPAN:
                        begin, end = splits(shape, number)
                        top, total = log_terms(shape, arcs, siblings, grandparents, number, logs, terms), 0.0
                        for place in range(end - begin if top > -np.inf else 0):
                            total += np.exp(terms[place])
                        logs[cell(shape, number)] = top + np.log(total) if top > -np.inf else top


@exact_kernel
def _fill_tangents(shape, scores, vectors, logs, tangents, terms):
    """Fill the tangents of all spans, which are 0."""
    for j in range(1, shape.words + 1):
        for i in range(j - 1, -1, -1):
            for context in range(contexts_of(shape)):
                for which in range(SPANS_OF_PAIR):
                    number, total, tangent = span_of_pair(shape, context, i, j, which), 0.0, 0.0
                    if number == NO_SPAN or logs[cell(shape, number)] == -np.inf:
                        continue
                    (begin, end), _ = splits(shape, number), log_terms(shape, *scores, number, logs, terms)
                    for k in range(begin, end):
                        weight = np.exp(terms[k - begin])
                        total += weight
                        if weight > 0.0:
                            tangent += weight * _tangent(shape, vectors, number, k, tangents)
                    tangents[cell(shape, number)] = tangent / total


@exact_kernel
def log_terms(shape, arcs, siblings, grandparents, number, logs, terms):
    """Fill ``terms`` with the logs of a span's splits less the largest one; return that one."""
    begin, end = splits(shape, number)
    _, context, _, _ = parts_of_span(number)
    top = -np.inf
    for k in range(begin, end):
        first, second = halves(shape, number, k)
        head, dependent = arc_of(shape, number, k)
        total = logs[cell(shape, first)] + logs[cell(shape, second)]
        if dependent > 0:
            sibling = np.float64(siblings[head, dependent, k]) if shape.order > ARCS else 0.0
            if shape.order == GRANDPARENTS and head > 0:
                sibling += np.float64(grandparents[head, dependent, context])
            total = total + arcs[head, dependent] + sibling
        terms[k - begin] = total
        top = max(top, total)
    for place in range(end - begin if top > -np.inf else 0):
        terms[place] -= top
    return top


@exact_kernel
def _outside(shape, scores, vectors, logs, tangents, terms, results):
    """Store the log marginals of all parts or, if spans have tangents, those of marginals."""
    outer, slopes = np.full(len(logs), -np.inf), np.zeros(len(tangents))  # of the marginals of spans
    outer[cell(shape, whole(shape))] = 0.0
    for j in range(shape.words, 0, -1):
        for i in range(j):
            for context in range(contexts_of(shape)):
                for which in range(SPANS_OF_PAIR - 1, -1, -1):
                    number = span_of_pair(shape, context, i, j, which)
                    if number != NO_SPAN and outer[cell(shape, number)] > -np.inf:
                        _share(shape, scores, vectors, number, logs, tangents, terms, outer, slopes, results)


@exact_kernel
def _share(shape, scores, vectors, number, logs, tangents, terms, outer, slopes, results):
    """Give each split of a span its share of the span's marginal."""
    here, (begin, end), total = cell(shape, number), splits(shape, number), 0.0
    log_terms(shape, *scores, number, logs, terms)
    for place in range(end - begin):
        total += np.exp(terms[place])
    log_total = np.log(total)
    for k in range(begin, end):
        log_share = terms[k - begin] - log_total
        log_marginal = outer[here] + log_share
        if log_marginal == -np.inf:
            continue
        slope = 0.0
        if len(tangents) > 0:
            change = _tangent(shape, vectors, number, k, tangents) - tangents[here]
            slope = np.exp(log_share) * slopes[here] + np.exp(log_marginal) * change
        for half in halves(shape, number, k):
            if half != NO_SPAN:
                outer[cell(shape, half)] = log_add(outer[cell(shape, half)], log_marginal)
                if len(tangents) > 0:
                    slopes[cell(shape, half)] += slope
        _, context, _, _ = parts_of_span(number)
        head, dependent = arc_of(shape, number, k)
        if dependent > 0:
            _give(results[0][head], dependent, log_marginal, slope, len(tangents) > 0)
            if shape.order > ARCS:
                _give(results[1][head, dependent], k, log_marginal, slope, len(tangents) > 0)
            if shape.order == GRANDPARENTS and head > 0:
                _give(results[2][head, dependent], context, log_marginal, slope, len(tangents) > 0)


@exact_kernel
def _give(row, index, log_marginal, slope, has_tangents):
    row[index] = row[index] + slope if has_tangents else log_add(row[index], log_marginal)


@exact_kernel
def _tangent(shape, vectors, number, k, tangents):
    """Return the tangent of a split."""
    first, second = halves(shape, number, k)
    arc, sibling, grandparent = part_scores(shape, *vectors, number, k)
    return tangents[cell(shape, first)] + tangents[cell(shape, second)] + (arc + (sibling + grandparent))
