"""Labelled trees in order against the sorted list of them all."""

import itertools
from collections.abc import Callable

import numpy as np
import pytest
from helpers.oracles import all_trees, tree_scores

from treeparse.kernels.lists.labeled import LabeledTrees
from treeparse.kernels.ties import tree_key

Labelled = tuple[float, int, int, tuple[int, ...]]  # score, key, tree and ranks


class Lists:
    """A batch's lists of trees, arcs' label scores, and how the kernel is given ever longer parts of the lists.

    ``values`` hold for every item, arc and label the sum of both scores, best first, ``(B, n+1, n+1, L)``.
    """

    def __init__(self, values: np.ndarray, lengths: np.ndarray, single_root: bool = True) -> None:
        self.values, self.lengths = values, lengths
        self.items, self.size = values.shape[:2]
        self.keys: list[list[int]] = []
        lists = []
        for item, n in enumerate(lengths):
            trees = all_trees(n, single_root)
            scores = sums_in_order(values[item, :, :, 0], trees)
            keys = np.array([tree_key(np.array([-1, *tree]), n) for tree in trees])
            order = np.lexsort((-keys, -scores))
            order = order[scores[order] > -np.inf]
            lists.append(trees[order])
            self.keys.append(keys[order].tolist())
        self.heads = np.full((self.items, max(map(len, lists)) + 1, self.size), -1)
        for item, trees in enumerate(lists):
            self.heads[item, : len(trees), 1 : lengths[item] + 1] = trees
        position = np.arange(self.size)
        item = np.arange(self.items)[:, None, None]
        self.rows = np.where(self.heads < 0, -1, (item * self.size + self.heads) * self.size + position)

    def first(self, count: int, step: Callable[[int], int] = lambda given: 2 * given) -> LabeledTrees:
        """The best ``count`` labelled trees, all at once, from a list that grows as more trees are needed."""
        found = LabeledTrees(self.lengths, self.size)
        given = 1
        while self.extend(found, count, given):
            assert given < count
            given = min(step(given), count)
        return found

    def extend(self, found: LabeledTrees, count: int, given: int) -> bool:
        heads, rows = (np.ascontiguousarray(array[:, :given]) for array in (self.heads, self.rows))
        if given > heads.shape[1]:
            missing = given - heads.shape[1]
            heads, rows = (np.pad(x, ((0, 0), (0, missing), (0, 0)), constant_values=-1) for x in (heads, rows))
        return found.extend(count, heads, rows, self.values.reshape(-1, self.values.shape[-1]))

    def expected(self, item: int) -> list[Labelled]:
        """All labelled trees of an item in order."""
        n = self.lengths[item]
        result = []
        for tree, heads in enumerate(self.heads[item]):
            if heads[1] < 0:
                break
            for ranks in itertools.product(range(self.values.shape[-1]), repeat=n):
                score = 0.0
                for word, rank in enumerate(ranks, 1):
                    score += self.values[item, heads[word], word, rank]
                if score > -np.inf:
                    result.append((score, self.keys[item][tree], tree, ranks))
        return sorted(result, key=lambda labelled: (-labelled[0], -labelled[1], labelled[2], labelled[3]))

    def found(self, made: LabeledTrees, item: int) -> list[Labelled]:
        """What was made of an item, up to the first empty place."""
        n = self.lengths[item]
        count = int((made.trees[item] >= 0).sum())
        assert (made.trees[item, count:] == -1).all()
        assert (made.scores[item, count:] == -np.inf).all()
        rows = zip(made.scores[item, :count], made.trees[item], made.ranks[item], strict=False)
        return [
            (score, self.keys[item][tree], int(tree), tuple(ranks[1 : n + 1].tolist())) for score, tree, ranks in rows
        ]


def sums_in_order(scores: np.ndarray, trees: np.ndarray) -> np.ndarray:
    """Trees' scores, added word by word."""
    total = np.zeros(len(trees))
    for word in range(1, trees.shape[1] + 1):
        total += scores[trees[:, word - 1], word]
    return total


def random_values(n: int, labels: int, kind: str, forbidden: float, stream: np.random.Generator) -> np.ndarray:
    """Values of one item, best first; NaN where no arc is."""
    shape = n + 1, n + 1, labels
    values = stream.integers(-2, 2, size=shape).astype(float) if kind == "tied" else stream.normal(size=shape)
    if kind == "mixed":
        values *= 10.0 ** stream.integers(-3, 15, size=(1, n + 1, 1))
    values[stream.random(shape) < forbidden] = -np.inf
    values = -np.sort(-values, axis=-1)
    values[:, 0] = np.nan
    values[range(n + 1), range(n + 1)] = np.nan
    return values


@pytest.mark.parametrize("single_root", [True, False], ids=["single-root", "multi-root"])
@pytest.mark.parametrize("kind", ["random", "tied", "mixed"])
@pytest.mark.parametrize("forbidden", [0.0, 0.4])
def test_the_whole_list_equals_the_sorted_one(single_root: bool, kind: str, forbidden: float) -> None:
    """Also where rounding makes ties: scores of very different sizes."""
    stream = np.random.default_rng(1)
    for n, labels in [(1, 1), (1, 3), (2, 2), (2, 3), (3, 1), (3, 2), (3, 2)] * 4:
        values = random_values(n, labels, kind, forbidden, stream)
        lists = Lists(values[None], np.array([n]), single_root)
        expected = lists.expected(0)
        assert lists.found(lists.first(len(expected) + 2), 0) == expected


@pytest.mark.nojit
def test_a_batch_extended_step_by_step() -> None:
    """Items of several lengths, one without trees; the list of trees grows one by one, that of labelled ones too."""
    stream = np.random.default_rng(3)
    lengths = np.array([2, 3, 1, 3, 2])
    values = np.full((5, 4, 4, 2), np.nan)
    for item, n in enumerate(lengths):
        values[item, : n + 1, : n + 1] = random_values(n, 2, "tied", 0.2, stream)
    values[3, :, 2] = -np.inf
    lists = Lists(values, lengths)
    made = LabeledTrees(lengths, 4)
    given = 1
    for count in range(1, 40):
        while lists.extend(made, count, given):
            given += 1
            assert given <= count
        for item in range(5):
            assert lists.found(made, item) == lists.expected(item)[:count]
    assert (made.trees[3] == -1).all()


def test_no_more_trees_are_asked_for_than_needed() -> None:
    """A tree far above all others gives the list by itself; only that another comes next must be seen."""
    values = random_values(3, 3, "random", 0.0, np.random.default_rng(4))
    values[[2, 0, 2], [1, 2, 3]] += 100.0
    lists = Lists(values[None], np.array([3]))
    made = LabeledTrees(lists.lengths, 4)
    assert not lists.extend(made, 1, 1)
    assert lists.extend(made, 27, 1)
    assert not lists.extend(made, 27, 2)
    assert (made.trees[0] == 0).all()
    assert lists.extend(made, 29, 2)


def test_threads_share_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = np.random.default_rng(5)
    values = np.stack([random_values(3, 3, "random", 0.1, stream) for _ in range(64)])
    lists = Lists(values, np.full(64, 3))
    alone, together = LabeledTrees(lists.lengths, 4), LabeledTrees(lists.lengths, 4)
    flat = values.reshape(-1, 3)
    monkeypatch.setattr("treeparse.kernels.threads.MIN_THREAD_COST", 100)
    alone.extend(30, lists.heads, lists.rows, flat)
    together.extend(30, lists.heads, lists.rows, flat, threads=3)
    np.testing.assert_array_equal(alone.scores, together.scores)
    np.testing.assert_array_equal(alone.ranks, together.ranks)


def test_a_long_sentence_with_many_labels() -> None:
    """Two thousand words of one tree: the best labellings are the single raises with the smallest gaps."""
    stream = np.random.default_rng(6)
    n = 2000
    heads = np.arange(-1, n)[None, None]
    values = -np.sort(-stream.integers(0, 2**40, size=(n + 1, 5)).astype(float), axis=-1)
    gaps = np.sort(values[1:, 0] - values[1:, 1])
    made = LabeledTrees(np.array([n]), n + 1)
    assert made.extend(3, heads, np.arange(n + 1)[None, None], values)
    none = np.full((1, 2, n + 1), -1)
    none[:, :1] = heads
    assert not made.extend(3, none, np.arange(n + 1)[None, None].repeat(2, 1), values)
    best = tree_scores(np.tile(values[:, :1], (1, n + 1)).T, np.arange(n)[None])[0]
    assert (best - made.scores[0]).tolist() == [0.0, gaps[0], gaps[1]]
