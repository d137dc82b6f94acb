"""Exact samples of projective trees with scores of siblings, and of grandparents.

The spans are filled once an item; a tree then takes O(n^2) at worst. Plain weights are used where they are safe, logs
otherwise.
"""

import numpy as np

from treeparse.kernels.arrays import AnyFloatArray, FloatArray, IntArray
from treeparse.kernels.compile import exact_kernel
from treeparse.kernels.random import new_stream
from treeparse.kernels.samples.spans import draw_tree
from treeparse.kernels.spans import GRANDPARENTS, KINDS, SIBLINGS, ScoredSentence, cell, cells_of, whole
from treeparse.kernels.sums import grandparents as with_grandparents
from treeparse.kernels.sums import siblings as with_siblings
from treeparse.kernels.sums.in_logs import spans as spans_in_logs
from treeparse.kernels.sums.inside_outside import SAFE
from treeparse.kernels.threads import run_batch


def sample_trees(
    arcs: FloatArray,
    others: tuple[AnyFloatArray, ...],
    lengths: IntArray,
    seeds: np.ndarray,
    count: int,
    *,
    single_root: bool,
    threads: int = 1,
) -> IntArray:
    """Draw heads ``(B, count, n+1)`` of trees with replacement; -1 where an item has no tree.

    Scores are ``(B, n+1, n+1)`` of arcs, and ``(B, n+1, n+1, n+1)`` of siblings and of grandparents, if any.
    ``seeds`` ``(B,)`` uint64: the s-th tree of an item depends on its scores, its seed and s alone.
    """
    heads = np.full((len(lengths), count, arcs.shape[1]), -1)
    siblings, *grandparents = (part.astype(np.float64, copy=False) for part in others)
    order = GRANDPARENTS if grandparents else SIBLINGS
    last = grandparents[0] if grandparents else np.empty((len(arcs), 0, 0, 0))
    arguments = lengths, order, arcs, siblings, last, seeds, single_root, heads
    run_batch(_sample, lambda n: 2 * n ** (order + 1) + count * n**2, *arguments, threads=threads)
    return heads


@exact_kernel
def _sample(start, stop, lengths, order, arcs, siblings, grandparents, seeds, single_root, heads):
    size = arcs.shape[1]
    memory = with_siblings.new_memory(size - 1 if order == SIBLINGS else 0)
    more_memory = with_grandparents.new_memory(size - 1 if order == GRANDPARENTS else 0)
    stack, terms = np.empty(4 * size, np.int64), np.empty((2, size))
    for b in range(start, stop):
        parts = arcs[b], siblings[b], grandparents[b], arcs[b, :0]
        sentence = ScoredSentence(lengths[b], order, single_root, *parts)
        logs = np.empty((2, cells_of(sentence)))
        is_safe = _fill(sentence, memory, logs) if order == SIBLINGS else _fill_all(sentence, more_memory, logs)
        if not is_safe:
            spans_in_logs.inside(sentence, sentence, logs, np.empty(0), terms)
            if logs[0, cell(sentence, whole(sentence))] == -np.inf:
                continue
        for sample in range(heads.shape[1]):
            draw_tree(sentence, logs, new_stream(seeds[b], sample), stack, terms, heads[b, sample])


@exact_kernel
def _fill(sentence, memory, logs):
    """Fill the logs of all spans, up to what all splits of a span share; return whether plain weights are safe."""
    n, width = sentence.words, with_siblings.row_width(sentence.words)
    fixed = n, sentence.single_root
    if not with_siblings.load(sentence.arcs, sentence.siblings, *fixed, memory) > -np.inf:
        return False
    weights = with_siblings.weights_of(memory, n)
    if not with_siblings.inside(memory.charts, weights, memory.packed, *fixed) > SAFE:
        return False
    for row in range(KINDS * (n + 1)):
        for m in range(n + 1):
            here = row * (n + 1) + m
            logs[0, here], logs[1, here] = np.log(memory.charts[row * width + m]), 0.0
    return True


@exact_kernel
def _fill_all(sentence, memory, logs):
    """Do the same with grandparents."""
    fixed = sentence.words, sentence.single_root
    scale = with_grandparents.load(sentence.arcs, sentence.siblings, sentence.grandparents, *fixed, memory)
    if not scale > -np.inf:
        return False
    weights = with_grandparents.weights_of(memory, sentence.words), memory.siblings, memory.grandparents
    if not with_grandparents.inside(memory.charts, *weights, memory.allowed, *fixed) > SAFE:
        return False
    for here in range(logs.shape[1]):
        logs[0, here], logs[1, here] = np.log(memory.charts[here]), 0.0
    return True
