"""Elimination of some words among themselves, one after the other, and its reverse, with plain weights.

The words ``first`` to ``last`` are all words of a short sentence, or a panel of a long one: then ``panels``
passes weight from the panel to the words before it, and derivatives back. ``panels`` makes the matrices and the working
memory, ``lines`` and ``sums``: a line is the row of a word up to that word and 0 after it, where the row itself holds
the word's weights for others.
"""

import math

import numpy as np

from treeparse.kernels.compile import exact_kernel
from treeparse.kernels.rows import (
    add_row,
    add_rows,
    clamp_row,
    copy_row,
    divide_row,
    dot,
    dots,
    fill_row,
    raise_row,
    row_sum,
    share_row,
    whole,
)
from treeparse.kernels.sums.item import fill_root, first_head
from treeparse.kernels.vectors import LANES

WORDS = LANES  # of a panel
LOG_2 = math.log(2)


@exact_kernel
def line_of(k, first):
    """Return the index of a word among the lines."""
    return (k - first) % WORDS


@exact_kernel
def head_sum(matrix, k, root_word):
    """Return the sum of a row over the heads in the pivot of word ``k``."""
    at = k * matrix.shape[1]
    start = first_head(k, root_word)
    return row_sum(matrix, at + start, k - start)


@exact_kernel
def eliminate_words(w, first, last, root_word, pivots, lines):
    """Eliminate in place; return the first eliminated word, the root word, and the sum of the logs of pivots.

    Of every word ``k``, ``w[k, :k]`` is left divided by the pivot and ``w[first:k, k]`` as it was when ``k`` went. The
    sum is -inf if there is no tree. If there are words before these, elimination stops after the root word unless that
    is the last.
    """
    width = w.shape[1]
    product, power = 1.0, 0  # of pivots: one log of them all is quicker than that of each
    for k in range(last, first - 1, -1):
        pivot = head_sum(w, k, root_word)
        if pivot == 0.0 and root_word == 1:
            if k < last and first > 1:
                return k + 1, root_word, np.log(product) + power * LOG_2
            root_word = k
            pivot = w[k, 0]
            fill_root(w, k, 0.0)
        if pivot == 0.0:
            return k, root_word, -np.inf
        pivots[k] = pivot
        product, exponent = math.frexp(product * pivot)
        power += exponent
        line = line_of(k, first) * lines.shape[1]
        divide_row(w, k * width, lines, line, pivot, k)
        for j in range(first, k):
            add_row(w, j * width, lines, line, w[j, k], k)
    return first, root_word, np.log(product) + power * LOG_2


@exact_kernel
def differentiate_words(w, first, last, root_word, pivots, adjoint, lines, sums):
    """Fill ``adjoint`` with the derivative of log Z' in arcs to these words from one another and earlier nodes.

    If there are words before, ``lines`` are filled, and ``sums`` with the adjoints' shares in the words' rows.
    """
    width, long = w.shape[1], lines.shape[1]
    for k in range(first, last + 1):
        index = line_of(k, first)
        line = index * long
        if first == 1:
            copy_row(lines, line, w, k * width, k)
            fill_row(sums, line, 0.0, k + 1)
        dependents = sums[index, k]
        for m in range(first, k):
            through, row = w[m, k], m * width
            total = dot(adjoint, row, lines, line, k)
            add_row(sums, line, adjoint, row, through, k)
            adjoint[m, k] = total
            dependents += through * total
        row, root = k * width, sums[index, 0]
        share_row(adjoint, row, sums, line, 1.0 - dependents, pivots[k], k)
        if first_head(k, root_word) == 1:
            adjoint[k, 0] = root / pivots[k]
        raise_row(adjoint, row, k)
        fill_row(adjoint, row + whole(k), 0.0, width - whole(k))
        if k == root_word:
            fill_root(adjoint, k, 0.0)


@exact_kernel
def eliminate_word_tangents(w, first, last, root_word, pivots, w_t, pivots_t, lines):
    """Turn tangents of weights, in place, into tangents of the result of ``eliminate_words``; fill both lines."""
    width, long = w.shape[1], lines.shape[1]
    other = lines_t(first, last) * long
    for k in range(last, first - 1, -1):
        line, row = line_of(k, first) * long, k * width
        line_t = line + other
        copy_row(lines, line, w, row, k)
        pivot_t = head_sum(w_t, k, root_word)
        pivots_t[k] = pivot_t
        add_row(w_t, row, lines, line, -pivot_t, k)
        divide_row(w_t, row, lines, line_t, pivots[k], k)
        if k == root_word:
            fill_root(w_t, k, 0.0)
        for j in range(first, k):
            add_rows(w_t, j * width, lines, line, lines, line_t, w_t[j, k], w[j, k], k)


@exact_kernel
def lines_t(first, last):
    """Return the index among the lines at which their tangents begin."""
    return min(last + 1 - first, WORDS)


@exact_kernel
def differentiate_word_tangents(
    w, first, last, root_word, pivots, w_t, pivots_t, adjoint, adjoint_t, limit, lines, sums
):
    """Fill the tangents of ``differentiate_words``; each is limited to ``limit`` times its adjoint."""
    width, long = w.shape[1], lines.shape[1]
    other = lines_t(first, last) * long
    for k in range(first, last + 1):
        index = line_of(k, first)
        line = index * long
        line_t = line + other
        if first == 1:
            copy_row(lines, line, w, k * width, k)
            copy_row(lines, line_t, w_t, k * width, k)
            fill_row(sums, line, 0.0, k + 1)
        dependents_t = sums[index, k]
        for m in range(first, k):
            through, through_t, row = w[m, k], w_t[m, k], m * width
            total = dots(adjoint_t, row, lines, line, adjoint, row, lines, line_t, k)
            add_rows(sums, line, adjoint_t, row, adjoint, row, through, through_t, k)
            adjoint_t[m, k] = total
            dependents_t += through * total + through_t * adjoint[m, k]
        row = k * width
        add_row(sums, line, adjoint, row, -pivots_t[k], k)
        root = sums[index, 0]
        share_row(adjoint_t, row, sums, line, -dependents_t, pivots[k], k)
        if first_head(k, root_word) == 1:
            adjoint_t[k, 0] = root / pivots[k]
        clamp_row(adjoint_t, row, adjoint, row, limit, k)
        fill_row(adjoint_t, row + whole(k), 0.0, width - whole(k))
        if k == root_word:
            fill_root(adjoint, k, 0.0)
            fill_root(adjoint_t, k, 0.0)
