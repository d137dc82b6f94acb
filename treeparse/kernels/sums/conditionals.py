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

import numpy as np

from treeparse.kernels import FloatArray, IntArray
from treeparse.kernels.compile import exact_kernel, kernel
from treeparse.kernels.logspace import log_add, log_sum
from treeparse.kernels.threads import run_batch
from treeparse.kernels.tree_weights import column_maxima, load_logs, load_weights, range_sum, square

NO_TREE = -1  # as a root word
SMALL = 1e-140  # a product of two such numbers, divided by a column sum, is far from underflow
LOG_SMALL = float(np.log(SMALL))


def log_marginals(scores: FloatArray, lengths: IntArray, *, single_root: bool, threads: int = 1) -> FloatArray:
    """Return the log probability of every arc ``(B, n+1, n+1)`` in nats; it is -inf exactly where no tree has the arc.

    Right to relative accuracy however improbable the arc: the absolute error of a logarithm is about 1e-15 times the
    summed largest magnitudes of the words' scores. Where there is no tree at all, everything is -inf.
    """
    result = np.full_like(scores, -np.inf)
    run_batch(_log_marginals, lambda n: 2.5 * n**3, lengths, scores, single_root, result, threads=threads)
    return result


@exact_kernel
def _log_marginals(start, stop, lengths, scores, single_root, result):
    size = scores.shape[1]
    row = np.empty(size)
    buffer, pool = np.empty(size * size), np.empty(_pool_size(size - 1))
    for b in range(start, stop):
        n = lengths[b]
        if column_maxima(scores[b], n, row) == -np.inf:
            continue
        g = square(buffer, n)
        if not _fill_item(scores[b], n, single_root, False, row, pool, g, result[b]):
            column_maxima(scores[b], n, row)
            if not _fill_item(scores[b], n, single_root, True, row, pool, g, result[b]):
                result[b] = -np.inf


@exact_kernel
def _pool_size(n):
    """Return the size of the weights and, for every level, of the matrix in which half of its words are eliminated."""
    total = (n + 1) * (n + 1)
    while n > 1:
        total += (n + 1) * (n + 1)
        n = (n + 1) // 2
    return total


@exact_kernel
def _fill_item(scores, n, single_root, in_logs, row, pool, g, result):
    """Fill the results of one item; return whether it has a tree and, unless ``in_logs``, plain weights were safe.

    ``row`` has the columns' maxima.
    """
    w = square(pool, n)
    if not _load(scores, n, in_logs, row, w):
        return False
    _start(in_logs, g)
    if not _fill_g(n, single_root, in_logs, pool, g):
        return False
    if in_logs:
        return _store_normalized(w, g, n, row, result)
    return not _has_tiny(g) and _store_logs(w, g, n, row, result)


@exact_kernel
def fill_reach(scores, n, single_root, row, w, g):
    """Fill ``g[:, 1]`` of one item with logs, where ``g`` is ``(n+1, 2)``."""
    column_maxima(scores, n, row)
    if not _reach(scores, n, single_root, False, row, w, g):
        _reach(scores, n, single_root, True, row, w, g)


@exact_kernel
def _reach(scores, n, single_root, in_logs, row, w, g):
    """Do ``fill_reach``, in logs or not; return whether plain weights were safe."""
    root_word = 1 if single_root else n + 1
    if not _load(scores, n, in_logs, row, w):
        return False
    _start(in_logs, g)
    if in_logs:
        eliminate_logs(w, n, 1, root_word)
        _substitute_logs(w, n, 1, 1, 0, g)
        return True
    if eliminate(w, n, 1, root_word) == NO_TREE or _has_tiny(w):
        return False
    _substitute(w, n, 1, 1, 0, g)
    is_safe = not _has_tiny(g)
    for i in range(n + 1):
        g[i, 1] = np.log(g[i, 1])
    return is_safe


@exact_kernel
def _start(in_logs, g):
    g[:] = -np.inf if in_logs else 0.0
    g[0] = 0.0 if in_logs else 1.0


@exact_kernel
def _load(scores, n, in_logs, top, w):
    """Fill the weights, or their logs; return False, and fill none, if a plain weight is too small to be safe."""
    if in_logs:
        load_logs(scores, n, top, w)
    elif _has_tiny_weights(scores, n, top):
        return False
    else:
        load_weights(scores, n, top, w)
    return True


@kernel
def _has_tiny_weights(scores, n, top):
    """Return whether an allowed arc's weight is below ``SMALL`` times the largest of its column."""
    count = 0
    for i in range(n + 1):
        for j in range(1, n + 1):
            score = scores[i, j]
            count += i != j and -np.inf < score < top[j] + LOG_SMALL
    return count > 0


@kernel
def _has_tiny(values):
    """Return whether a factor is so small that a product may have underflowed; the row of node 0 holds none."""
    count = 0
    for j in range(1, len(values)):
        for i in range(values.shape[1]):
            count += 0.0 < values[j, i] < SMALL
    return count > 0


@exact_kernel
def _fill_g(n, single_root, in_logs, pool, g):
    """Halve the words again and again, depth first; return False if there is no tree or plain weights are not safe.

    A half of some words is eliminated, so that the other half remains. In the pool, its matrix follows the matrix of
    all these words; it has the remaining words first. On the stack are where the matrix of these words begins, and its
    number of words; the first of these words, and their number; how many eliminated words come before the remaining
    ones; the root word, 1 for a single root that was not met yet, otherwise past these words, as in ``eliminate``; and
    whether the half has been eliminated, so that its rows of ``g`` are to be filled.
    """
    root_word = 1 if single_root else n + 1
    stack = [(0, n, 1, n, remaining_at, root_word, False) for remaining_at in (0, n // 2) if n > 1]
    while len(stack) > 0:
        begin, width, first, size, remaining_at, root_word, is_eliminated = stack.pop()
        remaining = size - remaining_at if remaining_at > 0 else size // 2
        own = begin + (width + 1) * (width + 1)
        w = square(pool[own:], size)
        start = first + remaining_at
        base = first - 1 - (remaining if remaining_at > 0 else 0)
        if is_eliminated and in_logs:
            _substitute_logs(w, size, remaining, start, base, g)
        elif is_eliminated:
            _substitute(w, size, remaining, start, base, g)
        else:
            _load_half(square(pool[begin:], width), size, remaining, remaining_at, w)
            if in_logs:
                root_word = eliminate_logs(w, size, remaining, root_word)
            else:
                root_word = eliminate(w, size, remaining, root_word)
            if root_word == NO_TREE or (not in_logs and _has_tiny(w)):
                return False
            stack.append((begin, width, first, size, remaining_at, root_word, True))
            if remaining > 1:
                stack.append((own, size, start, remaining, 0, root_word, False))
                stack.append((own, size, start, remaining, remaining // 2, root_word, False))
    return True


@exact_kernel
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


@kernel
def eliminate(w, n, remaining, root_word):
    """Eliminate the words after the first ``remaining`` in place; return the root word, or ``NO_TREE``.

    The root word is 1 before it is met, and after the last word with any number of roots. Of every eliminated word
    ``k``, ``w[k, :k]`` is left divided by the pivot; ``w[k, k]`` is 1, or 0 for the root word.
    """
    for k in range(n, remaining, -1):
        pivot = range_sum(w[k], 0 if k <= root_word else 1, k)
        w[k, k] = 1.0
        if pivot == 0.0 and root_word == 1:  # the arcs from k take the place of those from node 0
            root_word = k
            pivot = w[k, 0]
            w[k, k] = 0.0
            w[:k, 0] = 0.0
        if pivot == 0.0:
            return NO_TREE
        for i in range(k):
            w[k, i] /= pivot
        for j in range(1, k):
            through = w[j, k]
            for i in range(k):
                w[j, i] += through * w[k, i]
    for j in range(remaining + 1):
        w[j, j] = 0.0
    return root_word


@exact_kernel
def eliminate_logs(w, n, remaining, root_word):
    """Do ``eliminate`` on log weights, where ``w[k, k]`` becomes 1 or 0 all the same."""
    for k in range(n, remaining, -1):
        pivot = log_sum(w[k], 0 if k <= root_word else 1, k)
        w[k, k] = 1.0
        if pivot == -np.inf and root_word == 1:
            root_word = k
            pivot = w[k, 0]
            w[k, k] = 0.0
            w[:k, 0] = -np.inf
        if pivot == -np.inf:
            return NO_TREE
        for i in range(k):
            w[k, i] -= pivot
        for j in range(1, k):
            through = w[j, k]
            if through > -np.inf:
                for i in range(k):
                    w[j, i] = log_add(w[j, i], through + w[k, i])
    return root_word


@kernel
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


@kernel
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


@exact_kernel
def _substitute_logs(w, size, remaining, start, base, g):
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


@exact_kernel
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
