"""Sums over non-projective trees by elimination without subtraction ([GTH]).

Words are eliminated one after the other: the weight of a path ``i -> k -> j`` through the eliminated word ``k`` moves
to the arc ``i -> j``. Nothing is subtracted, so nothing cancels however confident the model is; the determinant
of the Laplacian loses every digit there. Marginals are the derivative of the log partition, by reverse mode
through the same loop; its one subtraction has an absolute error of about 1e-16 n.

With a single root, node 0 counts as a head of the last word only. Where no other word is left that reaches word ``k``,
the root's arcs to the words before ``k`` go: ``k`` is the *root word*, and elimination continues as for many roots.

Matrices are dependent-major here: ``w[j, i]`` is the weight of the arc ``i -> j`` and node 0 the root, so that every
inner loop runs over contiguous heads. Entries ``w[j, j]`` are written and never read. ``words`` has the loops and
``panels`` the products that take most of their work in long sentences. Items whose plain weights are not safe, because
they under- or overflow, are done by ``in_logs.elimination``.
"""

from typing import NamedTuple

import numpy as np

from treeparse.kernels.arrays import FloatArray, IntArray, aligned, places_of_nan
from treeparse.kernels.compile import exact_kernel
from treeparse.kernels.sums import panels
from treeparse.kernels.sums.in_logs.elimination import sum_in_logs, with_remainders
from treeparse.kernels.threads import run_batch
from treeparse.kernels.weights import column_maxima

PANEL_LENGTH = 44  # words from which on panels are faster
NO_TREE, WORDS, PANELS, LOGS = range(4)  # ways in which an item is computed: WORDS is one panel, PANELS several


class Eliminated(NamedTuple):
    """The elimination of a batch, from which products with the Hessian start; of no items where it is not stored."""

    matrices: FloatArray  # (B, 3, entries) weights, eliminated and original, and adjoints; of no use for the way LOGS
    pivots: FloatArray  # (B, n+1)
    ways: IntArray  # (B, 2) and the root word


NO_MARGINALS = np.empty((1, 0, 0))
NOT_STORED = Eliminated(np.empty((0, 3, 0)), np.empty((0, 0)), np.empty((0, 2), np.int64))


def log_partition(
    scores: FloatArray, lengths: IntArray, *, single_root: bool, threads: int = 1, panels_from: int = PANEL_LENGTH
) -> FloatArray:
    """Return the log of the summed weight of all trees, ``(B, n+1, n+1) -> (B,)``; -inf where there is none.

    Items of ``panels_from`` words or more are eliminated in panels.
    """
    log_z = np.empty(len(lengths))
    arguments = scores, single_root, panels_from, log_z, NO_MARGINALS, NOT_STORED
    run_batch(_sum_trees, lambda n: n**3 / 3, lengths, *arguments, threads=threads)
    _repeat_in_logs(scores, lengths, log_z, None, single_root, threads)
    return log_z


def log_partition_and_marginals(
    scores: FloatArray, lengths: IntArray, *, single_root: bool, threads: int = 1, panels_from: int = PANEL_LENGTH
) -> tuple[FloatArray, FloatArray]:
    """Return the log partition ``(B,)`` and the probability of every arc ``(B, n+1, n+1)``, 0 without a tree."""
    log_z, marginals = np.empty(len(lengths)), np.empty_like(scores)
    arguments = scores, single_root, panels_from, log_z, marginals, NOT_STORED
    run_batch(_sum_trees, lambda n: n**3, lengths, *arguments, threads=threads)
    _repeat_in_logs(scores, lengths, log_z, marginals, single_root, threads)
    return log_z, marginals


def log_partition_marginals_and_elimination(
    scores: FloatArray, lengths: IntArray, *, single_root: bool, threads: int = 1, panels_from: int = PANEL_LENGTH
) -> tuple[FloatArray, FloatArray, Eliminated]:
    """Return ``log_partition_and_marginals`` and the elimination that ``hessian_vector_product`` can start from."""
    log_z, marginals = np.empty(len(lengths)), np.empty_like(scores)
    eliminated = _empty_elimination(scores)
    arguments = scores, single_root, panels_from, log_z, marginals, eliminated
    run_batch(_sum_trees, lambda n: n**3, lengths, *arguments, threads=threads)
    _repeat_in_logs(scores, lengths, log_z, marginals, single_root, threads)
    return log_z, marginals, eliminated


def eliminate(
    scores: FloatArray, lengths: IntArray, *, single_root: bool, threads: int, panels_from: int
) -> Eliminated:
    """Return the elimination of a batch alone."""
    eliminated = _empty_elimination(scores)
    arguments = scores, single_root, panels_from, np.empty(len(lengths)), NO_MARGINALS, eliminated
    run_batch(_sum_trees, lambda n: n**3, lengths, *arguments, threads=threads)
    return eliminated


def _repeat_in_logs(
    scores: FloatArray,
    lengths: IntArray,
    log_z: FloatArray,
    marginals: FloatArray | None,
    single_root: bool,
    threads: int,
) -> None:
    """Replace what is NaN, because plain weights were not safe."""
    items = places_of_nan(log_z)
    if len(items):
        options = {"differentiate": marginals is not None, "single_root": single_root, "threads": threads}
        sums = sum_in_logs(with_remainders(scores[items]), lengths[items], **options)
        log_z[items] = sums.log_z[0]
        if marginals is not None:
            marginals[items] = sums.marginals


def _empty_elimination(scores: FloatArray) -> Eliminated:
    count, size = scores.shape[:2]
    matrices = aligned(count, 3, panels.matrix_entries(size - 1))
    return Eliminated(matrices, np.empty((count, size)), np.zeros((count, 2), np.int64))


@exact_kernel
def _sum_trees(start, stop, lengths, scores, single_root, panels_from, log_z, marginals, eliminated):
    size = scores.shape[1]
    keep, store = len(eliminated.ways) > 0, marginals.shape[1] > 0
    memory, pivots = np.empty((3, 0 if keep else panels.matrix_entries(size - 1))), np.empty(size)
    vectors, panel = np.empty((2, size)), panels.new_panel(size - 1)
    for b in range(start, stop):
        n = lengths[b]
        matrices = eliminated.matrices[b] if keep else memory
        pivots = eliminated.pivots[b] if keep else pivots
        log_z[b], way, root_word = _sum_item(
            scores[b], n, single_root, panels_from, keep or store, matrices, pivots, vectors, panel
        )
        if keep:
            eliminated.ways[b, 0], eliminated.ways[b, 1] = way, root_word
        if store:
            _store(n, way, matrices, panel, marginals[b])


@exact_kernel
def _sum_item(scores, n, single_root, panels_from, with_adjoint, memory, pivots, vectors, panel):
    """Return the log partition of one item, NaN for the way LOGS, the way to compute it, and the root word.

    ``memory`` takes three matrices: eliminated weights, original weights and, ``with_adjoint``, the adjoint.
    """
    shift = column_maxima(scores, n, vectors[0])
    if shift == -np.inf:
        return shift, NO_TREE, 0
    lines, matrices = (vectors[0], pivots, vectors[1]), matrices_of(memory, n)
    way = PANELS if n >= panels_from else WORDS
    weight, root_word = panels.linear_item(scores, n, single_root, with_adjoint, way == PANELS, matrices, lines, panel)
    if np.isnan(weight):
        return weight, LOGS, root_word
    return shift + weight, way if weight > -np.inf else NO_TREE, root_word


@exact_kernel
def matrices_of(memory, n):
    """Return the three matrices of an item."""
    return panels.matrix(memory[0], n), panels.matrix(memory[1], n), panels.matrix(memory[2], n)


@exact_kernel
def _store(n, way, memory, panel, marginals):
    """Fill the marginals of one item."""
    if way in (NO_TREE, LOGS) or n + 1 < len(marginals):
        marginals[:] = 0.0
    if way in (WORDS, PANELS):
        panels.store_marginals(n, matrices_of(memory, n), panel.lines, marginals)
