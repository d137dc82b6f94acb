"""Exact samples of projective trees from the spans of ``treeparse.kernels.spans``, whose summed weights are known.

The weight of a span is the sum over its splits. A split is drawn in proportion to its term, and so on within its halves
(Goodman 1998). A tree has one derivation, so trees are drawn in proportion to their weight.
"""

from treeparse.kernels.compile import exact_kernel
from treeparse.kernels.random import choose_by_logs
from treeparse.kernels.spans import arc_of, push_halves, push_whole, splits
from treeparse.kernels.sums.in_logs.spans import log_terms


@exact_kernel
def draw_tree(sentence, logs, stream, stack, terms, heads):
    """Draw the heads of one tree; ``logs`` may lack what all splits of a span share."""
    depth = push_whole(sentence, stack)
    while depth > 0:
        depth -= 1
        number = stack[depth]
        log_terms(sentence, number, logs, terms)
        begin, end = splits(sentence, number)
        stream, place = choose_by_logs(terms[0], end - begin, stream)
        head, dependent = arc_of(sentence, number, begin + place)
        if dependent > 0:
            heads[dependent] = head
        depth = push_halves(sentence, number, begin + place, stack, depth)
    return stream
