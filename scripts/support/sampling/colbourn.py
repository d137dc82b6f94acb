"""Trees drawn word by word: Colbourn, Myrvold and Neufeld 1996, as [Samp] and [Unb] apply it to dependency trees.

With any number of roots and the inverse B of the Laplacian (columns are dependents, degrees on the diagonal), word
``j`` hangs from ``h`` with probability ``w(h -> j) (B[j, j] - B[j, h])``, where ``B[j, 0] = 0``. Once its head is
drawn, its column of the Laplacian becomes that of the one arc. By Sherman and Morrison's formula, and since B times the
old column is a unit vector, what is left of that update is, for all other words ``i``,

    B[i, :] -= B[j, :] (B[i, j] - B[i, h]) / (B[j, j] - B[j, h])

which only the words to come need: O(n^3) a tree with a small constant. ([Samp] (19c-d) and [Unb] (8) misprint it.)
With a single root, its word is drawn first (see ``expansion`` in ``treeparse.kernels.samples``) and takes the place of
node 0 in a sentence without it; [Unb] replaces a row of the Laplacian instead, whose inverse has entries of both signs.

B itself follows from the elimination, and nothing is subtracted. The differences above lose digits where a walk up from
``h`` nearly always comes back to ``j``, and where walks pass ``j`` very often. There, the rest of the tree is drawn by
``expansion`` from what is left of the sentence.
"""

import numpy as np

from treeparse.kernels.compile import exact_kernel, kernel
from treeparse.kernels.random import new_stream, uniform
from treeparse.kernels.samples.expansion import (
    NO_STAGES,
    ORIGINAL,
    SHARES,
    TABLES,
    WEIGHTS,
    draw_root,
    draw_tree,
    new_memory,
    set_up,
)
from treeparse.kernels.tree_weights import matrices, range_sum, square

MAX_VISITS = 1e4  # of a walk at a word, on average: the absolute error of a probability is about 1e-16 times that
MIN_ESCAPE = 1e-4  # probability that a walk up from a head does not come back: its relative error is 1e-16 over that


@exact_kernel
def sample_word_by_word(start, stop, lengths, scores, seeds, single_root, method, steps_a_pair, heads, steps):
    """Draw trees word by word, as a kernel. Samples with the same word at the root share its inverse."""
    size, count = scores.shape[1], heads.shape[1]
    memories = new_memory(size), new_memory(size), new_memory(size)
    items = np.empty((2, size * size))  # without the word at the root, and what is left of that
    tops, streams = np.zeros(count, np.int64), np.empty(count, np.uint64)
    for b in range(start, stop):
        n = lengths[b]
        tables = matrices(memories[0][0], TABLES, n)
        stages = set_up(scores[b], n, single_root, memories[0][1], tables)
        samples_at = np.zeros(n + 1, np.int64)
        for s in range(count if stages.exists else 0):
            streams[s] = new_stream(seeds[b], s)
            if single_root:
                streams[s], tops[s] = draw_root(tables, stages, n, streams[s], memories[0][2])
            samples_at[tops[s]] += 1
            steps[b, s] = n
        for top in range(n + 1):
            if samples_at[top] > 0:
                _sample_below(scores[b], n, top, tops, streams, memories, items, heads[b])


@exact_kernel
def _sample_below(scores, n, top, tops, streams, memories, items, heads):
    """The samples that have word ``top`` at the root, or all below node 0, from one inverse."""
    words = n if top == 0 else n - 1
    item = square(items[0], words)
    _put_at_root(scores, top, item)
    tables = matrices(memories[1][0], TABLES, words)
    stages = set_up(item, words, False, memories[1][1], tables)
    original = tables[ORIGINAL]
    inverse, left = np.zeros((words + 1, words + 1)), np.empty((words + 1, words + 1))
    if not stages.in_logs:
        _invert(tables, words + 1, left, inverse)
    is_accurate = not stages.in_logs and _most_visits(original, inverse) <= MAX_VISITS
    drawn = np.empty(words + 1, np.int64)
    for s in range(len(heads)):
        if tops[s] != top:
            continue
        if is_accurate:
            _copy(inverse, left)
            stream, j, is_unlikely = _draw_words(original, left, streams[s], drawn)
            if j <= words:
                _draw_rest(item, left, j, is_unlikely, stream, memories[2], square(items[1], words), drawn)
        else:
            draw_tree(tables, stages, words, streams[s], memories[1][2], drawn)
        heads[s, top] = 0
        for j in range(1, words + 1):
            heads[s, _node(j, top)] = _node(drawn[j], top)
        heads[s, 0] = -1


@exact_kernel
def _node(j, top):
    """The node of the sentence that is ``j`` where ``top`` takes the place of node 0."""
    if j == 0:
        return top
    return j if j < top or top == 0 else j + 1


@exact_kernel
def _put_at_root(scores, top, item):
    for i in range(item.shape[0]):
        for j in range(1, item.shape[0]):
            item[i, j] = scores[_node(i, top), _node(j, top)]


@kernel
def _invert(tables, size, rows, inverse):
    """The inverse of the Laplacian from the stages of its elimination, without subtraction.

    Every unit vector is eliminated along with the words, then solved for; ``rows[k]`` holds entry ``k`` of them all.
    """
    rows[:] = 0.0
    for k in range(size - 1, 0, -1):
        rows[k, k] = 1.0
        for m in range(k, size):
            rows[k, m] /= tables[SHARES, k, k]
        for j in range(1, k):
            through = tables[WEIGHTS, j, k]
            for m in range(k, size):
                rows[j, m] += through * rows[k, m]
    for k in range(2, size):
        for i in range(1, k):
            share = tables[WEIGHTS, k, i]
            for m in range(1, size):
                rows[k, m] += share * rows[i, m]
    for m in range(1, size):
        for k in range(1, size):
            inverse[m, k] = rows[k, m]


@exact_kernel
def _most_visits(original, inverse):
    """How often a walk from a word passes that word, at most, on average."""
    most = 0.0
    for j in range(1, len(inverse)):
        most = max(most, range_sum(original[j], 0, len(inverse)) * inverse[j, j])
    return most


@exact_kernel
def _draw_words(original, left, stream, drawn):
    """Draw heads until differences of ``left``, the inverse of what is left, get too small.

    Returns the stream, the first word without a head, past the end if all have one, and whether a head of small
    difference was drawn for it.
    """
    for j in range(1, len(drawn)):
        stream, u = uniform(stream)
        head = _find_head(original, left, j, u)
        is_accurate = range_sum(original[j], 0, len(drawn)) * left[j, j] <= MAX_VISITS
        if not is_accurate or left[j, j] - left[j, head] < MIN_ESCAPE * left[j, j]:
            return stream, j, is_accurate
        drawn[j] = head
        _fix_head(left, j, head)
    return stream, len(drawn), False


@exact_kernel
def _find_head(original, left, j, u):
    """A head of word ``j``, given those of the words before."""
    total = 0.0
    for i in range(len(left)):
        total += original[j, i] * max(left[j, j] - left[j, i], 0.0)
    head, reached = 0, 0.0
    for i in range(len(left)):
        part = original[j, i] * max(left[j, j] - left[j, i], 0.0)
        reached += part
        head = i if part > 0.0 else head
        if u * total < reached:
            break
    return head


@kernel
def _fix_head(left, j, head):
    escape = left[j, j] - left[j, head]
    for i in range(j + 1, len(left)):
        ratio = (left[i, j] - left[i, head]) / escape
        for m in range(1, len(left)):
            left[i, m] -= ratio * left[j, m]


@exact_kernel
def _draw_rest(item, left, j, is_unlikely, stream, memory, rest, drawn):
    """Draw anew from word ``j`` on: if it ``is_unlikely`` to have a head of small difference, among those.

    If none of them is possible, rounding alone had one drawn.
    """
    n = len(item) - 1
    tables, stages = matrices(memory[0], TABLES, n), NO_STAGES
    if is_unlikely:
        _keep_heads(item, drawn, j, rest)
        for i in range(n + 1):
            if left[j, j] - left[j, i] >= MIN_ESCAPE * left[j, j]:
                rest[i, j] = -np.inf
        stages = set_up(rest, n, False, memory[1], tables)
    if not stages.exists:
        _keep_heads(item, drawn, j, rest)
        stages = set_up(rest, n, False, memory[1], tables)
    draw_tree(tables, stages, n, stream, memory[2], drawn)


@exact_kernel
def _keep_heads(item, drawn, j, rest):
    """The item without what competes with the heads of the words before ``j``."""
    _copy(item, rest)
    for word in range(1, j):
        for i in range(len(item)):
            rest[i, word] = item[i, word] if i == drawn[word] else -np.inf


@exact_kernel
def _copy(source, target):
    for i in range(len(source)):
        for j in range(len(source)):
            target[i, j] = source[i, j]
