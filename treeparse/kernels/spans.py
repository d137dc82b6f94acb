"""How spans of projective trees fall into smaller spans, for scores of arcs, of siblings, and of grandparents.

A span has a *context*, the head of its head, where grandparents have scores; otherwise there is one context, 0. With
``c`` for a span's context, ``h`` for its head, and ``m`` for a node on either side of h:

    FULL  c; h, m    h and all of its descendants from h up to m
    ARC   c; h, m    the same, if m is the last dependent of h on this side; of m's descendants only those towards h
    MID   c; k, m    k < m are neighbouring dependents of c on one side of it: their descendants towards one another

A span's derivations are its splits k, each into two spans, whose context ``below`` is h if there are contexts:

    FULL  c; h, m    into ARC c; h, k and FULL below; k, m, for every node k from the one next to h up to m
    ARC   c; h, m    into ARC c; h, k and MID below; k, m, where k is the dependent before m, and for k = h, where m is
                     the first one, into FULL below; m, next to h alone. The arc h -> m and its parts are scored here.
    MID   c; k, m    into FULL c; k, r and FULL c; m, r + 1, for every node r from k up to m - 1

If arcs alone have scores, there is no ARC: FULL h, m falls into MID h, k, which is all between h and k, and FULL k, m,
and h -> k is scored there. ``FULL c; h, h`` is a single node. Every projective tree is one derivation of
``FULL 0; 0, n`` and no other. With a single root node 0 has one dependent: of its spans only FULL with m = n is used,
and only ``k = h`` splits its ARC.

A span is one number. Cells lie by ``[kind, h, m, context]``, each row of contexts in whole vectors. The numbers
of siblings are packed into one array, arc by arc.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from treeparse.kernels import AnyFloatArray, FloatArray
from treeparse.kernels.compile import exact_kernel
from treeparse.kernels.tree_weights import padded

KINDS = 3
FULL, ARC, MID = range(KINDS)
ORDERS = 4
ARCS, SIBLINGS, GRANDPARENTS = range(1, ORDERS)  # what has scores: arcs alone, siblings too, grandparents too
SPANS_OF_PAIR = 5
NODE_BITS = 20
NODE_MASK = (1 << NODE_BITS) - 1
NO_SPAN = 0  # FULL 0; 0, 0: what completes a split into one span


class SentenceShape(NamedTuple):
    """What decides how spans split: loops take this and arrays, because arrays in a tuple count references.

    The arrays are scores of arcs ``[head, dependent]``, of siblings ``[head, dependent, the dependent before, or the
    head]`` and of grandparents ``[head, dependent, the head's head]``, which arcs of node 0 have not. Those of an order
    above are empty. Arrays may have more nodes than the sentence.
    """

    words: int
    order: int
    single_root: bool


def three_parts(parts: Iterable[AnyFloatArray]) -> tuple[FloatArray, ...]:
    """Return the scores of arcs, siblings and grandparents as float64; those of an order above are empty."""
    arcs, *others = (part.astype(np.float64, copy=False) for part in parts)
    nothing = np.empty((len(arcs), 0, 0, 0))
    return (arcs, *others, nothing, nothing)[:GRANDPARENTS]


@exact_kernel
def contexts_of(shape):
    """Return the number of contexts."""
    return shape.words + 1 if shape.order == GRANDPARENTS else 1


@exact_kernel
def cells_of(shape):
    """Return how many cells the spans have."""
    width = padded(shape.words) if shape.order == GRANDPARENTS else 1
    return KINDS * (shape.words + 1) ** 2 * width


@exact_kernel
def row_of(n, kind, h, m):
    """Return the cell at which the contexts of a span begin, where there are contexts."""
    return ((kind * (n + 1) + h) * (n + 1) + m) * padded(n)


@exact_kernel
def span(kind, context, h, m):
    """Return a span as one number."""
    return (((((kind << NODE_BITS) | context) << NODE_BITS) | h) << NODE_BITS) | m


@exact_kernel
def whole(shape):
    """Return the span of the whole sentence."""
    return span(FULL, 0, 0, shape.words)


@exact_kernel
def parts_of_span(number):
    """Return kind, context, h and m of a span."""
    h, context = (number >> NODE_BITS) & NODE_MASK, (number >> (2 * NODE_BITS)) & NODE_MASK
    return number >> (3 * NODE_BITS), context, h, number & NODE_MASK


@exact_kernel
def cell(shape, number):
    """Return the cell of a span."""
    kind, context, h, m = parts_of_span(number)
    if shape.order == GRANDPARENTS:
        return row_of(shape.words, kind, h, m) + context
    return (kind * (shape.words + 1) + h) * (shape.words + 1) + m


@exact_kernel
def span_of_pair(shape, context, i, j, which):
    """Return one of the ``SPANS_OF_PAIR`` spans from i to j, i < j, smaller ones first; ``NO_SPAN`` if it is not used.

    The context is a number below ``contexts_of``.
    """
    is_between_arc = which == 0 and shape.order == ARCS
    if i == 0 and (context > 0 or which % 2 == 0) and not is_between_arc:  # node 0 is no dependent
        return NO_SPAN
    if i > 0 and shape.order == GRANDPARENTS and i <= context <= j:
        return NO_SPAN
    if shape.order == ARCS and (which in (1, 2)):
        return NO_SPAN
    if which == 0:
        return span(MID, context, i, j)
    kind = ARC if which <= 2 else FULL
    return span(kind, context, i, j) if which % 2 == 1 else span(kind, context, j, i)


@exact_kernel
def splits(shape, number):
    """Return the range of a span's splits, which may be empty."""
    kind, _, h, m = parts_of_span(number)
    only_one = h == 0 and shape.single_root and kind != MID
    if kind == FULL:
        if only_one and m < shape.words:
            return 0, 0
        return (h + 1, m + 1) if h < m else (m, h)
    if kind == ARC:
        if only_one:
            return 0, 1
        return (h, m) if h < m else (m + 1, h + 1)
    return h, m


@exact_kernel
def halves(shape, number, k):
    """Return the two spans into which a split takes a span."""
    kind, context, h, m = parts_of_span(number)
    if kind == MID:
        return span(FULL, context, h, k), span(FULL, context, m, k + 1)
    below = h if shape.order == GRANDPARENTS else 0
    if kind == FULL:
        first = span(MID, 0, min(h, k), max(h, k)) if shape.order == ARCS else span(ARC, context, h, k)
        return first, span(FULL, below, k, m)
    if k == h:
        return span(FULL, below, m, h + 1 if h < m else h - 1), NO_SPAN
    return span(ARC, context, h, k), span(MID, below, min(k, m), max(k, m))


@exact_kernel
def arc_of(shape, number, k):
    """Return head and dependent of the arc that a split scores; the dependent is 0 for none."""
    kind, _, h, m = parts_of_span(number)
    if kind == ARC:
        return h, m
    return (h, k) if kind == FULL and shape.order == ARCS else (0, 0)


@exact_kernel
def part_scores(shape, arcs, siblings, grandparents, number, k):
    """Return the scores that a split adds to those of its halves: of its arc, of the sibling, of the grandparent."""
    head, dependent = arc_of(shape, number, k)
    if dependent == 0:
        return 0.0, 0.0, 0.0
    arc, sibling, grandparent = arcs[head, dependent], 0.0, 0.0
    if shape.order > ARCS:
        sibling = np.float64(siblings[head, dependent, k])
    if shape.order == GRANDPARENTS and head > 0:
        _, context, _, _ = parts_of_span(number)
        grandparent = np.float64(grandparents[head, dependent, context])
    return arc, sibling, grandparent


@exact_kernel
def push_whole(shape, stack):
    """Begin a stack with the whole sentence, unless it has no words; return how many spans are then on it."""
    stack[0] = whole(shape)
    return 1 if shape.words > 0 else 0


@exact_kernel
def push_halves(shape, number, k, stack, depth):
    """Push the halves of a split that are more than one node; return how many spans are then on the stack."""
    first, second = halves(shape, number, k)
    kind, _, _, _ = parts_of_span(number)
    for half in (second, first) if kind == FULL else (first, second):  # what an arc spans is next after the arc
        _, _, h, m = parts_of_span(half)
        if h != m:
            stack[depth] = half
            depth += 1
    return depth


@exact_kernel
def score_of_tree(shape, arcs, siblings, grandparents, heads):
    """Return the sum of a tree's scores over its words in order, of arcs, then of siblings and of grandparents."""
    total = of_siblings = of_grandparents = 0.0
    for j in range(1, shape.words + 1):
        head = heads[j]
        total += arcs[head, j]
        if shape.order >= SIBLINGS:
            step = 1 if head > j else -1
            sibling = j + step
            while sibling != head and heads[sibling] != head:
                sibling += step
            of_siblings += siblings[head, j, sibling]
        if shape.order == GRANDPARENTS and head > 0:
            of_grandparents += grandparents[head, j, heads[head]]
    return total + of_siblings + of_grandparents
