"""Sums over the spans of ``treeparse.kernels.spans`` in logs, slower than plain weights and safe for any finite scores.

A log is kept as two numbers, a value and the remainder that its rounding lost, so that the shares of a span's splits
are right however large the scores are. Each sum is taken at once, relative to its largest term.

Going up, a span takes a log and a *tangent*, its derivative along a vector: the mean of its splits' tangents by their
shares. Going down, a span takes its marginal and that one's tangent, and gives each split its share of them.
"""

from typing import Any, cast

import numpy as np

from treeparse.kernels.arrays import AnyFloatArray, FloatArray, IntArray
from treeparse.kernels.compile import exact_kernel
from treeparse.kernels.exponential import exponentiate
from treeparse.kernels.logspace import log_add, two_sum
from treeparse.kernels.spans import (
    ARCS,
    FULL,
    GRANDPARENTS,
    NO_SPAN,
    SPANS_OF_PAIR,
    ScoredSentence,
    arc_of,
    cell,
    cells_of,
    contexts_of,
    halves,
    parts_of_span,
    remainder_of_split,
    scores_of_split,
    span,
    span_of_pair,
    splits,
    whole,
)
from treeparse.kernels.sums.centring import centred, rescaled
from treeparse.kernels.threads import run_batch

LOG_PARTITION, MARGINALS, LOG_MARGINALS, PRODUCT = range(4)  # the quantities
NO_REMAINDERS = np.empty((1, 0, 0))
PartArrays = tuple[AnyFloatArray, ...]


def sum_items(
    parts: PartArrays,
    lengths: IntArray,
    items: IntArray,
    quantity: int,
    log_z: FloatArray,
    results: PartArrays = (),
    vectors: PartArrays | None = None,
    *,
    remainders: FloatArray = NO_REMAINDERS,
    single_root: bool,
    threads: int,
) -> None:
    """Store the log partition and a quantity of all parts of some items of a batch.

    Args:
        parts: scores of arcs ``(B, n+1, n+1)``, and ``(B, n+1, n+1, n+1)`` of siblings and of grandparents, if any.
        lengths: ``(B,)``.
        items: ``(I,)``, which of them.
        quantity: one of the quantities.
        log_z: ``(B,)``, where log partitions are stored.
        results: of the shapes of the parts, where the quantity is stored; empty for log partitions.
        vectors: of the shapes of the parts, for products.
        remainders: ``(B, n+1, n+1)``, what rounding took from the scores of arcs, if anything.
        single_root: whether exactly one word hangs from node 0.
        threads: how many threads to use at most.
    """
    if len(items) == 0:
        return
    nothing = np.empty((len(items), 0, 0, 0))
    scores = completed([part[items].astype(np.float64) for part in parts], nothing)
    along = scores if vectors is None else completed([part[items].astype(np.float64) for part in vectors], nothing)
    fill = -np.inf if quantity == LOG_MARGINALS else 0.0
    stored = completed([np.full(part[items].shape, fill) for part in results], nothing) if results else scores
    logs = np.empty(len(items))
    lost = remainders[items] if remainders.shape[1] > 0 else remainders
    arguments = lengths[items], len(parts), single_root, *scores, lost, *along, quantity, logs, *stored
    run_batch(_sum_items, lambda n: 50 * n ** (1 + len(parts)), *arguments, threads=threads)
    log_z[items] = logs
    for result, values in zip(results, stored, strict=False):
        result[items] = values


def multiply_items(
    parts: PartArrays,
    lengths: IntArray,
    items: IntArray,
    results: PartArrays,
    vectors: PartArrays,
    *,
    remainders: FloatArray = NO_REMAINDERS,
    single_root: bool,
    threads: int,
) -> None:
    """Store the Hessian of the log partition times vectors, for some items; arguments as for ``sum_items``."""
    if len(items) == 0:
        return
    options, log_z = {"remainders": remainders, "single_root": single_root, "threads": threads}, np.empty(len(lengths))
    if len(parts) > ARCS:
        sum_items(parts, lengths, items, PRODUCT, log_z, results, vectors, **options)
        return
    (scores,), (product,), (values,) = (cast(tuple[FloatArray], each) for each in (parts, results, vectors))
    values, scales = centred(scores, lengths, values, threads)
    sum_items(parts, lengths, items, PRODUCT, log_z, results, (values,), **options)
    product[items] = rescaled(product[items], scales[items])


def log_partition_and_marginals(
    *parts_and_lengths: Any, remainders: FloatArray = NO_REMAINDERS, single_root: bool, threads: int = 1
) -> PartArrays:
    """Return the log partition ``(B,)`` and the probability of every part, 0 without a tree.

    The arguments are the scores of the parts, as for ``sum_items``, and lengths.
    """
    *parts, lengths = parts_and_lengths
    log_z, results = np.empty(len(lengths)), tuple(map(np.zeros_like, parts))
    options = {"remainders": remainders, "single_root": single_root, "threads": threads}
    sum_items(tuple(parts), lengths, np.arange(len(lengths)), MARGINALS, log_z, results, **options)
    return log_z, *results


def hessian_vector_product(
    *arguments: Any, remainders: FloatArray = NO_REMAINDERS, single_root: bool, threads: int = 1
) -> PartArrays:
    """Return the Hessian of the log partition in all scores times vectors.

    The arguments are the scores of the parts, as for ``sum_items``, lengths, and vectors of the parts' shapes.
    """
    order = len(arguments) // 2
    parts, lengths, vectors = arguments[:order], arguments[order], arguments[order + 1 :]
    results = tuple(map(np.zeros_like, parts))
    options = {"remainders": remainders, "single_root": single_root, "threads": threads}
    multiply_items(parts, lengths, np.arange(len(lengths)), results, vectors, **options)
    return results


def completed(parts: list[FloatArray], nothing: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Complete the parts to three by empty ones."""
    arcs, siblings, grandparents = [*parts, nothing, nothing][:3]
    return arcs, siblings, grandparents


@exact_kernel
def remainders_of(remainders, b):
    """Return the remainders of an item, which are empty if there are none."""
    return remainders[b if remainders.shape[1] > 0 else 0]


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
    remainders,
    arc_vectors,
    sibling_vectors,
    grandparent_vectors,
    quantity,
    log_z,
    arc_results,
    sibling_results,
    grandparent_results,
):
    for b in range(start, stop):
        fixed = lengths[b], order, single_root
        nothing, own = remainders[0, :0], remainders_of(remainders, b)
        sentence = ScoredSentence(*fixed, arcs[b], siblings[b], grandparents[b], own)
        vectors = ScoredSentence(*fixed, arc_vectors[b], sibling_vectors[b], grandparent_vectors[b], nothing)
        results = ScoredSentence(*fixed, arc_results[b], sibling_results[b], grandparent_results[b], nothing)
        logs, terms = np.empty((2, cells_of(sentence))), np.empty((2, sentence.words + 1))
        tangents = np.zeros(cells_of(sentence) if quantity == PRODUCT else 0)
        inside(sentence, vectors, logs, tangents, terms)
        root = cell(sentence, whole(sentence))
        log_z[b] = logs[0, root] + logs[1, root]
        if quantity != LOG_PARTITION and log_z[b] > -np.inf:
            if quantity == LOG_MARGINALS:
                _outside_in_logs(sentence, logs, terms, results)
            else:
                _outside(sentence, vectors, logs, tangents, terms, results)


@exact_kernel
def inside(sentence, vectors, logs, tangents, terms):
    """Fill the logs of all spans and, if there are any, their tangents, which are 0."""
    logs[0], logs[1] = -np.inf, 0.0
    for context in range(contexts_of(sentence)):
        for j in range(sentence.words + 1):
            logs[0, cell(sentence, span(FULL, context, j, j))] = 0.0
    for j in range(1, sentence.words + 1):
        for i in range(j - 1, -1, -1):
            for context in range(contexts_of(sentence)):
                for which in range(SPANS_OF_PAIR):
                    number = span_of_pair(sentence, context, i, j, which)
                    if number != NO_SPAN:
                        _sum(sentence, vectors, number, logs, tangents, terms)


@exact_kernel
def _sum(sentence, vectors, number, logs, tangents, terms):
    here, (begin, end) = cell(sentence, number), splits(sentence, number)
    high, low, total = _shares(sentence, number, logs, terms)
    if total == 0.0:
        return
    logs[0, here], logs[1, here] = two_sum(high, low + np.log(total))
    if len(tangents) > 0:
        tangent = 0.0
        for k in range(begin, end):
            if terms[0, k - begin] > 0.0:
                tangent += terms[0, k - begin] / total * _tangent(sentence, vectors, number, k, tangents)
        tangents[here] = tangent


@exact_kernel
def _shares(sentence, number, logs, terms):
    """Fill ``terms[0]`` with the weights of a span's splits relative to the largest one.

    Returns that one's log, as two numbers, and the sum of the weights, 0 if no split is possible.
    """
    high, low = log_terms(sentence, number, logs, terms)
    begin, end = splits(sentence, number)
    return high, low, exponentiate_terms(terms, end - begin) if high > -np.inf else 0.0


@exact_kernel
def exponentiate_terms(terms, count):
    """Replace the logs in ``terms[0]`` by weights; return their sum."""
    total = 0.0
    exponentiate(terms[0, :count])
    for place in range(count):
        total += terms[0, place]
    return total


@exact_kernel
def log_terms(sentence, number, logs, terms):
    """Fill ``terms[0]`` with the logs of a span's splits less the largest one; return that one, as two numbers."""
    begin, end = splits(sentence, number)
    top_high, top_low = -np.inf, 0.0
    for k in range(begin, end):
        first, second = halves(sentence, number, k)
        first, second = cell(sentence, first), cell(sentence, second)
        high, low = two_sum(logs[0, first], logs[0, second])
        low += logs[1, first] + logs[1, second]
        arc, sibling, grandparent = scores_of_split(sentence, number, k)
        for score in (arc, sibling, grandparent):
            high, lost = two_sum(high, score)
            low += lost
        low += remainder_of_split(sentence, number, k)
        terms[0, k - begin], terms[1, k - begin] = high, low
        if high > top_high:
            top_high, top_low = high, low
    if top_high > -np.inf:
        for place in range(end - begin):
            high, low = terms[0, place], terms[1, place]
            terms[0, place] = (high - top_high) + (low - top_low) if high > -np.inf else -np.inf
    return top_high, top_low


@exact_kernel
def _outside(sentence, vectors, logs, tangents, terms, results):
    """Store the marginals of all parts or, if spans have tangents, those of marginals."""
    outer = np.zeros((2, cells_of(sentence)))  # the marginals of spans, and their tangents
    outer[0, cell(sentence, whole(sentence))] = 1.0
    for j in range(sentence.words, 0, -1):
        for i in range(j):
            for context in range(contexts_of(sentence)):
                for which in range(SPANS_OF_PAIR - 1, -1, -1):
                    number = span_of_pair(sentence, context, i, j, which)
                    if number != NO_SPAN and outer[0, cell(sentence, number)] > 0.0:
                        _share(sentence, vectors, number, logs, tangents, terms, outer, results)


@exact_kernel
def _share(sentence, vectors, number, logs, tangents, terms, outer, results):
    """Give each split of a span its share of the span's marginal."""
    here, (begin, end) = cell(sentence, number), splits(sentence, number)
    _, _, total = _shares(sentence, number, logs, terms)
    for k in range(begin, end):
        share = terms[0, k - begin] / total
        if share == 0.0:
            continue
        marginal = result = share * outer[0, here]
        tangent = 0.0
        if len(tangents) > 0:
            change = _tangent(sentence, vectors, number, k, tangents) - tangents[here]
            tangent = result = share * outer[1, here] + marginal * change
        give_to_halves(sentence, number, k, marginal, tangent, outer)
        give_to_parts(sentence, number, k, result, results)


@exact_kernel
def give_to_halves(sentence, number, k, marginal, tangent, outer):
    """Add a marginal and its tangent to those of a split's halves."""
    for half in halves(sentence, number, k):
        outer[0, cell(sentence, half)] += marginal
        outer[1, cell(sentence, half)] += tangent


@exact_kernel
def give_to_parts(sentence, number, k, result, results):
    """Add a result to that of the parts that a split scores."""
    head, dependent = arc_of(sentence, number, k)
    if dependent > 0:
        results.arcs[head, dependent] += result
        if sentence.order > ARCS:
            results.siblings[head, dependent, k] += result
        if sentence.order == GRANDPARENTS and head > 0:
            _, context, _, _ = parts_of_span(number)
            results.grandparents[head, dependent, context] += result


@exact_kernel
def _tangent(sentence, vectors, number, k, tangents):
    """The tangent of a split."""
    first, second = halves(sentence, number, k)
    arc, sibling, grandparent = scores_of_split(vectors, number, k)
    return tangents[cell(sentence, first)] + tangents[cell(sentence, second)] + (arc + (sibling + grandparent))


@exact_kernel
def _outside_in_logs(sentence, logs, terms, results):
    """Store the logs of the marginals of all parts."""
    outer = np.full(cells_of(sentence), -np.inf)
    outer[cell(sentence, whole(sentence))] = 0.0
    for j in range(sentence.words, 0, -1):
        for i in range(j):
            for context in range(contexts_of(sentence)):
                for which in range(SPANS_OF_PAIR - 1, -1, -1):
                    number = span_of_pair(sentence, context, i, j, which)
                    if number != NO_SPAN and outer[cell(sentence, number)] > -np.inf:
                        _share_in_logs(sentence, number, logs, terms, outer, results)


@exact_kernel
def _share_in_logs(sentence, number, logs, terms, outer, results):
    begin, end = splits(sentence, number)
    log_terms(sentence, number, logs, terms)
    total = 0.0
    for place in range(end - begin):
        total += np.exp(terms[0, place])
    log_share = outer[cell(sentence, number)] - np.log(total)
    for k in range(begin, end):
        log_marginal = log_share + terms[0, k - begin]
        if log_marginal == -np.inf:
            continue
        for half in halves(sentence, number, k):
            if half != NO_SPAN:
                here = cell(sentence, half)
                outer[here] = log_add(outer[here], log_marginal)
        head, dependent = arc_of(sentence, number, k)
        if dependent > 0:
            results.arcs[head, dependent] = log_add(results.arcs[head, dependent], log_marginal)
            if sentence.order > ARCS:
                before = results.siblings[head, dependent, k]
                results.siblings[head, dependent, k] = log_add(before, log_marginal)
            if sentence.order == GRANDPARENTS and head > 0:
                _, context, _, _ = parts_of_span(number)
                before = results.grandparents[head, dependent, context]
                results.grandparents[head, dependent, context] = log_add(before, log_marginal)
