"""A trie of the trees drawn from one sentence: its nodes, the mass that remains under them, and paths.

``without_replacement`` says what nodes mean. The arrays of a trie are

    rows (K, W) int64       trees: n+1 heads, labels and decisions as far as there are any, and two ``MARKS`` at the end
    log_probs (K,)          of the trees
    nodes (N, 8) int64      ``ENTRY`` ... of every node; the first row has the ``SIZES`` of the trie instead
    masses (N, 2)           ``MASS`` and ``DRAWN`` of every node, in logs
    entries (E, 2) int64    of open nodes, ``VALUE`` and ``NODE``
    remaining (E,)          log of what remains under an entry

Functions take those that they need: at each call in a loop, numba counts the references to arrays.
"""

import numpy as np

from treeparse.kernels.compile import exact_kernel
from treeparse.kernels.logspace import NEGLIGIBLE, log_add
from treeparse.kernels.random import choose_by_logs

# Of a node: the entry of its parent that leads here, its parent, its level, where its entries begin and how many there
# are (0: it is closed), and the tree drawn last under it while it was closed. The last two columns are stacks, from the
# row of the root on: of nodes that wait to be settled, and of nodes that were opened meanwhile.
NODE_FACTS = 8
ENTRY, PARENT, LEVEL, BEGIN, COUNT, TREE, WAITING, OPENED = range(NODE_FACTS)
SIZES = 0  # the row of nodes that has the next new node and entry, and the next free row of both stacks
NEW_NODE, NEW_ENTRY = range(2)  # the columns of the first two
ROOT = 1
MASS, DRAWN = range(2)  # of a node, in logs
VALUE, NODE = range(2)  # of an entry: the next word's head or label, and the node, or NONE where none was drawn yet
# Of a tree, at the end of its row: the tree drawn before it under the same closed node, and a hash.
MARKS = 2
OLDER, HASH = -2, -1
HALF = -float(np.log(2.0))
NONE = -1  # no node, no tree
HASH_FACTOR = 0x100000001B3  # of Fowler, Noll and Vo's hash FNV-1a


@exact_kernel
def plant(nodes, masses, entries, remaining):
    """Empty the trie for another item: a closed root, with entry 0 to itself."""
    nodes[SIZES, NEW_NODE], nodes[SIZES, NEW_ENTRY], remaining[0] = ROOT, 1, 0.0
    _add_node(nodes, masses, entries, remaining, 0, NONE, 0)


@exact_kernel
def _add_node(nodes, masses, entries, remaining, entry, parent, level):
    """Add a closed node without drawn trees, at an entry that has the remaining mass."""
    node = nodes[SIZES, NEW_NODE]
    nodes[SIZES, NEW_NODE] = node + 1
    entries[entry, NODE] = node
    nodes[node, ENTRY], nodes[node, PARENT], nodes[node, LEVEL] = entry, parent, level
    nodes[node, COUNT], nodes[node, TREE] = 0, NONE
    masses[node, MASS], masses[node, DRAWN] = remaining[entry], -np.inf
    return node


@exact_kernel
def enlarged(entries, remaining, used, more):
    """Return entries with at least twice the capacity, enough for ``more``."""
    new_entries, new_remaining = np.empty((2 * (used + more), 2), np.int64), np.empty(2 * (used + more))
    for entry in range(used):  # slices take numba seconds to compile, for the sake of an error message
        new_entries[entry, VALUE], new_entries[entry, NODE] = entries[entry, VALUE], entries[entry, NODE]
        new_remaining[entry] = remaining[entry]
    return new_entries, new_remaining


@exact_kernel
def walk_down(nodes, masses, entries, remaining, places, row, shares, stream):
    """Walk from the root to a closed node in proportion to remaining mass, and fill the row."""
    node = ROOT
    while nodes[node, COUNT] > 0:
        begin, count = nodes[node, BEGIN], nodes[node, COUNT]
        for child in range(count):
            shares[child] = remaining[begin + child]
        stream, child = choose_by_logs(shares, count, stream)
        row[places[nodes[node, LEVEL]]] = entries[begin + child, VALUE]
        node = child_at(nodes, masses, entries, remaining, node, begin + child)
    return stream, node


@exact_kernel
def walk_along(nodes, masses, entries, remaining, places, row):
    """Walk from the root to a closed node along a known tree."""
    node = ROOT
    while nodes[node, COUNT] > 0:
        entry, value = nodes[node, BEGIN], row[places[nodes[node, LEVEL]]]
        while entries[entry, VALUE] != value:
            entry += 1
        node = child_at(nodes, masses, entries, remaining, node, entry)
    return node


@exact_kernel
def write_prefix(nodes, entries, places, node, row):
    """Fill the values of a row that lead to a node."""
    while node != ROOT:
        parent = nodes[node, PARENT]
        row[places[nodes[parent, LEVEL]]] = entries[nodes[node, ENTRY], VALUE]
        node = parent


@exact_kernel
def child_at(nodes, masses, entries, remaining, node, entry):
    """Return the node at an entry of a node; it is made if nothing was drawn under it yet."""
    child = entries[entry, NODE]
    if child == NONE:
        child = _add_node(nodes, masses, entries, remaining, entry, node, nodes[node, LEVEL] + 1)
    return child


@exact_kernel
def put(rows, log_probs, nodes, masses, node, tree):
    """Add a drawn tree under a closed node."""
    rows[tree, OLDER] = nodes[node, TREE]
    nodes[node, TREE] = tree
    masses[node, DRAWN] = log_add(masses[node, DRAWN], log_probs[tree])


@exact_kernel
def settle(nodes, masses, remaining, node, levels, must_open):
    """Compute the remaining mass of a closed node; return False if the node must be opened instead."""
    mass, drawn, is_tree = masses[node, MASS], masses[node, DRAWN], nodes[node, LEVEL] == levels
    if not is_tree and (must_open or not drawn - mass <= HALF):
        return False
    remaining[nodes[node, ENTRY]] = -np.inf if is_tree else mass + np.log1p(-np.exp(drawn - mass))
    return True


@exact_kernel
def add_entries(nodes, masses, entries, remaining, node, logs, count, entry_of):
    """Open a node: make entries for all values that are possible, by the values' log probabilities."""
    begin = entry = nodes[SIZES, NEW_ENTRY]
    for value in range(count):
        if logs[value] > -np.inf:
            entry_of[value], entries[entry, VALUE], entries[entry, NODE] = entry, value, NONE
            remaining[entry] = masses[node, MASS] + logs[value]
            entry += 1
    nodes[SIZES, NEW_ENTRY], nodes[node, BEGIN], nodes[node, COUNT] = entry, begin, entry - begin


@exact_kernel
def share_trees(rows, log_probs, nodes, masses, entries, remaining, node, places, entry_of):
    """Put the trees drawn under a node that was closed under its children."""
    tree, place = nodes[node, TREE], places[nodes[node, LEVEL]]
    while tree != NONE:
        older = rows[tree, OLDER]
        child = child_at(nodes, masses, entries, remaining, node, entry_of[rows[tree, place]])
        put(rows, log_probs, nodes, masses, child, tree)
        tree = older


@exact_kernel
def push_opened(nodes, entries, node):
    """Push an opened node, whose children's remaining masses are to be computed."""
    nodes[nodes[SIZES, OPENED], OPENED] = node
    nodes[SIZES, OPENED] += 1
    for entry in range(nodes[node, BEGIN], nodes[node, BEGIN] + nodes[node, COUNT]):
        if entries[entry, NODE] != NONE:
            nodes[nodes[SIZES, WAITING], WAITING] = entries[entry, NODE]
            nodes[SIZES, WAITING] += 1


@exact_kernel
def finish_settling(nodes, remaining, node):
    """Sum the remaining masses of the opened nodes, and of all nodes above ``node``, where settling began."""
    for place in range(nodes[SIZES, OPENED] - 1, 0, -1):  # children were opened after their parents
        _sum_up(nodes[place, OPENED], nodes, remaining)
    node = nodes[node, PARENT]
    while node != NONE:
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
    """Return a hash of a row without its marks."""
    value = 0
    for place in range(len(row) - MARKS):
        value = (value ^ row[place]) * HASH_FACTOR
    return value


@exact_kernel
def stands_under(rows, nodes, node, row):
    """Whether a tree is one of those drawn under a closed node."""
    own, other, is_equal = hash_of(row), nodes[node, TREE], False
    while other != NONE and not is_equal:
        if rows[other, HASH] == own:
            place, end = 0, len(row) - MARKS
            while place < end and rows[other, place] == row[place]:
                place += 1
            is_equal = place == end
        other = rows[other, OLDER]
    return is_equal
