"""Best projective trees over the spans of ``treeparse.kernels.spans``, with every kind of score and the rule for ties.

A span's score is the best one of its splits. Where two splits tie, the charts are filled again with the summed keys of
arcs (``ties``), and a split is better by its score and then by its key.
"""

import numpy as np

from treeparse.kernels.compile import exact_kernel
from treeparse.kernels.spans import (
    ARCS,
    FULL,
    NO_SPAN,
    SPANS_OF_PAIR,
    arc_of,
    cell,
    contexts_of,
    halves,
    push_halves,
    push_whole,
    scores_of_split,
    span,
    span_of_pair,
    splits,
)


@exact_kernel
def fill_by_keys(sentence, arc_keys, scores, keys):
    """Fill the best score of every span and the key that goes with it."""
    scores[:], keys[:] = -np.inf, 0
    for context in range(contexts_of(sentence)):
        for j in range(sentence.words + 1):
            scores[cell(sentence, span(FULL, context, j, j))] = 0.0
    for j in range(1, sentence.words + 1):
        for i in range(j - 1, -1, -1):
            for context in range(contexts_of(sentence)):
                for which in range(SPANS_OF_PAIR):
                    number = span_of_pair(sentence, context, i, j, which)
                    if number == NO_SPAN:
                        continue
                    k, _ = best_split(sentence, number, arc_keys, scores, keys)
                    if k >= 0:
                        here = cell(sentence, number)
                        scores[here] = split_score(sentence, number, k, scores)
                        keys[here] = split_key(sentence, number, k, arc_keys, keys)


@exact_kernel
def split_score(sentence, number, k, scores):
    """Return the score of a span's split."""
    first, second = halves(sentence, number, k)
    return add_scores(sentence, number, k, scores[cell(sentence, first)], scores[cell(sentence, second)])


@exact_kernel
def add_scores(sentence, number, k, first, second):
    """Return the score of a split from those of its halves; every kernel adds in this order, so with the same bits."""
    arc, sibling, grandparent = scores_of_split(sentence, number, k)
    if sentence.order == ARCS:
        return (first + arc) + second
    return (first + second + sibling) + (arc + grandparent)


@exact_kernel
def split_key(sentence, number, k, arc_keys, keys):
    """Return the key that goes with the score of a split."""
    first, second = halves(sentence, number, k)
    return keys[cell(sentence, first)] + keys[cell(sentence, second)] + key_of_split(sentence, number, k, arc_keys)


@exact_kernel
def key_of_split(sentence, number, k, arc_keys):
    """Return the key that a split adds to those of its halves."""
    head, dependent = arc_of(sentence, number, k)
    return arc_keys[head, dependent] if dependent > 0 else 0


@exact_kernel
def best_split(sentence, number, arc_keys, scores, keys):
    """Return a span's best split, -1 if none is possible, and whether another one is as good.

    Without ``keys``, which may be None, scores alone decide.
    """
    best, best_key, split, is_tied = -np.inf, 0, -1, False
    begin, end = splits(sentence, number)
    for k in range(begin, end):
        score = split_score(sentence, number, k, scores)
        if score < best or score == -np.inf:
            continue
        key = 0 if keys is None else split_key(sentence, number, k, arc_keys, keys)
        if score > best or key > best_key:
            best, best_key, split, is_tied = score, key, k, False
        else:
            is_tied = is_tied or key == best_key
    return split, is_tied


@exact_kernel
def read_tree(sentence, arc_keys, scores, keys, stack, heads):
    """Write the heads of the best tree; return False at the first tie if ``keys`` is None."""
    depth = push_whole(sentence, stack)
    while depth > 0:
        depth -= 1
        number = stack[depth]
        k, is_tied = best_split(sentence, number, arc_keys, scores, keys)
        if is_tied and keys is None:
            return False
        head, dependent = arc_of(sentence, number, k)
        if dependent > 0:
            heads[dependent] = head
        depth = push_halves(sentence, number, k, stack, depth)
    return True
