"""Derivations of the spans of projective trees, from the best one on: Huang and Chiang 2005, algorithm 3.

A derivation of a span is a split and a derivation of each of its two halves. Every span that was needed has a list of
its best derivations so far, best first, and a heap with candidates for the next one. At first the heap holds one
derivation a split, of the best halves. A derivation of the halves at indices (a, b) of their lists is followed by
(a + 1, b) and, if a is the first index, by (a, b + 1): so every pair comes up once, and after a better one.

The next derivation of a half is found only when a derivation that uses it was taken from the heap and the one after it
is needed; a stack holds the derivations that wait for it. All derivations of an item lie in a pool that only grows.
Lists are linked by ``NEXT``; a heap (a pairing heap, Fredman et al. 1986) hangs from the last derivation of its list.

Row 0 of a pool is no derivation, and the derivation of a single node, which has score 0 and no successor.
"""

import numpy as np

from treeparse.kernels.best.best_spans import ARC_SCORE, SCORE, SIBLING
from treeparse.kernels.compile import exact_kernel
from treeparse.kernels.spans import ARCS, cell, halves

# Links: summed keys; span; split; derivations of the two halves; whether the first one is past its span's best; the
# next one in the list; in the heap the first one below and the next one beside.
LINKS = 9
KEY, SPAN, SPLIT, FIRST, SECOND, PAST_BEST, NEXT, BELOW, BESIDE = range(LINKS)
NONE = 0
USED = SPLIT  # of row 0: the number of rows in use
DEPTH = 0  # of a stack, where its depth is
DONE, NO_ROOM = -1, -2  # instead of a span
UNKNOWN = -1  # as NEXT: not found yet; as FIRST or SECOND: the best one, not looked up yet


# Functions take, of one item, its ``SentenceShape`` and the scores of ``best.spans``; ``scores`` (C,) of the best
# derivations of all spans; ``cells`` (2, C), whose lines are the keys of these scores, and the best derivations or
# UNKNOWN; and the pool of derivations: scores ``values`` (R, 3), in the lines of splits, and ``links`` (R, 9).
# Loops call functions of few arrays, because references to the arrays of functions are counted.
KEYS, BEST = range(2)


@exact_kernel
def clear(values, links):
    """Empty the pool, apart from row 0."""
    values[NONE, SCORE] = 0.0
    for link in range(LINKS):
        links[NONE, link] = NONE
    links[NONE, USED] = 1


@exact_kernel
def has_room(n, links):
    """Return whether the pool can take two spans' derivations and two more, the most added between two tests."""
    return links[NONE, USED] + 2 * (n + 1) + 2 <= len(links)


@exact_kernel
def find_next(shape, cells, values, links, stack):
    """Find the successor of the derivation at the bottom of a stack in its list, after all that it waits for.

    Return ``DONE``; or, to be called again afterwards, a span whose list must begin first, or ``NO_ROOM``.
    """
    needed = DONE
    while stack[DEPTH] > 0 and needed == DONE:
        depth = stack[DEPTH]
        derivation = stack[depth]
        if not has_room(shape.words, links):
            needed = NO_ROOM
        elif links[derivation, FIRST] == UNKNOWN or links[derivation, SECOND] == UNKNOWN:
            needed = look_up_halves(derivation, shape, cells, links)
        first, second = links[derivation, FIRST], links[derivation, SECOND]
        if needed != DONE:
            continue
        if links[derivation, NEXT] != UNKNOWN:
            stack[DEPTH] -= 1
        elif links[first, NEXT] == UNKNOWN:
            stack[DEPTH], stack[depth + 1] = depth + 1, first
        elif links[second, NEXT] == UNKNOWN and not links[derivation, PAST_BEST]:
            stack[DEPTH], stack[depth + 1] = depth + 1, second
        else:
            _append_next(shape.order, derivation, values, links)
    return needed


@exact_kernel
def look_up_halves(derivation, shape, cells, links):
    """Replace UNKNOWN halves of a derivation by the best derivations; return a span whose list must begin, or DONE."""
    needed = DONE
    for which in (SECOND, FIRST):
        if links[derivation, which] == UNKNOWN:
            first, second = halves(shape, links[derivation, SPAN], links[derivation, SPLIT])
            half = first if which == FIRST else second
            best = cells[BEST, cell(shape, half)]
            links[derivation, which] = best
            needed = half if best == UNKNOWN else needed
    return needed


@exact_kernel
def _append_next(order, derivation, values, links):
    """Put the followers of a list's last derivation into the list's heap, and move the best one to the list."""
    heap, first, second = _meld_below(derivation, values, links), links[derivation, FIRST], links[derivation, SECOND]
    after = links[first, NEXT]
    if after != NONE:
        heap = _add(heap, order, derivation, after, second, values, links)
    after = links[second, NEXT]
    if after != NONE and not links[derivation, PAST_BEST]:
        heap = _add(heap, order, derivation, first, after, values, links)
    links[derivation, NEXT] = heap


@exact_kernel
def add_best(number, begin, end, scores, keys, values, links):
    """Put the best derivations of all splits of a span into the pool, and into a heap; return the heap."""
    heap = NONE
    for k in range(begin, end):
        if scores[SCORE, k] > -np.inf:
            new = links[NONE, USED]
            links[NONE, USED] += 1
            values[new, SCORE], values[new, SIBLING] = scores[SCORE, k], scores[SIBLING, k]
            values[new, ARC_SCORE] = scores[ARC_SCORE, k]
            links[new, KEY], links[new, SPAN], links[new, SPLIT], links[new, PAST_BEST] = keys[k], number, k, 0
            links[new, FIRST] = links[new, SECOND] = links[new, NEXT] = UNKNOWN
            links[new, BELOW] = NONE
            heap = _meld(heap, new, values, links)
    return heap


@exact_kernel
def _add(heap, order, derivation, first, second, values, links):
    """Put a derivation by the same split as another one, of other halves, into the pool and a heap; return the heap."""
    new, old_first, old_second = links[NONE, USED], links[derivation, FIRST], links[derivation, SECOND]
    links[NONE, USED] += 1
    score, other, sibling, arc = (
        values[first, SCORE],
        values[second, SCORE],
        values[derivation, 1],
        values[derivation, 2],
    )
    values[new, SCORE] = (score + arc) + other if order == ARCS else (score + other + sibling) + arc
    values[new, SIBLING], values[new, ARC_SCORE] = sibling, arc
    key = links[derivation, KEY] - links[old_first, KEY] - links[old_second, KEY]
    links[new, KEY] = key + links[first, KEY] + links[second, KEY]
    links[new, SPAN], links[new, SPLIT] = links[derivation, SPAN], links[derivation, SPLIT]
    links[new, FIRST], links[new, SECOND], links[new, PAST_BEST] = first, second, first != old_first
    links[new, NEXT], links[new, BELOW] = UNKNOWN, NONE
    return _meld(heap, new, values, links)


@exact_kernel
def _meld(heap, other, values, links):
    """Join two heaps, each passed as its best derivation; the first one may be NONE."""
    score, top = values[other, SCORE], values[heap, SCORE]
    is_better = heap == NONE or score > top or (score == top and links[other, KEY] > links[heap, KEY])
    best, below = (other, heap) if is_better else (heap, other)
    if below != NONE:
        links[below, BESIDE], links[best, BELOW] = links[best, BELOW], below
    return best


@exact_kernel
def _meld_below(derivation, values, links):
    """Remove a heap's best derivation: join the derivations below it in pairs, then all pairs; return the heap."""
    following, pairs = links[derivation, BELOW], NONE
    while following != NONE:
        one = following
        other = following = links[one, BESIDE]
        if other != NONE:
            following = links[other, BESIDE]
            one = _meld(one, other, values, links)
        links[one, BESIDE] = pairs
        pairs = one
    heap = NONE
    while pairs != NONE:
        following = links[pairs, BESIDE]
        heap = _meld(heap, pairs, values, links)
        pairs = following
    return heap
