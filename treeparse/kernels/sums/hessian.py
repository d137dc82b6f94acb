"""Products of vectors with the Hessian of the log partition: the covariance of arc indicators, never formed.

``H v`` is how the marginals change when the scores move along ``v``. The two loops of ``elimination`` run first and
their results are stored; then the tangents, which are the derivatives along ``v``, go through the same two loops.

Vectors are centred first (``centring``). Items whose plain weights are not safe, because they or the tangents under- or
overflow, are done by ``in_logs.elimination``.
"""

import numpy as np

from treeparse.kernels.arrays import FloatArray, IntArray
from treeparse.kernels.compile import exact_kernel
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
from treeparse.kernels.sums.in_logs import elimination as elimination_in_logs
from treeparse.kernels.sums.item import all_finite
from treeparse.kernels.sums.panels import matrix_entries
from treeparse.kernels.threads import run_batch

CHUNK = 2**18  # numbers of items that are eliminated before their products: as many as stay near the processor


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
    if len(items):
        batch = scores[items], lengths[items], vectors[items]
        product[items] = elimination_in_logs.hessian_vector_product(*batch, single_root=single_root, threads=threads)


@exact_kernel
def _multiply_items(start, stop, lengths, vectors, eliminated, product, unsafe):
    size, count = vectors.shape[1], len(eliminated.ways)
    entries = eliminated.matrices.shape[2]
    memory, changes, pivots = np.empty((3, entries)), np.empty((3, entries)), np.empty((2, size))
    tangents = panel_tangents.new_tangents(size - 1)
    for b in range(start, stop):
        n = lengths[b]
        values, root_word, way = _recall(n, b % count, eliminated, memory, pivots[0])
        if way in (NO_TREE, LOGS) or n + 1 < size:
            product[b] = 0.0
        if way == LOGS or (
            way != NO_TREE
            and not _multiply_item(vectors[b], n, way, root_word, values, changes, pivots, tangents, product[b])
        ):
            unsafe[b] = 1


@exact_kernel
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


@exact_kernel
def _multiply_item(vectors, n, way, root_word, values, changes, pivots, tangents, product):
    """Multiply for one item; return whether that was safe, because tangents may overflow where weights just do not."""
    w, original, adjoint = matrices_of(values, n)
    v, w_t, adjoint_t = matrices_of(changes, n)
    in_panels = way == PANELS
    _take_back_root(adjoint, n, root_word)
    scale = panel_tangents.load_vectors(vectors, n, original, v, w_t)
    panel_tangents.eliminate(w, n, root_word, in_panels, pivots[0], w_t, pivots[1], tangents)
    panel_tangents.differentiate(
        w, n, root_word, in_panels, pivots[0], w_t, pivots[1], adjoint, adjoint_t, _log_bound(n), tangents
    )
    if not all_finite(adjoint_t, n):
        return False
    panel_tangents.store_product(n, (w, original, adjoint), (v, w_t, adjoint_t), scale, tangents.lines, product)
    return True


@exact_kernel
def _log_bound(n):
    """Return a bound: no log of an adjoint changes faster along vectors of magnitude 1, but for rounding."""
    return 4.0 * n


@exact_kernel
def _take_back_root(adjoint, n, root_word):
    """Restore the adjoints of root arcs into the words before the root word, as they were before its elimination."""
    if root_word <= n:
        for j in range(1, root_word):
            adjoint[j, 0] = adjoint[j, root_word]
