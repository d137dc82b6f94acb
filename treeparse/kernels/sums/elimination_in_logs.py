"""Sums over non-projective trees by elimination in logs, for items whose plain weights under- or overflow.

Words are eliminated as in ``elimination``, one at a time. The weight of an arc is final when the later one of its nodes
is eliminated. Its log is summed then, at once, from the arc's own weight and the paths through all words that were
eliminated before. ``logs[BEFORE, i, k]`` is the log of the share of ``i`` among the heads of a later word ``k``, and
``logs[AFTER, j, k]`` the log weight of ``k -> j`` for an earlier word ``j``. So the path ``i -> k -> j`` has the log
``logs[AFTER, j, k] + logs[BEFORE, i, k]``, and every loop over ``k`` is over contiguous numbers.

On the way back, the expected number of uses of a weight is shared among the terms of its sum; that of an arc's own
weight is its marginal. All numbers carry their tangents along a vector: those of the marginals are the product with the
Hessian.
"""

import numpy as np

from treeparse.kernels import FloatArray, IntArray
from treeparse.kernels.compile import exact_kernel, kernel
from treeparse.kernels.logspace import exp, log_add
from treeparse.kernels.threads import run_batch
from treeparse.kernels.tree_weights import aligned, column_maxima, exchange, load_logs, load_vector, matrices, padded

ARCS, AFTER, BEFORE = range(3)  # logs: of arcs' own weights [dependent, head], and as above
T, USES, USES_T = 3, 6, 9  # added to these: the tangents of logs, the numbers of uses, and their tangents
MATRICES = 12
LINES = 4  # vectors of an item
PIVOTS, TOP, PIVOTS_T, TERMS = range(LINES)
NO_VECTORS = np.empty((0, 0, 0))


def sum_in_logs(
    scores: FloatArray, lengths: IntArray, vectors: FloatArray = NO_VECTORS, *, single_root: bool, threads: int = 1
) -> tuple[FloatArray, FloatArray]:
    """Return the log partition ``(B,)`` and the probability of every arc ``(B, n+1, n+1)``, 0 without a tree.

    With ``vectors`` ``(B, n+1, n+1)``, the second result is the Hessian of the log partition times these instead.
    """
    log_z, results = np.empty(len(lengths)), np.empty_like(scores)
    arguments = lengths, scores, vectors, single_root, log_z, results
    run_batch(_sum_items, lambda n: 10 * n**3, *arguments, threads=threads)
    return log_z, results


@exact_kernel
def _sum_items(start, stop, lengths, scores, vectors, single_root, log_z, results):
    """Fill the log partitions, and marginals, or with vectors the products with the Hessian."""
    memory, lines = aligned(MATRICES * padded(scores.shape[1] - 1) ** 2), np.empty((LINES, scores.shape[1]))
    for b in range(start, stop):
        n, with_vector = lengths[b], len(vectors) > 0
        cut = matrices(memory, MATRICES, n)
        results[b] = 0.0
        log_z[b], root_word = eliminate_item(scores[b], n, single_root, lines, cut)
        if log_z[b] == -np.inf:
            continue
        cut[T:], lines[PIVOTS_T] = 0.0, 0.0
        if with_vector:
            load_vector(vectors[b], n, root_word, cut[ARCS], -np.inf, 0.0, cut[T])
            _eliminate_tangents(cut, n, single_root, lines)
        _differentiate(cut, n, single_root, lines)
        _store(cut, n, with_vector, results[b])
        if root_word > 1:
            exchange(results[b], root_word)


@exact_kernel
def eliminate_item(scores, n, single_root, lines, logs):
    """Eliminate one item; return log Z and the word exchanged with word 1."""
    shift, log_z, root_word = column_maxima(scores, n, lines[TOP]), -np.inf, 1
    if shift == -np.inf:
        return shift, root_word
    load_logs(scores, n, lines[TOP], logs[ARCS])
    for _ in range(2):
        log_z, k = _eliminate(logs, n, single_root, lines)
        if k < 2 or not single_root or root_word > 1:
            break
        exchange(logs[ARCS], k)
        root_word = k
    return shift + log_z, root_word


@kernel
def _eliminate(logs, n, single_root, lines):
    """Eliminate all words; return log Z' and 0, or -inf and the first word that is left without a head."""
    log_z, terms = 0.0, lines[TERMS]
    for k in range(n, 0, -1):
        pivot = -np.inf
        for i in range(k):
            for plane in range(AFTER if i > 0 else BEFORE, BEFORE + 1):
                head, dependent = (i, k) if plane == BEFORE else (k, i)
                arc, total = logs[ARCS, dependent, head], 0.0
                top = arc
                for m in range(k + 1, n + 1):
                    terms[m] = logs[AFTER, dependent, m] + logs[BEFORE, head, m]
                    top = terms[m] if terms[m] > top else top
                if top > -np.inf:
                    for m in range(max(k + 1, 1), n + 1):
                        total += exp(terms[m] - top)
                    top += np.log(total + np.exp(arc - top))
                logs[plane, i, k] = top
            if i > 0 or k == 1 or not single_root:
                pivot = log_add(pivot, logs[BEFORE, i, k])
        if pivot == -np.inf:
            return pivot, k
        lines[PIVOTS, k] = pivot
        log_z += pivot
        for i in range(k):
            logs[BEFORE, i, k] -= pivot
    return log_z, 0


@kernel
def _eliminate_tangents(cut, n, single_root, lines):
    """Fill the tangents of all logs: the mean of the terms' tangents, by their shares in a sum."""
    for k in range(n, 0, -1):
        pivot_t = 0.0
        for i in range(k):
            for plane in range(AFTER if i > 0 else BEFORE, BEFORE + 1):
                head, dependent = (i, k) if plane == BEFORE else (k, i)
                log_sum = cut[plane, i, k] + (lines[PIVOTS, k] if plane == BEFORE else 0.0)
                if log_sum == -np.inf:
                    continue
                mean = np.exp(cut[ARCS, dependent, head] - log_sum) * cut[ARCS + T, dependent, head]
                for m in range(max(k + 1, 1), n + 1):
                    share = exp(cut[AFTER, dependent, m] + cut[BEFORE, head, m] - log_sum)
                    mean += share * (cut[AFTER + T, dependent, m] + cut[BEFORE + T, head, m])
                cut[plane + T, i, k] = mean
            if i > 0 or k == 1 or not single_root:
                pivot_t += np.exp(cut[BEFORE, i, k]) * cut[BEFORE + T, i, k]
        lines[PIVOTS_T, k] = pivot_t
        for i in range(k):
            cut[BEFORE + T, i, k] -= pivot_t


@kernel
def _differentiate(cut, n, single_root, lines):
    """Fill the numbers of uses and their tangents: ``_eliminate`` in reverse."""
    shares = lines[TERMS]
    for k in range(1, n + 1):
        rest, rest_t = 1.0, 0.0  # less the expected number of dependents
        for i in range(k):
            rest -= cut[BEFORE + USES, i, k]
            rest_t -= cut[BEFORE + USES_T, i, k]
        for i in range(1 if single_root and k > 1 else 0, k):
            share = np.exp(cut[BEFORE, i, k])
            cut[BEFORE + USES, i, k] = max(cut[BEFORE + USES, i, k] + rest * share, 0.0)
            cut[BEFORE + USES_T, i, k] += share * (rest_t + rest * cut[BEFORE + T, i, k])
        for i in range(k):
            for plane in range(AFTER if i > 0 else BEFORE, BEFORE + 1):
                head, dependent, log_sum, mean = k, i, cut[plane, i, k], cut[plane + T, i, k]
                uses, uses_t = cut[plane + USES, i, k], cut[plane + USES_T, i, k]
                if plane == BEFORE:
                    head, dependent = i, k
                    log_sum, mean = log_sum + lines[PIVOTS, k], mean + lines[PIVOTS_T, k]
                if log_sum == -np.inf:
                    continue
                share = np.exp(cut[ARCS, dependent, head] - log_sum)
                cut[ARCS + USES, dependent, head] = share * uses
                cut[ARCS + USES_T, dependent, head] = share * (uses_t + uses * (cut[ARCS + T, dependent, head] - mean))
                for m in range(max(k + 1, 1), n + 1):
                    shares[m] = exp(cut[AFTER, dependent, m] + cut[BEFORE, head, m] - log_sum)
                for m in range(max(k + 1, 1), n + 1):
                    cut[AFTER + USES, dependent, m] += shares[m] * uses
                    cut[BEFORE + USES, head, m] += shares[m] * uses
                for m in range(max(k + 1, 1), n + 1):
                    tangent = uses_t + uses * (cut[AFTER + T, dependent, m] + cut[BEFORE + T, head, m] - mean)
                    cut[AFTER + USES_T, dependent, m] += shares[m] * tangent
                    cut[BEFORE + USES_T, head, m] += shares[m] * tangent


@kernel
def _store(cut, n, with_vector, results):
    """Store results [head, dependent]; the marginals of a word's heads sum to 1, and their tangents to 0."""
    for j in range(1, n + 1):
        total = total_t = 0.0
        for i in range(n + 1):
            total += cut[ARCS + USES, j, i]
            total_t += cut[ARCS + USES_T, j, i]
        for i in range(n + 1):
            marginal = cut[ARCS + USES, j, i] / total
            results[i, j] = (cut[ARCS + USES_T, j, i] - marginal * total_t) / total if with_vector else marginal
