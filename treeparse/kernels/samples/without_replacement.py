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

from treeparse.kernels.arrays import FloatArray, IntArray
from treeparse.kernels.compile import exact_kernel
from treeparse.kernels.random import choose_by_logs, new_stream, uniforms
from treeparse.kernels.samples import prefix, projective_prefix
from treeparse.kernels.samples.trie import (
    BEGIN,
    COUNT,
    DRAWN,
    ENTRIES,
    ENTRY,
    HASH,
    LEVEL,
    MASS,
    MUST_OPEN,
    NODE,
    NONE,
    OLDER,
    PARENT,
    SETTLED,
    TREE,
    VALUE,
    WAITING,
    Item,
    begin_settling,
    child_at,
    emptied,
    finish_settling,
    has_room,
    hash_of,
    new_trie,
    push_opened,
    put,
    stands_under,
    walk_along,
    walk_down,
    with_room,
)
from treeparse.kernels.spans import ARCS, ScoredSentence, score_of_tree
from treeparse.kernels.sums import elimination, inside_outside
from treeparse.kernels.threads import run_batch

GRAPHS = 8  # that are kept
LEAST_DOUBT = 1e-300  # probability of all other heads, whose log is taken
HALF = -float(np.log(2.0))
MAX_TRIES = 64  # by then a node is opened; as half of its mass is left, a new tree mostly comes at once
# They set streams apart from those of other draws by a seed.
TREE_SALT, KEY_SALT = np.uint64(0x7472696573), np.uint64(0x6B657973)


class Items(NamedTuple):
    """The scores, seeds and options of all items."""

    scores: FloatArray  # (B, n+1, n+1)
    siblings: FloatArray  # (B, n+1, n+1, n+1) or, like the next one, (B, 0, 0, 0)
    grandparents: FloatArray
    order_of_parts: int  # as of a ``ScoredSentence``
    label_logs: FloatArray  # (B, n+1, n+1, L) log probabilities of arcs' labels; L = 0 without labels
    single_root: bool
    projective: bool
    log_z: FloatArray  # (B,) -inf where there is no tree
    order: IntArray  # (B, n+1) words, the most certain first
    seeds: np.ndarray  # (B,) uint64


class Drawn(NamedTuple):
    """The drawn trees of all items, or of one without the first axis."""

    rows: IntArray  # (B, K, W) heads, labels and decisions, as far as there are any; -1 past the number of trees
    log_probs: FloatArray  # (B, K)
    left: FloatArray  # (B, K) log of the mass that was left before


class TrieMemory(NamedTuple):
    """The graphs under the most recent prefixes, and working memory."""

    graphs: prefix.Graphs
    options: FloatArray  # (M,)
    entry_of: IntArray  # (M,)
    row: IntArray  # a tree
    stack: IntArray  # (4n+4,)
    terms: FloatArray  # (n+1,)


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
    rows = np.full((batch, count, width + 2 * (size - 1) * projective), -1)
    if known is not None:
        rows[:, : known.shape[1], :width] = known[:, :count]
    labels, nothing = np.empty((batch, 1, 1, 0)) if label_logs is None else label_logs, np.empty((batch, 0, 0, 0))
    of_siblings, of_grandparents = (*(part.astype(np.float64) for part in others), nothing, nothing)[:2]
    parts, seeds_of_trees = ARCS + len(others), seeds ^ TREE_SALT
    options = single_root, projective, log_z, order, seeds_of_trees
    items = Items(scores, of_siblings, of_grandparents, parts, labels, *options)
    log_probs, left = (np.full((batch, count), -np.inf) for _ in range(2))
    drawn = Drawn(rows, log_probs, left)
    run_batch(_sample, lambda n: n**4 / 12 + 10.0 * count * n**2, lengths, items, drawn, threads=threads)
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
def _sample(start, stop, lengths, items, drawn):
    size, labels = items.scores.shape[1], items.label_logs.shape[3]
    options = max(size, labels)
    memory = TrieMemory(
        prefix.new_graphs(GRAPHS, size),
        np.empty(options),
        np.empty(options, np.int64),
        np.empty(drawn.rows.shape[2], np.int64),
        np.empty(4 * size, np.int64),
        np.empty(size),
    )
    trie = new_trie(drawn.left.shape[1], drawn.rows.shape[2])  # a row has more places than levels
    for b in range(start, stop):
        if items.log_z[b] > -np.inf:
            memory.graphs.facts[:] = prefix.NOBODY
            item = _item_of(b, lengths[b], items)
            trie = emptied(trie, drawn.rows[b], drawn.log_probs[b])
            trie = _draw_trees(trie, item, items.log_z[b], items.seeds[b], memory, drawn.left[b])


@exact_kernel
def _item_of(b, n, items):
    """Return the constants of one item."""
    scores, labels, order = items.scores[b], items.label_logs[b], items.order[b]
    single_root, projective = items.single_root, items.projective
    head_levels, label_levels = 2 * n if projective else n, n if labels.shape[2] > 0 else 0
    levels, decisions = head_levels + label_levels, 2 * len(order) if label_levels else len(order)
    places = np.empty(levels, np.int64)
    for level in range(head_levels):
        places[level] = decisions + level if projective else order[level]
    for level in range(label_levels):
        places[head_levels + level] = len(order) + order[level]
    parts = scores, items.siblings[b], items.grandparents[b]
    sentence = ScoredSentence(n, items.order_of_parts, single_root, *parts)
    spans = projective_prefix.inside(sentence) if projective else np.empty(0)
    return Item(
        n, head_levels, levels, single_root, projective, order, places, decisions, sentence, scores, labels, spans
    )


@exact_kernel
def _draw_trees(trie, item, log_z, seed, memory, left):
    """Fill the trees, their log probabilities, and the masses remaining before each draw; return the trie."""
    for tree in range(len(left)):
        left[tree] = trie.remaining[0]
        stream, is_drawn = new_stream(seed, tree), False
        while not is_drawn and trie.remaining[0] > -np.inf:
            stream, is_drawn = _draw_tree(trie, item, log_z, memory, tree, stream)
            while not _settle(trie, item, memory):
                trie = with_room(trie, len(memory.options))
        if not is_drawn:
            left[tree] = -np.inf
            break
    return trie


@exact_kernel
def _draw_tree(trie, item, log_z, memory, tree, stream):
    """Draw a new tree, unless it is known, and push its closed node, whose remaining mass is to be computed.

    Returns the stream after its draws, and whether there is a tree. If not, the node must be opened. There may be none
    at all: the rounding of large scores may leave mass to nodes whose trees are all drawn.
    """
    row = trie.rows[tree]
    is_drawn = item.words > 0 and row[1] >= 0
    if is_drawn:
        if item.projective:
            projective_prefix.derive(item.sentence, row, item.decisions, memory.stack)
        node = walk_along(trie, item.places, row)
    else:
        stream, node = walk_down(trie, item.places, row, memory.options, stream)
        for _ in range(MAX_TRIES):
            stream = _complete(node, row, trie.nodes[node, LEVEL], item, memory, stream)
            is_drawn = not stands_under(trie, node, row)
            if is_drawn:
                break
    if is_drawn:
        trie.marks[tree, HASH] = hash_of(row)
        trie.log_probs[tree] = min(_score(row, item) - log_z, 0.0)
        put(trie, node, tree)
    else:
        row[:] = -1
    begin_settling(trie, node, not is_drawn)
    return stream, is_drawn


@exact_kernel
def _score(row, item):
    total, size = score_of_tree(item.sentence, row), len(item.scores)
    if item.levels > item.head_levels:
        for j in range(1, item.words + 1):
            total += item.label_logs[row[j], j, row[size + j]]
    return total


@exact_kernel
def _complete(node, row, level, item, memory, stream):
    """Draw all heads and labels from a node's level on; return the stream after its last draw."""
    options = memory.options
    if item.projective:
        begin = item.decisions, min(level, item.head_levels)
        stream = projective_prefix.draw(item.sentence, item.spans, row, *begin, memory.stack, memory.terms, stream)
    elif level < item.words:
        graph = prefix.graph_under(memory.graphs, node, row, level, item)
        stream = prefix.draw(memory.graphs, graph, row, level, item, stream)
    for later in range(max(item.head_levels, level), item.levels):
        word = item.order[later - item.head_levels]
        for label in range(item.label_logs.shape[2]):
            options[label] = item.label_logs[row[word], word, label]
        stream, label = choose_by_logs(options, item.label_logs.shape[2], stream)
        row[item.places[later]] = label
    return stream


@exact_kernel
def _settle(trie, item, memory):
    """Compute the remaining masses of waiting nodes and of nodes above; open nodes with little left.

    Returns whether there was room for that; if not, call it again with more.
    """
    sizes, stacks = trie.sizes, trie.stacks
    while sizes[WAITING] > 0:
        node = stacks[sizes[WAITING] - 1, 0]
        mass, drawn = trie.masses[node, MASS], trie.masses[node, DRAWN]
        must_open = sizes[MUST_OPEN] and node == sizes[SETTLED]
        if trie.nodes[node, LEVEL] == item.levels:
            trie.remaining[trie.nodes[node, ENTRY]] = -np.inf
            sizes[WAITING] -= 1
        elif drawn - mass <= HALF and not must_open:
            trie.remaining[trie.nodes[node, ENTRY]] = mass + np.log1p(-np.exp(drawn - mass))
            sizes[WAITING] -= 1
        elif has_room(trie, len(memory.options)):
            sizes[WAITING] -= 1
            _open(trie, item, memory, node)
        else:
            return False
    finish_settling(trie)
    return True


@exact_kernel
def _open(trie, item, memory, node):
    """Make the entries of a closed node, and distribute the trees drawn under it to nodes that wait."""
    facts, level = trie.nodes[node], trie.nodes[node, LEVEL]
    logs, entry_of = memory.options, memory.entry_of
    begin, count = trie.sizes[ENTRIES], 0
    for value in range(_next_logs(trie, item, memory, node, logs)):
        if logs[value] > -np.inf:
            entry = entry_of[value] = begin + count
            trie.entries[entry, VALUE], trie.entries[entry, NODE] = value, NONE
            trie.remaining[entry] = trie.masses[node, MASS] + logs[value]
            count += 1
    trie.sizes[ENTRIES] += count
    facts[BEGIN], facts[COUNT] = begin, count
    tree = facts[TREE]
    while tree >= 0:
        older = trie.marks[tree, OLDER]
        entry = entry_of[trie.rows[tree, item.places[level]]]
        put(trie, child_at(trie, node, entry), tree)
        tree = older
    push_opened(trie, node)


@exact_kernel
def _next_logs(trie, item, memory, node, logs):
    """Fill the log probabilities of the values of a node's level given its prefix; return their number."""
    level, row = trie.nodes[node, LEVEL], memory.row
    nodes, entries, places = trie.nodes, trie.entries, item.places
    above = node
    while above > 0:
        row[places[nodes[above, LEVEL] - 1]] = entries[nodes[above, ENTRY], VALUE]
        above = nodes[above, PARENT]
    if level >= item.head_levels:
        if item.projective:
            projective_prefix.replay(item.sentence, row, item.decisions, item.head_levels, memory.stack)
        word = item.order[level - item.head_levels]
        labels = item.label_logs.shape[2]
        for label in range(labels):
            logs[label] = item.label_logs[row[word], word, label]
        return labels
    if item.projective:
        at, sentence, stack = item.decisions, item.sentence, memory.stack
        return projective_prefix.next_logs(sentence, item.spans, row, at, level, stack, memory.terms, logs)
    graph = prefix.graph_under(memory.graphs, node, row, level, item)
    prefix.next_heads(memory.graphs, graph, item.order[level], item, logs)
    return item.words + 1
