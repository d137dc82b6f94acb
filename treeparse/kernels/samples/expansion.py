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

from treeparse.kernels.compile import exact_kernel, kernel
from treeparse.kernels.logspace import NEGLIGIBLE, exp
from treeparse.kernels.random import uniform
from treeparse.kernels.sums import elimination, elimination_in_logs
from treeparse.kernels.sums.elimination import ORIGINAL, PIVOTS, WEIGHTS
from treeparse.kernels.tree_weights import aligned, padded

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
    """How the tables hold the stages of an item's elimination.

    ``tables[ORIGINAL, j, i]`` is the weight of ``i -> j``. Above the diagonal ``tables[WEIGHTS, j, k]`` is the weight
    of ``k -> j`` when ``k`` went, and ``tables[SHARES, i, k]`` is ``share(i, k)``. On the diagonal ``tables[SHARES]``
    has the pivots, and below it the shares' running sums, always plain: ``[k, i]`` is the sum over heads up to ``i``.
    """

    exists: bool  # whether there is a tree at all
    in_logs: bool  # whether weights, shares and pivots are logs
    single_root: bool
    root_word: int  # the word exchanged with word 1 in the tables


NO_STAGES = Stages(exists=False, in_logs=False, single_root=False, root_word=1)


@exact_kernel
def new_memory(size):
    """Return working memory for items of up to ``size`` nodes: for tables, of numbers, and of nodes."""
    numbers = np.empty((elimination_in_logs.LINES, size))
    return aligned(TABLES * padded(size - 1) ** 2), numbers, np.empty((NODE_LINES, size + 1), np.int64)


@exact_kernel
def set_up(scores, n, single_root, numbers, tables):
    """Eliminate one item; return its stages, and fill ``tables (3, size, size)`` with them."""
    log_z, root_word = elimination.eliminate_item(scores, n, single_root, numbers, tables)
    in_logs = np.isnan(log_z)
    if in_logs:
        log_z, root_word = elimination_in_logs.eliminate_item(scores, n, single_root, numbers, tables)
    if log_z > -np.inf:
        _fill_shares(tables, n, single_root, in_logs, numbers[PIVOTS])
    return Stages(log_z > -np.inf, in_logs, single_root, root_word)


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
def draw_root(tables, stages, n, stream, nodes):
    """Return the stream after its draws, and the root word of the next tree, for a single root.

    The stages at which the root's arc gets another dependent stay in ``nodes``, for ``draw_tree``.
    """
    j = k = 1
    while k <= n:
        j = k
        stream, u = uniform(stream)
        k = nodes[ROOT_STAGES, j] = _find_stage(tables, stages.in_logs, n, 0, j, u)
    return stream, _original_word(j, stages.root_word)


@exact_kernel
def _original_word(j, root_word):
    """Return the word that is word ``j`` in the tables."""
    if j == 1:
        return root_word
    return 1 if j == root_word else j


@exact_kernel
def draw_tree(tables, stages, n, stream, nodes, heads):
    """Fill ``heads`` with a tree; return the stream after its draws. A single root is the word of ``draw_root``."""
    for k in range(n + 2):
        nodes[FIRST, k] = 0
    next_root = 1 if stages.single_root else 0  # the next word to hang from node 0 alone
    for k in range(1, n + 1):
        first = j = nodes[FIRST, k]
        while j > 0:  # the words whose arcs lead through k
            heads[j] = k
            j = nodes[NEXT, j]
        if k == next_root:
            heads[k] = 0
            j, next_root = first, nodes[ROOT_STAGES, k]
            _schedule(k, next_root, nodes)
        else:
            if first > 0:  # the words below k are no heads
                stream = _draw_joined_head(tables, stages, k, heads, nodes, stream)
            else:
                stream, u = uniform(stream)
                heads[k] = _search(tables, k, u)
            j, nodes[NEXT, k] = k, first
        while j > 0:  # arcs that are new
            following = nodes[NEXT, j]
            stream, u = uniform(stream)
            _schedule(j, _find_stage(tables, stages.in_logs, n, heads[j], j, u), nodes)
            j = following
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


@kernel
def _find_stage(tables, in_logs, n, i, j, u):
    """Return the first word on the path of a new arc ``i -> j`` among the words up to both; ``n + 1`` if none.

    The sum of the arc's parts up to that word exceeds ``u`` times the whole.
    """
    if in_logs:
        return _find_log_stage(tables, n, i, j, u)
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
def _draw_joined_head(tables, stages, k, heads, nodes, stream):
    """Draw a head of ``k`` that is connected with node 0: by trial, because most are; then among connected nodes."""
    for _ in range(HEAD_TRIES):
        stream, u = uniform(stream)
        heads[k] = node = _search(tables, k, u)
        while 0 < node < k:
            node = heads[node]
        if node == 0:
            return stream
    _find_joined(k, heads, nodes)
    stream, u = uniform(stream)
    heads[k] = _find_joined_head(tables, stages, k, u, nodes)
    return stream


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
def _find_joined_head(tables, stages, k, u, nodes):
    """Return the first connected head at which the sum of shares exceeds ``u`` times the whole."""
    first, top = 1 if stages.single_root else 0, 0.0
    if stages.in_logs:
        top = -np.inf
        for i in range(first, k):
            top = max(top, tables[SHARES, i, k]) if nodes[JOINED, i] else top
    total = 0.0
    for i in range(first, k):
        total += _joined_share(tables, stages, k, i, top, nodes)
    head, reached = first, 0.0
    for i in range(first, k):
        share = _joined_share(tables, stages, k, i, top, nodes)
        reached += share
        head = i if share > 0.0 else head
        if u * total < reached:
            break
    return head


@exact_kernel
def _joined_share(tables, stages, k, i, top, nodes):
    share = tables[SHARES, i, k]
    share = exp(share - top) if stages.in_logs else share
    return share if nodes[JOINED, i] else 0.0
