"""Trees with known heads of some words: the probabilities of the next word's heads, and a random tree.

Words come in a given order, and the heads of the first ones, the *prefix*, are known. Their arcs join nodes to
components, each with one word of unknown head, or with node 0. The remaining graph is smaller and of the same kind: its
nodes are the components, and an arc has the summed weight of all arcs from the nodes of its head. (No inverse is
updated as in [Unb] §5, which subtracts.) The words of unknown head are numbered from 1, in order; 0 is node 0's
component. With a single root whose arc is in the prefix, node 0 itself heads no more words, but any number of words may
hang from its component.

Trees of the smaller graph are drawn by ``expansion``. The heads of its first word follow from eliminating all others as
in ``conditionals``, right to relative accuracy however improbable.
"""

from typing import NamedTuple

import numpy as np

from treeparse.kernels import FloatArray, IntArray
from treeparse.kernels.compile import exact_kernel
from treeparse.kernels.logspace import log_add, log_sum
from treeparse.kernels.random import choose_by_logs
from treeparse.kernels.samples import expansion
from treeparse.kernels.sums.conditionals import fill_reach
from treeparse.kernels.sums.elimination_in_logs import LINES
from treeparse.kernels.tree_weights import matrices, padded, square

# Of a graph: whose it is, its number of words, the first node that heads any, whether one word only hangs from node 0,
# when it was last used; what `expansion.Stages` says: whether weights are logs, the word exchanged with word 1; then
# every node's component.
OWNER, WORDS, FIRST, SINGLE, USED_AT, IN_LOGS, ROOT_WORD, COMPONENTS = range(8)
NOBODY = -1  # as OWNER
NOT_SET_UP = -1  # as IN_LOGS
HEADS = expansion.NODE_LINES  # the line of nodes for a tree of a graph


class Graphs(NamedTuple):
    """The most recently used graphs, and working memory."""

    facts: IntArray  # (G, 7 + n+1)
    scores: FloatArray  # (G, (n+1)^2)
    stages: FloatArray  # (G, 3 size^2), of padded matrices
    numbers: FloatArray  # ((n+1) (n+7),)
    nodes: IntArray  # (5, n+2)


@exact_kernel
def new_graphs(count, size):
    """Return memory for graphs of up to ``size`` nodes."""
    return Graphs(
        np.full((count, COMPONENTS + size), NOBODY),
        np.empty((count, size * size)),
        np.empty((count, expansion.TABLES * padded(size - 1) ** 2)),
        np.empty(size * (size + LINES + 2)),
        np.empty((HEADS + 1, size + 1), np.int64),
    )


@exact_kernel
def graph_of(facts, owner):
    """Return the index of the graph under the prefix of ``owner``, or of that to be replaced by it."""
    index, latest = 0, NOBODY
    for kept in range(len(facts)):
        latest = max(latest, facts[kept, USED_AT])
        index = kept if facts[kept, USED_AT] < facts[index, USED_AT] else index
    for kept in range(len(facts)):
        index = kept if facts[kept, OWNER] == owner else index
    facts[index, USED_AT] = latest + 1
    return index


@exact_kernel
def _contract(graphs, index, owner, heads, depth, shape, order, arcs):
    """Make the graph under the prefix of ``owner``: the ``heads`` of the first ``depth`` words."""
    facts, component, n = graphs.facts[index], graphs.facts[index, COMPONENTS:], shape.words
    root_is_closed = _join(component, heads, depth, order, n) and shape.single_root
    facts[OWNER], facts[WORDS], facts[FIRST], facts[IN_LOGS] = owner, n - depth, root_is_closed, NOT_SET_UP
    facts[SINGLE] = shape.single_root and not root_is_closed
    scores = square(graphs.scores[index], n - depth)
    scores[:] = -np.inf
    for i in range(facts[FIRST], n + 1):
        node = component[i]
        for word in range(1, n - depth + 1):
            if node != word:
                scores[node, word] = log_add(scores[node, word], arcs[i, order[depth + word - 1]])


@exact_kernel
def _join(component, heads, depth, order, n):
    """Number the components by their words of unknown head; returns whether a word of the prefix hangs from node 0."""
    component[0] = 0
    for index in range(n):
        component[order[index]] = index - depth + 1 if index >= depth else -1
    root_is_used = False
    for index in range(depth):
        node = order[index]
        root_is_used |= heads[node] == 0
        while component[node] < 0:
            node = heads[node]
        joined, node = component[node], order[index]
        while component[node] < 0:
            component[node] = joined
            node = heads[node]
    return root_is_used


@exact_kernel
def draw(graphs, owner, heads, depth, shape, order, arcs, stream):
    """Draw the heads of all words after the prefix into ``heads``; return the stream after its last draw."""
    index = graph_of(graphs.facts, owner)
    if graphs.facts[index, OWNER] != owner:
        _contract(graphs, index, owner, heads, depth, shape, order, arcs)
    facts, component = graphs.facts[index], graphs.facts[index, COMPONENTS:]
    n, nodes, single_root = facts[WORDS], graphs.nodes, facts[SINGLE] == 1
    tables, tree = matrices(graphs.stages[index], expansion.TABLES, n), nodes[HEADS]
    if facts[IN_LOGS] == NOT_SET_UP:  # trees are drawn for the first time
        numbers = graphs.numbers[: LINES * (n + 1)].reshape(LINES, n + 1)
        stages = expansion.set_up(square(graphs.scores[index], n), n, single_root, numbers, tables)
        facts[IN_LOGS], facts[ROOT_WORD] = stages.in_logs, stages.root_word
    stages = expansion.Stages(True, facts[IN_LOGS] == 1, single_root, facts[ROOT_WORD])
    if single_root:
        stream, _ = expansion.draw_root(tables, stages, n, stream, nodes)
    stream = expansion.draw_tree(tables, stages, n, stream, nodes, tree)
    options, members = graphs.numbers, nodes[0]
    for word in range(1, n + 1):
        dependent, count = order[depth + word - 1], 0
        for i in range(facts[FIRST], shape.words + 1):
            if component[i] == tree[word]:
                options[count], members[count] = arcs[i, dependent], i
                count += 1
        chosen = 0
        if count > 1:
            stream, chosen = choose_by_logs(options, count, stream)
        heads[dependent] = members[chosen]
    return stream


@exact_kernel
def next_heads(graphs, owner, heads, depth, shape, order, arcs, logs):
    """Fill ``logs`` with the log probabilities of the heads of the first word after the prefix."""
    index, word = graph_of(graphs.facts, owner), order[depth]
    if graphs.facts[index, OWNER] != owner:
        _contract(graphs, index, owner, heads, depth, shape, order, arcs)
    facts, component, n = graphs.facts[index], graphs.facts[index, COMPONENTS:], graphs.facts[index, WORDS]
    numbers, size = graphs.numbers, n + 1
    w, reach = square(numbers, n), numbers[size * size : size * (size + 2)].reshape(size, 2)
    fill_reach(square(graphs.scores[index], n), n, facts[SINGLE] == 1, numbers[size * (size + 2) :], w, reach)
    for i in range(shape.words + 1):
        is_open = i >= facts[FIRST] and component[i] != 1
        logs[i] = arcs[i, word] + reach[component[i], 1] if is_open else -np.inf
    total = log_sum(logs, 0, shape.words + 1)
    for i in range(shape.words + 1):
        logs[i] -= total
