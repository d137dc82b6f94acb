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

from typing import NamedTuple

import numpy as np

from treeparse.kernels.arrays import FloatArray, IntArray
from treeparse.kernels.best.spans import add_scores, key_of_split, split_key, split_score
from treeparse.kernels.compile import exact_kernel
from treeparse.kernels.spans import ScoredSentence, cell, halves, splits

# Links: summed keys; span; split; derivations of the two halves; whether the first one is past its span's best; the
# next one in the list; in the heap the first one below and the next one beside.
LINKS = 9
KEY, SPAN, SPLIT, FIRST, SECOND, PAST_BEST, NEXT, BELOW, BESIDE = range(LINKS)
NONE = 0
USED = SPLIT  # of row 0: the number of rows in use
UNKNOWN = -1  # as NEXT: not found yet; as FIRST or SECOND: the best one, not looked up yet


class Charts(NamedTuple):
    """The spans of one item, by cells, and its scores."""

    sentence: ScoredSentence
    scores: FloatArray  # (C,) of the best derivations
    arc_keys: IntArray  # (n+1, n+1)
    keys: IntArray  # (C,) that go with the scores
    best: IntArray  # (C,) the best derivations, UNKNOWN before they are asked for


class Pool(NamedTuple):
    """The derivations of one item. Inner loops take its two arrays: to take one from a tuple counts references."""

    values: FloatArray  # (R,) their scores
    links: IntArray  # (R, 9)


@exact_kernel
def clear(pool):
    """Empty the pool, apart from row 0."""
    pool.values[NONE] = 0.0
    pool.links[NONE] = NONE
    pool.links[NONE, USED] = 1


@exact_kernel
def has_room(n, links):
    """Return whether the pool can take two spans' derivations and two more, the most added between two tests."""
    return links[NONE, USED] + 2 * (n + 1) + 2 <= len(links)


@exact_kernel
def find_next(derivation, charts, pool, stack):
    """Find the successor of a derivation in its list, after all that it waits for; return False if the pool is full."""
    links, n = pool.links, charts.sentence.words
    if links[derivation, NEXT] != UNKNOWN:
        return True
    stack[0] = derivation
    depth = 1
    while depth > 0:
        if not has_room(n, links):
            return False
        derivation = stack[depth - 1]
        for which in (FIRST, SECOND):
            if links[derivation, which] == UNKNOWN:
                look_up_half(derivation, which, charts, pool)
        first, second = links[derivation, FIRST], links[derivation, SECOND]
        if links[first, NEXT] == UNKNOWN:
            stack[depth] = first
            depth += 1
        elif links[second, NEXT] == UNKNOWN and not links[derivation, PAST_BEST]:
            stack[depth] = second
            depth += 1
        else:
            _append_next(derivation, charts, pool)
            depth -= 1
    return True


@exact_kernel
def look_up_half(derivation, which, charts, pool):
    """Replace UNKNOWN in FIRST or SECOND by the best derivation of that half."""
    links = pool.links
    first, second = halves(charts.sentence, links[derivation, SPAN], links[derivation, SPLIT])
    links[derivation, which] = best_derivation(first if which == FIRST else second, charts, pool)


@exact_kernel
def best_derivation(number, charts, pool):
    """Return the first derivation in a span's list; NONE if the span is a single node or impossible."""
    sentence, values, links = charts.sentence, pool.values, pool.links
    here = cell(sentence, number)
    if charts.best[here] == UNKNOWN:
        heap = NONE
        begin, end = splits(sentence, number)
        for k in range(begin, end):
            score = split_score(sentence, number, k, charts.scores)
            if score > -np.inf:
                key = split_key(sentence, number, k, charts.arc_keys, charts.keys)
                heap = _meld(heap, _add(score, key, number, k, UNKNOWN, UNKNOWN, 0, values, links), values, links)
        charts.best[here] = heap
    return charts.best[here]


@exact_kernel
def _append_next(derivation, charts, pool):
    """Put the followers of a list's last derivation into the list's heap, and move the best one to the list."""
    sentence, values, links = charts.sentence, pool.values, pool.links
    number, k = links[derivation, SPAN], links[derivation, SPLIT]
    first, second = links[derivation, FIRST], links[derivation, SECOND]
    key_of_arc = key_of_split(sentence, number, k, charts.arc_keys)
    heap = _meld_below(derivation, values, links)
    after = links[first, NEXT]
    if after != NONE:
        score = add_scores(sentence, number, k, values[after], values[second])
        key = links[after, KEY] + links[second, KEY] + key_of_arc
        heap = _meld(heap, _add(score, key, number, k, after, second, 1, values, links), values, links)
    after = links[second, NEXT]
    if after != NONE and not links[derivation, PAST_BEST]:
        score = add_scores(sentence, number, k, values[first], values[after])
        key = links[first, KEY] + links[after, KEY] + key_of_arc
        heap = _meld(heap, _add(score, key, number, k, first, after, 0, values, links), values, links)
    links[derivation, NEXT] = heap


@exact_kernel
def _add(score, key, number, k, first, second, past_best, values, links):
    """Put a derivation into the pool."""
    new = links[NONE, USED]
    links[NONE, USED] += 1
    values[new] = score
    links[new, KEY], links[new, SPAN], links[new, SPLIT] = key, number, k
    links[new, FIRST], links[new, SECOND], links[new, PAST_BEST] = first, second, past_best
    links[new, NEXT], links[new, BELOW] = UNKNOWN, NONE
    return new


@exact_kernel
def _meld(heap, other, values, links):
    """Join two heaps, each passed as its best derivation; the first one may be NONE."""
    if heap == NONE:
        return other
    if values[other] > values[heap] or (values[other] == values[heap] and links[other, KEY] > links[heap, KEY]):
        heap, other = other, heap
    links[other, BESIDE], links[heap, BELOW] = links[heap, BELOW], other
    return heap


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
