"""Projective trees with some known decisions: the probabilities of the next decision, and a random tree.

A projective tree has one derivation (``samples.projective``): a span of head ``h`` up to ``m`` falls into the arc to
the outermost dependent ``k`` of ``h`` and three smaller spans, of which two share what lies between ``h`` and ``k``. So
a tree is a row of 2n *decisions*, in turn an outermost dependent and a split. After some decisions, independent spans
remain: the next decision has the probability of its term in the sum that fills the span's cell of the inside chart, and
nothing more is computed.

Charts are in log space, where no tree is lost. A stack holds the remaining spans of more than one word.
"""

from typing import NamedTuple

import numpy as np

from treeparse.kernels.arrays import FloatArray
from treeparse.kernels.compile import part_jit
from treeparse.kernels.logspace import log_sum
from treeparse.kernels.random import choose_by_logs
from treeparse.kernels.sums import inside_outside_logs
from treeparse.kernels.sums.inside_outside_logs import ARC, FULL, FULL_T
from treeparse.kernels.weights import column_maxima


class Spans(NamedTuple):
    """Log weights ``[h, m]`` of the spans from a head h to a node m; empty for trees that need not be projective."""

    full: FloatArray  # (n+1, n+1)
    full_t: FloatArray  # (n+1, n+1) these transposed
    arc: FloatArray  # (n+1, n+1)


@part_jit
def no_spans():
    """Return a placeholder for spans that are not needed."""
    return Spans(np.empty((0, 0)), np.empty((0, 0)), np.empty((0, 0)))


@part_jit
def inside(scores, n, single_root):
    """Return the spans of an item."""
    top, work = np.empty(n + 1), np.empty(n + 1)
    charts = np.empty((inside_outside_logs.CHARTS, 1, n + 1, n + 1))
    column_maxima(scores, n, top)
    inside_outside_logs.load(scores, scores, n, top, charts[inside_outside_logs.WEIGHTS])
    inside_outside_logs.inside(charts, n, single_root, work)
    return Spans(charts[FULL, 0].copy(), charts[FULL_T, 0].copy(), charts[ARC, 0].copy())


@part_jit
def replay(row, at, level, n, stack):
    """Fill the heads that the decisions before ``level`` determine; return how many spans are then on the stack.

    Decisions are in the row from ``at`` on, after the heads.
    """
    stack[0, 0], stack[0, 1] = 0, n
    height = 1
    for done in range(2, level + 1, 2):
        height = _divide(row, at, done, stack, height)
    return height


@part_jit
def _divide(row, at, level, stack, height):
    """Replace the span on top of the stack by its parts, by the two decisions before ``level``."""
    h, m = stack[height - 1]
    k = min(h + 1, m) + row[at + level - 2]
    row[k] = h
    left, right = min(h, k), max(h, k)
    split = left + row[at + level - 1]
    height = _push(stack, height - 1, k, m)
    height = _push(stack, height, left, split)
    return _push(stack, height, right, split + 1)


@part_jit
def _push(stack, height, h, m):
    stack[height, 0], stack[height, 1] = h, m
    return height + (h != m)


@part_jit
def next_logs(spans, row, at, level, n, stack, logs):
    """Fill ``logs`` with the log probabilities of the decision of a level given earlier ones; return their number."""
    height = replay(row, at, level, n, stack)
    count = _terms(spans, row, at, level, stack[height - 1], logs)
    total = log_sum(logs, 0, count)
    for place in range(count):
        logs[place] -= total
    return count


@part_jit
def _terms(spans, row, at, level, span, terms):
    """The terms of a span's sum, in logs; on an odd level, of the arc span that the previous decision chose."""
    full, full_t, arc = spans
    h, m = span[0], span[1]
    first = min(h + 1, m)
    if level % 2 == 0:
        for place in range(abs(m - h)):
            terms[place] = arc[h, first + place] + full_t[m, first + place]
        return abs(m - h)
    k = first + row[at + level - 1]
    left, right = min(h, k), max(h, k)
    for place in range(right - left):
        terms[place] = full[left, left + place] + full[right, left + place + 1]
    return right - left


@part_jit
def draw(spans, row, at, level, n, stack, terms, stream):
    """Draw all decisions from a level on, and fill all heads; return the stream after its last draw."""
    height = replay(row, at, level, n, stack)
    while level < 2 * n:
        count = _terms(spans, row, at, level, stack[height - 1], terms)
        stream, place = choose_by_logs(terms, count, stream)
        row[at + level] = place
        level += 1
        if level % 2 == 0:
            height = _divide(row, at, level, stack, height)
    return stream


@part_jit
def derive(row, at, n, stack):
    """Fill the decisions that make the heads of a projective tree."""
    stack[0, 0], stack[0, 1] = 0, n
    height = 1
    for level in range(0, 2 * n, 2):
        h, m = stack[height - 1]
        k, step = m, 1 if m < h else -1
        while row[k] != h:
            k += step
        row[at + level] = k - min(h + 1, m)
        # Between an arc's ends, the words nearer to k descend from it.
        split = min(h, k)
        while split + 1 < max(h, k) and _descends(row, split + 1, min(h, k), max(h, k)):
            split += 1
        row[at + level + 1] = split - min(h, k)
        height = _divide(row, at, level + 2, stack, height)


@part_jit
def _descends(row, word, from_node, not_from):
    """Return the first of two nodes on a word's path to the root; one of them is on it."""
    while word not in (from_node, not_from):
        word = row[word]
    return word == from_node
