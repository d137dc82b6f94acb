"""Products of vectors with the Hessian of the log partition: the covariance of arc indicators, never formed.

``H v`` is how the marginals change when the scores move along ``v``. The two loops of ``elimination`` are run first and
their results kept; then the tangents, which are the derivatives along ``v``, go through the same two loops.

A constant added to a column of ``v`` changes nothing, for every tree has one arc into each word. So the entry of the
best arc is subtracted from each column, and where the model is sure there is next to nothing left to cancel.

With plain weights, tangents are derivatives. In logs they are derivatives of logs: every sum is then a weighted mean.
"""

import numpy as np

from treeparse.kernels.arrays import FloatArray, IntArray
from treeparse.kernels.compile import jit, vector_jit
from treeparse.kernels.exponential import exponentiate
from treeparse.kernels.sums.elimination import all_finite, fill_root, first_head, linear_item, log_item
from treeparse.kernels.threads import run_batch
from treeparse.kernels.weights import column_maxima, range_sum, square

# Lines of working memory: column maxima, pivots and their tangents; whatever a step needs; terms' shares of a sum, and
# minus the log of that sum.
LINES = 6
TOP, PIVOTS, WORK, PIVOT_TANGENTS, SHARES, INVERSE = range(LINES)
MIN_SCALE = 1e-300  # of vectors; not 0, by which one cannot divide
MAX_LOG = 600.0  # exp of it, times what it is multiplied by, is finite


def hessian_vector_product(
    scores: FloatArray, lengths: IntArray, vectors: FloatArray, *, single_root: bool, threads: int = 1
) -> FloatArray:
    """The Hessian of the log partition in the scores times ``vectors``, all ``(B, n+1, n+1)``.

    Ignored entries, forbidden arcs and items without a tree have 0, whatever ``vectors`` hold there.
    """
    product = np.zeros_like(scores)
    run_batch(_multiply, lambda n: 3 * n**3, lengths, scores, vectors, single_root, product, threads=threads)
    return product


@jit
def _multiply(start, stop, lengths, scores, vectors, single_root, product):
    size = scores.shape[1]
    buffers = np.empty((6, size * size))
    lines = np.empty((LINES, size))
    elimination_lines = lines[TOP], lines[PIVOTS], lines[WORK]
    for b in range(start, stop):
        n = lengths[b]
        if column_maxima(scores[b], n, lines[TOP]) == -np.inf:
            continue
        values = square(buffers[0], n), square(buffers[1], n), square(buffers[2], n)
        tangents = square(buffers[3], n), square(buffers[4], n), square(buffers[5], n)
        weight, root_word = linear_item(scores[b], n, single_root, True, values, elimination_lines)
        if not np.isnan(weight) and _linear_item(vectors[b], n, root_word, values, tangents, lines, product[b]):
            continue
        weight, root_word = log_item(scores[b], n, single_root, True, values, elimination_lines)
        if weight != -np.inf:
            _log_item(vectors[b], n, root_word, values, tangents, lines, product[b])


@jit
def _linear_item(vectors, n, root_word, values, tangents, lines, product):
    """One item with plain weights; returns whether that was safe: tangents may overflow where weights just do not."""
    w, original, adjoint = values
    v, w_tangent, adjoint_tangent = tangents
    scale = load_vectors(vectors, n, original, 0.0, 1.0, v)
    _eliminate_tangents(w, n, root_word, lines, original, v, w_tangent)
    _differentiate_tangents(w, n, root_word, lines, w_tangent, adjoint, adjoint_tangent)
    if not all_finite(adjoint_tangent, n):
        return False
    _store_product(values, tangents, n, scale, product)
    return True


@jit
def _log_item(vectors, n, root_word, values, tangents, lines, product):
    """One item in logs, slower and safe for any finite scores."""
    w, original, adjoint = values
    v, w_tangent, adjoint_tangent = tangents
    scale = load_vectors(vectors, n, original, -np.inf, 0.0, v)
    _eliminate_log_tangents(w, n, root_word, lines, original, v, adjoint_tangent, w_tangent)
    _differentiate_log_tangents(w, n, root_word, lines, w_tangent, adjoint, adjoint_tangent)
    _store_log_product(values, tangents, n, scale, product)


@vector_jit
def load_vectors(vectors, n, weights, zero, best, v):
    """Fill ``v`` with the vectors over their largest magnitude, each column less its best arc's; returns the magnitude.

    ``zero`` and ``best`` are the weights of a forbidden arc and of a best arc.
    """
    scale = MIN_SCALE
    for i in range(n + 1):
        for j in range(1, n + 1):
            value = vectors[i, j] if weights[j, i] > zero else 0.0
            scale = abs(value) if abs(value) > scale else scale
            v[j, i] = value
    for j in range(1, n + 1):
        centre = 0.0
        for i in range(n + 1):
            centre = v[j, i] if weights[j, i] == best else centre
        for i in range(n + 1):
            v[j, i] = v[j, i] / scale - centre / scale if weights[j, i] > zero else 0.0
    return scale


@jit
def _log_bound(n):
    """No log of an adjoint changes faster than this along vectors of magnitude 1, but for rounding."""
    return 4.0 * n


@jit
def _clamp(x, limit):
    """``x`` if it is NaN or within the limit, otherwise the limit with its sign."""
    if x > limit:
        return limit
    return -limit if x < -limit else x


@jit
def _take_back_root(adjoint, n, root_word):
    """Of the words before the root word, the adjoints of root arcs as they were until it went."""
    if root_word <= n:
        for j in range(1, root_word):
            adjoint[j, 0] = adjoint[j, root_word]


@vector_jit
def _eliminate_tangents(w, n, root_word, lines, original, v, w_tangent):
    """The tangents of ``elimination._eliminate``."""
    pivots, pivot_tangents = lines[PIVOTS], lines[PIVOT_TANGENTS]
    for j in range(1, n + 1):
        for i in range(n + 1):
            w_tangent[j, i] = original[j, i] * v[j, i]
    for k in range(n, 0, -1):
        if k == root_word:
            fill_root(w_tangent, k, 0.0)
        row, row_tangent = w[k], w_tangent[k]
        pivot_tangent = range_sum(row_tangent, first_head(k, root_word), k)
        pivot_tangents[k] = pivot_tangent
        for i in range(k):
            row_tangent[i] = (row_tangent[i] - row[i] * pivot_tangent) / pivots[k]
        for j in range(1, k):
            through, through_tangent = w[j, k], w_tangent[j, k]
            for i in range(k):
                w_tangent[j, i] += through_tangent * row[i] + through * row_tangent[i]


@vector_jit
def _differentiate_tangents(w, n, root_word, lines, w_tangent, adjoint, adjoint_tangent):
    """The tangents of ``elimination._differentiate``."""
    pivots, gradient_tangent, pivot_tangents = lines[PIVOTS], lines[WORK], lines[PIVOT_TANGENTS]
    _take_back_root(adjoint, n, root_word)
    for k in range(1, n + 1):
        row, row_tangent = w[k], w_tangent[k]
        for i in range(k):
            gradient_tangent[i] = 0.0
        dependents_tangent = 0.0
        for j in range(1, k):
            through, through_tangent = w[j, k], w_tangent[j, k]
            total = 0.0
            for i in range(k):
                total += adjoint_tangent[j, i] * row[i] + adjoint[j, i] * row_tangent[i]
                gradient_tangent[i] += adjoint_tangent[j, i] * through + adjoint[j, i] * through_tangent
            adjoint_tangent[j, k] = total
            dependents_tangent += total * through + adjoint[j, k] * through_tangent
        first = first_head(k, root_word)
        for i in range(k):
            change = gradient_tangent[i] - (dependents_tangent if i >= first else 0.0)
            change = (change - adjoint[k, i] * pivot_tangents[k]) / pivots[k]
            adjoint_tangent[k, i] = _clamp(change, _log_bound(n) * adjoint[k, i])
        adjoint_tangent[k, k] = 0.0
        if k == root_word:
            fill_root(adjoint, k, 0.0)
            fill_root(adjoint_tangent, k, 0.0)


@vector_jit
def _store_product(values, tangents, n, scale, product):
    """Marginals are derivative times weight; of that the tangent, back in head-major order."""
    _, original, adjoint = values
    v, _, adjoint_tangent = tangents
    for i in range(n + 1):
        for j in range(1, n + 1):
            value = original[j, i] * (adjoint_tangent[j, i] + adjoint[j, i] * v[j, i])
            product[i, j] = scale * value if original[j, i] > 0.0 else 0.0


@vector_jit
def _eliminate_log_tangents(w, n, root_word, lines, original, v, inverse, w_tangent):
    """The tangents of ``elimination._eliminate_log``; ``inverse`` is working memory.

    The terms that add up to a weight are shares of it, so its tangent is the mean of theirs.
    """
    pivots, pivot_tangents, share = lines[PIVOTS], lines[PIVOT_TANGENTS], lines[SHARES]
    for j in range(1, n + 1):
        for i in range(n + 1):
            weight = w[j, i] + pivots[j] if i < j else w[j, i]  # the sum of its terms
            inverse[j, i] = -weight if weight > -np.inf else 0.0  # of which the shares are 0, not NaN
        _exponentials(original[j], inverse[j], 0.0, w_tangent[j], n + 1)
        for i in range(n + 1):
            w_tangent[j, i] *= v[j, i]
    for k in range(n, 0, -1):
        if k == root_word:
            fill_root(w_tangent, k, 0.0)
        pivot_tangent = 0.0
        for i in range(first_head(k, root_word), k):
            pivot_tangent += np.exp(w[k, i]) * w_tangent[k, i]
        pivot_tangents[k] = pivot_tangent
        for i in range(k):
            w_tangent[k, i] -= pivot_tangent
        for j in range(1, k):
            if w[j, k] > -np.inf:
                _exponentials(w[k], inverse[j], w[j, k], share, k)
                for i in range(k):
                    w_tangent[j, i] += share[i] * (w_tangent[j, k] + w_tangent[k, i])


@jit
def _exponentials(a, b, shift, result, count):
    """``exp(a + b + shift)`` of the first ``count`` entries."""
    for i in range(count):
        result[i] = a[i] + b[i] + shift
    exponentiate(result[:count])


@vector_jit
def _differentiate_log_tangents(w, n, root_word, lines, w_tangent, adjoint, adjoint_tangent):
    """The tangents of ``elimination._differentiate_log``."""
    pivots, pivot_tangents = lines[PIVOTS], lines[PIVOT_TANGENTS]
    change, share, inverse = lines[WORK], lines[SHARES], lines[INVERSE]
    _take_back_root(adjoint, n, root_word)
    for k in range(1, n + 1):
        dependents_tangent = _fill_column(w, k, w_tangent, adjoint, adjoint_tangent, share)
        first = first_head(k, root_word)
        for i in range(k):
            total = adjoint[k, i] + pivots[k]
            inverse[i] = -total if total > -np.inf else 0.0
            change[i] = -dependents_tangent * np.exp(min(inverse[i], MAX_LOG)) if i >= first else 0.0
        for j in range(1, k):
            if w[j, k] > -np.inf:
                _exponentials(adjoint[j], inverse, w[j, k], share, k)
                for i in range(k):
                    change[i] += share[i] * (adjoint_tangent[j, i] + w_tangent[j, k])
        for i in range(k):
            adjoint_tangent[k, i] = _clamp(change[i] - pivot_tangents[k], _log_bound(n))
        adjoint_tangent[k, k] = 0.0
        if k == root_word:
            fill_root(adjoint, k, -np.inf)
            fill_root(adjoint_tangent, k, 0.0)


@vector_jit
def _fill_column(w, k, w_tangent, adjoint, adjoint_tangent, share):
    """Fill column ``k`` of the tangents; returns how fast the expected number of the word's dependents changes."""
    dependents_tangent = 0.0
    for j in range(1, k):
        mean = 0.0
        if adjoint[j, k] > -np.inf:
            _exponentials(adjoint[j], w[k], -adjoint[j, k], share, k)
            for i in range(k):
                mean += share[i] * (adjoint_tangent[j, i] + w_tangent[k, i])
        adjoint_tangent[j, k] = mean
        dependents_tangent += np.exp(adjoint[j, k] + w[j, k]) * (mean + w_tangent[j, k])
    return dependents_tangent


@vector_jit
def _store_log_product(values, tangents, n, scale, product):
    """``_store_product`` from logs; columns of marginals are normalised, as in ``elimination``."""
    _, original, adjoint = values
    v, _, adjoint_tangent = tangents
    for j in range(1, n + 1):
        total = mean = 0.0
        for i in range(n + 1):
            product[i, j] = np.exp(adjoint[j, i] + original[j, i])
            total += product[i, j]
            mean += product[i, j] * (adjoint_tangent[j, i] + v[j, i])
        for i in range(n + 1):
            value = product[i, j] / total * (adjoint_tangent[j, i] + v[j, i] - mean / total)
            product[i, j] = scale * value if original[j, i] > -np.inf else 0.0
