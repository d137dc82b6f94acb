"""Trees without replacement, one after the other, through a trie ([Unb] §5), whose masses are never subtracted.

A node of the trie is a *prefix*: known heads of the first words of an order that is fixed for the sentence. It has
the *mass* of all trees with that prefix, and the *remaining* mass without the trees drawn already. The next tree is
drawn by walking down, to every child with the probability of its remaining mass.

Nodes stay *closed* as long as the trees drawn under them have no more than half of their mass: the remaining mass is
then a difference that loses one bit, and trees are drawn from all trees of the prefix until one is new. Otherwise the
node is opened: its children are the possible heads of the next word, their masses are computed without subtraction
(``prefix``), and the remaining mass of the node is the sum of theirs. A drawn tree has no remaining mass, so an
exhausted node is known for certain.

The words whose heads are most certain come first: improbable trees part late, where little work is left. With
labels, the levels of the heads are followed by as many levels of the same words' labels.
"""

from typing import Any, NamedTuple

import numpy as np

from treeparse.kernels import FloatArray, IntArray
from treeparse.kernels.compile import exact_kernel
from treeparse.kernels.random import choose_by_logs, new_stream, uniforms
from treeparse.kernels.samples import prefix, projective_prefix
from treeparse.kernels.samples.trie import (
    HASH,
    LEVEL,
    MARKS,
    NEW_ENTRY,
    NODE_FACTS,
    NONE,
    OPENED,
    ROOT,
    SIZES,
    WAITING,
    add_entries,
    enlarged,
    finish_settling,
    hash_of,
    plant,
    push_opened,
    put,
    settle,
    share_trees,
    stands_under,
    walk_along,
    walk_down,
    write_prefix,
)
from treeparse.kernels.spans import ARCS, SentenceShape, cells_of, score_of_tree, three_parts
from treeparse.kernels.sums import elimination, inside_outside, spans_in_logs
from treeparse.kernels.threads import run_batch

GRAPHS = 8  # that are kept
LEAST_DOUBT = 1e-300  # probability of all other heads, whose log is taken
MAX_TRIES = 64  # by then a node is opened; as half of its mass is left, a new tree mostly comes at once
# They set streams apart from those of other draws by a seed.
TREE_SALT, KEY_SALT = np.uint64(0x7472696573), np.uint64(0x6B657973)


# Working memory: words in the order of the levels, the index in a row of each level's value (heads come first, then
# labels, then decisions), a stack of spans, the entry of each value, and a row; logs of values, and terms of a sum.
LINES = 5
ORDER, PLACES, STACK, ENTRY_OF, ROW = range(LINES)
LOGS, TERMS = range(2)


class TrieShape(NamedTuple):
    """The numbers of one item; the first three are its ``SentenceShape``."""

    words: int
    order: int
    single_root: bool
    head_levels: int  # in which the heads are settled: the number of words or, of decisions, twice that
    levels: int  # these and, with labels, the number of words
    decisions: int  # the index in a row of the first decision


def sample_distinct_trees(
    scores: FloatArray,
    lengths: IntArray,
    seeds: np.ndarray,
    count: int,
    *,
    single_root: bool,
    projective: bool = False,
    others: tuple[FloatArray, ...] = (),
    known: IntArray | None = None,
    label_logs: FloatArray | None = None,
    threads: int = 1,
) -> tuple[IntArray, FloatArray, FloatArray]:
    """Draw ``count`` different trees an item, each from all remaining trees, in the order in which they are drawn.

    Args:
        scores: ``(B, n+1, n+1)``.
        lengths: ``(B,)``.
        seeds: ``(B,)`` uint64. The first trees are the same however many are asked for.
        count: of trees.
        single_root: whether exactly one word hangs from the root.
        projective: whether trees must be projective.
        others: scores ``(B, n+1, n+1, n+1)`` of siblings, and after them of grandparents, of projective trees.
        known: ``(B, K, n+1)`` different trees that have been drawn already and come first; -1 where there are fewer.
        label_logs: ``(B, n+1, n+1, L)`` log probabilities of arcs' labels. Trees are then rows of n+1 heads and n+1
            labels, the known ones too, and differ where labels do.
        threads: how many threads to use at most.

    Returns:
        Trees ``(B, count, n+1)`` or ``(B, count, 2n+2)``, log probabilities ``(B, count)`` and keys ``(B, count)``,
        which descend; past the number of trees -1, -inf and -inf.
    """
    batch, size = scores.shape[:2]
    log_z, order = _sums_and_order(scores, others, lengths, projective, single_root=single_root, threads=threads)
    width = size if label_logs is None else 2 * size
    rows = np.full((batch, count, width + 2 * (size - 1) * projective + MARKS), -1)
    if known is not None:
        rows[:, : known.shape[1], :width] = known[:, :count]
    labels = np.empty((batch, 1, 1, 0)) if label_logs is None else label_logs
    parts = three_parts((scores, *others))[1:] if projective else ()
    log_probs, left = (np.full((batch, count), -np.inf) for _ in range(2))
    kernel, options = _sample_projective if projective else _sample_nonprojective, (ARCS + len(others), single_root)
    arguments, results = (*parts, scores, *options, labels, log_z, order, seeds ^ TREE_SALT), (rows, log_probs, left)
    run_batch(kernel, lambda n: n**4 / 12 + 10.0 * count * n**2, lengths, *arguments, *results, threads=threads)
    return np.ascontiguousarray(rows[:, :, :width]), log_probs, keys_of(left, seeds)


def _sums_and_order(
    scores: FloatArray, others: tuple[FloatArray, ...], lengths: IntArray, projective: bool, **options: Any
) -> tuple[FloatArray, IntArray]:
    """Return the log partition ``(B,)``, and words in the order of the trie's levels ``(B, n+1)``."""
    if projective:
        order = np.tile(np.roll(np.arange(scores.shape[1]), -1), (len(scores), 1))
        return inside_outside.log_partition(scores, *others, lengths, **options), order
    log_z, marginals = elimination.log_partition_and_marginals(scores, lengths, **options)
    return log_z, _words_by_certainty(marginals, lengths)


def keys_of(left: FloatArray, seeds: np.ndarray) -> FloatArray:
    """Return keys ``(B, K)`` of trees, from the log mass ``(B, K)`` remaining before each draw, -inf past the last.

    exp(-key) grows from tree to tree by an exponential variable whose rate is that mass (Kool et al. 2019, *Stochastic
    beams and where to find them*): so keys are the log probabilities of all trees plus Gumbel noise, in their order.
    """
    draws = uniforms(seeds, left.shape[1], 1, salt=int(KEY_SALT))[..., 0]
    return -np.logaddexp.accumulate(np.log(-np.log(draws)) - left, 1)


def _words_by_certainty(marginals: FloatArray, lengths: IntArray) -> IntArray:
    """Return the words of every item ``(B, n+1)``, most probable best heads first; other nodes follow.

    Words of nearly equal certainty stay in order, so that the last bits of scores change no tree.
    """
    others = marginals.copy()  # than the best heads
    np.put_along_axis(others, marginals.argmax(1)[:, None], 0.0, 1)
    doubt = np.log10(np.maximum(others.sum(1), LEAST_DOUBT)).round(1)
    doubt[:, 0] = 1.0
    doubt[np.arange(doubt.shape[1]) > lengths[:, None]] = 1.0
    return doubt.argsort(1, kind="stable")


@exact_kernel
def _sample_projective(start, stop, lengths, siblings, grandparents, *arguments):
    _sample(start, stop, lengths, None, siblings, grandparents, *arguments)


@exact_kernel
def _sample_nonprojective(start, stop, lengths, arcs, *arguments):
    _sample(start, stop, lengths, prefix.new_graphs(GRAPHS, arcs.shape[1]), None, None, arcs, *arguments)


@exact_kernel
def _sample(
    start,
    stop,
    lengths,
    graphs,
    siblings,
    grandparents,
    arcs,
    order,
    single_root,
    label_logs,
    log_z,
    word_order,
    seeds,
    rows,
    log_probs,
    left,
):
    """Draw the trees of all items; graphs are None for projective trees, and siblings and grandparents for others."""
    size, labels, (count, width) = arcs.shape[1], label_logs.shape[3], rows.shape[1:]
    options, capacity = max(size, labels), count * width + 2  # at most: a tree stands under a node of every level
    numbers, logs = np.empty((LINES, max(options, width, 4 * size)), np.int64), np.empty((2, options))
    nodes, masses = np.empty((capacity, NODE_FACTS), np.int64), np.empty((capacity, 2))
    entries, remaining = np.empty((count * options, 2), np.int64), np.empty(count * options)
    decisions = 2 * size if labels > 0 else size
    for b in range(start, stop):
        n = lengths[b]
        if log_z[b] == -np.inf:
            continue
        is_projective = graphs is None
        head_levels = 2 * n if is_projective else n
        levels = head_levels + (n if labels > 0 else 0)
        shape = TrieShape(n, order, single_root, head_levels, levels, decisions)
        for index in range(size):
            numbers[ORDER, index] = word_order[b, index]
        for level in range(head_levels):
            numbers[PLACES, level] = decisions + level if is_projective else word_order[b, level]
        for level in range(head_levels, levels):
            numbers[PLACES, level] = size + word_order[b, level - head_levels]
        plant(nodes, masses, entries, remaining)
        item = arcs[b], label_logs[b], log_z[b], seeds[b], rows[b], log_probs[b], left[b]
        memory = nodes, masses, numbers, logs, entries, remaining
        if siblings is not None:
            sums, parts = np.empty(cells_of(shape)), (arcs[b], siblings[b], grandparents[b])
            spans_in_logs.inside(SentenceShape(n, order, single_root), *parts, sums, logs[TERMS])
            entries, remaining = _draw_trees(shape, None, siblings[b], grandparents[b], sums, *item, *memory)
        if graphs is not None:
            graphs.facts[:] = prefix.NOBODY
            entries, remaining = _draw_trees(shape, graphs, None, None, None, *item, *memory)


@exact_kernel
def _draw_trees(
    shape,
    graphs,
    siblings,
    grandparents,
    sums,
    arcs,
    label_logs,
    log_z,
    seed,
    rows,
    log_probs,
    left,
    nodes,
    masses,
    numbers,
    logs,
    entries,
    remaining,
):
    """Fill the trees, their log probabilities, and the masses remaining before each draw; return the entries.

    If no new tree is drawn, the node must be opened. There may be no tree at all: the rounding of large scores may
    leave mass to nodes whose trees are all drawn.
    """
    source, places, shares = (graphs, siblings, grandparents, sums), numbers[PLACES], logs[LOGS]
    for tree in range(len(left)):
        left[tree] = remaining[0]
        row, stream, is_drawn = rows[tree], new_stream(seed, tree), False
        while not is_drawn and remaining[0] > -np.inf:
            if shape.words > 0 and row[1] >= 0:  # a known tree
                if graphs is None:
                    projective_prefix.derive(shape, row, shape.decisions, numbers[STACK])
                node, is_drawn = walk_along(nodes, masses, entries, remaining, places, row), True
            else:
                stream, node = walk_down(nodes, masses, entries, remaining, places, row, shares, stream)
                tries = 0
                while not is_drawn and tries < MAX_TRIES:
                    level = nodes[node, LEVEL]
                    stream = _complete(shape, *source, arcs, label_logs, node, level, row, numbers, logs, stream)
                    is_drawn = not stands_under(rows, nodes, node, row)
                    tries += 1
            if is_drawn:
                rows[tree, HASH] = hash_of(row)
                log_probs[tree] = min(_score(shape, arcs, siblings, grandparents, label_logs, row) - log_z, 0.0)
                put(rows, log_probs, nodes, masses, node, tree)
            else:
                row[:] = -1
            nodes[ROOT, WAITING], nodes[SIZES, WAITING], nodes[SIZES, OPENED] = node, ROOT + 1, ROOT
            opened = NONE if is_drawn else node
            while nodes[SIZES, WAITING] > ROOT:
                nodes[SIZES, WAITING] -= 1
                waiting = nodes[nodes[SIZES, WAITING], WAITING]
                if settle(nodes, masses, remaining, waiting, shape.levels, waiting == opened):
                    continue
                if nodes[SIZES, NEW_ENTRY] + len(shares) > len(remaining):
                    entries, remaining = enlarged(entries, remaining, nodes[SIZES, NEW_ENTRY], len(shares))
                write_prefix(nodes, entries, places, waiting, numbers[ROW])
                level = nodes[waiting, LEVEL]
                count = _next_logs(shape, *source, arcs, label_logs, waiting, level, numbers, logs)
                add_entries(nodes, masses, entries, remaining, waiting, shares, count, numbers[ENTRY_OF])
                share_trees(rows, log_probs, nodes, masses, entries, remaining, waiting, places, numbers[ENTRY_OF])
                push_opened(nodes, entries, waiting)
            finish_settling(nodes, remaining, node)
        if not is_drawn:
            left[tree] = -np.inf
            break
    return entries, remaining


@exact_kernel
def _score(shape, arcs, siblings, grandparents, label_logs, row):
    """Return the summed scores of a tree's parts and labels."""
    total, size = 0.0, len(arcs)
    if siblings is None:
        for j in range(1, shape.words + 1):
            total += arcs[row[j], j]
    else:
        total = score_of_tree(shape, arcs, siblings, grandparents, row)
    for j in range(1, shape.words + 1 if shape.levels > shape.head_levels else 1):
        total += label_logs[row[j], j, row[size + j]]
    return total


@exact_kernel
def _complete(shape, graphs, siblings, grandparents, sums, arcs, label_logs, node, level, row, numbers, logs, stream):
    """Draw all heads and labels from a node's level on; return the stream after its last draw."""
    if siblings is not None:
        parts, begin = (arcs, siblings, grandparents), min(level, shape.head_levels)
        memory = numbers[STACK], logs[TERMS]
        stream = projective_prefix.draw(shape, parts, sums, row, shape.decisions, begin, *memory, stream)
    if graphs is not None and level < shape.words:
        stream = prefix.draw(graphs, node, row, level, shape, numbers[ORDER], arcs, stream)
    for later in range(max(shape.head_levels, level), shape.levels):
        word = numbers[ORDER, later - shape.head_levels]
        for label in range(label_logs.shape[2]):
            logs[LOGS, label] = label_logs[row[word], word, label]
        stream, label = choose_by_logs(logs[LOGS], label_logs.shape[2], stream)
        row[numbers[PLACES, later]] = label
    return stream


@exact_kernel
def _next_logs(shape, graphs, siblings, grandparents, sums, arcs, label_logs, node, level, numbers, logs):
    """Fill the log probabilities of the values of a node's level given its prefix; return their number."""
    row, stack, values = numbers[ROW], numbers[STACK], logs[LOGS]
    if level >= shape.head_levels:
        if graphs is None:
            projective_prefix.replay(shape, row, shape.decisions, shape.head_levels, stack)
        word = numbers[ORDER, level - shape.head_levels]
        for label in range(label_logs.shape[2]):
            values[label] = label_logs[row[word], word, label]
        return label_logs.shape[2]
    count = shape.words + 1
    if siblings is not None:
        parts, memory = (arcs, siblings, grandparents), (stack, logs[TERMS])
        count = projective_prefix.next_logs(shape, parts, sums, row, shape.decisions, level, *memory, values)
    if graphs is not None:
        prefix.next_heads(graphs, node, row, level, shape, numbers[ORDER], arcs, values)
    return count
