"""Elimination and its reverse in panels of eight words: the loops of ``item`` as products of matrices.

One word at a time, every step reads and writes the whole matrix for one multiplication an entry. In a panel, the words
are first eliminated among themselves: as the heads before the panel count in pivots by their sums only, that takes a
matrix of eight rows. All else follows in products with what is found there:

- ``own[k, i]``: the entries of the panel's rows and columns, as ``item`` leaves them;
- ``mix[k, m]``: how much of the row of ``m``, as the panel found it, is in the row of ``k`` in the end;
- ``paths[k, i]``: the sum over the paths from ``k`` to ``i`` through words of the panel between them, by which a word
  before the panel, if it has ``k`` for a head, comes to have ``i``.

None of it subtracts. The reverse takes the panels in the other order, with the same paths.

Panels begin at multiples of eight, so that products are of whole vectors. The root word is the last of its panel, since
the root's arcs to the words before it go with it.
"""

from typing import NamedTuple

import numpy as np

from treeparse.kernels.arrays import FloatArray
from treeparse.kernels.compile import part_jit, vector_jit
from treeparse.kernels.exponential import exponentiate
from treeparse.kernels.products import add_product, add_transposed_product
from treeparse.kernels.sums.item import LINEAR_LIMIT, all_finite, fill_root, first_head
from treeparse.kernels.vectors import LANES, add_multiple, copy_transposed, copy_vector, fill_vector
from treeparse.kernels.weights import range_sum

WORDS = LANES  # of a panel


# Where square matrices begin among the lines of ``Panel.squares``; a line or a column is a word of the panel.
OWN, GIVEN, MIX, PATHS, TURNED, ADJOINTS, SHARED, LINES = range(0, 8 * WORDS, WORDS)
SUMS, RESTS = LINES, LINES + 1  # single lines: the rows' sums over the heads before the panel; what rows get besides
SQUARES = 8  # of this file; tangents have more


class Panel(NamedTuple):
    """Working memory of a panel."""

    columns: FloatArray  # (nodes, 8) of a large matrix, on their way through the panel
    packed: FloatArray  # (nodes, 8) the panel's rows, transposed
    rows: FloatArray  # (8, nodes) of a large matrix
    squares: FloatArray  # (8 matrices, 8)


@part_jit
def row_width(n):
    """The length of rows: whole vectors, an odd number of them, lest the entries of a column share lines of cache."""
    return LANES * ((n + LANES) // LANES | 1)


@part_jit
def matrix(buffer, n):
    """A matrix for n words with whole panels of rows; its strides depend on n alone."""
    rows, width = LANES * ((n + LANES) // LANES), row_width(n)
    return buffer[: rows * width].reshape(rows, width)


@part_jit
def new_panel(n):
    """Working memory for up to n words."""
    width = row_width(n)
    long, rows = np.zeros((2, width, WORDS)), np.zeros((WORDS, width))
    return Panel(long[0], long[1], rows, np.zeros((SQUARES * WORDS, WORDS)))


@part_jit
def linear_item(scores, n, single_root, with_adjoint, matrices, vectors, panel):
    """``item.linear_item`` on matrices as ``matrix`` makes them."""
    w, original, adjoint = matrices
    top, pivots, _ = vectors
    bound = _load_weights(scores, n, top, w, original)
    weight, root_word = _eliminate(w, n, single_root, pivots, panel)
    safe = weight - bound >= LINEAR_LIMIT and weight < np.inf
    if safe and with_adjoint:
        _differentiate(w, n, root_word, pivots, adjoint, panel)
        safe = all_finite(adjoint, n)
    return weight if safe else np.nan, root_word


@vector_jit
def _load_weights(scores, n, top, w, original):
    """``weights.load_weights``, a panel at a time."""
    bound = 0.0
    for begin in range(0, n + 1, WORDS):
        end = min(begin + WORDS, n + 1)
        turn_columns(scores, n, begin, end, w)
        product = 1.0  # of sums between 1 and n
        for j in range(max(begin, 1), end):
            row, copy, total = w[j], original[j], 0.0
            row[j] = -np.inf
            for i in range(len(row)):
                row[i] -= top[j]
            row[n + 1 :] = -np.inf
            exponentiate(row)
            for i in range(len(row)):
                copy[i] = row[i]
                total += row[i]
            product *= total
        bound += np.log(product)
    w[0] = original[0] = 0.0
    return bound


@part_jit
def turn_columns(scores, n, begin, end, w):
    """Copy columns of head-major scores into rows."""
    size, width, heads = scores.shape[1], w.shape[1], 0
    if end - begin == WORDS:
        heads = n + 1 - (n + 1) % LANES
        for i in range(0, heads, LANES):
            copy_transposed(w, begin * width + i, width, scores, i * size + begin, size)
    for i in range(heads, n + 1):
        for j in range(begin, end):
            w[j, i] = scores[i, j]


@part_jit
def store_marginals(n, matrices, rows, marginals):
    """Marginal = derivative times weight, back in head-major order; ``rows`` are working memory."""
    _, original, adjoint = matrices
    for begin in range(0, n + 1, WORDS):
        end = min(begin + WORDS, n + 1)
        for j in range(begin, end):
            line, weights, derivatives = rows[j - begin], original[j], adjoint[j]
            for i in range(n + 1):
                line[i] = derivatives[i] * weights[i]
        turn_rows(rows, n, begin, end, marginals)


@part_jit
def turn_rows(rows, n, begin, end, result):
    """Copy the rows of some words into columns of a head-major result."""
    size, width, heads = result.shape[1], rows.shape[1], 0
    if end - begin == WORDS:
        heads = n + 1 - (n + 1) % LANES
        for i in range(0, heads, LANES):
            copy_transposed(result, i * size + begin, size, rows, i, width)
    for i in range(heads, n + 1):
        for j in range(begin, end):
            result[i, j] = rows[j - begin, i]


@part_jit
def _eliminate(w, n, single_root, pivots, panel):
    """Eliminate in place; returns and leaves what ``item`` does."""
    root_word = 1 if single_root else n + 1
    log_z, last = 0.0, n
    while last > 0:
        first, root_word, log_pivots = _eliminate_among(w, last, root_word, pivots, panel.squares)
        if log_pivots == -np.inf:
            return log_pivots, root_word
        log_z += log_pivots
        begin = begin_of(last)
        _mix_rows(w, first, last, begin, panel)
        if first > 1:
            fill_paths(panel.squares, first - begin, last - begin)
            _add_to_rest(w, first, last, begin, panel)
        last = first - 1
    return log_z, root_word


@part_jit
def begin_of(last):
    """Where the panel of a word begins, whether or not its first words are among it."""
    return last - last % WORDS


@part_jit
def _eliminate_among(w, last, root_word, pivots, squares):
    """Eliminate the words of a panel from ``last`` on, as far as that concerns themselves.

    Returns the first of them, which is the one behind the root word if that is found on the way, the root word, and
    the sum of the logs of their pivots, -inf if there is no tree.
    """
    begin, log_pivots = begin_of(last), 0.0
    least = max(begin, 1)
    load_square(w, least, last, begin, squares, OWN)
    for k in range(least, last + 1):
        place = k - begin
        unit_line(squares, MIX + place, place)
        squares[SUMS, place] = range_sum(w[k], first_head(k, root_word), begin)
    for k in range(last, least - 1, -1):
        place, start = k - begin, max(first_head(k, root_word) - begin, 0)
        pivot = squares[SUMS, place] + range_sum(squares[OWN + place], start, place)
        if pivot == 0.0 and root_word == 1:
            if k < last:
                return k + 1, root_word, log_pivots
            root_word = k
            pivot = w[k, 0]
            squares[SUMS, place] = pivot if begin > 0 else 0.0
            fill_root(w, k, 0.0)
            if begin == 0:
                for j in range(1, k):
                    squares[OWN + j, 0] = 0.0
        if pivot == 0.0:
            return k, root_word, -np.inf
        pivots[k] = pivot
        log_pivots += np.log(pivot)
        squares[SUMS, place] /= pivot
        divide(squares, OWN + place, pivot)
        divide(squares, MIX + place, pivot)
        for j in range(place - 1, least - begin - 1, -1):
            given = squares[OWN + j, place]
            squares[GIVEN + j, place] = given
            squares[SUMS, j] += given * squares[SUMS, place]
            add_multiple(squares, (OWN + j) * WORDS, given, squares, (OWN + place) * WORDS)
            add_multiple(squares, (MIX + j) * WORDS, given, squares, (MIX + place) * WORDS)
    return least, root_word, log_pivots


@part_jit
def load_square(w, first, last, begin, squares, at):
    """Take from a matrix what the words of a panel have from one another, and what they give."""
    width = w.shape[1]
    for k in range(first, last + 1):
        copy_vector(squares, (at + k - begin) * WORDS, w, k * width + begin)


@part_jit
def unit_line(squares, line, place):
    """Set a line to 1 at a place and to 0 elsewhere."""
    fill_vector(squares, line * WORDS, 0.0)
    squares[line, place] = 1.0


@part_jit
def divide(squares, line, divisor):
    """Divide a line."""
    for i in range(WORDS):
        squares[line, i] /= divisor


@part_jit
def clear(columns, first, end):
    """Fill columns of a large matrix with 0 from one node up to another."""
    for j in range(first, end):
        fill_vector(columns, j * WORDS, 0.0)


@part_jit
def _mix_rows(w, first, last, begin, panel):
    """Bring the rows of a panel's words to their ends."""
    place, words, squares = first - begin, last + 1 - first, panel.squares
    take_rows(w, first, last, begin, panel.rows)
    add_product(w, (first, 0), squares, (MIX + place, place), panel.rows, (place, 0), (words, words, begin))
    store_own(w, first, last, begin, squares, OWN, GIVEN)


@part_jit
def take_rows(w, first, last, begin, rows):
    """Move the rows of a panel's words, up to where it begins, to ``rows``; 0 takes their place."""
    width = w.shape[1]
    for k in range(first, last + 1):
        for i in range(0, begin, LANES):
            copy_vector(rows, (k - begin) * rows.shape[1] + i, w, k * width + i)
            fill_vector(w, k * width + i, 0.0)


@part_jit
def store_own(w, first, last, begin, squares, own, given):
    """Write what the words of a panel have from one another, and what they give."""
    for k in range(first, last + 1):
        for i in range(begin, k):
            w[k, i] = squares[own + k - begin, i - begin]
        for m in range(k + 1, last + 1):
            w[k, m] = squares[given + k - begin, m - begin]


@part_jit
def fill_paths(squares, first, last):
    """Fill the square of paths for the words of a panel from ``first`` to ``last``, counted from its begin."""
    for k in range(WORDS):
        fill_vector(squares, (PATHS + k) * WORDS, 0.0)
    for k in range(first, last + 1):
        squares[PATHS + k, k] = 1.0
        for between in range(first, k):
            share = squares[OWN + k, between]
            add_multiple(squares, (PATHS + k) * WORDS, share, squares, (PATHS + between) * WORDS)


@part_jit
def _add_to_rest(w, first, last, begin, panel):
    """Move the weight of paths through a panel's words to the arcs between the nodes before them."""
    place, words, columns = first - begin, last + 1 - first, panel.columns
    clear(columns, 0, first)
    add_product(columns, (0, 0), w, (0, first), panel.squares, (PATHS + place, 0), (first, words, WORDS))
    heads = first + (-first) % LANES  # and some that are overwritten again
    add_product(w, (0, 0), columns, (0, place), w, (first, 0), (first, words, heads))
    store_columns(columns, first, last, begin, w)


@part_jit
def store_columns(columns, first, last, begin, w):
    """Write the columns of a panel's words, of all words before it."""
    for j in range(1, first):
        if last - first == WORDS - 1:
            copy_vector(w, j * w.shape[1] + begin, columns, j * WORDS)
        else:
            for k in range(first, last + 1):
                w[j, k] = columns[j, k - begin]


@part_jit
def last_of_panel(first, n, root_word):
    """The last word of the panel whose first is given."""
    last = min(begin_of(first) + WORDS - 1, n)
    return root_word if first <= root_word < last else last


@part_jit
def _differentiate(w, n, root_word, pivots, adjoint, panel):
    """Fill ``adjoint`` with the derivative of log Z' in every weight: the reverse of ``_eliminate``."""
    clear(adjoint, 0, adjoint.size // WORDS)
    first = 1
    while first <= n:
        last = last_of_panel(first, n, root_word)
        begin, start = begin_of(first), first_head(last, root_word)
        load_square(w, first, last, begin, panel.squares, OWN)
        load_square(w, first, last, begin, panel.squares, GIVEN)
        clear_rows(panel.rows, begin + WORDS)
        clear(panel.squares, SHARED, SHARED + WORDS)
        if first > 1:
            _gather_from_rest(w, first, last, begin, start, adjoint, panel)
        _differentiate_among(first, last, begin, root_word, pivots, panel)
        _store_rows(first, last, begin, start, adjoint, panel)
        if last == root_word:
            fill_root(adjoint, last, 0.0)
        first = last + 1


@part_jit
def clear_rows(rows, width):
    """Fill the rows of a panel with 0 up to a node."""
    for k in range(WORDS):
        for i in range(0, width, LANES):
            fill_vector(rows, k * rows.shape[1] + i, 0.0)


@part_jit
def _gather_from_rest(w, first, last, begin, start, adjoint, panel):
    """Fill the adjoints of the panel's columns, and what the adjoints before the panel give to its rows.

    Whatever comes from the nodes before the panel is a product with the adjoints of the arcs between them.
    """
    place, words, columns, squares = first - begin, last + 1 - first, panel.columns, panel.squares
    fill_paths(squares, place, last - begin)
    copy_transposed(squares, TURNED * WORDS, WORDS, squares, PATHS * WORDS, WORDS)
    pack_rows(w, first, last, begin, panel.packed)
    clear(columns, 0, first)
    add_product(columns, (0, 0), adjoint, (0, 0), panel.packed, (0, 0), (first, first, WORDS))
    add_product(adjoint, (0, begin), columns, (0, place), squares, (TURNED + place, 0), (first, words, WORDS))
    add_transposed_product(panel.rows, (place, 0), w, (0, first), adjoint, (0, 0), (words, first, begin + WORDS))
    add_product(squares, (SHARED + place, 0), panel.rows, (place, 0), panel.packed, (0, 0), (words, begin, WORDS))
    for k in range(first, last + 1):
        squares[SUMS, k - begin] = range_sum(w[k], start, begin)


@part_jit
def pack_rows(w, first, last, begin, packed):
    """Fill ``packed`` with the rows of a panel's words up to its first, transposed; 0 for words that it lacks."""
    heads = 0
    if last - first == WORDS - 1:
        heads, width = begin, w.shape[1]
        for i in range(0, heads, LANES):
            copy_transposed(packed, i * WORDS, WORDS, w, begin * width + i, width)
    clear(packed, heads, first)
    for k in range(first, last + 1):
        for i in range(heads, first):
            packed[i, k - begin] = w[k, i]


@part_jit
def _differentiate_among(first, last, begin, root_word, pivots, panel):
    """Turn what a panel's rows have from the adjoints before it into their adjoints.

    Left are, among the squares, those of arcs from heads in the panel's vector; and for all other arcs, how much of
    which rows to take for each row, and what to add.
    """
    squares, width = panel.squares, panel.rows.shape[1]
    for k in range(first, last + 1):
        place, start = k - begin, max(first_head(k, root_word) - begin, 0)
        dependents = panel.rows[place, k]
        for m in range(first - begin, place):
            total = squares[SHARED + m, place]
            for i in range(place):
                total += squares[ADJOINTS + m, i] * squares[OWN + place, i]
            total = 0.0 if total < 0.0 else total  # NaN stays, to be found
            squares[ADJOINTS + m, place] = total
            dependents += squares[GIVEN + m, place] * total
        rest = 1.0 - dependents
        copy_vector(squares, (ADJOINTS + place) * WORDS, panel.rows, place * width + begin)
        for i in range(start, WORDS):
            squares[ADJOINTS + place, i] += rest
        unit_line(squares, MIX + place, place)
        add_multiple(squares, (SHARED + place) * WORDS, rest, squares, SUMS * WORDS)
        for m in range(first - begin, place):
            factor = squares[GIVEN + m, place]
            rest += factor * squares[RESTS, m]
            for square in (ADJOINTS, MIX, SHARED):
                add_multiple(squares, (square + place) * WORDS, factor, squares, (square + m) * WORDS)
        squares[RESTS, place] = rest / pivots[k]
        divide(squares, MIX + place, pivots[k])
        divide(squares, SHARED + place, pivots[k])
        for i in range(place):
            value = squares[ADJOINTS + place, i] / pivots[k]
            squares[ADJOINTS + place, i] = 0.0 if value < 0.0 else value
        squares[ADJOINTS + place, place] = 0.0


@part_jit
def _store_rows(first, last, begin, start, adjoint, panel):
    """Fill the adjoints of a panel's rows."""
    place, words, squares = first - begin, last + 1 - first, panel.squares
    add_product(adjoint, (first, 0), squares, (MIX + place, place), panel.rows, (place, 0), (words, words, begin))
    for k in range(first, last + 1):
        rest = squares[RESTS, k - begin]
        for i in range(begin):
            value = adjoint[k, i] + (rest if i >= start else 0.0)
            adjoint[k, i] = 0.0 if value < 0.0 else value
        for i in range(last + 1 - begin):
            adjoint[k, begin + i] = squares[ADJOINTS + k - begin, i]
