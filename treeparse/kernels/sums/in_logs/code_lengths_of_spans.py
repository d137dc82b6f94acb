"""Expected code lengths ``-E_p[log q]`` of trees, for any finite scores; if q is p, entropies.

The difference of a log partition and an expected score cancels where scores are huge and tied. Here every span carries
the code length of what is below it: of its splits, the mean by their shares under p of the two halves' and of minus the
log of the split's share under q. No term is negative, and none is larger than a sentence's trees can be many.

The derivative in the scores of p goes down through the spans again: a split's own code length is what its share of the
span changes along.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from treeparse.kernels.arrays import AnyFloatArray, FloatArray, IntArray
from treeparse.kernels.compile import exact_kernel
from treeparse.kernels.spans import (
    NO_SPAN,
    SPANS_OF_PAIR,
    ScoredSentence,
    arc_of,
    cell,
    cells_of,
    contexts_of,
    halves,
    span_of_pair,
    splits,
    whole,
)
from treeparse.kernels.sums.in_logs.spans import (
    NO_REMAINDERS,
    completed,
    exponentiate_terms,
    give_to_halves,
    give_to_parts,
    inside,
    log_terms,
    remainders_of,
)
from treeparse.kernels.threads import run_batch

PartArrays = Sequence[AnyFloatArray]


def code_lengths(
    parts: PartArrays,
    others: PartArrays,
    lengths: IntArray,
    *,
    remainders: FloatArray = NO_REMAINDERS,
    other_remainders: FloatArray = NO_REMAINDERS,
    values: FloatArray = NO_REMAINDERS,
    single_root: bool,
    threads: int = 1,
) -> tuple[FloatArray, ...]:
    """Return ``-E_p[log q]`` in nats, p's marginals of arcs, and the derivatives in all scores of p.

    Trees that q forbids, and items without a tree, add 0.

    Args:
        parts: the scores of p: of arcs ``(B, n+1, n+1)``, and ``(B, n+1, n+1, n+1)`` of siblings and of grandparents,
            if any.
        others: the scores of q.
        lengths: ``(B,)``.
        remainders: ``(B, n+1, n+1)``, what rounding took from the scores of p's arcs, if anything.
        other_remainders: the same for q's arcs.
        values: code lengths that arcs have of their own, ``(B, n+1, n+1)``, if any; finite.
        single_root: whether exactly one word hangs from node 0.
        threads: how many threads to use at most.
    """
    order, nothing, sums = len(parts), np.empty((len(lengths), 0, 0, 0)), np.zeros(len(lengths))
    p, q = (completed([part.astype(np.float64) for part in each], nothing) for each in (parts, others))
    derivatives, marginals = [np.zeros(part.shape) for part in parts], np.zeros(parts[0].shape)
    batch = lengths, order, single_root, *p, remainders, *q, other_remainders, values, sums, marginals
    run_batch(
        _code_lengths, lambda n: 100 * n ** (1 + order), *batch, *completed(derivatives, nothing), threads=threads
    )
    return sums, marginals, *derivatives


class _Charts(NamedTuple):
    """What the spans of an item carry, and working memory."""

    values: FloatArray  # (n+1, n+1) of arcs, or empty
    logs: FloatArray  # (2, cells) of the sums of p, each as two numbers
    other_logs: FloatArray  # (2, cells) of q
    codes: FloatArray  # (cells,) code lengths
    outer: FloatArray  # (2, cells) marginals, and the derivatives of the whole code length in the logs of p
    terms: FloatArray  # (2, n+1)
    own: FloatArray  # (n+1,) the code lengths of a span's splits


@exact_kernel
def _code_lengths(
    start,
    stop,
    lengths,
    order,
    single_root,
    arcs,
    siblings,
    grandparents,
    remainders,
    other_arcs,
    other_siblings,
    other_grandparents,
    other_remainders,
    values,
    sums,
    marginals,
    arc_results,
    sibling_results,
    grandparent_results,
):
    for b in range(start, stop):
        fixed, size = (lengths[b], order, single_root), lengths[b] + 1
        nothing, own, of_q = remainders[0, :0], remainders_of(remainders, b), remainders_of(other_remainders, b)
        p = ScoredSentence(*fixed, arcs[b], siblings[b], grandparents[b], own)
        q = ScoredSentence(*fixed, other_arcs[b], other_siblings[b], other_grandparents[b], of_q)
        results = ScoredSentence(*fixed, arc_results[b], sibling_results[b], grandparent_results[b], nothing)
        cells, root = cells_of(p), cell(p, whole(p))
        logs, others, outer, terms = (
            np.empty((2, cells)),
            np.empty((2, cells)),
            np.zeros((2, cells)),
            np.empty((2, size)),
        )
        charts = _Charts(remainders_of(values, b), logs, others, np.zeros(cells), outer, terms, np.empty(size))
        inside(p, p, logs, np.empty(0), terms)
        inside(q, q, others, np.empty(0), terms)
        if logs[0, root] > -np.inf:
            outer[0, root] = 1.0
            _go_up(p, q, charts)
            sums[b] = charts.codes[root]
            _go_down(p, q, charts, results, marginals[b])


@exact_kernel
def _go_up(p, q, charts):
    """Fill the code lengths of all spans."""
    for j in range(1, p.words + 1):
        for i in range(j - 1, -1, -1):
            for context in range(contexts_of(p)):
                for which in range(SPANS_OF_PAIR):
                    number = span_of_pair(p, context, i, j, which)
                    if number != NO_SPAN and charts.logs[0, cell(p, number)] > -np.inf:
                        _add_splits(p, q, number, charts)


@exact_kernel
def _go_down(p, q, charts, results, marginals):
    """Store the derivatives in the scores of all parts, and the marginals of arcs."""
    for j in range(p.words, 0, -1):
        for i in range(j):
            for context in range(contexts_of(p)):
                for which in range(SPANS_OF_PAIR - 1, -1, -1):
                    number = span_of_pair(p, context, i, j, which)
                    if number != NO_SPAN and charts.outer[0, cell(p, number)] > 0.0:
                        _share(p, q, number, charts, results, marginals)


@exact_kernel
def _add_splits(p, q, number, charts):
    """Fill the code length of a span."""
    total, (begin, end) = _fill_own(p, q, number, charts), splits(p, number)
    for place in range(end - begin):
        charts.codes[cell(p, number)] += charts.terms[0, place] / total * charts.own[place]


@exact_kernel
def _fill_own(p, q, number, charts):
    """Fill the code lengths of a span's splits, 0 where q forbids it, and ``terms[0]`` with their weights under p.

    Returns the sum of the weights.
    """
    own, codes, terms, (begin, end) = charts.own, charts.codes, charts.terms, splits(p, number)
    log_terms(q, number, charts.other_logs, terms)
    for place in range(end - begin):
        own[place] = terms[0, place]
    log_total = np.log(exponentiate_terms(terms, end - begin))
    for place in range(end - begin):
        first, second = halves(p, number, begin + place)
        below = codes[cell(p, first)] + codes[cell(p, second)]
        head, dependent = arc_of(p, number, begin + place)
        if dependent > 0 and len(charts.values) > 0:
            below += charts.values[head, dependent]
        own[place] = below + (log_total - own[place] if own[place] > -np.inf else 0.0)
    log_terms(p, number, charts.logs, terms)
    return exponentiate_terms(terms, end - begin)


@exact_kernel
def _share(p, q, number, charts, results, marginals):
    """Give each split of a span its share of the span's marginal, and of the derivative."""
    total, here, (begin, end) = _fill_own(p, q, number, charts), cell(p, number), splits(p, number)
    for k in range(begin, end):
        share = charts.terms[0, k - begin] / total
        if share > 0.0:
            marginal = share * charts.outer[0, here]
            change = charts.own[k - begin] - charts.codes[here]
            derivative = share * charts.outer[1, here] + marginal * change
            give_to_halves(p, number, k, marginal, derivative, charts.outer)
            give_to_parts(p, number, k, derivative, results)
            head, dependent = arc_of(p, number, k)
            if dependent > 0:
                marginals[head, dependent] += marginal
