"""Expected code lengths ``-E_p[log q]`` of all trees, for any finite scores; if q is p, entropies.

Words are eliminated as in ``elimination``, in logs of two numbers each. Every weight carries a code length: a sum that
of its terms by their shares under p, each less the log of its share under q; a product the sum of the factors', a
quotient their difference. The code lengths of the pivots add up to that of the trees. Scores enter the shares alone, so
that code lengths do not grow with them.

A weight ``w[j, i]`` is final when the later one of its nodes is eliminated; it is summed then, at once, from the arc's
own weight and the paths through all words that were eliminated before. So the way back finds the same shares again.
"""

from typing import NamedTuple

import numpy as np

from treeparse.kernels.arrays import FloatArray, IntArray
from treeparse.kernels.compile import jit, lent_jit
from treeparse.kernels.logspace import two_sum
from treeparse.kernels.sums.item import NO_TREE, first_head
from treeparse.kernels.threads import run_batch


def code_lengths(
    scores: FloatArray, others: FloatArray, lengths: IntArray, *, single_root: bool, threads: int = 1
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return ``-E_p[log q]`` in nats ``(B,)``, and its derivative in the scores of p ``(B, n+1, n+1)``.

    ``scores`` are p's, ``others`` q's, which must allow the same arcs. Items without a tree have 0. The third result
    ``(2, B)`` is the log partition of q as two numbers.
    """
    values, derivatives, log_z = np.zeros(len(lengths)), np.zeros(scores.shape), np.zeros((2, len(lengths)))
    arguments = lengths, scores, others, single_root, values, derivatives, log_z
    run_batch(_code_lengths, lambda n: 100 * n**3, *arguments, threads=threads)
    return values, derivatives, log_z


class _Elimination(NamedTuple):
    """The weights ``[j, i]`` of arcs ``i -> j`` when they are final; those of a word's heads over its pivot."""

    logs: FloatArray  # (2, n+1, n+1) under p, each as two numbers
    other_logs: FloatArray  # (2, n+1, n+1) under q
    codes: FloatArray  # (n+1, n+1) code lengths
    pivots: FloatArray  # (5, n+1) the logs of the pivots, those under q, and their code lengths
    outer: FloatArray  # (2, n+1, n+1) the derivatives of the result in each one's code length, and in its log
    terms: FloatArray  # (5, n+1) of a sum: logs, those under q, and code lengths
    shares: FloatArray  # (n+1,) of the terms under p


@jit
def _code_lengths(start, stop, lengths, scores, others, single_root, values, derivatives, log_z):
    for b in range(start, stop):
        n = lengths[b]
        size = n + 1
        square = size, size
        eliminated = _Elimination(
            np.full((2, *square), -np.inf),
            np.full((2, *square), -np.inf),
            np.zeros(square),
            np.zeros((5, size)),
            np.zeros((2, *square)),
            np.empty((5, size)),
            np.empty(size),
        )
        root_word = _eliminate(scores[b], others[b], n, 1 if single_root else n + 1, eliminated)
        if root_word != NO_TREE:
            for k in range(1, size):
                values[b] += eliminated.pivots[4, k]
                log_z[0, b], low = two_sum(log_z[0, b], eliminated.pivots[2, k])
                log_z[1, b] += low + eliminated.pivots[3, k]
            _differentiate(scores[b], others[b], n, root_word, eliminated, derivatives[b])


@lent_jit
def _eliminate(scores, others, n, root_word, eliminated):
    """Fill the weights and pivots; return the root word, or ``NO_TREE``."""
    logs, other_logs, codes, pivots = eliminated.logs, eliminated.other_logs, eliminated.codes, eliminated.pivots
    for k in range(n, 0, -1):
        for i in range(k):
            _sum_weight(scores, others, n, root_word, k, i, eliminated)
            if i > 0:
                _sum_weight(scores, others, n, root_word, i, k, eliminated)
        if not _sum_pivot(k, root_word, eliminated):
            if root_word != 1 or logs[0, k, 0] == -np.inf:
                return NO_TREE
            root_word = k
            _sum_pivot(k, root_word, eliminated)
        for i in range(k):
            logs[0, k, i], logs[1, k, i] = _difference(logs[:, k, i], pivots[0:2, k])
            other_logs[0, k, i], other_logs[1, k, i] = _difference(other_logs[:, k, i], pivots[2:4, k])
            codes[k, i] -= pivots[4, k]
    return root_word


@lent_jit
def _difference(x, y):
    """Return the difference of two logs, each of two numbers; that of -inf is -inf."""
    high, low = two_sum(x[0], -y[0])
    return (high, low + (x[1] - y[1])) if high > -np.inf else (high, 0.0)


@lent_jit
def _has_own(n, root_word, j, i):
    """Return whether the arc's own weight is a term: not where a root word has taken the place of node 0."""
    return i > 0 or j >= root_word or root_word > n


@lent_jit
def _load_terms(scores, others, n, root_word, j, i, eliminated):
    """Fill the terms of a weight: the arc's own, and the paths through later words; return their number.

    Without its own weight, an arc has only the paths from the root word on.
    """
    logs, other_logs, codes, terms = eliminated.logs, eliminated.other_logs, eliminated.codes, eliminated.terms
    last, count = n if _has_own(n, root_word, j, i) else root_word, 0
    if _has_own(n, root_word, j, i):
        terms[0, 0], terms[2, 0] = scores[i, j], others[i, j]
        terms[1, 0] = terms[3, 0] = terms[4, 0] = 0.0
        count = 1
    for k in range(max(i, j) + 1, last + 1):
        for at, of in ((0, logs), (2, other_logs)):
            high, low = two_sum(of[0, j, k], of[0, k, i])
            terms[at, count], terms[at + 1, count] = high, low + (of[1, j, k] + of[1, k, i] if high > -np.inf else 0.0)
        terms[4, count] = codes[j, k] + codes[k, i]
        count += 1
    return count


@lent_jit
def _load_pivot_terms(k, root_word, eliminated):
    """Fill the terms of a pivot; return their number."""
    terms, first = eliminated.terms, first_head(k, root_word)
    for i in range(first, k):
        terms[0, i - first], terms[1, i - first] = eliminated.logs[0, k, i], eliminated.logs[1, k, i]
        terms[2, i - first], terms[3, i - first] = eliminated.other_logs[0, k, i], eliminated.other_logs[1, k, i]
        terms[4, i - first] = eliminated.codes[k, i]
    return k - first


@lent_jit
def _combine(count, eliminated):
    """Turn terms into a sum: its logs under p and under q, each as two numbers, and its code length.

    ``shares`` become the terms' under p, and ``terms[4]`` their code lengths less the logs of their shares under q.
    """
    terms, shares = eliminated.terms, eliminated.shares
    other_high, other_low, other_total = _weigh(terms[2:4], count, shares)
    for place in range(count):
        if terms[2, place] > -np.inf:
            log_share = (terms[2, place] - other_high) + (terms[3, place] - other_low) - np.log(other_total)
            terms[4, place] -= log_share
    high, low, total = _weigh(terms[0:2], count, shares)
    if total == 0.0:
        return -np.inf, 0.0, -np.inf, 0.0, 0.0
    code = 0.0
    for place in range(count):
        shares[place] /= total
        code += shares[place] * terms[4, place]
    high, low = two_sum(high, low + np.log(total))
    if other_total > 0.0:
        other_high, other_low = two_sum(other_high, other_low + np.log(other_total))
    return high, low, other_high, other_low, code


@lent_jit
def _weigh(logs, count, weights):
    """Fill weights relative to the largest one; return its log, as two numbers, and the sum of the weights."""
    top, total = -1, 0.0
    for place in range(count):
        if logs[0, place] > -np.inf and (top < 0 or logs[0, place] > logs[0, top]):
            top = place
    for place in range(count):
        weights[place] = 0.0
        if logs[0, place] > -np.inf:
            weights[place] = np.exp((logs[0, place] - logs[0, top]) + (logs[1, place] - logs[1, top]))
            total += weights[place]
    return (logs[0, top], logs[1, top], total) if top >= 0 else (-np.inf, 0.0, 0.0)


@lent_jit
def _sum_weight(scores, others, n, root_word, j, i, eliminated):
    """Fill the weight of the arc ``i -> j``."""
    result = _combine(_load_terms(scores, others, n, root_word, j, i, eliminated), eliminated)
    eliminated.logs[0, j, i], eliminated.logs[1, j, i] = result[0], result[1]
    eliminated.other_logs[0, j, i], eliminated.other_logs[1, j, i] = result[2], result[3]
    eliminated.codes[j, i] = result[4]


@lent_jit
def _sum_pivot(k, root_word, eliminated):
    """Fill the pivot of word ``k``; return whether it has any head."""
    result = _combine(_load_pivot_terms(k, root_word, eliminated), eliminated)
    for place in range(5):
        eliminated.pivots[place, k] = result[place]
    return result[0] > -np.inf


@lent_jit
def _differentiate(scores, others, n, root_word, eliminated, derivatives):
    """Fill the derivatives of the code length in all scores of p: ``_eliminate`` in reverse."""
    logs, other_logs, codes, outer = eliminated.logs, eliminated.other_logs, eliminated.codes, eliminated.outer
    for k in range(1, n + 1):
        of_code, of_log = 1.0, 0.0  # the derivatives in the pivot
        for i in range(k):
            of_code -= outer[0, k, i]
            of_log -= outer[1, k, i]
        for i in range(first_head(k, root_word), k):
            share = np.exp(logs[0, k, i] + logs[1, k, i])
            if share > 0.0:
                own = codes[k, i] - (other_logs[0, k, i] + other_logs[1, k, i])  # less the pivot's code length
                outer[0, k, i] += of_code * share
                outer[1, k, i] += of_log * share + of_code * share * own
        for i in range(k):
            _share_weight(scores, others, n, root_word, k, i, eliminated, derivatives)
            if i > 0:
                _share_weight(scores, others, n, root_word, i, k, eliminated, derivatives)


@lent_jit
def _share_weight(scores, others, n, root_word, j, i, eliminated, derivatives):
    """Give each term of a weight its share of the weight's derivatives."""
    outer, terms, shares = eliminated.outer, eliminated.terms, eliminated.shares
    if eliminated.logs[0, j, i] == -np.inf:
        return
    count = _load_terms(scores, others, n, root_word, j, i, eliminated)
    code = _combine(count, eliminated)[4]
    has_own = _has_own(n, root_word, j, i)
    for place in range(count):
        of_code = shares[place] * outer[0, j, i]
        of_log = shares[place] * outer[1, j, i] + of_code * (terms[4, place] - code)
        if has_own and place == 0:
            derivatives[i, j] += of_log
            continue
        k = max(i, j) + place + (0 if has_own else 1)
        outer[0, j, k] += of_code
        outer[0, k, i] += of_code
        outer[1, j, k] += of_log
        outer[1, k, i] += of_log
