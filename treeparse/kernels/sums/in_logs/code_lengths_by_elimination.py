"""Expected code lengths ``-E_p[log q]`` of all trees under another distribution, for any finite scores.

Words are eliminated as in ``in_logs.elimination``: every weight carries a code length, a sum that of its terms by their
shares under p, each less the log of its share under q. Here code lengths may be as large as scores, and cancel: a
quotient takes away the code length of the pivot, which all paths through a word have taken already. So everything has
32 digits. Logs have a third number, a multiple of ``COARSE``: sums of these are exact.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from treeparse.kernels.arrays import FloatArray, IntArray
from treeparse.kernels.compile import exact_kernel
from treeparse.kernels.logspace import two_sum
from treeparse.kernels.sums.in_logs import double_double as dd
from treeparse.kernels.sums.in_logs.elimination import sum_in_logs, with_remainders
from treeparse.kernels.sums.item import NO_TREE, first_head
from treeparse.kernels.threads import run_batch

COARSE = 1024.0
P, Q = range(2)
ZERO = (0.0, -np.inf, 0.0)  # as a log


def code_lengths(
    parts: Sequence[FloatArray],
    others: Sequence[FloatArray],
    lengths: IntArray,
    *,
    remainders: FloatArray | None = None,
    other_remainders: FloatArray | None = None,
    values: FloatArray | None = None,
    single_root: bool,
    threads: int = 1,
) -> tuple[FloatArray, ...]:
    """Return ``-E_p[log q]`` in nats, p's marginals, and the derivatives in the scores of p.

    Trees that q forbids, and items without a tree, add 0.

    Args:
        parts: the scores of p's arcs ``(B, n+1, n+1)`` alone.
        others: the scores of q's arcs.
        lengths: ``(B,)``.
        remainders: ``(B, n+1, n+1)``, what rounding took from the scores of p's arcs, if anything.
        other_remainders: the same for q's arcs.
        values: code lengths that arcs have of their own, ``(B, n+1, n+1)``, if any; finite.
        single_root: whether exactly one word hangs from node 0.
        threads: how many threads to use at most.
    """
    (arcs,), (other_arcs,) = parts, others
    options = {"single_root": single_root, "threads": threads}
    p, q = with_remainders(arcs, remainders), with_remainders(other_arcs, other_remainders)
    if values is None and np.array_equal(p, q, equal_nan=True):
        sums = sum_in_logs(p, lengths, with_codes=True, **options)
        return sums.values, sums.marginals, sums.derivatives
    # Arcs that only one of the two allows are left out; what q loses by that is added.
    both = (arcs > -np.inf) & (other_arcs > -np.inf)
    p, q = (np.where(both, each, [[[[-np.inf]]], [[[0.0]]]]) for each in (p, q))
    values = np.zeros(arcs.shape) if values is None else values
    codes, marginals, derivatives = np.zeros(len(lengths)), np.zeros(arcs.shape), np.zeros(arcs.shape)
    arguments = lengths, p, q, values, single_root, codes, marginals, derivatives
    run_batch(_code_lengths, lambda n: 1000 * n**3, *arguments, threads=threads)
    if ((other_arcs > -np.inf) & ~both).any():
        whole, rest = (
            sum_in_logs(each, lengths, differentiate=False, **options).log_z
            for each in (with_remainders(other_arcs, other_remainders), q)
        )
        with np.errstate(invalid="ignore"):
            codes += np.where(rest[0] > -np.inf, (whole[0] - rest[0]) + (whole[1] - rest[1]), 0.0)
    return codes, marginals, derivatives


class _Own(NamedTuple):
    """What arcs have of their own."""

    logs: FloatArray  # (n+1, n+1, 2, 3) [dependent, head], as in ``_PreciseElimination``
    values: FloatArray  # (n+1, n+1) [head, dependent] code lengths


class _PreciseElimination(NamedTuple):
    """The weights ``[j, i]`` of arcs ``i -> j`` when they are final; those of a word's heads over its pivot."""

    logs: FloatArray  # (n+1, n+1, 2, 3) under p and under q: whole part, high and low
    codes: FloatArray  # (n+1, n+1, 2) code lengths
    pivot_logs: FloatArray  # (n+1, 2, 3)
    pivot_codes: FloatArray  # (n+1, 2)
    outer: FloatArray  # (n+1, n+1, 2, 2) the derivatives of the result in each one's code length, and in its log
    terms: FloatArray  # (n+1, 2, 3) logs of a sum's terms
    own: FloatArray  # (n+1, 2) their code lengths
    shares: FloatArray  # (n+1, 2) their shares under p


@exact_kernel
def _code_lengths(start, stop, lengths, scores, others, values, single_root, codes, marginals, derivatives):
    for b in range(start, stop):
        n = lengths[b]
        size = n + 1
        eliminated = _PreciseElimination(
            np.zeros((size, size, 2, 3)),
            np.zeros((size, size, 2)),
            np.zeros((size, 2, 3)),
            np.zeros((size, 2)),
            np.zeros((size, size, 2, 2)),
            np.zeros((size, 2, 3)),
            np.zeros((size, 2)),
            np.zeros((size, 2)),
        )
        own = _Own(np.empty((size, size, 2, 3)), values[b])
        for j in range(1, size):
            for i in range(size):
                _split(scores[0, b, i, j], scores[1, b, i, j], own.logs[j, i, P])
                _split(others[0, b, i, j], others[1, b, i, j], own.logs[j, i, Q])
        root_word = _eliminate(own, n, 1 if single_root else n + 1, eliminated)
        if root_word != NO_TREE:
            total = (0.0, 0.0)
            for k in range(1, size):
                total = dd.add(total, _pair(eliminated.pivot_codes[k]))
            codes[b] = total[0]
            _differentiate(own, n, root_word, eliminated, marginals[b], derivatives[b])


@exact_kernel
def _split(high, low, log):
    """Store a score as a log."""
    log[0], log[1], log[2] = ZERO
    if high > -np.inf:
        log[0] = COARSE * np.round(high / COARSE)
        log[1], log[2] = two_sum(high - log[0], low)


@exact_kernel
def _copy(source, target):
    """Copy a number or a log."""
    for place in range(len(source)):
        target[place] = source[place]


@exact_kernel
def _pair(numbers):
    return numbers[0], numbers[1]


@exact_kernel
def _add_to(numbers, x):
    """Add a number to a stored one."""
    numbers[0], numbers[1] = dd.add((numbers[0], numbers[1]), x)


@exact_kernel
def _add_logs(x, y, sign, result):
    """Store ``x + sign * y`` of two logs, where only x may be that of 0."""
    if x[1] == -np.inf or y[1] == -np.inf:
        result[0], result[1], result[2] = ZERO
        return
    high, low = dd.add((x[1], x[2]), (sign * y[1], sign * y[2]))
    result[0], result[1], result[2] = x[0] + sign * y[0], high, low


@exact_kernel
def _eliminate(own, n, root_word, eliminated):
    """Fill the weights and pivots; return the root word, or ``NO_TREE``."""
    logs, codes = eliminated.logs, eliminated.codes
    for k in range(n, 0, -1):
        for i in range(k):
            _sum_weight(own, n, root_word, k, i, eliminated)
            if i > 0:
                _sum_weight(own, n, root_word, i, k, eliminated)
        if not _sum_pivot(k, root_word, eliminated):
            if root_word != 1 or logs[k, 0, P, 1] == -np.inf:
                return NO_TREE
            root_word = k
            _sum_pivot(k, root_word, eliminated)
        for i in range(k):
            for which in range(2):
                _add_logs(logs[k, i, which], eliminated.pivot_logs[k, which], -1.0, logs[k, i, which])
            code = dd.subtract(_pair(codes[k, i]), _pair(eliminated.pivot_codes[k]))
            codes[k, i, 0], codes[k, i, 1] = code
    return root_word


@exact_kernel
def _has_own(n, root_word, j, i):
    """Return whether the arc's own weight is a term: not where a root word has taken the place of node 0."""
    return i > 0 or j >= root_word or root_word > n


@exact_kernel
def _load_terms(own, n, root_word, j, i, eliminated):
    """Fill the terms of a weight: the arc's own, and the paths through later words; return their number.

    Without its own weight, an arc has only the paths from the root word on.
    """
    logs, codes, terms = eliminated.logs, eliminated.codes, eliminated.terms
    last, count = n, 0
    if _has_own(n, root_word, j, i):
        for which in range(2):
            _copy(own.logs[j, i, which], terms[0, which])
        eliminated.own[0, 0], eliminated.own[0, 1] = own.values[i, j], 0.0
        count = 1
    else:
        last = root_word
    for k in range(max(i, j) + 1, last + 1):
        for which in range(2):
            _add_logs(logs[j, k, which], logs[k, i, which], 1.0, terms[count, which])
        code = dd.add(_pair(codes[j, k]), _pair(codes[k, i]))
        eliminated.own[count, 0], eliminated.own[count, 1] = code
        count += 1
    return count


@exact_kernel
def _load_pivot_terms(k, root_word, eliminated):
    """Fill the terms of a pivot; return their number."""
    first = first_head(k, root_word)
    for i in range(first, k):
        for which in range(2):
            _copy(eliminated.logs[k, i, which], eliminated.terms[i - first, which])
        _copy(eliminated.codes[k, i], eliminated.own[i - first])
    return k - first


@exact_kernel
def _combine(count, eliminated, logs):
    """Store the logs of a sum of terms under p and q; return its code length.

    ``shares`` become the terms' under p, and their code lengths take minus the logs of their shares under q.
    """
    own, shares = eliminated.own, eliminated.shares
    total = _weigh(Q, count, eliminated, logs[Q])
    if logs[Q, 1] > -np.inf:
        log_total = dd.log(total)
        for place in range(count):
            if eliminated.terms[place, Q, 1] > -np.inf:
                _add_to(own[place], dd.subtract(log_total, _less(eliminated.terms[place, Q], logs[Q])))
        _add_fine(logs[Q], log_total)
    total, code = _weigh(P, count, eliminated, logs[P]), (0.0, 0.0)
    if logs[P, 1] == -np.inf:
        return code
    for place in range(count):
        shares[place, 0], shares[place, 1] = dd.divide(_pair(shares[place]), total)
        code = dd.add(code, dd.multiply(_pair(shares[place]), _pair(own[place])))
    _add_fine(logs[P], dd.log(total))
    return code


@exact_kernel
def _less(x, y):
    """Return the difference of two logs as one number."""
    return dd.add((x[0] - y[0], 0.0), dd.subtract((x[1], x[2]), (y[1], y[2])))


@exact_kernel
def _add_fine(log, x):
    """Add a number to a stored log."""
    log[1], log[2] = dd.add((log[1], log[2]), x)


@exact_kernel
def _weigh(which, count, eliminated, largest):
    """Fill ``shares`` with weights relative to the largest one, store its log, and return the sum of the weights."""
    terms, shares, total = eliminated.terms, eliminated.shares, (0.0, 0.0)
    largest[0], largest[1], largest[2] = ZERO
    for place in range(count):
        term = terms[place, which]
        if term[1] > -np.inf and (largest[1] == -np.inf or _less(term, largest)[0] > 0.0):
            _copy(term, largest)
    if largest[1] == -np.inf:
        return total
    for place in range(count):
        shares[place, 0] = shares[place, 1] = 0.0
        if terms[place, which, 1] > -np.inf:
            shares[place, 0], shares[place, 1] = dd.exp(_less(terms[place, which], largest))
        total = dd.add(total, _pair(shares[place]))
    return total


@exact_kernel
def _sum_weight(own, n, root_word, j, i, eliminated):
    """Fill the weight of the arc ``i -> j``."""
    count = _load_terms(own, n, root_word, j, i, eliminated)
    eliminated.codes[j, i, 0], eliminated.codes[j, i, 1] = _combine(count, eliminated, eliminated.logs[j, i])


@exact_kernel
def _sum_pivot(k, root_word, eliminated):
    """Fill the pivot of word ``k``; return whether it has any head."""
    count = _load_pivot_terms(k, root_word, eliminated)
    code = _combine(count, eliminated, eliminated.pivot_logs[k])
    eliminated.pivot_codes[k, 0], eliminated.pivot_codes[k, 1] = code
    return eliminated.pivot_logs[k, P, 1] > -np.inf


@exact_kernel
def _differentiate(own, n, root_word, eliminated, marginals, derivatives):
    """Fill marginals, and the derivatives of the code length in all scores of p: ``_eliminate`` in reverse."""
    logs, outer = eliminated.logs, eliminated.outer
    for k in range(1, n + 1):
        of_code, of_log = (1.0, 0.0), (0.0, 0.0)  # the derivatives in the pivot
        for i in range(k):
            of_code = dd.subtract(of_code, _pair(outer[k, i, 0]))
            of_log = dd.subtract(of_log, _pair(outer[k, i, 1]))
        for i in range(first_head(k, root_word), k):
            if logs[k, i, P, 1] > -np.inf:
                share = dd.exp(dd.add((logs[k, i, P, 0], 0.0), (logs[k, i, P, 1], logs[k, i, P, 2])))
                code = _pair(eliminated.codes[k, i])  # less the pivot's
                code = dd.subtract(code, dd.add((logs[k, i, Q, 0], 0.0), (logs[k, i, Q, 1], logs[k, i, Q, 2])))
                from_code = dd.multiply(of_code, share)
                _add_to(outer[k, i, 0], from_code)
                _add_to(outer[k, i, 1], dd.add(dd.multiply(of_log, share), dd.multiply(from_code, code)))
        for i in range(k):
            _share_weight(own, n, root_word, k, i, eliminated, marginals, derivatives)
            if i > 0:
                _share_weight(own, n, root_word, i, k, eliminated, marginals, derivatives)


@exact_kernel
def _share_weight(own, n, root_word, j, i, eliminated, marginals, derivatives):
    """Give each term of a weight its share of the weight's derivatives."""
    outer, shares = eliminated.outer, eliminated.shares
    if eliminated.logs[j, i, P, 1] == -np.inf:
        return
    count = _load_terms(own, n, root_word, j, i, eliminated)
    code = _combine(count, eliminated, eliminated.logs[j, i])
    has_own = _has_own(n, root_word, j, i)
    for place in range(count):
        share = _pair(shares[place])
        if share[0] == 0.0:
            continue
        of_code = dd.multiply(share, _pair(outer[j, i, 0]))
        change = dd.subtract(_pair(eliminated.own[place]), code)
        of_log = dd.add(dd.multiply(share, _pair(outer[j, i, 1])), dd.multiply(of_code, change))
        if has_own and place == 0:
            marginals[i, j] += of_code[0]
            derivatives[i, j] += of_log[0]
            continue
        k = max(i, j) + place + (0 if has_own else 1)
        for to in (outer[j, k], outer[k, i]):
            _add_to(to[0], of_code)
            _add_to(to[1], of_log)
