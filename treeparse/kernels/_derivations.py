"""Derivations of the spans of Eisner's chart, from the best one on: Huang and Chiang 2005, algorithm 3.

A derivation of a span is a place to split it and a derivation of each of its two halves. Of every span that was ever
asked for there is a list of its derivations, best first, as far as it is known, and a heap with what may come next. At
first the heap holds one derivation a split, of the best halves. A derivation of the halves at places (a, b) of their
lists is followed by (a + 1, b) and, if a is the first place, by (a, b + 1): so every pair comes up once, and after a
better one.

What follows in the list of a half is found only when a derivation that uses it was taken from the heap and the next one
is asked for; a stack holds the derivations that wait for it. All derivations of an item lie in a pool that only grows.
Lists are linked by ``NEXT``; a heap (a pairing heap, Fredman et al. 1986) hangs from the last derivation of its list.

Throughout, ``item`` is scores, their chart, arc keys, theirs, and every span's best derivation ``(3, cells)``; ``pool``
is the scores, keys and links of derivations, and their number in an array of one.
"""

import numpy as np

from treeparse.kernels._compile import jit
from treeparse.kernels.eisner import INNER, RIGHT, cell, halves, parts_of_span, split_range, split_score

# Of a derivation: its span and split; derivations of the first and the second half; whether the first is past the best
# one; the next in the list; in the heap the first one below it and the next one beside it.
SPAN, SPLIT, FIRST, SECOND, PAST_BEST, NEXT, BELOW, BESIDE = range(8)
NONE, UNKNOWN = -1, -2  # UNKNOWN: as NEXT not found yet; as FIRST or SECOND the best one, not looked up yet


@jit
def find_next(derivation, n, item, pool, stack):
    """Find what follows a derivation in its list, and first whatever that waits for; False if the pool ran out."""
    links = pool[2]
    if links[derivation, NEXT] != UNKNOWN:
        return True
    stack[0] = derivation
    depth = 1
    while depth > 0:
        if not has_room(n, pool):
            return False
        half = _waits_for(stack[depth - 1], item, pool)
        if half != NONE:
            stack[depth] = half
            depth += 1
        else:
            depth -= 1
            _append_next(stack[depth], item, pool)
    return True


@jit
def has_room(n, pool):
    """Whether the derivations of two spans and two more fit into the pool, the most that is added between two tests."""
    values, used = pool[0], pool[3]
    return used[0] + 2 * n + 4 <= len(values)


@jit
def _waits_for(derivation, item, pool):
    """A half whose next derivation has to be found before this one's can be, or NONE."""
    links = pool[2]
    half = half_of(derivation, FIRST, item, pool)
    if half != NONE and links[half, NEXT] == UNKNOWN:
        return half
    if not links[derivation, PAST_BEST]:
        half = half_of(derivation, SECOND, item, pool)
        if half != NONE and links[half, NEXT] == UNKNOWN:
            return half
    return NONE


@jit
def half_of(derivation, which, item, pool):
    """The derivation of the first or the second half; NONE if that is a single node."""
    links = pool[2]
    if links[derivation, which] == UNKNOWN:
        kind, i, j = parts_of_span(links[derivation, SPAN])
        first, second = halves(kind, i, j, links[derivation, SPLIT])
        links[derivation, which] = best_derivation(first if which == FIRST else second, item, pool)
    return links[derivation, which]


@jit
def best_derivation(where, item, pool):
    """The first derivation in a span's list; NONE if the span is a single node or impossible."""
    scores, chart, arc_keys, keys, best = item
    kind, i, j = parts_of_span(where)
    here = cell(i, j)
    if best[kind, here] == UNKNOWN:
        heap = NONE
        begin, end = split_range(kind, i, j)
        for k in range(begin, end):
            score = split_score(scores, chart, kind, i, j, k)
            if score > -np.inf:
                key = split_score(arc_keys, keys, kind, i, j, k)
                heap = _meld(heap, _add(score, key, where, k, UNKNOWN, UNKNOWN, False, pool), pool)
        best[kind, here] = heap
    return best[kind, here]


@jit
def _append_next(derivation, item, pool):
    """Take the best out of the heap of a list's last derivation, with what follows that one, and link the two."""
    values, keys, links, _ = pool
    where, k = links[derivation, SPAN], links[derivation, SPLIT]
    arc, arc_key = _arc_of_split(where, k, item)
    first, second = links[derivation, FIRST], links[derivation, SECOND]
    heap = _meld_below(derivation, pool)
    if first != NONE and links[first, NEXT] != NONE:
        after = links[first, NEXT]
        score = values[after] + arc + (values[second] if second != NONE else 0.0)
        key = keys[after] + arc_key + (keys[second] if second != NONE else 0)
        heap = _meld(heap, _add(score, key, where, k, after, second, True, pool), pool)
    if second != NONE and not links[derivation, PAST_BEST] and links[second, NEXT] != NONE:
        after = links[second, NEXT]
        score = (values[first] if first != NONE else 0.0) + arc + values[after]
        key = (keys[first] if first != NONE else 0) + arc_key + keys[after]
        heap = _meld(heap, _add(score, key, where, k, first, after, False, pool), pool)
    links[derivation, NEXT] = heap


@jit
def _arc_of_split(where, k, item):
    """Score and key of the arc that a split adds; 0 if it adds none."""
    scores, _, arc_keys, _, _ = item
    kind, i, j = parts_of_span(where)
    if kind == INNER:
        return 0.0, 0
    head = i if kind == RIGHT else j
    return scores[head, k], arc_keys[head, k]


@jit
def _add(score, key, where, k, first, second, past_best, pool):
    """Put a derivation into the pool."""
    values, keys, links, used = pool
    new = used[0]
    used[0] += 1
    values[new], keys[new] = score, key
    links[new, SPAN], links[new, SPLIT] = where, k
    links[new, FIRST], links[new, SECOND], links[new, PAST_BEST] = first, second, past_best
    links[new, NEXT], links[new, BELOW] = UNKNOWN, NONE
    return new


@jit
def _meld(heap, other, pool):
    """Two heaps in one, each given by its best derivation; the first one may be NONE."""
    values, keys, links, _ = pool
    if heap == NONE:
        return other
    if values[other] > values[heap] or (values[other] == values[heap] and keys[other] > keys[heap]):
        heap, other = other, heap
    links[other, BESIDE], links[heap, BELOW] = links[heap, BELOW], other
    return heap


@jit
def _meld_below(derivation, pool):
    """The heap that is left when its best derivation is taken: what is below it, in pairs, then all pairs."""
    links = pool[2]
    following, pairs = links[derivation, BELOW], NONE
    while following != NONE:
        one = following
        other = following = links[one, BESIDE]
        if other != NONE:
            following = links[other, BESIDE]
            one = _meld(one, other, pool)
        links[one, BESIDE] = pairs
        pairs = one
    heap = NONE
    while pairs != NONE:
        following = links[pairs, BESIDE]
        heap = _meld(heap, pairs, pool)
        pairs = following
    return heap
