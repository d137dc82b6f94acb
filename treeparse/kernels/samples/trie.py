"""A trie of the trees drawn from one sentence: its nodes, the mass that remains under them, and paths.

``without_replacement`` says what nodes mean.
"""

from typing import NamedTuple

import numpy as np

from treeparse.kernels.arrays import FloatArray, IntArray
from treeparse.kernels.compile import exact_kernel
from treeparse.kernels.logspace import NEGLIGIBLE, log_add
from treeparse.kernels.random import choose_by_logs
from treeparse.kernels.spans import ScoredSentence

# Of a node: the entry of its parent that leads here, its parent, its level, where its entries begin and how many there
# are (0: it is closed), and the tree drawn last under it while it was closed.
NODE_FACTS = 6
ENTRY, PARENT, LEVEL, BEGIN, COUNT, TREE = range(NODE_FACTS)
MASS, DRAWN = range(2)  # of a node, in logs
VALUE, NODE = range(2)  # of an entry: the next word's head or label, and the node, or NONE where none was drawn yet
OLDER, HASH = range(2)  # of a tree: that drawn before it under the same closed node, and what tells most trees apart
# What is counted: nodes, entries, and nodes on the two stacks of those that wait to be settled and of those that were
# opened meanwhile; then the node from which this began, and whether it must be opened.
SIZES = 6
NODES, ENTRIES, WAITING, OPENED, SETTLED, MUST_OPEN = range(SIZES)
NONE = -1  # no node, no tree
HASH_FACTOR = 0x100000001B3  # of Fowler, Noll and Vo's hash FNV-1a


class Trie(NamedTuple):
    """The trie of one item, and the trees drawn so far.

    Inner loops take its arrays out first, because taking one from a tuple counts references.
    """

    rows: IntArray  # (K, n+1) heads or, with labels, (K, 2n+2) heads and labels
    log_probs: FloatArray  # (K,)
    marks: IntArray  # (K, 2)
    nodes: IntArray  # (N, 6)
    masses: FloatArray  # (N, 2)
    stacks: IntArray  # (N, 2) nodes that wait to be settled, and nodes that were opened
    entries: IntArray  # (E, 2)
    remaining: FloatArray  # (E,) log of what remains under an entry
    sizes: IntArray  # (6,)


class Item(NamedTuple):
    """The constants of one item."""

    words: int
    head_levels: int  # in which the heads are settled: the number of words or, of decisions, twice that
    levels: int  # these and, with labels, the number of words
    single_root: bool
    projective: bool
    order: IntArray  # (n+1,) words, the most certain first
    # The index in a row at which the value of every level is: heads come first, then labels, then decisions, which
    # begin at ``decisions``.
    places: IntArray
    decisions: int
    sentence: ScoredSentence
    scores: FloatArray  # (n+1, n+1)
    label_logs: FloatArray  # (n+1, n+1, L) log probabilities of an arc's labels
    spans: FloatArray  # (C,) logs of the sentence's spans; empty for trees that need not be projective


@exact_kernel
def new_trie(trees, levels):
    """Return a trie with capacity for ``trees`` trees of ``levels`` levels, and for few entries."""
    nodes = trees * levels + 1  # at most: a tree stands under every one of them
    return Trie(
        np.empty((0, 0), np.int64),
        np.empty(0),
        np.empty((trees, 2), np.int64),
        np.empty((nodes, NODE_FACTS), np.int64),
        np.empty((nodes, 2)),
        np.empty((nodes, 2), np.int64),
        np.empty((1, 2), np.int64),
        np.empty(1),
        np.empty(SIZES, np.int64),
    )


@exact_kernel
def emptied(trie, rows, log_probs):
    """Empty the trie for another item: a closed root, with entry 0 to itself."""
    trie.sizes[NODES], trie.sizes[ENTRIES], trie.remaining[0] = 0, 1, 0.0
    _add_node(trie, 0, NONE, 0)
    return Trie(
        rows,
        log_probs,
        trie.marks,
        trie.nodes,
        trie.masses,
        trie.stacks,
        trie.entries,
        trie.remaining,
        trie.sizes,
    )


@exact_kernel
def _add_node(trie, entry, parent, level):
    """Add a closed node without drawn trees, at an entry that has the remaining mass."""
    node = trie.sizes[NODES]
    trie.sizes[NODES] += 1
    trie.entries[entry, NODE] = node
    facts = trie.nodes[node]
    facts[ENTRY], facts[PARENT], facts[LEVEL], facts[COUNT], facts[TREE] = entry, parent, level, 0, NONE
    trie.masses[node, MASS], trie.masses[node, DRAWN] = trie.remaining[entry], -np.inf
    return node


@exact_kernel
def has_room(trie, more):
    """Return whether the trie has capacity for ``more`` entries."""
    return trie.sizes[ENTRIES] + more <= len(trie.remaining)


@exact_kernel
def with_room(trie, more):
    """Return the trie with at least twice the capacity, enough for ``more`` entries."""
    used = trie.sizes[ENTRIES]
    entries, remaining = np.empty((2 * (used + more), 2), np.int64), np.empty(2 * (used + more))
    for entry in range(used):  # slices take numba seconds to compile, for the sake of an error message
        entries[entry, VALUE], entries[entry, NODE] = trie.entries[entry, VALUE], trie.entries[entry, NODE]
        remaining[entry] = trie.remaining[entry]
    return Trie(
        trie.rows,
        trie.log_probs,
        trie.marks,
        trie.nodes,
        trie.masses,
        trie.stacks,
        entries,
        remaining,
        trie.sizes,
    )


@exact_kernel
def walk_down(trie, places, row, shares, stream):
    """Walk from the root to a closed node in proportion to remaining mass, and fill the row."""
    node, nodes, entries, remaining = 0, trie.nodes, trie.entries, trie.remaining
    while nodes[node, COUNT] > 0:
        begin, count = nodes[node, BEGIN], nodes[node, COUNT]
        for child in range(count):
            shares[child] = remaining[begin + child]
        stream, child = choose_by_logs(shares, count, stream)
        entry = begin + child
        row[places[nodes[node, LEVEL]]] = entries[entry, VALUE]
        node = entries[entry, NODE] if entries[entry, NODE] >= 0 else child_at(trie, node, entry)
    return stream, node


@exact_kernel
def walk_along(trie, places, row):
    """Walk from the root to a closed node along a known tree."""
    node, nodes, entries = 0, trie.nodes, trie.entries
    while nodes[node, COUNT] > 0:
        entry, value = nodes[node, BEGIN], row[places[nodes[node, LEVEL]]]
        while entries[entry, VALUE] != value:
            entry += 1
        node = entries[entry, NODE] if entries[entry, NODE] >= 0 else child_at(trie, node, entry)
    return node


@exact_kernel
def child_at(trie, node, entry):
    """Return the node at an entry of a node; it is made if nothing was drawn under it yet."""
    child = trie.entries[entry, NODE]
    return child if child >= 0 else _add_node(trie, entry, node, trie.nodes[node, LEVEL] + 1)


@exact_kernel
def put(trie, node, tree):
    """Add a drawn tree under a closed node."""
    trie.marks[tree, OLDER] = trie.nodes[node, TREE]
    trie.nodes[node, TREE] = tree
    trie.masses[node, DRAWN] = log_add(trie.masses[node, DRAWN], trie.log_probs[tree])


@exact_kernel
def begin_settling(trie, node, must_open):
    """Push a closed node, whose remaining mass is to be computed."""
    sizes = trie.sizes
    trie.stacks[0, 0], sizes[WAITING], sizes[OPENED] = node, 1, 0
    sizes[SETTLED], sizes[MUST_OPEN] = node, must_open


@exact_kernel
def push_opened(trie, node):
    """Push an opened node, whose children's remaining masses are to be computed."""
    sizes, stacks = trie.sizes, trie.stacks
    stacks[sizes[OPENED], 1] = node
    sizes[OPENED] += 1
    begin, end = trie.nodes[node, BEGIN], trie.nodes[node, BEGIN] + trie.nodes[node, COUNT]
    for entry in range(begin, end):
        if trie.entries[entry, NODE] >= 0:
            stacks[sizes[WAITING], 0] = trie.entries[entry, NODE]
            sizes[WAITING] += 1


@exact_kernel
def finish_settling(trie):
    """Sum the remaining masses of the opened nodes, and of all nodes above."""
    nodes, remaining, stacks = trie.nodes, trie.remaining, trie.stacks
    for place in range(trie.sizes[OPENED] - 1, -1, -1):  # children were opened after their parents
        _sum_up(stacks[place, 1], nodes, remaining)
    node = nodes[trie.sizes[SETTLED], PARENT]
    while node >= 0:
        _sum_up(node, nodes, remaining)
        node = nodes[node, PARENT]


@exact_kernel
def _sum_up(node, nodes, remaining):
    """Set the remaining mass of an open node to the sum of its children's."""
    begin, end = nodes[node, BEGIN], nodes[node, BEGIN] + nodes[node, COUNT]
    top, total = -np.inf, 0.0
    for entry in range(begin, end):
        top = max(top, remaining[entry])
    for entry in range(begin, end):
        share = remaining[entry] - top
        if share > NEGLIGIBLE:
            total += np.exp(share)
    remaining[nodes[node, ENTRY]] = top + np.log(total) if top > -np.inf else top


@exact_kernel
def hash_of(row):
    """Return a hash of a row."""
    value = 0
    for place in range(len(row)):
        value = (value ^ row[place]) * HASH_FACTOR
    return value


@exact_kernel
def stands_under(trie, node, row):
    """Whether a tree is one of those drawn under a closed node."""
    own, other = hash_of(row), trie.nodes[node, TREE]
    while other >= 0:
        if trie.marks[other, HASH] == own and _are_equal(trie.rows[other], row):
            return True
        other = trie.marks[other, OLDER]
    return False


@exact_kernel
def _are_equal(row, other):
    place = 0
    while place < len(row) and row[place] == other[place]:
        place += 1
    return place == len(row)
