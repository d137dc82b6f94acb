"""Log marginals without any subtraction, by divide and conquer ([GTH]).

Word ``k`` hangs from ``h`` with a probability proportional to ``w[k, h] g[h, k]``. With any number of roots,
``g[h, k]`` is the probability that a walk from ``h`` up to random heads gets to node 0 without passing ``k``. It
follows from eliminating all words but ``k``: ``g[k, k] = 0``, ``g[0, k] = 1`` and, for every eliminated word ``e``, the
last one first, ``g[e, k] = sum_i w[e, i] g[i, k] / pivot[e]`` over the nodes ``i`` that were left when ``e`` went.

With a single root, pivots leave node 0 out. The same sums then solve the Laplacian without row and column ``k`` for the
root weights, so that ``g[h, k]``, times a constant, is the weight of the forests of two trees, one under ``k``, the
other with ``h`` under the word at the root. Where a pivot is zero, only node 0 reaches ``e``, and ``e`` is the word at
the root: it stands for node 0 from there on, as if any number of words may hang from it. Thus ``g[e, k] = 1``, and for
the words eliminated before ``e`` node 0 no longer counts: ``g[0, k] = 0``.

Half of the words are eliminated for all words of the other half at once, and so on within each half: O(n^3) in all.
Sums, products and quotients of nonnegative numbers keep their relative accuracy, and are zero exactly where no tree
contributes, unless something underflows. So plain weights serve only where each factor of every product is zero or at
least ``SMALL``; all else is done in log space.

Matrices ``w`` are dependent-major: ``w[j, i]`` is the weight of the arc ``i -> j``. Entries ``w[j, j]`` stand for none.
"""

from typing import NamedTuple

import numpy as np

from treeparse.kernels.arrays import FloatArray, IntArray
from treeparse.kernels.compile import jit, lent_jit, vector_jit
from treeparse.kernels.logspace import log_add, log_sum
from treeparse.kernels.threads import run_batch
from treeparse.kernels.weights import column_maxima, load_log_weights, load_weights, range_sum, square

SMALL = 1e-140  # a product of two such numbers, divided by a column sum, is far from underflow
LOG_SMALL = float(np.log(SMALL))
NO_TREE, MULTI_ROOT, SINGLE_ROOT = 0, 1, 2  # what an elimination left


class Half(NamedTuple):
    """One half of some words, which leaves the other half.

    In the pool, its matrix follows the matrix of all these words; it has the remaining words first.
    """

    begin: int  # where in the pool the matrix of these words begins
    width: int  # its number of words
    first: int  # the first of these words
    size: int  # their number
    remaining_at: int  # how many eliminated words come before the remaining ones
    mode: int  # whether there is to be a single root
    has_left: bool  # already, so that its rows of ``g`` are to be filled


def log_marginals(scores: FloatArray, lengths: IntArray, *, single_root: bool, threads: int = 1) -> FloatArray:
    """Return the log probability of every arc ``(B, n+1, n+1)`` in nats; it is -inf exactly where no tree has the arc.

    Right to relative accuracy however improbable the arc: the absolute error of a logarithm is about 1e-15 times the
    summed largest magnitudes of the words' scores. Where there is no tree at all, everything is -inf.
    """
    result = np.full_like(scores, -np.inf)
    run_batch(_log_marginals, lambda n: 2.5 * n**3, lengths, scores, single_root, result, threads=threads)
    return result


@jit
def _log_marginals(start, stop, lengths, scores, single_root, result):
    size = scores.shape[1]
    top, row = np.empty(size), np.empty(size)
    buffer, pool = np.empty(size * size), np.empty(_pool_size(size - 1))
    for b in range(start, stop):
        n = lengths[b]
        if column_maxima(scores[b], n, top) > -np.inf:
            g = square(buffer, n)
            if not _linear_item(scores[b], n, single_root, top, row, pool, g, result[b]):
                _log_item(scores[b], n, single_root, top, row, pool, g, result[b])


@jit
def _pool_size(n):
    """Return the size of the weights and, for every level, of the matrix in which half of its words are eliminated."""
    total = (n + 1) * (n + 1)
    while n > 1:
        total += (n + 1) * (n + 1)
        n = (n + 1) // 2
    return total


@jit
def _linear_item(scores, n, single_root, top, row, pool, g, result):
    """One item with plain weights; returns whether that was safe, and there is a tree."""
    if has_tiny_weights(scores, n, top):
        return False
    w = square(pool, n)
    load_weights(scores, n, top, w, w)
    g[:] = 0.0
    g[0] = 1.0
    safe = _fill_g(n, single_root, False, row, pool, g) and not has_tiny(g, n)
    return safe and _store_logs(w, g, n, row, result)


@jit
def _log_item(scores, n, single_root, top, row, pool, g, result):
    """One item in log space, slower and safe for any finite scores."""
    w = square(pool, n)
    load_log_weights(scores, n, top, w, w)
    g[:] = -np.inf
    g[0] = 0.0
    if not (_fill_g(n, single_root, True, row, pool, g) and _store_normalized(w, g, n, row, result)):
        result[:] = -np.inf


@vector_jit
def has_tiny_weights(scores, n, top):
    """Whether an allowed arc's weight is below ``SMALL`` times that of its column's best."""
    count = 0
    for i in range(n + 1):
        for j in range(1, n + 1):
            score = scores[i, j]
            count += i != j and -np.inf < score < top[j] + LOG_SMALL
    return count > 0


@vector_jit
def has_tiny(values, n):
    """Whether a factor is so small that a product may have underflowed; the row of node 0 holds none."""
    count = 0
    for j in range(1, n + 1):
        for i in range(n + 1):
            count += 0.0 < values[j, i] < SMALL
    return count > 0


@jit
def _fill_g(n, single_root, in_logs, row, pool, g):
    """Halve the words again and again, depth first; returns False if there is no tree or plain weights are not safe."""
    mode = SINGLE_ROOT if single_root else MULTI_ROOT
    stack = [Half(0, n, 1, n, remaining_at, mode, False) for remaining_at in (0, n // 2) if n > 1]
    while len(stack) > 0:
        begin, width, first, size, remaining_at, mode, has_left = stack.pop()
        remaining = size - remaining_at if remaining_at > 0 else size // 2
        own = begin + (width + 1) * (width + 1)
        w = square(pool[own:], size)
        start = first + remaining_at
        base = first - 1 - (remaining if remaining_at > 0 else 0)
        if has_left and in_logs:
            _substitute_log(w, size, remaining, start, base, g)
        elif has_left:
            _substitute(w, size, remaining, start, base, g)
        else:
            _load_half(square(pool[begin:], width), size, remaining, remaining_at, w)
            mode = eliminate_log(w, size, remaining, mode, row) if in_logs else eliminate(w, size, remaining, mode, row)
            if mode == NO_TREE or (not in_logs and has_tiny(w, size)):
                return False
            stack.append(Half(begin, width, first, size, remaining_at, mode, True))
            if remaining > 1:
                stack.append(Half(own, size, start, remaining, 0, mode, False))
                stack.append(Half(own, size, start, remaining, remaining // 2, mode, False))
    return True


@jit
def _load_half(source, size, remaining, remaining_at, w):
    """Copy the matrix of ``size`` words; the words that are not eliminated come first."""
    left_at = -remaining if remaining_at > 0 else 0
    for j in range(1, size + 1):
        old = j + (remaining_at if j <= remaining else left_at)
        w[j, 0] = source[old, 0]
        for i in range(1, remaining + 1):
            w[j, i] = source[old, i + remaining_at]
        for i in range(remaining + 1, size + 1):
            w[j, i] = source[old, i + left_at]


@vector_jit
def eliminate(w, size, remaining, mode, row):
    """Eliminate the words after the first ``remaining``, the last one first; return the mode of the remaining words.

    The row of an eliminated word ``k`` becomes the shares of its heads in the pivot; ``w[k, k]`` is 1, or 0 for the
    word at the root.
    """
    for k in range(size, remaining, -1):
        pivot = range_sum(w[k], 1 if mode == SINGLE_ROOT else 0, k)
        w[k, k] = 1.0
        if pivot == 0.0 and mode == SINGLE_ROOT:  # the arcs from k take the place of those from node 0
            mode = MULTI_ROOT
            pivot = w[k, 0]
            w[k, k] = 0.0
            w[1:k, 0] = 0.0
        if pivot == 0.0:
            return NO_TREE
        for i in range(k):
            row[i] = w[k, i] = w[k, i] / pivot
        for j in range(1, k):
            through = w[j, k]
            for i in range(k):
                w[j, i] += through * row[i]
    for j in range(1, remaining + 1):
        w[j, j] = 0.0
    return mode


@vector_jit
def _substitute(w, size, remaining, start, base, g):
    """Fill the rows of ``g`` of the eliminated words, the last one first, in the columns of the remaining words.

    The remaining words start with word ``start``; position ``e`` of an eliminated word in ``w`` is word ``base + e``.
    """
    stop = start + remaining
    for e in range(remaining + 1, size + 1):
        word = base + e
        for k in range(start, stop):
            g[word, k] = w[e, 0] * g[0, k]
        for i in range(1, e):
            head = i + (start - 1 if i <= remaining else base)
            share = w[e, i]
            for k in range(start, stop):
                g[word, k] += share * g[head, k]
        if w[e, e] == 0.0:
            g[0, start:stop] = 0.0


@vector_jit
def _store_logs(w, g, n, row, result):
    """Normalise every word's heads; returns whether there is a tree and nothing under- or overflowed."""
    safe = True
    for k in range(1, n + 1):
        total = 0.0
        for h in range(n + 1):
            row[h] = w[k, h] * g[h, k]
            total += row[h]
        safe &= total > 0.0
        for h in range(n + 1):
            share = row[h] / total
            safe &= row[h] == 0.0 or share >= SMALL * SMALL  # not so where something is infinite or NaN
            result[h, k] = np.log(share)
    return safe


@lent_jit
def eliminate_log(w, size, remaining, mode, row):
    """``eliminate`` on log weights, where ``w[k, k]`` becomes 1 or 0 all the same."""
    for k in range(size, remaining, -1):
        pivot = log_sum(w[k], 1 if mode == SINGLE_ROOT else 0, k)
        w[k, k] = 1.0
        if pivot == -np.inf and mode == SINGLE_ROOT:
            mode = MULTI_ROOT
            pivot = w[k, 0]
            w[k, k] = 0.0
            w[1:k, 0] = -np.inf
        if pivot == -np.inf:
            return NO_TREE
        for i in range(k):
            row[i] = w[k, i] = w[k, i] - pivot
        for j in range(1, k):
            through = w[j, k]
            if through > -np.inf:
                for i in range(k):
                    w[j, i] = log_add(w[j, i], through + row[i])
    return mode


@jit
def _substitute_log(w, size, remaining, start, base, g):
    """``_substitute`` on logs."""
    stop = start + remaining
    for e in range(remaining + 1, size + 1):
        word = base + e
        for k in range(start, stop):
            g[word, k] = w[e, 0] + g[0, k]
        for i in range(1, e):
            head = i + (start - 1 if i <= remaining else base)
            share = w[e, i]
            if share > -np.inf:
                for k in range(start, stop):
                    g[word, k] = log_add(g[word, k], share + g[head, k])
        if w[e, e] == 0.0:
            g[0, start:stop] = -np.inf


@jit
def _store_normalized(w, g, n, row, result):
    """``_store_logs`` from logs; returns whether there is a tree."""
    for k in range(1, n + 1):
        for h in range(n + 1):
            row[h] = w[k, h] + g[h, k]
        total = log_sum(row, 0, n + 1)
        if total == -np.inf:
            return False
        for h in range(n + 1):
            result[h, k] = row[h] - total
    return True
