"""The tangents of elimination and of its reverse in panels of eight words: the loops of ``hessian`` as in ``panels``.

A tangent of a product has two terms, so every product of ``panels`` occurs twice.
"""

from typing import NamedTuple

import numpy as np

from treeparse.kernels.arrays import FloatArray
from treeparse.kernels.compile import exact_kernel, kernel
from treeparse.kernels.rows import copy_row, fill_row, whole
from treeparse.kernels.sums.centring import MIN_SCALE, power_of_two
from treeparse.kernels.sums.panels import (
    PATHS,
    SQUARES,
    TURNED,
    clear_lines,
    fill_paths,
    first_of,
    last_of,
    pack_lines,
    row_width,
    store_columns,
    take_lines,
    turn_columns,
    turn_rows,
)
from treeparse.kernels.sums.products import add_product, add_transposed_product
from treeparse.kernels.sums.words import WORDS, differentiate_word_tangents, eliminate_word_tangents, lines_t
from treeparse.kernels.vectors import copy_transposed

OWN_T, OWN_TURNED_T = SQUARES, SQUARES + WORDS  # squares behind those of ``panels``


class Tangents(NamedTuple):
    """Working memory of a panel, as ``panels.Panel``."""

    columns: FloatArray
    packed: FloatArray
    packed_t: FloatArray
    lines: FloatArray  # (16, nodes) rows, and tangents of rows
    sums: FloatArray
    squares: FloatArray  # (4 matrices, 8)
    both_columns: FloatArray  # (nodes, 16) tangents of columns, and columns


@exact_kernel
def new_tangents(n):
    """Working memory for up to n words."""
    width = row_width(n)
    long, rows = np.zeros((3, width, WORDS)), np.zeros((3 * WORDS, width))
    squares, both_columns = np.zeros((SQUARES + 2 * WORDS, WORDS)), np.zeros((width, 2 * WORDS))
    return Tangents(long[0], long[1], long[2], rows[: 2 * WORDS], rows[2 * WORDS :], squares, both_columns)


@kernel
def load_vectors(vectors, n, original, v, w_t):
    """Do ``centring.load_vectors`` for plain weights, and fill the tangents of the weights."""
    greatest, scale = w_t[0], MIN_SCALE
    for i in range(len(greatest)):
        greatest[i] = 0.0
    for begin in range(0, n + 1, WORDS):
        end = min(begin + WORDS, n + 1)
        turn_columns(vectors, n, begin, end, v)
        for j in range(max(begin, 1), end):
            row, weights = v[j], original[j]
            for i in range(n + 1):
                row[i] = row[i] if weights[i] > 0.0 else 0.0
                greatest[i] = abs(row[i]) if abs(row[i]) > greatest[i] else greatest[i]
    for i in range(n + 1):
        scale = max(scale, greatest[i])
        greatest[i] = 0.0
    scale = power_of_two(scale)
    for j in range(1, n + 1):
        row, weights, tangents, centre = v[j], original[j], w_t[j], 0.0
        for i in range(n + 1):
            row[i] *= 1.0 / scale
        for i in range(n + 1):
            if weights[i] == 1.0:
                centre = row[i]
        for i in range(n + 1):
            row[i] = row[i] - centre if weights[i] > 0.0 else 0.0
            tangents[i] = row[i] * weights[i]
        for i in range(n + 1, len(tangents)):
            tangents[i] = 0.0
    return scale


@exact_kernel
def store_product(n, matrices, tangents, scale, rows, product):
    """Store the tangents of the marginals, which are derivative times weight, in head-major order."""
    _, original, adjoint = matrices
    v, _, adjoint_t = tangents
    for begin in range(0, n + 1, WORDS):
        end = min(begin + WORDS, n + 1)
        for j in range(begin, end):
            line, weights, changes = rows[j - begin], original[j], adjoint_t[j]
            derivatives, direction = adjoint[j], v[j]
            for i in range(n + 1):
                value = scale * (weights[i] * (changes[i] + derivatives[i] * direction[i]))
                line[i] = value if weights[i] > 0.0 else 0.0
        turn_rows(rows, n, begin, end, product)


@exact_kernel
def eliminate(w, n, root_word, in_panels, pivots, w_t, pivots_t, panel):
    """Turn tangents of weights, in place, into tangents of the eliminated matrix ``w``; fill the tangents of pivots."""
    last = n
    while last > 0:
        first = first_of(last, in_panels)
        first = root_word + 1 if 1 < first <= root_word < last else first
        eliminate_word_tangents(w, first, last, root_word, pivots, w_t, pivots_t, panel.lines)
        if first > 1:
            _add_to_rest(w, first, last, w_t, panel)
        last = first - 1


@exact_kernel
def _add_to_rest(w, first, last, w_t, panel):
    """Do ``panels._add_to_rest`` for tangents."""
    words, columns, packed, squares = last + 1 - first, panel.columns, panel.packed, panel.squares
    width, both = w.shape[1], 2 * WORDS
    through, other = (first, words, WORDS), lines_t(first, last)
    fill_paths(w, first, last, squares)
    _take_own(w_t, first, last, squares)
    for j in range(first):
        copy_row(packed, j * WORDS, w_t, j * width + first, WORDS)
    add_product(packed, (0, 0), w, (0, first), squares, (OWN_T, 0), through)
    fill_row(columns, 0, 0.0, first * WORDS)
    add_product(columns, (0, 0), packed, (0, 0), squares, (PATHS, 0), through)
    for j in range(first):
        copy_row(panel.both_columns, j * both, columns, j * WORDS, WORDS)
        copy_row(panel.both_columns, j * both + other, w, j * width + first, WORDS)
    add_product(w_t, (0, 0), panel.both_columns, (0, 0), panel.lines, (0, 0), (first, 2 * words, whole(first)))
    store_columns(columns, first, first, last, w_t)


@exact_kernel
def _take_own(w_t, first, last, squares):
    """Fill a square with the tangents of what words of a panel have from earlier ones of it."""
    fill_row(squares, OWN_T * WORDS, 0.0, WORDS * WORDS)
    for k in range(1, last + 1 - first):
        copy_row(squares, (OWN_T + k) * WORDS, w_t, (first + k) * w_t.shape[1] + first, k)


@exact_kernel
def differentiate(w, n, root_word, in_panels, pivots, w_t, pivots_t, adjoint, adjoint_t, limit, panel):
    """Fill the tangents of the adjoints; each is limited to ``limit`` times its adjoint."""
    lines, sums = panel.lines, panel.sums
    fill_row(adjoint_t, 0, 0.0, adjoint_t.shape[1])
    first = 1
    while first <= n:
        last = last_of(first, n, root_word, in_panels)
        if first > 1:
            _gather_from_rest(w, first, last, w_t, adjoint, adjoint_t, panel)
        differentiate_word_tangents(
            w, first, last, root_word, pivots, w_t, pivots_t, adjoint, adjoint_t, limit, lines, sums
        )
        first = last + 1


@exact_kernel
def _gather_from_rest(w, first, last, w_t, adjoint, adjoint_t, panel):
    """Do ``panels._gather_from_rest`` for tangents."""
    words, columns, squares, other = last + 1 - first, panel.columns, panel.squares, lines_t(first, last)
    take_lines(w, first, last, panel.lines, 0)
    pack_lines(first, panel.lines, 0, panel.packed)
    take_lines(w_t, first, last, panel.lines, other)
    pack_lines(first, panel.lines, other, panel.packed_t)
    fill_paths(w, first, last, squares)
    copy_transposed(squares, TURNED * WORDS, WORDS, squares, PATHS * WORDS, WORDS)
    _take_own(w_t, first, last, squares)
    copy_transposed(squares, OWN_TURNED_T * WORDS, WORDS, squares, OWN_T * WORDS, WORDS)
    through, whole_columns = (first, words, WORDS), (first, first, WORDS)
    fill_row(columns, 0, 0.0, first * WORDS)
    add_product(columns, (0, 0), adjoint_t, (0, 0), panel.packed, (0, 0), whole_columns)
    add_product(columns, (0, 0), adjoint, (0, 0), panel.packed_t, (0, 0), whole_columns)
    add_product(columns, (0, 0), adjoint, (0, first), squares, (OWN_TURNED_T, 0), through)
    add_product(adjoint_t, (0, first), columns, (0, 0), squares, (TURNED, 0), through)
    clear_lines(panel.sums, words, last)
    rows = words, first, whole(last + 1)
    add_transposed_product(panel.sums, (0, 0), w_t, (0, first), adjoint, (0, 0), rows)
    add_transposed_product(panel.sums, (0, 0), w, (0, first), adjoint_t, (0, 0), rows)
