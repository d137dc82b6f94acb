"""Best trees with scores of adjacent siblings, crossing arcs included: exact, with an upper bound at any time.

The problem is NP-hard. A tree's score is at most

    bound(u) = the best tree under arcs / 2 + u, plus the best dependents of every head under arcs / 2 - u and siblings

for every ``u[head, dependent]`` (Koo et al. 2010): ``arborescence`` finds the first part, ``_choose_dependents`` the
second one. Where both choose the same arcs, that tree is the best one. ``u`` moves against the arcs on which they
disagree, until the bound meets the best score found or ROUNDS are over. A step is as long as it takes to bring the
bound down to that score, were the bound linear, times STRETCH, which is below 2 (Polyak 1969); shorter, where the bound
does not fall. Then the arc that was chosen in about half of the cases is forbidden in one branch and forced in another,
and the branch of the highest bound comes next. Most sentences of trained parsers need no branch.

Trees are found by ``climbing`` from the best projective tree, and from the trees of the rounds.
"""

from typing import Any, NamedTuple

import numpy as np

from treeparse.kernels import AnyFloatArray, FloatArray, IntArray
from treeparse.kernels.best.arborescence import find_best_tree, new_memory
from treeparse.kernels.best.climbing import climb, new_climbing_memory, score_of_heads
from treeparse.kernels.best.second_order_trees import best_trees
from treeparse.kernels.compile import exact_kernel
from treeparse.kernels.heap import pop, push
from treeparse.kernels.threads import run_batch

ROUNDS = 200  # of a branch
CLIMBED = 4  # the trees of every so manieth round are climbed
STRETCH = 1.9  # of a step over the one that would close the gap, were the bound linear
SHORTENING = 0.7  # what the stretch is multiplied by after PATIENCE rounds without progress
PATIENCE = 30
PROGRESS = 1e-3  # the least fall of the bound that is progress, as a share of the gap
TOLERANCE = 1e-12  # of a bound over the score that it certifies, as a share of the scores' size


class Search(NamedTuple):
    """Working memory for the search of one sentence."""

    halves: FloatArray  # (n+1, n+1) arcs / 2 + u, of trees
    others: FloatArray  # (n+1, n+1) arcs / 2 - u, of dependents
    chosen: IntArray  # (n+1, n+1) [head, dependent]
    uses: IntArray  # (n+1, n+1) how often either part chose an arc: twice a round if both do
    # The score of every head's dependents (n+1,); heads whose dependents must be chosen again; a tree; another.
    values: FloatArray
    is_stale: IntArray
    tree: IntArray
    climbed: IntArray
    best: FloatArray  # (n+1,) as the next one, for ``_choose_dependents``
    previous: IntArray
    weights: FloatArray  # as the next one, of ``arborescence``
    nodes: IntArray
    gains: FloatArray  # as the next one, of ``climbing``
    lists: IntArray


def best_trees_with_bounds(
    arcs: FloatArray,
    siblings: AnyFloatArray,
    lengths: IntArray,
    *,
    single_root: bool,
    items: IntArray | None = None,
    limit: int | None,
    threads: int = 1,
) -> tuple[Any, ...]:
    """Return heads ``(B, n+1)``, scores, upper bounds, whether the trees are known to be best, and branches ``(B,)``.

    Args:
        arcs: ``(B, n+1, n+1)``.
        siblings: ``(B, n+1, n+1, n+1)``, float32 or float64; with ``items`` of any items, whose indices are in it.
        lengths: ``(B,)``.
        single_root: whether exactly one word hangs from the root.
        items: ``(B,)`` the index in ``siblings`` of every item, or None.
        limit: the largest number of branches to search, None for no limit.
        threads: how many threads share the batch.
    """
    batch = len(lengths)
    heads = best_trees(arcs, siblings, lengths, single_root=single_root, items=items, threads=threads)
    scores, bounds = np.empty(batch), np.empty(batch)
    certified, branches = np.empty(batch, np.bool_), np.empty(batch, np.int64)
    items = np.arange(batch) if items is None else items
    most = np.iinfo(np.int64).max if limit is None else limit
    arguments = lengths, items, arcs, siblings, single_root, most, heads, scores, bounds, certified, branches
    run_batch(_search, lambda n: 10 * n**3, *arguments, threads=threads)
    return heads, scores, bounds, certified, branches


@exact_kernel
def _search(
    start, stop, lengths, items, arcs, siblings, single_root, limit, heads, scores, bounds, certified, branches
):
    search = _new_search(arcs.shape[1])
    for b in range(start, stop):
        n, parts = lengths[b], siblings[items[b]]
        if n == 0:
            scores[b], bounds[b], certified[b], branches[b] = 0.0, 0.0, True, 0
            continue
        score = -np.inf
        if heads[b, 1] >= 0:
            score = climb(arcs[b], parts, n, single_root, heads[b], search.gains, search.lists)
        result = _branch_and_bound(arcs[b], parts, n, single_root, limit, score, heads[b], search)
        scores[b], bounds[b], branches[b] = result
        certified[b] = bounds[b] <= scores[b] + _tolerance(arcs[b], parts, n)


@exact_kernel
def _new_search(size):
    """Return working memory for sentences of up to ``size`` nodes, the root included."""
    halves, others = np.empty((size, size)), np.empty((size, size))
    chosen, uses = np.empty((size, size), np.int64), np.empty((size, size), np.int64)
    values, is_stale, tree = np.empty(size), np.empty(size, np.int64), np.empty(size, np.int64)
    climbed, best, previous = np.empty(size, np.int64), np.empty(size), np.empty(size, np.int64)
    (weights, nodes), (gains, lists) = new_memory(size), new_climbing_memory(size)
    return Search(
        halves, others, chosen, uses, values, is_stale, tree, climbed, best, previous, weights, nodes, gains, lists
    )


@exact_kernel
def _branch_and_bound(arcs, siblings, n, single_root, limit, score, heads, search):
    """Improve a tree, and its score, to the best one; return score, upper bound, and the number of branches searched.

    A branch is scores of arcs, -inf for what it forbids, and ``u``; it waits with the bound of the branch above.
    """
    nodes, capacity = n + 1, 4
    allowed, moved = np.empty((capacity, nodes, nodes)), np.empty((capacity, nodes, nodes))
    waiting, ages = np.empty(capacity), np.zeros(capacity, np.int64)
    heap = np.empty(capacity, np.int64)
    tolerance = _tolerance(arcs, siblings, n)
    for h in range(nodes):
        for d in range(nodes):
            allowed[0, h, d] = arcs[h, d] if d > 0 and h != d else -np.inf
            moved[0, h, d] = 0.0
    waiting[0], heap[0] = np.inf, 0
    size, used, searched = 1, 1, 0
    while size > 0:
        top = waiting[heap[0]]
        if top <= score + tolerance:
            return score, max(top, score), searched
        if searched == limit:
            return score, top, searched
        here = pop(heap, size, waiting, ages)
        size -= 1
        searched += 1
        bound, score = _bound(
            arcs, siblings, n, single_root, allowed[here], moved[here], score, tolerance, heads, search
        )
        bound = min(bound, top)
        if bound <= score + tolerance:
            continue
        if used + 1 >= capacity:
            allowed, moved = _larger(allowed, used), _larger(moved, used)
            waiting, ages, heap = (
                np.resize(waiting, 2 * capacity),
                np.resize(ages, 2 * capacity),
                np.resize(heap, 2 * capacity),
            )
            capacity *= 2
        h, d = _most_doubtful(search.uses, allowed[here], n)
        other = used
        used += 1
        allowed[other], moved[other] = allowed[here], moved[here]
        allowed[here, h, d] = -np.inf
        for i in range(nodes):
            if i != h:
                allowed[other, i, d] = -np.inf
        for branch in (here, other):
            waiting[branch], ages[branch] = bound, -searched
            push(heap, size, branch, waiting, ages)
            size += 1
    return score, score, searched


@exact_kernel
def _larger(arrays, used):
    """Return twice as many arrays, the first ``used`` the same."""
    result = np.empty((2 * len(arrays), arrays.shape[1], arrays.shape[2]))
    result[:used] = arrays[:used]
    return result


@exact_kernel
def _tolerance(arcs, siblings, n):
    """Return by how much a bound may exceed the best score through rounding."""
    size = 0.0
    for d in range(1, n + 1):
        most = 0.0
        for h in range(n + 1):
            if h != d and abs(arcs[h, d]) < np.inf:
                most = max(most, abs(arcs[h, d]))
            if h != d:
                for s in range(min(h, d), max(h, d)):
                    if (s > h or s == h or h > d) and s != d and abs(siblings[h, d, s]) < np.inf:
                        most = max(most, np.float64(abs(siblings[h, d, s])))
        size += most
    return TOLERANCE * size


@exact_kernel
def _most_doubtful(uses, allowed, n):
    """Return the arc chosen in the share of cases nearest to a half, of a word that has another head left."""
    most, head, dependent = -1, 0, 0
    for d in range(1, n + 1):
        count = 0
        for h in range(n + 1):
            count += allowed[h, d] > -np.inf
        if count < 2:
            continue
        for h in range(n + 1):
            doubt = min(uses[h, d], 2 * ROUNDS - uses[h, d])
            if allowed[h, d] > -np.inf and doubt > most:
                most, head, dependent = doubt, h, d
    return head, dependent


@exact_kernel
def _is_decided(allowed, n):
    """Whether every word of a branch has one head."""
    for d in range(1, n + 1):
        count = 0
        for h in range(n + 1):
            count += allowed[h, d] > -np.inf
        if count > 1:
            return False
    return True


@exact_kernel
def _bound(arcs, siblings, n, single_root, allowed, u, score, tolerance, heads, search):
    """Lower the bound of a branch; return it, and the score of the best tree known, whose heads are updated.

    Less than that score plus the tolerance, a bound need not be lowered further.
    """
    halves, others, chosen, uses, values, is_stale, tree, climbed, best, previous, weights, nodes, gains, lists = search
    lowest, waited, stretch = np.inf, 0, STRETCH
    is_decided = _is_decided(allowed, n)
    _begin_branch(n, allowed, u, halves, others, uses, is_stale)
    for turn in range(ROUNDS):
        if not find_best_tree(halves, n, single_root, weights, nodes, tree):
            return -np.inf, score
        bound = 0.0
        for d in range(1, n + 1):
            bound += halves[tree[d], d]
        for h in range(n + 1):
            if is_stale[h]:
                values[h] = _choose_dependents(others, siblings, h, n, single_root, best, previous, chosen)
            bound += values[h]
        if bound == -np.inf:
            return -np.inf, score
        found, offered = score_of_heads(arcs, siblings, tree, n), tree
        if turn % CLIMBED == 0 and found > -np.inf and found >= score - (bound - score):
            for d in range(n + 1):
                climbed[d] = tree[d]
            found, offered = climb(arcs, siblings, n, single_root, climbed, gains, lists), climbed
        if found > score:
            for d in range(1, n + 1):
                heads[d] = offered[d]
            heads[0], score = -1, found
        gap = bound - score if score > -np.inf else 1.0 + abs(bound)
        waited += bound > lowest - PROGRESS * gap
        lowest = min(lowest, bound)
        if is_decided:
            return score, score
        if lowest <= score + tolerance:
            return lowest, score
        distance = _count_choices(n, tree, chosen, uses, is_stale)
        if distance == 0:  # the tree is the best one of the branch
            return min(lowest, score), score
        if waited > PATIENCE:
            waited, stretch = 0, SHORTENING * stretch
        _move(n, stretch * gap / distance, tree, chosen, is_stale, u, halves, others)
    return lowest, score


@exact_kernel
def _begin_branch(n, allowed, u, halves, others, uses, is_stale):
    """Fill both parts' scores of arcs."""
    for h in range(n + 1):
        is_stale[h] = 1
        for d in range(n + 1):
            half, uses[h, d] = 0.5 * allowed[h, d], 0
            halves[h, d] = half + u[h, d] if half > -np.inf else -np.inf
            others[h, d] = half - u[h, d] if half > -np.inf else -np.inf


@exact_kernel
def _count_choices(n, tree, chosen, uses, is_stale):
    """Count the uses of arcs; return how many arcs only the tree or only a head has."""
    count = 0
    for h in range(n + 1):
        is_stale[h] = 0
        for d in range(1, n + 1):
            in_tree = tree[d] == h
            uses[h, d] += in_tree + chosen[h, d]
            if chosen[h, d] != in_tree:
                count += 1
                is_stale[h] = 1
    return count


@exact_kernel
def _move(n, step, tree, chosen, is_stale, u, halves, others):
    """Make arcs dearer where only the tree has them, cheaper where only a head has them."""
    for h in range(n + 1):
        if is_stale[h]:
            for d in range(1, n + 1):
                if chosen[h, d] != (tree[d] == h):
                    change = step if chosen[h, d] else -step
                    u[h, d] += change
                    halves[h, d] += change
                    others[h, d] -= change


@exact_kernel
def _choose_dependents(arcs, siblings, h, n, single_root, best, previous, chosen):
    """Fill ``chosen[h, d]`` for all words d by whether d is one of the best dependents of h; return their score.

    A head by itself chooses its dependents outwards on either side, and may have none; node 0 has one with a single
    root, and one or more otherwise. With d the last dependent chosen, and s any node between (Koo et al. 2010, *Dual
    decomposition for parsing with non-projective head automata*):

        best(d) = arc(h, d) + the greatest of sibling(h, d, h) and best(s) + sibling(h, d, s)
    """
    total = 0.0
    for d in range(n + 1):
        chosen[h, d] = 0
    for end, side in ((n + 1, 1), (0, -1)):
        last, highest = h, -np.inf if h == 0 else 0.0
        for d in range(h + side, end, side):
            best[d], previous[d] = siblings[h, d, h], h
            for s in range(h + side, h if h == 0 and single_root else d, side):
                other = best[s] + siblings[h, d, s]
                if other > best[d]:
                    best[d], previous[d] = other, s
            best[d] = best[d] + arcs[h, d] if arcs[h, d] > -np.inf else -np.inf
            if best[d] > highest:
                last, highest = d, best[d]
        total += highest if h > 0 or side > 0 else 0.0
        while last != h:
            chosen[h, last] = 1
            last = previous[last]
    return total
