"""Elimination and its reverse in panels of eight words: the loops of ``words`` as products of matrices.

One word at a time, every step reads and writes the whole matrix for one multiplication an entry. In a panel, words are
first eliminated among themselves. Then words before it get their share in a product with ``paths[k, i]``, the
sum over the paths from ``k`` to ``i`` through words of the panel between them, by which a word before the panel, if it
has ``k`` for a head, comes to have ``i``; and in one with the rows of the panel's words.

None of it subtracts. The reverse takes the panels in the other order, with the same paths. A short sentence is a single
panel, however many words it has. The root word is the last of its panel unless no word is before that, since the root's
arcs to the words before it go with it.

Matrices have rows of whole vectors; entries after the words are 0.
"""

from typing import NamedTuple

import numpy as np

from treeparse.kernels.arrays import FloatArray
from treeparse.kernels.compile import exact_kernel
from treeparse.kernels.exponential import weigh_row
from treeparse.kernels.rows import add_row, copy_row, fill_row, whole
from treeparse.kernels.sums.item import LINEAR_LIMIT, all_finite
from treeparse.kernels.sums.products import add_product, add_transposed_product
from treeparse.kernels.sums.words import WORDS, differentiate_words, eliminate_words
from treeparse.kernels.vectors import LANES, copy_transposed

PATHS, TURNED, SQUARES = 0, WORDS, 2 * WORDS  # where square matrices begin among the lines of ``Panel.squares``


class Panel(NamedTuple):
    """Working memory of a panel."""

    columns: FloatArray  # (nodes, 8) of a large matrix, on their way through the panel
    packed: FloatArray  # (nodes, 8) the panel's rows, transposed
    lines: FloatArray  # (8, nodes) its rows, up to each word
    sums: FloatArray  # (8, nodes) what its rows get
    squares: FloatArray  # (2 matrices, 8)


@exact_kernel
def row_width(n):
    """Return the length of rows: an odd number of vectors, otherwise the entries of a column share lines of cache."""
    return LANES * ((n + LANES) // LANES | 1)


@exact_kernel
def matrix_entries(n):
    """Return the number of entries of a matrix for n words."""
    return (n + 1) * row_width(n)


@exact_kernel
def matrix(buffer, n):
    """Return a matrix for n words. Its strides depend on n alone, so an item has the same bits in a batch and alone."""
    return buffer[: matrix_entries(n)].reshape(n + 1, row_width(n))


@exact_kernel
def new_panel(n):
    """Working memory for up to n words."""
    width = row_width(n)
    long, rows = np.zeros((2, width, WORDS)), np.zeros((2, WORDS, width))
    return Panel(long[0], long[1], rows[0], rows[1], np.zeros((SQUARES, WORDS)))


@exact_kernel
def linear_item(scores, n, single_root, with_adjoint, in_panels, matrices, vectors, panel):
    """Eliminate one item with plain weights; return log Z' (of columns with maximum 1; NaN if unsafe), the root word.

    ``matrices`` take the eliminated weights, the original weights and the adjoint; ``vectors`` hold the column maxima
    and take the pivots.
    """
    w, original, adjoint = matrices
    top, pivots, _ = vectors
    bound = _load_weights(scores, n, top, w, original)
    weight, root_word = _eliminate(w, n, single_root, in_panels, pivots, panel)
    safe = weight - bound >= LINEAR_LIMIT and weight < np.inf
    if safe and with_adjoint:
        _differentiate(w, n, root_word, in_panels, pivots, adjoint, panel)
        safe = all_finite(adjoint, n)
    return weight if safe else np.nan, root_word


@exact_kernel
def _load_weights(scores, n, top, w, original):
    """Fill ``w`` and its copy with weights whose columns have maximum 1; returns the sum of the log column sums."""
    bound, width, end_of_words = 0.0, w.shape[1], whole(n + 1)
    for begin in range(0, n + 1, WORDS):
        end = min(begin + WORDS, n + 1)
        turn_columns(scores, n, begin, end, w)
        for j in range(max(begin, 1), end):
            w[j, j] = -np.inf
        product = 1.0  # of sums between 1 and n
        for j in range(max(begin, 1), end):
            row = j * width
            product *= weigh_row(w, row, original, row, top[j], n + 1)
            fill_row(w, row + end_of_words, 0.0, width - end_of_words)
            fill_row(original, row + end_of_words, 0.0, width - end_of_words)
        bound += np.log(product)
    fill_row(w, 0, 0.0, width)
    fill_row(original, 0, 0.0, width)
    return bound


@exact_kernel
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


@exact_kernel
def store_marginals(n, matrices, rows, marginals):
    """Marginal = derivative times weight, in head-major order; ``rows`` are working memory."""
    _, original, adjoint = matrices
    for begin in range(0, n + 1, WORDS):
        end = min(begin + WORDS, n + 1)
        for j in range(begin, end):
            line, weights, derivatives = rows[j - begin], original[j], adjoint[j]
            for i in range(n + 1):
                line[i] = derivatives[i] * weights[i]
        turn_rows(rows, n, begin, end, marginals)


@exact_kernel
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


@exact_kernel
def _eliminate(w, n, single_root, in_panels, pivots, panel):
    """Eliminate in place; returns log Z', or -inf, and the root word (past the end with many roots)."""
    root_word = 1 if single_root else n + 1
    log_z, last = 0.0, n
    while last > 0:
        least = first_of(last, in_panels)
        first, root_word, log_pivots = eliminate_words(w, least, last, root_word, pivots, panel.lines)
        if log_pivots == -np.inf:
            return log_pivots, root_word
        log_z += log_pivots
        if least > 1:
            _add_to_rest(w, least, first, last, panel)
        last = first - 1
    return log_z, root_word


@exact_kernel
def first_of(last, in_panels):
    """Return the first word of the panel with this last word, the root word excepted."""
    return max(last + 1 - WORDS, 1) if in_panels else 1


@exact_kernel
def fill_paths(w, first, last, squares):
    """Fill the square of paths for the words of a panel."""
    fill_row(squares, PATHS * WORDS, 0.0, WORDS * WORDS)
    words = last + 1 - first
    for k in range(words):
        squares[PATHS + k, k] = 1.0
        for between in range(k):
            share = w[first + k, first + between]
            add_row(squares, (PATHS + k) * WORDS, squares, (PATHS + between) * WORDS, share, WORDS)


@exact_kernel
def _add_to_rest(w, least, first, last, panel):
    """Move the weight of paths through a panel's words to the arcs of the nodes before ``least``.

    Words from ``least`` on have it already; these start before ``first`` if the root word was met.
    """
    words, columns, heads = last + 1 - first, panel.columns, whole(first)
    fill_paths(w, first, last, panel.squares)
    fill_row(columns, 0, 0.0, least * WORDS)
    add_product(columns, (0, 0), w, (0, first), panel.squares, (PATHS, 0), (least, words, WORDS))
    # Behind the heads before them, a few columns of their own get something, too, and then what is theirs.
    add_product(w, (0, 0), columns, (0, 0), panel.lines, (first - least, 0), (least, words, heads))
    store_columns(columns, least, first, last, w)


@exact_kernel
def store_columns(columns, least, first, last, w):
    """Write the columns of a panel's words, of all words before ``least``."""
    for j in range(1, least):
        if last - first == WORDS - 1:
            copy_row(w, j * w.shape[1] + first, columns, j * WORDS, WORDS)
        else:
            for k in range(first, last + 1):
                w[j, k] = columns[j, k - first]


@exact_kernel
def last_of(first, n, root_word, in_panels):
    """Return the last word of the panel with this first word."""
    last = first + (n - first) % WORDS if in_panels else n
    return root_word if 1 < first <= root_word < last else last


@exact_kernel
def _differentiate(w, n, root_word, in_panels, pivots, adjoint, panel):
    """Fill ``adjoint`` with the derivative of log Z' in every weight: the reverse of ``_eliminate``."""
    fill_row(adjoint, 0, 0.0, adjoint.shape[1])
    first = 1
    while first <= n:
        last = last_of(first, n, root_word, in_panels)
        if first > 1:
            _gather_from_rest(w, first, last, adjoint, panel)
        differentiate_words(w, first, last, root_word, pivots, adjoint, panel.lines, panel.sums)
        first = last + 1


@exact_kernel
def _gather_from_rest(w, first, last, adjoint, panel):
    """Fill the adjoints of the panel's columns, and what the adjoints before the panel give to its rows.

    Whatever comes from the nodes before the panel is a product with the adjoints of the arcs between them.
    """
    words, columns, squares = last + 1 - first, panel.columns, panel.squares
    take_lines(w, first, last, panel.lines, 0)
    pack_lines(first, panel.lines, 0, panel.packed)
    fill_paths(w, first, last, squares)
    copy_transposed(squares, TURNED * WORDS, WORDS, squares, PATHS * WORDS, WORDS)
    fill_row(columns, 0, 0.0, first * WORDS)
    add_product(columns, (0, 0), adjoint, (0, 0), panel.packed, (0, 0), (first, first, WORDS))
    add_product(adjoint, (0, first), columns, (0, 0), squares, (TURNED, 0), (first, words, WORDS))
    clear_lines(panel.sums, words, last)
    add_transposed_product(panel.sums, (0, 0), w, (0, first), adjoint, (0, 0), (words, first, whole(last + 1)))


@exact_kernel
def take_lines(matrix, first, last, lines, line):
    """Copy the rows of a panel's words, up to each word, into lines from one on."""
    for k in range(first, last + 1):
        at = (line + k - first) * lines.shape[1]
        copy_row(lines, at, matrix, k * matrix.shape[1], k)
        fill_row(lines, at + whole(k), 0.0, whole(last + 1) - whole(k))


@exact_kernel
def pack_lines(first, lines, line, packed):
    """Transpose eight lines from one on, up to a panel's first word."""
    for i in range(0, first, LANES):
        copy_transposed(packed, i * WORDS, WORDS, lines, line * lines.shape[1] + i, lines.shape[1])


@exact_kernel
def clear_lines(lines, words, last):
    """Fill lines with 0 up to a word."""
    for line in range(words):
        fill_row(lines, line * lines.shape[1], 0.0, last + 1)
