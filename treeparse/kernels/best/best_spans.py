"""Best projective trees over the spans of ``treeparse.kernels.spans``, with every kind of score and the rule for ties.

A span's score is the best one of its splits. Where two splits tie, the charts are filled again with the summed keys of
arcs (``ties``), and a split is better by its score and then by its key.

Functions take a sentence's ``SentenceShape`` and the scores of arcs ``(n+1, n+1)``, siblings and grandparents, both
``(n+1, n+1, n+1)`` or, of an order below, empty. A record with arrays would count references to them in every call.
"""

from typing import NamedTuple

import numpy as np

from treeparse.kernels.compile import exact_kernel
from treeparse.kernels.spans import (
    ARC,
    ARCS,
    FULL,
    GRANDPARENTS,
    NO_SPAN,
    SPANS_OF_PAIR,
    arc_of,
    cell,
    contexts_of,
    halves,
    parts_of_span,
    push_halves,
    push_whole,
    span,
    span_of_pair,
    splits,
)
from treeparse.kernels.ties import arc_key

SPLIT_LINES = 3
SCORE, SIBLING, ARC_SCORE = range(SPLIT_LINES)


class Splits(NamedTuple):
    """Where the splits of a span read scores of spans."""

    begin: int
    end: int
    apart: int  # the split k = h of ARC, which is not like the others, and the cell that it reads; or -1
    inner: int
    first: int  # of the first of the others, the cells of its halves; and their distances from one split to the next
    second: int
    first_step: int
    second_step: int


@exact_kernel
def splits_of(shape, number):
    """Return where the splits of a span read scores of spans."""
    kind, _, h, m = parts_of_span(number)
    begin, end = splits(shape, number)
    start, apart, inner = begin, -1, 0
    if kind == ARC:
        apart, inner = h, cell(shape, halves(shape, number, h)[0])
        start = begin + 1 if h < m else begin
    first, second = halves(shape, number, start)
    next_first, next_second = halves(shape, number, start + 1)
    here, there = cell(shape, first), cell(shape, second)
    steps = cell(shape, next_first) - here, cell(shape, next_second) - there
    return Splits(begin, end, apart, inner, here, there, *steps)


# Functions that call others, or use an array in one branch alone, count references to their arrays. This one, which is
# called for every span, does neither.
@exact_kernel
def score_splits(order, arcs, siblings, grandparents, kind, context, h, m, where, scores, split_scores):
    """Fill the scores of a span's splits ``(3, n+1)``: the sum, what it has of siblings, and of arc and grandparent."""
    first, second = where.first, where.second
    for k in range(where.begin, where.end):
        is_apart = k == where.apart
        score, other = scores[where.inner if is_apart else first], 0.0 if is_apart else scores[second]
        first += 0 if is_apart else where.first_step
        second += 0 if is_apart else where.second_step
        sibling = arc = 0.0
        if kind == ARC:
            sibling, arc = np.float64(siblings[h, m, k]), arcs[h, m]
            if order == GRANDPARENTS and h > 0:
                arc += grandparents[h, m, context]
        elif kind == FULL and order == ARCS:
            arc = arcs[h, k]
        total = (score + arc) + other if order == ARCS else (score + other + sibling) + arc
        split_scores[SCORE, k], split_scores[SIBLING, k], split_scores[ARC_SCORE, k] = total, sibling, arc


@exact_kernel
def add_split_keys(shape, number, where, cells, split_keys):
    """Fill the keys of a span's splits; the first line of ``cells`` has the keys of the spans."""
    first, second = where.first, where.second
    for k in range(where.begin, where.end):
        head, dependent = arc_of(shape, number, k)
        key = arc_key(head, dependent) if dependent > 0 else 0
        if k == where.apart:
            split_keys[k] = cells[0, where.inner] + key
        else:
            split_keys[k] = cells[0, first] + cells[0, second] + key
            first += where.first_step
            second += where.second_step


@exact_kernel
def fill_by_keys(shape, arcs, siblings, grandparents, scores, cells, split_scores, split_keys):
    """Fill the best score of every span and, in the first line of ``cells``, the key that goes with it."""
    scores[:], cells[0] = -np.inf, 0
    for context in range(contexts_of(shape)):
        for j in range(shape.words + 1):
            scores[cell(shape, span(FULL, context, j, j))] = 0.0
    for j in range(1, shape.words + 1):
        for i in range(j - 1, -1, -1):
            for context in range(contexts_of(shape)):
                for which in range(SPANS_OF_PAIR):
                    number = span_of_pair(shape, context, i, j, which)
                    where = splits_of(shape, number)
                    if number == NO_SPAN or where.begin == where.end:
                        continue
                    kind, _, h, m = parts_of_span(number)
                    score_splits(
                        shape.order, arcs, siblings, grandparents, kind, context, h, m, where, scores, split_scores
                    )
                    add_split_keys(shape, number, where, cells, split_keys)
                    k, _ = best_split(where.begin, where.end, True, split_scores, split_keys)
                    if k >= 0:
                        here = cell(shape, number)
                        scores[here], cells[0, here] = split_scores[SCORE, k], split_keys[k]


@exact_kernel
def best_split(begin, end, keyed, scores, keys):
    """Return the best of a span's splits, -1 if none is possible, and whether another one is as good."""
    best, split, is_tied = -np.inf, -1, False
    for k in range(begin, end):
        score = scores[SCORE, k]
        if score > best or (keyed and split >= 0 and score == best and keys[k] > keys[split]):
            best, split, is_tied = score, k, False
        elif score == best and best > -np.inf:
            is_tied = True
    return split, is_tied


@exact_kernel
def find_best_tree(shape, arcs, siblings, grandparents, scores, stack, split_scores, split_keys, heads):
    """Write the heads of the best tree by the scores of all spans; where splits tie, fill these again with keys."""
    cells, is_read = np.empty((1, 0), np.int64), False
    while not is_read:
        is_read = _read_tree(shape, arcs, siblings, grandparents, scores, cells, stack, split_scores, split_keys, heads)
        if not is_read:
            cells = np.empty((1, len(scores)), np.int64)
            fill_by_keys(shape, arcs, siblings, grandparents, scores, cells, split_scores, split_keys)


@exact_kernel
def _read_tree(shape, arcs, siblings, grandparents, scores, cells, stack, split_scores, split_keys, heads):
    """Write the heads of the best tree; return False at the first tie without keys."""
    depth, keyed = push_whole(shape, stack), cells.shape[1] > 0
    while depth > 0:
        depth -= 1
        number = stack[depth]
        kind, context, h, m = parts_of_span(number)
        where = splits_of(shape, number)
        score_splits(shape.order, arcs, siblings, grandparents, kind, context, h, m, where, scores, split_scores)
        if keyed:
            add_split_keys(shape, number, where, cells, split_keys)
        k, is_tied = best_split(where.begin, where.end, keyed, split_scores, split_keys)
        if is_tied and not keyed:
            return False
        head, dependent = arc_of(shape, number, k)
        if dependent > 0:
            heads[dependent] = head
        depth = push_halves(shape, number, k, stack, depth)
    return True
