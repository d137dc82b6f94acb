"""The tangents of elimination and of its reverse in panels of eight words: ``hessian``'s loops as ``panels`` has them.

A tangent of a product has two terms, so every product of ``panels`` stands here twice: a row of the panel ends as
``mix`` of the tangents that the panel found, and as ``blend`` of the rows themselves.
"""

from typing import NamedTuple

import numpy as np

from treeparse.kernels.arrays import FloatArray
from treeparse.kernels.compile import part_jit, vector_jit
from treeparse.kernels.products import add_product, add_transposed_product
from treeparse.kernels.sums.item import clamp, fill_root, first_head
from treeparse.kernels.sums.panels import (
    ADJOINTS,
    GIVEN,
    LINES,
    MIX,
    OWN,
    PATHS,
    RESTS,
    SHARED,
    SQUARES,
    SUMS,
    TURNED,
    WORDS,
    begin_of,
    clear,
    clear_rows,
    divide,
    fill_paths,
    last_of_panel,
    load_square,
    pack_rows,
    row_width,
    store_columns,
    store_own,
    take_rows,
    turn_columns,
    turn_rows,
    unit_line,
)
from treeparse.kernels.vectors import LANES, add_multiple, copy_transposed, copy_vector, fill_vector
from treeparse.kernels.weights import range_sum

MIN_SCALE = 1e-300  # of vectors; not 0, by which one cannot divide
# Squares as in ``panels``, and others behind them; a T says the tangents of those without.
OWN_T, GIVEN_T, BLEND, TURNED_T, ADJOINTS_T, SHARED_T, CROSSED = range(SQUARES * WORDS, (SQUARES + 7) * WORDS, WORDS)
SUMS_T = LINES + 2


class Tangents(NamedTuple):
    """Working memory of a panel, as ``panels.Panel``."""

    columns: FloatArray
    packed: FloatArray
    packed_t: FloatArray
    rows: FloatArray
    squares: FloatArray
    both_columns: FloatArray  # (nodes, 16) tangents of columns, and columns
    both_rows: FloatArray  # (16, nodes) rows, and tangents of rows


@part_jit
def new_tangents(n):
    """Working memory for up to n words."""
    width = row_width(n)
    long, rows = np.zeros((3, width, WORDS)), np.zeros((WORDS, width))
    squares = np.zeros(((SQUARES + 7) * WORDS, WORDS))
    both = np.zeros((width, 2 * WORDS)), np.zeros((2 * WORDS, width))
    return Tangents(long[0], long[1], long[2], rows, squares, both[0], both[1])


@vector_jit
def load_vectors(vectors, n, original, v, w_t):
    """``hessian.load_vectors`` for plain weights, and the tangents of the weights."""
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


@part_jit
def store_product(n, matrices, tangents, scale, rows, product):
    """Marginals are derivative times weight; of that the tangent, back in head-major order."""
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


@part_jit
def eliminate(w, n, root_word, pivots, w_t, pivots_t, panel):
    """Turn the tangents of weights, in place, into those of the eliminated matrix ``w``, and fill the pivots' own."""
    last = n
    while last > 0:
        first = _first_of_panel(last, root_word)
        begin = begin_of(last)
        if last == root_word:
            fill_root(w_t, last, 0.0)
        load_square(w, first, last, begin, panel.squares, OWN)
        load_square(w, first, last, begin, panel.squares, GIVEN)
        load_square(w_t, first, last, begin, panel.squares, OWN_T)
        _eliminate_among(w, first, last, begin, root_word, pivots, w_t, pivots_t, panel.squares)
        _mix_rows(w, first, last, begin, w_t, panel)
        if first > 1:
            fill_paths(panel.squares, first - begin, last - begin)
            _add_to_rest(w, first, last, begin, w_t, panel)
        last = first - 1


@part_jit
def _first_of_panel(last, root_word):
    """The first word of the panel whose last is given: ``panels.last_of_panel`` from the other end."""
    first = max(begin_of(last), 1)
    return root_word + 1 if first <= root_word < last else first


@part_jit
def _eliminate_among(w, first, last, begin, root_word, pivots, w_t, pivots_t, squares):
    """The tangents of what the words of a panel have from one another, and of which rows its own are made."""
    for k in range(last, first - 1, -1):
        place, start = k - begin, first_head(k, root_word)
        line = place * WORDS
        unit_line(squares, MIX + place, place)
        fill_vector(squares, BLEND * WORDS + line, 0.0)
        squares[SUMS, place] = range_sum(w[k], start, begin)
        before = range_sum(w_t[k], start, begin)
        for m in range(last - begin, place, -1):
            other, factor, factor_t = m * WORDS, squares[GIVEN + place, m], squares[OWN_T + place, m]
            squares[GIVEN_T + place, m] = factor_t
            add_multiple(squares, OWN_T * WORDS + line, factor_t, squares, OWN * WORDS + other)
            for square in (OWN_T, MIX, BLEND):
                add_multiple(squares, square * WORDS + line, factor, squares, square * WORDS + other)
            squares[BLEND + place, m] += factor_t
            before += factor_t * squares[SUMS, m] + factor * squares[SUMS_T, m]
        pivot_t = before + range_sum(squares[OWN_T + place], max(start - begin, 0), place)
        pivots_t[k] = pivot_t
        add_multiple(squares, OWN_T * WORDS + line, -pivot_t, squares, OWN * WORDS + line)
        squares[BLEND + place, place] -= pivot_t
        squares[SUMS_T, place] = (before - pivot_t * squares[SUMS, place]) / pivots[k]
        for square in (OWN_T, MIX, BLEND):
            divide(squares, square + place, pivots[k])


@part_jit
def _mix_rows(w, first, last, begin, w_t, panel):
    """Bring the tangents of a panel's rows to their ends."""
    place, squares = first - begin, panel.squares
    shape = last + 1 - first, last + 1 - first, begin
    take_rows(w_t, first, last, begin, panel.rows)
    add_product(w_t, (first, 0), squares, (MIX + place, place), panel.rows, (place, 0), shape)
    add_product(w_t, (first, 0), squares, (BLEND + place, place), w, (first, 0), shape)
    store_own(w_t, first, last, begin, squares, OWN_T, GIVEN_T)


@part_jit
def _add_to_rest(w, first, last, begin, w_t, panel):
    """The tangents of ``panels._add_to_rest``."""
    place, words, columns, squares = first - begin, last + 1 - first, panel.columns, panel.squares
    for j in range(first):
        copy_vector(panel.packed, j * WORDS, w_t, j * w_t.shape[1] + begin)
    clear(columns, 0, first)
    _take_own(squares, place, last - begin, MIX)
    through = first, words, WORDS
    add_product(panel.packed, (0, 0), w, (0, first), squares, (MIX + place, 0), through)
    add_product(columns, (0, 0), panel.packed, (0, place), squares, (PATHS + place, 0), through)
    heads = first + (-first) % LANES  # and some that are overwritten again
    both_columns, both_rows = panel.both_columns, panel.both_rows
    for j in range(first):
        copy_vector(both_columns, j * 2 * WORDS, columns, j * WORDS)
        copy_vector(both_columns, j * 2 * WORDS + WORDS, w, j * w.shape[1] + begin)
    for k in range(begin, begin + WORDS):
        for i in range(0, heads, LANES):
            _copy_row(w, k, first <= k <= last, i, both_rows, k - begin)
            _copy_row(w_t, k, first <= k <= last, i, both_rows, k - begin + WORDS)
    add_product(w_t, (0, 0), both_columns, (0, 0), both_rows, (0, 0), (first, 2 * WORDS, heads))
    store_columns(columns, first, last, begin, w_t)


@part_jit
def _copy_row(matrix, k, is_in_panel, head, rows, line):
    """Copy a vector of a word's row, or zeros for a word that is not in the panel."""
    if is_in_panel:
        copy_vector(rows, line * rows.shape[1] + head, matrix, k * matrix.shape[1] + head)
    else:
        fill_vector(rows, line * rows.shape[1] + head, 0.0)


@part_jit
def _take_own(squares, first, last, target):
    """Copy the tangents of what words of a panel have from earlier ones of it, all counted from its begin."""
    clear(squares, target, target + WORDS)
    for k in range(first, last + 1):
        for i in range(first, k):
            squares[target + k, i] = squares[OWN_T + k, i]


@part_jit
def differentiate(w, n, root_word, pivots, w_t, pivots_t, adjoint, adjoint_t, limit, panel):
    """Fill the tangents of the adjoints, none of which is let grow beyond ``limit`` times its adjoint."""
    squares, first = panel.squares, 1
    clear(adjoint_t, 0, adjoint_t.size // WORDS)
    while first <= n:
        last = last_of_panel(first, n, root_word)
        begin, start = begin_of(first), first_head(last, root_word)
        load_square(w, first, last, begin, squares, OWN)
        load_square(w, first, last, begin, squares, GIVEN)
        load_square(w_t, first, last, begin, squares, OWN_T)
        load_square(w_t, first, last, begin, squares, GIVEN_T)
        load_square(adjoint, first, last, begin, squares, ADJOINTS)
        clear_rows(panel.rows, begin + WORDS)
        for square in (SHARED, SHARED_T, CROSSED):
            clear(squares, square, square + WORDS)
        if first > 1:
            _gather_from_rest(w, first, last, begin, start, w_t, adjoint, adjoint_t, panel)
        _differentiate_among(first, last, begin, root_word, pivots, pivots_t, limit, panel)
        _store_rows(first, last, begin, start, adjoint, adjoint_t, limit, panel)
        if last == root_word:
            fill_root(adjoint, last, 0.0)
            fill_root(adjoint_t, last, 0.0)
        first = last + 1


@part_jit
def _gather_from_rest(w, first, last, begin, start, w_t, adjoint, adjoint_t, panel):
    """The tangents of ``panels._gather_from_rest``."""
    place, words, columns, squares = first - begin, last + 1 - first, panel.columns, panel.squares
    fill_paths(squares, place, last - begin)
    copy_transposed(squares, TURNED * WORDS, WORDS, squares, PATHS * WORDS, WORDS)
    _take_own(squares, place, last - begin, MIX)
    copy_transposed(squares, TURNED_T * WORDS, WORDS, squares, MIX * WORDS, WORDS)
    pack_rows(w, first, last, begin, panel.packed)
    pack_rows(w_t, first, last, begin, panel.packed_t)
    clear(columns, 0, first)
    through = first, words, WORDS
    add_product(columns, (0, 0), adjoint_t, (0, 0), panel.packed, (0, 0), (first, first, WORDS))
    add_product(columns, (0, 0), adjoint, (0, 0), panel.packed_t, (0, 0), (first, first, WORDS))
    add_product(columns, (0, 0), adjoint, (0, first), squares, (TURNED_T + place, 0), through)
    add_product(adjoint_t, (0, begin), columns, (0, place), squares, (TURNED + place, 0), through)
    rows, whole = panel.rows, (words, first, begin + WORDS)
    add_transposed_product(rows, (place, 0), w_t, (0, first), adjoint, (0, 0), whole)
    add_transposed_product(rows, (place, 0), w, (0, first), adjoint_t, (0, 0), whole)
    before = words, begin, WORDS
    add_product(squares, (SHARED_T + place, 0), rows, (place, 0), panel.packed, (0, 0), before)
    add_product(squares, (SHARED + place, 0), adjoint, (first, 0), panel.packed, (0, 0), before)
    add_product(squares, (CROSSED + place, 0), adjoint, (first, 0), panel.packed_t, (0, 0), before)
    for k in range(first, last + 1):
        squares[SUMS, k - begin] = range_sum(w[k], start, begin)


@part_jit
def _differentiate_among(first, last, begin, root_word, pivots, pivots_t, limit, panel):
    """The tangents of ``panels._differentiate_among``."""
    squares, width = panel.squares, panel.rows.shape[1]
    for k in range(first, last + 1):
        place, start = k - begin, max(first_head(k, root_word) - begin, 0)
        line, pivot_t = place * WORDS, pivots_t[k]
        rest = -_add_totals(squares, first - begin, place, limit) - panel.rows[place, k]
        copy_vector(squares, ADJOINTS_T * WORDS + line, panel.rows, place * width + begin)
        for i in range(start, WORDS):
            squares[ADJOINTS_T + place, i] += rest
        unit_line(squares, MIX + place, place)
        fill_vector(squares, BLEND * WORDS + line, 0.0)
        squares[BLEND + place, place] = -pivot_t
        add_multiple(squares, SHARED_T * WORDS + line, rest, squares, SUMS * WORDS)
        add_multiple(squares, SHARED_T * WORDS + line, -pivot_t, squares, SHARED * WORDS + line)
        add_multiple(squares, ADJOINTS_T * WORDS + line, -pivot_t, squares, ADJOINTS * WORDS + line)
        for m in range(first - begin, place):
            other, factor, factor_t = m * WORDS, squares[GIVEN + m, place], squares[GIVEN_T + m, place]
            rest += factor * squares[RESTS, m]
            add_multiple(squares, ADJOINTS_T * WORDS + line, factor_t, squares, ADJOINTS * WORDS + other)
            add_multiple(squares, SHARED_T * WORDS + line, factor_t, squares, SHARED * WORDS + other)
            for square in (ADJOINTS_T, SHARED_T, MIX, BLEND):
                add_multiple(squares, square * WORDS + line, factor, squares, square * WORDS + other)
            squares[BLEND + place, m] += factor_t
        squares[RESTS, place] = rest / pivots[k]
        for square in (MIX, BLEND, SHARED_T):
            divide(squares, square + place, pivots[k])
        for i in range(place):
            change = squares[ADJOINTS_T + place, i] / pivots[k]
            squares[ADJOINTS_T + place, i] = clamp(change, limit * squares[ADJOINTS + place, i])
        squares[ADJOINTS_T + place, place] = 0.0


@part_jit
def _add_totals(squares, first, place, limit):
    """Fill a column of the tangents of the adjoints in a panel; returns by how much its word's dependents grow."""
    dependents_t = 0.0
    for m in range(first, place):
        total = squares[SHARED_T + m, place] + squares[CROSSED + m, place]
        for i in range(place):
            total += squares[ADJOINTS_T + m, i] * squares[OWN + place, i]
            total += squares[ADJOINTS + m, i] * squares[OWN_T + place, i]
        total = clamp(total, limit * squares[ADJOINTS + m, place])
        squares[ADJOINTS_T + m, place] = total
        dependents_t += total * squares[GIVEN + m, place] + squares[ADJOINTS + m, place] * squares[GIVEN_T + m, place]
    return dependents_t


@part_jit
def _store_rows(first, last, begin, start, adjoint, adjoint_t, limit, panel):
    """The tangents of ``panels._store_rows``."""
    place, squares = first - begin, panel.squares
    shape = last + 1 - first, last + 1 - first, begin
    add_product(adjoint_t, (first, 0), squares, (MIX + place, place), panel.rows, (place, 0), shape)
    add_product(adjoint_t, (first, 0), squares, (BLEND + place, place), adjoint, (first, 0), shape)
    for k in range(first, last + 1):
        rest = squares[RESTS, k - begin]
        for i in range(begin):
            value = adjoint_t[k, i] + (rest if i >= start else 0.0)
            adjoint_t[k, i] = clamp(value, limit * adjoint[k, i])
        for i in range(last + 1 - begin):
            adjoint_t[k, begin + i] = squares[ADJOINTS_T + k - begin, i]
