"""Products of vectors with the Hessian of the log partition: the covariance of arc indicators, never formed.

``H v`` is how the marginals change when the scores move along ``v``. The two loops of ``elimination`` run first and
their results are stored; then the tangents, which are the derivatives along ``v``, go through the same two loops.

A constant added to a column of ``v`` changes nothing, for every tree has one arc into each word. So the entry of the
best arc is subtracted from each column, and where the model is confident almost nothing is left to cancel.

With plain weights, tangents are derivatives. In logs they are derivatives of logs: every sum is then a weighted mean.
"""

import numpy as np

from treeparse.kernels.arrays import FloatArray, IntArray
from treeparse.kernels.compile import jit, part_jit, vector_jit
from treeparse.kernels.exponential import exponentiate
from treeparse.kernels.sums import panel_tangents
from treeparse.kernels.sums.elimination import (
    LOGS,
    NO_TREE,
    PANEL_LENGTH,
    PANELS,
    Eliminated,
    eliminate,
    matrices_of,
)
from treeparse.kernels.sums.item import all_finite, clamp, fill_root, first_head
from treeparse.kernels.sums.panel_tangents import MIN_SCALE
from treeparse.kernels.sums.panels import matrix_entries
from treeparse.kernels.threads import run_batch

# Lines of working memory: pivots and their tangents; whatever a step needs; terms' shares of a sum, and minus the log
# of that sum.
LINES = 5
PIVOTS, WORK, PIVOT_TANGENTS, SHARES, INVERSE = range(LINES)
CHUNK = 2**18  # numbers of items that are eliminated before their products: as many as stay near the processor
NEVER = 2**60  # words
MAX_LOG = 600.0  # exp of it, times what it is multiplied by, is finite


def hessian_vector_product(
    scores: FloatArray,
    lengths: IntArray,
    vectors: FloatArray,
    eliminated: Eliminated | None = None,
    *,
    single_root: bool,
    threads: int = 1,
    panels_from: int = PANEL_LENGTH,
) -> FloatArray:
    """Return the Hessian of the log partition in the scores times ``vectors``, all ``(B, n+1, n+1)``.

    Ignored entries, forbidden arcs and items without a tree have 0, whatever ``vectors`` hold there. The
    elimination that ``elimination.log_partition_marginals_and_elimination`` returns for the same scores is used again.
    """
    product = np.empty_like(scores)
    if eliminated is not None:
        _multiply(scores, lengths, vectors, eliminated, product, single_root, threads)
        return product
    count = max(4 * threads, CHUNK // (3 * matrix_entries(scores.shape[1] - 1)))
    for start in range(0, len(lengths), count):
        part = slice(start, start + count)
        options = {"single_root": single_root, "threads": threads, "panels_from": panels_from}
        eliminated = eliminate(scores[part], lengths[part], **options)
        _multiply(scores[part], lengths[part], vectors[part], eliminated, product[part], single_root, threads)
    return product


def _multiply(
    scores: FloatArray,
    lengths: IntArray,
    vectors: FloatArray,
    eliminated: Eliminated,
    product: FloatArray,
    single_root: bool,
    threads: int,
) -> None:
    """Fill the products of items from their eliminations, which are used in turn if there are fewer of them."""
    unsafe = np.zeros(len(lengths), np.int64)
    arguments = lengths, vectors, eliminated, product, unsafe
    run_batch(_multiply_items, lambda n: 2 * n**3, *arguments, threads=threads)
    items = unsafe.nonzero()[0]
    if len(items):  # tangents may overflow where weights just do not
        scores, lengths, vectors = scores[items], lengths[items], vectors[items]
        in_logs = eliminate(scores, lengths, single_root=single_root, threads=threads, panels_from=NEVER, in_logs=True)
        part = np.empty_like(scores)
        arguments = lengths, vectors, in_logs, part, unsafe
        run_batch(_multiply_items, lambda n: 2 * n**3, *arguments, threads=threads)
        product[items] = part


@jit
def _multiply_items(start, stop, lengths, vectors, eliminated, product, unsafe):
    size, count = vectors.shape[1], len(eliminated.ways)
    entries = eliminated.matrices.shape[2]
    memory, changes, lines = np.empty((3, entries)), np.empty((3, entries)), np.empty((LINES, size))
    tangents = panel_tangents.new_tangents(size - 1)
    for b in range(start, stop):
        n = lengths[b]
        values, root_word, way = _recall(n, b % count, eliminated, memory, lines[PIVOTS])
        if way in (NO_TREE, LOGS) or n + 1 < size:
            product[b] = 0.0
        if way == LOGS:
            _multiply_logs(vectors[b], n, root_word, matrices_of(values, n), matrices_of(changes, n), lines, product[b])
        elif way != NO_TREE and not _multiply_plainly(
            vectors[b], n, way, root_word, values, changes, lines, tangents, product[b]
        ):
            unsafe[b] = 1


@part_jit
def _recall(n, index, eliminated, memory, pivots):
    """Return the matrices of an item's elimination, its root word and its way."""
    way, root_word = eliminated.ways[index, 0], eliminated.ways[index, 1]
    values = eliminated.matrices[index]
    for k in range(1, n + 1):
        pivots[k] = eliminated.pivots[index, k]
    if 1 < root_word <= n:  # whose arcs' adjoints change on the way, and others may read them now
        for matrix in range(len(values)):
            for entry in range(values.shape[1]):
                memory[matrix, entry] = values[matrix, entry]
        values = memory
    return values, root_word, way


@part_jit
def _multiply_plainly(vectors, n, way, root_word, values, changes, lines, tangents, product):
    """Multiply for one item with plain weights; return whether that was safe, because tangents may overflow."""
    w, original, adjoint = matrices_of(values, n)
    v, w_t, adjoint_t = matrices_of(changes, n)
    pivots, pivots_t, in_panels = lines[PIVOTS], lines[PIVOT_TANGENTS], way == PANELS
    _take_back_root(adjoint, n, root_word)
    scale = panel_tangents.load_vectors(vectors, n, original, v, w_t)
    panel_tangents.eliminate(w, n, root_word, in_panels, pivots, w_t, pivots_t, tangents)
    panel_tangents.differentiate(
        w, n, root_word, in_panels, pivots, w_t, pivots_t, adjoint, adjoint_t, _log_bound(n), tangents
    )
    if not all_finite(adjoint_t, n):
        return False
    panel_tangents.store_product(n, (w, original, adjoint), (v, w_t, adjoint_t), scale, tangents.lines, product)
    return True


@part_jit
def _multiply_logs(vectors, n, root_word, values, tangents, lines, product):
    """Multiply for one item in logs, which is slower, and safe for any finite scores."""
    w, original, adjoint = values
    v, w_tangent, adjoint_tangent = tangents
    scale = load_vectors(vectors, n, original, -np.inf, 0.0, v)
    _eliminate_log_tangents(w, n, root_word, lines, original, v, adjoint_tangent, w_tangent)
    _take_back_root(adjoint, n, root_word)
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
    """Return a bound: no log of an adjoint changes faster along vectors of magnitude 1, but for rounding."""
    return 4.0 * n


@jit
def _take_back_root(adjoint, n, root_word):
    """Restore the adjoints of root arcs into the words before the root word, as they were before its elimination."""
    if root_word <= n:
        for j in range(1, root_word):
            adjoint[j, 0] = adjoint[j, root_word]


@vector_jit
def _eliminate_log_tangents(w, n, root_word, lines, original, v, inverse, w_tangent):
    """Compute the tangents of ``item.eliminate_log``; ``inverse`` is working memory.

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
    """Compute the tangents of ``item._differentiate_log``."""
    pivots, pivot_tangents = lines[PIVOTS], lines[PIVOT_TANGENTS]
    change, share, inverse = lines[WORK], lines[SHARES], lines[INVERSE]
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
            adjoint_tangent[k, i] = clamp(change[i] - pivot_tangents[k], _log_bound(n))
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
    """``panel_tangents.store_product`` from logs; columns of marginals are normalised, as in ``elimination``."""
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
