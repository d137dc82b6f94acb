"""Trees drawn by eliminating backwards: exact, without a random walk, however confident the model is.

``elimination`` takes the words out, the last one first, and the weight of a path ``i -> k -> j`` moves to the arc
``i -> j``. A tree grows the other way, from word 1 on. When word ``k`` comes back, every arc of the tree so far either
stays or turns out to lead through ``k``, in proportion to the two parts of its weight; then ``k`` gets its own head,
among the nodes that still hang together with node 0, in proportion to the weights of that stage.

No stage needs to be stored. Among the words up to ``m``, an arc ``i -> j`` weighs

    original[j, i] + sum over k > m of share(i, k) w[j, k]

where ``share(i, k)`` is the weight of ``i -> k`` over the pivot when ``k`` went, and ``w[j, k]`` is the weight of
``k -> j`` then, both of which elimination leaves in place. The first word through which the arc leads is thus drawn
once, when the arc is made. With a single root, which of them the root's arc leads through depends on nothing else, and
so the root word can be drawn alone, before its tree.
"""

from typing import NamedTuple

import numpy as np

from treeparse.kernels.arrays import FloatArray, IntArray
from treeparse.kernels.compile import exact_kernel, kernel
from treeparse.kernels.logspace import NEGLIGIBLE
from treeparse.kernels.random import uniform
from treeparse.kernels.sums.item import fill_root, first_head, linear_item, log_item
from treeparse.kernels.weights import column_maxima

TABLES = 3
WEIGHTS, ORIGINAL, SHARES = range(TABLES)  # of the stages
VECTORS = 3  # of the working memory
# Lines of nodes in the working memory: of a word the first of those whose arcs lead through it, and the next one on the
# list that it is on itself; with a single root, the stage at which the root's arc moves on; whether a node is joined to
# node 0.
NODE_LINES = 4
FIRST, NEXT, ROOT_STAGES, JOINED = range(NODE_LINES)
BLOCK_TERMS = 8  # terms that are summed at once
HEAD_TRIES = 3  # heads drawn from all words before those that hang together with node 0 are found


class ExpansionMemory(NamedTuple):
    """Working memory for items of up to ``n`` words."""

    matrices: FloatArray  # (3 (n+1)^2,)
    vectors: FloatArray  # (3, n+1)
    nodes: IntArray  # (4, n+2)
    item: FloatArray  # ((n+1)^2,) for scores derived from an item's


class Stages(NamedTuple):
    """The stages of an item's elimination, as plain weights or in logs; trees are drawn from them.

    Below the diagonal ``tables[WEIGHTS, k, i]`` is ``share(i, k)``; above it ``tables[WEIGHTS, j, k]`` is the weight of
    ``k -> j``. ``tables[SHARES]`` has the shares above the diagonal, ``[i, k]``, the pivots on it, and below it the
    shares' running sums, always plain: ``[k, i]`` is the sum over the heads of ``k`` up to ``i``.
    """

    exists: bool  # whether there is a tree at all
    in_logs: bool
    root_word: int
    tables: FloatArray  # (3, n+1, n+1)


@exact_kernel
def new_memory(size):
    """Return working memory for items of up to ``size`` nodes."""
    nodes = np.empty((NODE_LINES, size + 1), np.int64)
    return ExpansionMemory(np.empty(TABLES * size * size), np.empty((VECTORS, size)), nodes, np.empty(size * size))


@exact_kernel
def tables_of(memory, n):
    """Return the tables of an item of n words, which are in the working memory."""
    return memory.matrices[: TABLES * (n + 1) * (n + 1)].reshape(TABLES, n + 1, n + 1)


@exact_kernel
def set_up(scores, n, single_root, memory):
    """Eliminate one item; return its stages, which are in ``memory`` until the next item."""
    exists, in_logs, root_word = fill_stages(scores, n, single_root, memory)
    return Stages(exists, in_logs, root_word, tables_of(memory, n))


@exact_kernel
def fill_stages(scores, n, single_root, memory):
    """Eliminate one item; returns whether it has a tree, whether weights are logs, and the root word.

    The root's arcs to the words before the root word of the elimination only come with that word, so none are original.
    """
    tables = tables_of(memory, n)
    vectors = memory.vectors[0], memory.vectors[1], memory.vectors[2]
    matrices = tables[WEIGHTS], tables[ORIGINAL], tables[SHARES]
    weight, root_word, in_logs = -np.inf, n + 1, False
    if column_maxima(scores, n, vectors[0]) > -np.inf:
        weight, root_word = linear_item(scores, n, single_root, matrices, vectors)
        in_logs = np.isnan(weight)
        if in_logs:
            weight, root_word = log_item(scores, n, single_root, matrices, vectors)
    if weight > -np.inf:
        _fill_shares(tables, root_word, in_logs, vectors[1])
        if single_root:
            fill_root(tables[ORIGINAL], root_word, -np.inf if in_logs else 0.0)
    return weight > -np.inf, in_logs, root_word


@exact_kernel
def _fill_shares(tables, root_word, in_logs, pivots):
    """Fill ``tables[SHARES]``."""
    for k in range(1, tables.shape[1]):
        total = 0.0
        tables[SHARES, k, 0] = 0.0
        for i in range(k):
            share = tables[WEIGHTS, k, i]
            tables[SHARES, i, k] = share
            if i >= first_head(k, root_word):
                total += np.exp(share) if in_logs else share
                tables[SHARES, k, i] = total
        tables[SHARES, k, k] = pivots[k]


@exact_kernel
def no_stages():
    """Return a placeholder for stages before they are needed."""
    return Stages(False, False, 0, np.empty((0, 0, 0)))


@exact_kernel
def draw_root(stages, stream, memory):
    """Return the stream after its draws, and the root word of the next tree, for a single root.

    The stages at which the root's arc gets another dependent stay in ``memory``, for ``draw_tree``.
    """
    tables, nodes = stages.tables, memory.nodes
    j = stages.root_word
    while True:
        stream, k = _draw_stage(stages, 0, j, stream)
        nodes[ROOT_STAGES, j] = k
        if k == tables.shape[1]:
            return stream, j
        j = k


@exact_kernel
def draw_tree(stages, stream, memory, heads):
    """Fill ``heads`` with a tree; return the stream after its draws. A single root is the word of ``draw_root``."""
    nodes, size = memory.nodes, stages.tables.shape[1]
    for k in range(size + 1):
        nodes[FIRST, k] = 0
    next_root = stages.root_word  # the next word to hang from node 0 alone
    for k in range(1, size):
        j = nodes[FIRST, k]
        is_whole = j == 0
        while j > 0:  # the words whose arcs lead through k
            following = nodes[NEXT, j]
            heads[j] = k
            stream, stage = _draw_stage(stages, k, j, stream)
            _schedule(j, stage, nodes)
            j = following
        if k == next_root:
            heads[k] = 0
            stage = next_root = nodes[ROOT_STAGES, k]
        else:
            stream, head = _draw_head(stages, k, is_whole, heads, nodes, stream)
            stream, stage = _draw_stage(stages, head, k, stream)
            heads[k] = head
        _schedule(k, stage, nodes)
    heads[0] = -1
    return stream


@exact_kernel
def _schedule(j, stage, nodes):
    """Put word ``j`` on the list of words whose arcs lead through word ``stage``; the last list is never read."""
    nodes[NEXT, j] = nodes[FIRST, stage]
    nodes[FIRST, stage] = j


@exact_kernel
def _draw_stage(stages, i, j, stream):
    """Draw the first word on the path of the arc ``i -> j``, new among the words up to both; ``n + 1`` if none."""
    tables, root_word = stages.tables, stages.root_word
    stop = root_word + 1 if i == 0 and j < root_word < tables.shape[1] else tables.shape[1]
    stream, u = uniform(stream)
    stage = _find_log_stage(tables, i, j, stop, u) if stages.in_logs else _find_stage(tables, i, j, stop, u)
    return stream, stage


@kernel
def _find_stage(tables, i, j, stop, u):
    """Return the first word at which the sum of the arc's parts exceeds ``u`` times the whole."""
    target = u * tables[WEIGHTS, j, i]
    if i < j:
        target *= tables[SHARES, j, j]
    latest = tables.shape[1]
    reached = tables[ORIGINAL, j, i]
    if target < reached:
        return latest
    for start in range(max(i, j) + 1, stop, BLOCK_TERMS):
        end = min(start + BLOCK_TERMS, stop)
        block = 0.0
        for k in range(start, end):
            block += tables[SHARES, i, k] * tables[WEIGHTS, j, k]
        if target >= reached + block:
            reached += block
            continue
        for k in range(start, end):
            part = tables[SHARES, i, k] * tables[WEIGHTS, j, k]
            reached += part
            if target < reached:
                return k
            latest = k if part > 0.0 else latest
    return latest  # by rounding


@exact_kernel
def _find_log_stage(tables, i, j, stop, u):
    """Do ``_find_stage`` on logs."""
    weight = tables[WEIGHTS, j, i] + (tables[SHARES, j, j] if i < j else 0.0)
    reached = np.exp(tables[ORIGINAL, j, i] - weight)
    stage, k = tables.shape[1], max(i, j) + 1
    while u >= reached and k < stop:
        part = tables[SHARES, i, k] + tables[WEIGHTS, j, k] - weight
        if part > NEGLIGIBLE:
            reached += np.exp(part)
            stage = k
        k += 1
    return stage


@exact_kernel
def _draw_head(stages, k, is_whole, heads, nodes, stream):
    """Draw a head of word ``k`` among the nodes connected with node 0; all are connected if the tree ``is_whole``."""
    if is_whole:
        stream, u = uniform(stream)
        head = _search(stages.tables, k, u)
    else:
        stream, head = _draw_joined_head(stages, k, heads, nodes, stream)
    return stream, head


@exact_kernel
def _draw_joined_head(stages, k, heads, nodes, stream):
    """Draw a head by trial, because most nodes are often connected; then among the connected nodes."""
    head, node, tries = 0, k, 0
    while node > 0 and tries < HEAD_TRIES:
        stream, u = uniform(stream)
        head = node = _search(stages.tables, k, u)
        while 0 < node < k:
            node = heads[node]
        tries += 1
    if node > 0:
        _find_joined(k, heads, nodes)
        stream, u = uniform(stream)
        head = _find_joined_head(stages, k, u, nodes)
    return stream, head


@exact_kernel
def _search(tables, k, u):
    """Return the first head of word ``k`` whose running sum is above ``u`` times the last one."""
    target, first, count = u * tables[SHARES, k, k - 1], 0, k
    while count > 1:
        half = count // 2
        first += half if tables[SHARES, k, first + half - 1] <= target else 0
        count -= half
    return first


@exact_kernel
def _find_joined(k, heads, nodes):
    """Find which of the words before ``k`` hang from node 0 and not from ``k``."""
    nodes[JOINED, 0] = 1
    nodes[JOINED, k] = 0
    for j in range(1, k):
        nodes[JOINED, j] = -1
    for j in range(1, k):
        node = j
        while nodes[JOINED, node] < 0:
            node = heads[node]
        is_joined = nodes[JOINED, node]
        node = j
        while nodes[JOINED, node] < 0:
            nodes[JOINED, node] = is_joined
            node = heads[node]


@exact_kernel
def _find_joined_head(stages, k, u, nodes):
    """Return the first connected head at which the sum of shares exceeds ``u`` times the whole."""
    tables, in_logs = stages.tables, stages.in_logs
    first, top = first_head(k, stages.root_word), 0.0
    if in_logs:
        top = -np.inf
        for i in range(first, k):
            top = max(top, tables[WEIGHTS, k, i]) if nodes[JOINED, i] else top
    total = 0.0
    for i in range(first, k):
        total += _joined_share(tables, in_logs, k, i, top, nodes)
    head, reached = first, 0.0
    for i in range(first, k):
        share = _joined_share(tables, in_logs, k, i, top, nodes)
        reached += share
        head = i if share > 0.0 else head
        if u * total < reached:
            break
    return head


@exact_kernel
def _joined_share(tables, in_logs, k, i, top, nodes):
    share = np.exp(tables[WEIGHTS, k, i] - top) if in_logs else tables[WEIGHTS, k, i]
    return share if nodes[JOINED, i] else 0.0
