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

from treeparse.kernels.arrays import FloatArray
from treeparse.kernels.compile import exact_kernel, kernel
from treeparse.kernels.exponential import exp
from treeparse.kernels.logspace import NEGLIGIBLE
from treeparse.kernels.random import uniform
from treeparse.kernels.sums import elimination, elimination_in_logs
from treeparse.kernels.sums.elimination import ORIGINAL, PIVOTS, WEIGHTS
from treeparse.kernels.weights import aligned, matrices, padded

TABLES = 3  # of the stages: ORIGINAL, WEIGHTS and
SHARES = 2
# Lines of nodes in the working memory: of a word the first of those whose arcs lead through it, and the next one on the
# list that it is on itself; with a single root, the stage at which the root's arc moves on; whether a node is joined to
# node 0.
NODE_LINES = 4
FIRST, NEXT, ROOT_STAGES, JOINED = range(NODE_LINES)
BLOCK_TERMS = 8  # terms that are summed at once
HEAD_TRIES = 3  # heads drawn from all words before those that hang together with node 0 are found


class Stages(NamedTuple):
    """The stages of an item's elimination, as plain weights or in logs; trees are drawn from them.

    ``tables[ORIGINAL, j, i]`` is the weight of ``i -> j``. Above the diagonal ``tables[WEIGHTS, j, k]`` is the weight
    of ``k -> j`` when ``k`` went, and ``tables[SHARES, i, k]`` is ``share(i, k)``. On the diagonal ``tables[SHARES]``
    has the pivots, and below it the shares' running sums, always plain: ``[k, i]`` is the sum over heads up to ``i``.
    """

    exists: bool  # whether there is a tree at all
    in_logs: bool
    single_root: bool
    root_word: int  # the word exchanged with word 1 in the tables
    tables: FloatArray  # (3, size, size)


@exact_kernel
def new_memory(size):
    """Return working memory for items of up to ``size`` nodes: for tables, of numbers, and of nodes."""
    numbers = np.empty((elimination_in_logs.LINES, size))
    return aligned(TABLES * padded(size - 1) ** 2), numbers, np.empty((NODE_LINES, size + 1), np.int64)


@exact_kernel
def set_up(scores, n, single_root, memory):
    """Eliminate one item; return its stages, which are in ``memory`` until the next item."""
    tables = matrices(memory[0], TABLES, n)
    exists, in_logs, root_word = fill_stages(scores, n, single_root, memory[1], tables)
    return Stages(exists, in_logs, single_root, root_word, tables)


@exact_kernel
def fill_stages(scores, n, single_root, numbers, tables):
    """Do ``set_up``; return whether there is a tree, whether weights are logs, and the word exchanged with word 1."""
    log_z, root_word = elimination.eliminate_item(scores, n, single_root, numbers, tables)
    in_logs = np.isnan(log_z)
    if in_logs:
        log_z, root_word = elimination_in_logs.eliminate_item(scores, n, single_root, numbers, tables)
    if log_z > -np.inf:
        _fill_shares(tables, n, single_root, in_logs, numbers[PIVOTS])
    return log_z > -np.inf, in_logs, root_word


@exact_kernel
def _fill_shares(tables, n, single_root, in_logs, pivots):
    """Fill the rest of ``tables[SHARES]``."""
    for k in range(1, n + 1):
        total = 0.0
        for i in range(k):
            if not in_logs:
                tables[SHARES, i, k] = tables[WEIGHTS, k, i]
            if i > 0 or k == 1 or not single_root:
                total += exp(tables[SHARES, i, k]) if in_logs else tables[SHARES, i, k]
            tables[SHARES, k, i] = total
        tables[SHARES, k, k] = pivots[k]


@exact_kernel
def no_stages():
    """Return a placeholder for stages before they are needed."""
    return Stages(False, False, False, 0, np.empty((0, 0, 0)))


@exact_kernel
def draw_root(stages, n, stream, nodes):
    """Return the stream after its draws, and the root word of the next tree, for a single root.

    The stages at which the root's arc gets another dependent stay in ``nodes``, for ``draw_tree``.
    """
    j = k = 1
    while k <= n:
        j = k
        stream, k = _draw_stage(stages, n, 0, j, stream)
        nodes[ROOT_STAGES, j] = k
    return stream, _original_word(j, stages.root_word)


@exact_kernel
def _original_word(j, root_word):
    """Return the word that is word ``j`` in the tables."""
    if j == 1:
        return root_word
    return 1 if j == root_word else j


@exact_kernel
def draw_tree(stages, n, stream, nodes, heads):
    """Fill ``heads`` with a tree; return the stream after its draws. A single root is the word of ``draw_root``."""
    for k in range(n + 2):
        nodes[FIRST, k] = 0
    next_root = 1 if stages.single_root else 0  # the next word to hang from node 0 alone
    for k in range(1, n + 1):
        j = nodes[FIRST, k]
        is_whole = j == 0
        while j > 0:  # the words whose arcs lead through k
            following = nodes[NEXT, j]
            heads[j] = k
            stream, stage = _draw_stage(stages, n, k, j, stream)
            _schedule(j, stage, nodes)
            j = following
        if k == next_root:
            heads[k] = 0
            stage = next_root = nodes[ROOT_STAGES, k]
        else:
            stream, head = _draw_head(stages, k, is_whole, heads, nodes, stream)
            stream, stage = _draw_stage(stages, n, head, k, stream)
            heads[k] = head
        _schedule(k, stage, nodes)
    heads[0] = -1
    if stages.root_word > 1:
        heads[1], heads[stages.root_word] = heads[stages.root_word], heads[1]
        for j in range(1, n + 1):
            heads[j] = _original_word(heads[j], stages.root_word)
    return stream


@exact_kernel
def _schedule(j, stage, nodes):
    """Put word ``j`` on the list of words whose arcs lead through word ``stage``; the last list is never read."""
    nodes[NEXT, j] = nodes[FIRST, stage]
    nodes[FIRST, stage] = j


@exact_kernel
def _draw_stage(stages, n, i, j, stream):
    """Draw the first word on the path of the arc ``i -> j``, new among the words up to both; ``n + 1`` if none."""
    stream, u = uniform(stream)
    stage = _find_log_stage(stages.tables, n, i, j, u) if stages.in_logs else _find_stage(stages.tables, n, i, j, u)
    return stream, stage


@kernel
def _find_stage(tables, n, i, j, u):
    """Return the first word at which the sum of the arc's parts exceeds ``u`` times the whole."""
    target = u * (tables[SHARES, i, j] * tables[SHARES, j, j] if i < j else tables[WEIGHTS, j, i])
    latest, reached = n + 1, tables[ORIGINAL, j, i]
    if target < reached:
        return latest
    for start in range(max(i, j) + 1, n + 1, BLOCK_TERMS):
        end = min(start + BLOCK_TERMS, n + 1)
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
def _find_log_stage(tables, n, i, j, u):
    """Do ``_find_stage`` on logs."""
    weight = tables[SHARES, i, j] + tables[SHARES, j, j] if i < j else tables[WEIGHTS, j, i]
    reached = exp(tables[ORIGINAL, j, i] - weight)
    stage, k = n + 1, max(i, j) + 1
    while u >= reached and k <= n:
        part = tables[SHARES, i, k] + tables[WEIGHTS, j, k] - weight
        if part > NEGLIGIBLE:
            reached += exp(part)
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
    first, top = 1 if stages.single_root else 0, 0.0
    if stages.in_logs:
        top = -np.inf
        for i in range(first, k):
            top = max(top, stages.tables[SHARES, i, k]) if nodes[JOINED, i] else top
    total = 0.0
    for i in range(first, k):
        total += _joined_share(stages, k, i, top, nodes)
    head, reached = first, 0.0
    for i in range(first, k):
        share = _joined_share(stages, k, i, top, nodes)
        reached += share
        head = i if share > 0.0 else head
        if u * total < reached:
            break
    return head


@exact_kernel
def _joined_share(stages, k, i, top, nodes):
    share = stages.tables[SHARES, i, k]
    share = exp(share - top) if stages.in_logs else share
    return share if nodes[JOINED, i] else 0.0
