"""Projective trees with some known decisions: the probabilities of the next decision, and a random tree.

A projective tree has one derivation over the spans of ``treeparse.kernels.spans``, with 2n splits: so it is a row of 2n
*decisions*, each the place of a split in its range. After some decisions independent spans remain, which lie on a
stack: the next decision has the probability of its term in the sum over the splits of the topmost span, and nothing
more is computed. Weights are logs, where no tree is lost.
"""

from treeparse.kernels.compile import exact_kernel
from treeparse.kernels.logspace import log_sum
from treeparse.kernels.random import choose_by_logs
from treeparse.kernels.spans import ARC, FULL, arc_of, parts_of_span, push_halves, push_whole, splits
from treeparse.kernels.sums import spans_in_logs


@exact_kernel
def replay(shape, row, at, level, stack):
    """Fill the heads that the decisions before ``level`` determine; return how many spans are then on the stack.

    Decisions are in the row from ``at`` on, after the heads, of which that of node 0 is -1.
    """
    height = push_whole(shape, stack)
    for done in range(level):
        height = _decide(shape, row, row[at + done], stack, height)
    return height


@exact_kernel
def _decide(shape, row, place, stack, height):
    """Replace the topmost span by its halves, by the place of its split; fill the head that this determines."""
    number = stack[height - 1]
    begin, _ = splits(shape, number)
    head, dependent = arc_of(shape, number, begin + place)
    row[dependent] = head if dependent > 0 else -1
    return push_halves(shape, number, begin + place, stack, height - 1)


@exact_kernel
def next_logs(shape, scores, spans, row, at, level, stack, terms, logs):
    """Fill ``logs`` with the log probabilities of the decision of a level given earlier ones; return their number."""
    number = stack[replay(shape, row, at, level, stack) - 1]
    begin, end = splits(shape, number)
    spans_in_logs.log_terms(shape, *scores, number, spans, terms)
    total = log_sum(terms, 0, end - begin)
    for place in range(end - begin):
        logs[place] = terms[place] - total
    return end - begin


@exact_kernel
def draw(shape, scores, spans, row, at, level, stack, terms, stream):
    """Draw all decisions from a level on, and fill all heads; return the stream after its last draw."""
    height = replay(shape, row, at, level, stack)
    for later in range(level, 2 * shape.words):
        number = stack[height - 1]
        begin, end = splits(shape, number)
        spans_in_logs.log_terms(shape, *scores, number, spans, terms)
        stream, row[at + later] = choose_by_logs(terms, end - begin, stream)
        height = _decide(shape, row, row[at + later], stack, height)
    return stream


@exact_kernel
def derive(shape, row, at, stack):
    """Fill the decisions that make the heads of a projective tree."""
    height = push_whole(shape, stack)
    for level in range(2 * shape.words):
        number = stack[height - 1]
        begin, _ = splits(shape, number)
        row[at + level] = _split_of(number, row) - begin
        height = _decide(shape, row, row[at + level], stack, height)


@exact_kernel
def _split_of(number, row):
    """Return the split of a span that the heads in a row make."""
    kind, _, h, m = parts_of_span(number)
    step = 1 if m < h else -1
    if kind == FULL:  # at the last dependent
        k = m
        while row[k] != h:
            k += step
        return k
    if kind == ARC:  # at the dependent before
        k = m + step
        while k != h and row[k] != h:
            k += step
        return k
    split = h
    while split + 1 < m and _descends(row, split + 1, h, m):
        split += 1
    return split


@exact_kernel
def _descends(row, word, from_node, not_from):
    """Return the first of two nodes on a word's path to the root; one of them is on it."""
    while word not in (from_node, not_from):
        word = row[word]
    return word == from_node
