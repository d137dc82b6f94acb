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

from treeparse.kernels.arrays import FloatArray, IntArray
from treeparse.kernels.compile import exact_kernel, kernel
from treeparse.kernels.logspace import log_add, log_sum
from treeparse.kernels.random import choose_by_logs
from treeparse.kernels.samples import expansion
from treeparse.kernels.sums import conditionals
from treeparse.kernels.sums.item import NO_TREE, eliminate, eliminate_log
from treeparse.kernels.weights import column_maxima, square

# Of a graph: whose it is, its number of words, the first node that heads any, whether one word only hangs from node 0,
# when it was last used; then what `expansion.Stages` says: whether weights are logs, the root word.
GRAPH_FACTS = 7
OWNER, WORDS, FIRST, SINGLE, USED_AT, IN_LOGS, ROOT_WORD = range(GRAPH_FACTS)
NOBODY = -1  # as OWNER
NOT_SET_UP = -1  # as IN_LOGS


class Graphs(NamedTuple):
    """The most recently used graphs, and working memory."""

    facts: IntArray  # (G, 7)
    components: IntArray  # (G, n+1) every node's component
    scores: FloatArray  # (G, (n+1)^2)
    stages: FloatArray  # (G, 3 (n+1)^2)
    weights: FloatArray  # ((n+1)^2,)
    vectors: FloatArray  # (3, n+1)
    nodes: IntArray  # (4, n+2)
    heads: IntArray  # (n+1,)


@exact_kernel
def new_graphs(count, size):
    """Return memory for graphs of up to ``size`` nodes."""
    return Graphs(
        np.full((count, GRAPH_FACTS), NOBODY),
        np.empty((count, size), np.int64),
        np.empty((count, size * size)),
        np.empty((count, expansion.TABLES * size * size)),
        np.empty(size * size),
        np.empty((expansion.VECTORS, size)),
        np.empty((expansion.NODE_LINES, size + 1), np.int64),
        np.empty(size, np.int64),
    )


@exact_kernel
def graph_under(graphs, owner, heads, depth, item):
    """Return the index of the graph under the prefix of ``owner``: the ``heads`` of the first ``depth`` words."""
    facts, index, latest = graphs.facts, 0, NOBODY
    for kept in range(len(facts)):
        latest = max(latest, facts[kept, USED_AT])
        index = kept if facts[kept, USED_AT] < facts[index, USED_AT] else index
    for kept in range(len(facts)):
        index = kept if facts[kept, OWNER] == owner else index
    facts[index, USED_AT] = latest + 1
    if facts[index, OWNER] != owner:
        facts[index, OWNER] = owner
        _contract(graphs, index, heads, depth, item)
    return index


@exact_kernel
def _contract(graphs, index, heads, depth, item):
    facts, component, n, order = graphs.facts[index], graphs.components[index], item.words, item.order
    root_is_closed = _join(component, heads, depth, order, n) and item.single_root
    facts[WORDS], facts[FIRST], facts[IN_LOGS] = n - depth, root_is_closed, NOT_SET_UP
    facts[SINGLE] = item.single_root and not root_is_closed
    scores = square(graphs.scores[index], n - depth)
    scores[:] = -np.inf
    for i in range(facts[FIRST], n + 1):
        arcs, row = item.scores[i], scores[component[i]]
        for word in range(1, n - depth + 1):
            if component[i] != word:
                row[word] = log_add(row[word], arcs[order[depth + word - 1]])


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
def draw(graphs, index, heads, depth, item, stream):
    """Draw the heads of all words after the prefix into ``heads``; return the stream after its last draw."""
    facts, component, order = graphs.facts[index], graphs.components[index], item.order
    memory = expansion.ExpansionMemory(graphs.stages[index], graphs.vectors, graphs.nodes, graphs.weights)
    if facts[IN_LOGS] == NOT_SET_UP:
        _set_up(graphs, index, memory)
    tables = expansion.tables_of(memory, facts[WORDS])
    stages = expansion.Stages(True, facts[IN_LOGS] == 1, facts[ROOT_WORD], tables)
    if facts[SINGLE]:
        stream, _ = expansion.draw_root(stages, stream, memory)
    stream = expansion.draw_tree(stages, stream, memory, graphs.heads)
    options, members = graphs.vectors[0], graphs.nodes[0]
    for word in range(1, facts[WORDS] + 1):
        dependent, count = order[depth + word - 1], 0
        for i in range(facts[FIRST], item.words + 1):
            if component[i] == graphs.heads[word]:
                options[count], members[count] = item.scores[i, dependent], i
                count += 1
        chosen = 0
        if count > 1:
            stream, chosen = choose_by_logs(options, count, stream)
        heads[dependent] = members[chosen]
    return stream


@exact_kernel
def _set_up(graphs, index, memory):
    """Make the stages of a graph's elimination, when trees are first drawn."""
    facts, n = graphs.facts[index], graphs.facts[index, WORDS]
    scores, single_root = square(graphs.scores[index], n), facts[SINGLE] == 1
    _, facts[IN_LOGS], facts[ROOT_WORD] = expansion.fill_stages(scores, n, single_root, memory)


@exact_kernel
def next_heads(graphs, index, word, item, logs):
    """Fill ``logs`` with the log probabilities of the heads of ``word``, the first one after the prefix."""
    facts, component = graphs.facts[index], graphs.components[index]
    reach = graphs.vectors[0]
    if not _reach(graphs, index, False, reach):
        _reach(graphs, index, True, reach)
    for i in range(item.words + 1):
        is_open = i >= facts[FIRST] and component[i] != 1
        logs[i] = item.scores[i, word] + reach[component[i]] if is_open else -np.inf
    total = log_sum(logs, 0, item.words + 1)
    for i in range(item.words + 1):
        logs[i] -= total


@exact_kernel
def _reach(graphs, index, in_logs, reach):
    """Fill ``g`` of ``conditionals`` for the first word, as logs; return False if plain weights were not safe."""
    n, single_root, row = graphs.facts[index, WORDS], graphs.facts[index, SINGLE] == 1, graphs.vectors[2]
    scores, w, top = square(graphs.scores[index], n), square(graphs.weights, n), graphs.vectors[1]
    column_maxima(scores, n, top)
    if not conditionals.load(scores, n, in_logs, top, w):
        return False
    pivots, root_word = top, 1 if single_root else n + 1
    if in_logs:
        eliminate_log(w, n, 1, root_word, pivots, row)
        _substitute_log(w, n, reach)
        return True
    root_word = eliminate(w, n, 1, root_word, pivots, row)
    return root_word != NO_TREE and not conditionals.has_tiny(w, n) and not _substitute(w, n, reach)


@kernel
def _substitute(w, n, reach):
    """Do ``conditionals._substitute`` for one word, and take logs; return whether a number may have underflowed."""
    reach[0], reach[1] = 1.0, 0.0
    tiny = 0
    for e in range(2, n + 1):
        total = 0.0
        for i in range(e):
            total += w[e, i] * reach[i]
        reach[e] = total
        tiny += 0.0 < total < conditionals.SMALL
        if w[e, e] == 0.0:
            reach[0] = 0.0
    for i in range(n + 1):
        reach[i] = np.log(reach[i])
    return tiny > 0


@exact_kernel
def _substitute_log(w, n, reach):
    """Do ``_substitute`` on logs."""
    reach[0], reach[1] = 0.0, -np.inf
    for e in range(2, n + 1):
        total = -np.inf
        for i in range(e):
            total = log_add(total, w[e, i] + reach[i])
        reach[e] = total
        if w[e, e] == 0.0:
            reach[0] = -np.inf
