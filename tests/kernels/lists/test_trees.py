"""Lists of the best trees of either family against enumeration, and what holds of lists too long for it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from helpers.batches import assert_same_alone, mixed_batch
from helpers.oracles import Array, all_trees, tree_scores
from helpers.ranking import KINDS, Trees, random_graph, ranked_trees, tree_keys

from treeparse.kernels.best import arborescence, eisner
from treeparse.kernels.lists.nonprojective_lists import NonprojectiveKBest
from treeparse.kernels.lists.projective_lists import ProjectiveKBest

ROOTS = pytest.mark.parametrize("single_root", [True, False], ids=["single-root", "multi-root"])
EVERY_KIND = pytest.mark.parametrize("kind", KINDS)


@dataclass(frozen=True)
class Family:
    """The trees of a family, their lists, the best of them, and how far sums of scores agree."""

    projective: bool
    lists: type[Any]
    best_trees: Callable[..., Trees]
    are_trees: Callable[..., np.ndarray]
    digits: float

    def k_best(self, scores: Array, single_root: bool, count: int) -> Any:
        """A list of one item."""
        found = self.lists(scores[None], np.array([len(scores) - 1]), single_root=single_root)
        found.extend(count)
        return found

    def assert_ranked(self, scores: Array, single_root: bool, count: int) -> None:
        """The first trees are those of enumeration, in its order; nothing stands behind the last."""
        n = len(scores) - 1
        trees, totals = ranked_trees(scores, all_trees(n, single_root, self.projective))
        found = self.k_best(scores, single_root, count)
        assert found.heads.shape == (1, count, n + 1)
        assert (found.heads[..., 0] == -1).all()
        trees, totals = trees[:count], totals[:count]
        np.testing.assert_allclose(found.scores[0, : len(totals)], totals, rtol=self.digits)
        np.testing.assert_array_equal(found.heads[0, : len(trees), 1:], trees)
        assert (found.heads[0, len(trees) :] == -1).all()
        assert (found.scores[0, len(trees) :] == -np.inf).all()


NONPROJECTIVE = Family(False, NonprojectiveKBest, arborescence.best_trees, arborescence.are_trees, 1e-12)
PROJECTIVE = Family(True, ProjectiveKBest, eisner.best_trees, eisner.are_projective_trees, 0.0)
FAMILIES = pytest.mark.parametrize("family", [NONPROJECTIVE, PROJECTIVE], ids=["nonprojective", "projective"])


@FAMILIES
@ROOTS
@EVERY_KIND
@pytest.mark.parametrize("forbidden", [0.0, 0.3, 0.6])
def test_lists_equal_enumeration(family: Family, single_root: bool, kind: str, forbidden: float) -> None:
    """Whole lists of up to five words, and the first trees of six."""
    stream = np.random.default_rng(1)
    for n in (1, 2, 3, 3, 4, 4) * 15 + (5,) * 3:
        count = len(all_trees(n, single_root, family.projective)) + 2
        family.assert_ranked(random_graph(stream, n, kind, forbidden), single_root, count)
    for _ in range(4):
        family.assert_ranked(random_graph(stream, 6, kind, forbidden), single_root, 100)


@FAMILIES
@ROOTS
@EVERY_KIND
@pytest.mark.nojit
def test_small_graphs(family: Family, single_root: bool, kind: str) -> None:
    stream = np.random.default_rng(4)
    for trial in range(12):
        n = 1 + trial % 4
        family.assert_ranked(random_graph(stream, n, kind, 0.2 * (trial % 3)), single_root, 20)


def test_a_tie_that_forbidding_an_arc_makes() -> None:
    """Two heads of a word tie for the best only once its best head is forbidden."""
    inf = np.inf
    scores = np.array(
        [[0, 2, -inf, 3, -inf], [0, 0, 6, 0, 0], [0, -inf, 0, -2, 2], [0, -inf, 0, 0, 0], [0, 0, -1, 7, 0]]
    )
    for count in range(1, 25):
        NONPROJECTIVE.assert_ranked(scores, False, count)


def changed_trees(family: Family, heads: Trees, n: int) -> Trees:
    """All trees (trees, n+1) that have another head than a tree in one or two places, and the tree itself."""
    lists = [heads]
    for first in range(1, n + 1):
        for second in range(first, n + 1):
            grid = np.stack(np.meshgrid(np.arange(n + 1), np.arange(n + 1), indexing="ij"), -1).reshape(-1, 2)
            changed = np.repeat(heads[None], len(grid), 0)
            changed[:, first], changed[:, second] = grid[:, 0], grid[:, 1]
            lists.extend(changed)
    lists = np.unique(np.array(lists), axis=0)
    return lists[family.are_trees(lists, np.full(len(lists), n), single_root=True)]


@FAMILIES
@EVERY_KIND
def test_no_tree_near_the_best_is_missed(family: Family, kind: str) -> None:
    """Twelve words: every tree that differs from the best in up to two heads and beats the last one is in the list."""
    n, count = 12, 60
    scores = random_graph(np.random.default_rng(5), n, kind, 0.1)
    found = family.k_best(scores, True, count)
    trees, totals = ranked_trees(scores, changed_trees(family, found.heads[0, 0], n)[:, 1:])
    listed = {tuple(heads) for heads in found.heads[0, :, 1:].tolist()}
    better = [tuple(heads) for heads in trees[totals > found.scores[0, -1] + 1e-9].tolist()]
    assert set(better) <= listed
    np.testing.assert_array_equal(trees[0], found.heads[0, 0, 1:])


def assert_valid(family: Family, found: Any, scores: Array, lengths: np.ndarray, single_root: bool) -> None:
    """Trees in order, ties included, no two the same, the best one first, with the scores that their arcs sum to."""
    np.testing.assert_array_equal(found.heads[:, 0], family.best_trees(scores, lengths, single_root=single_root))
    for item, n in enumerate(lengths):
        heads, totals = found.heads[item], found.scores[item]
        assert family.are_trees(heads, np.full(len(heads), n), single_root=single_root).all()
        assert len(np.unique(heads, axis=0)) == len(heads)
        arcs = scores[item][heads[:, 1 : n + 1], np.arange(1, n + 1)]
        np.testing.assert_array_equal(totals, np.cumsum(arcs, axis=1)[:, -1])
        order = np.lexsort((-tree_keys(heads[:, 1 : n + 1]), -totals))
        np.testing.assert_array_equal(order, np.arange(len(heads)))


@FAMILIES
@ROOTS
@EVERY_KIND
@pytest.mark.parametrize("n", [20, 40, 100])
def test_longer_lists_are_distinct_ordered_trees(family: Family, single_root: bool, kind: str, n: int) -> None:
    """Scores are multiples of 2^-20, so that sums are exact whatever their order."""
    stream, lengths = np.random.default_rng(n), np.array([n, n - 9])
    scores = np.stack([random_graph(stream, n, kind, 0.2) for _ in lengths])
    scores = np.round(scores * 2.0**20) / 2.0**20
    found = family.lists(scores, lengths, single_root=single_root)
    found.extend(80)
    assert_valid(family, found, scores, lengths, single_root)


@ROOTS
def test_a_pool_that_runs_out_is_enlarged(single_root: bool) -> None:
    """Thousands of trees of a short sentence beside one of 300 words."""
    stream, lengths = np.random.default_rng(8), np.array([8, 300])
    scores = np.round(stream.normal(size=(2, 301, 301)) * 2.0**20) / 2.0**20
    found = ProjectiveKBest(scores, lengths, single_root=single_root)
    found.extend(3000)
    assert_valid(PROJECTIVE, found, scores, lengths, single_root)


@pytest.mark.parametrize("magnitude", [1.0, 1e17, 1e20])
def test_rounding_neither_repeats_nor_loses_trees(magnitude: float) -> None:
    """Sums that tie but for rounding; from 1e17 on, a class may be found to have another best tree than before."""
    stream = np.random.default_rng(6)
    for n in (4, 5):
        trees = all_trees(n, True)
        for _ in range(30):
            scores = stream.choice([0.1, 0.2, 0.3, 0.7], size=(n + 1, n + 1))
            scores += magnitude * stream.integers(0, 2, size=scores.shape)
            found = NONPROJECTIVE.k_best(scores, True, len(trees) + 1)
            listed = found.heads[0, : len(trees), 1:]
            np.testing.assert_array_equal(np.unique(listed, axis=0), np.unique(trees, axis=0))
            assert (found.heads[0, -1] == -1).all()
            expected = np.sort(tree_scores(scores, trees))[::-1]
            np.testing.assert_allclose(found.scores[0, :-1], expected, rtol=0, atol=1e-14 * n * (1 + magnitude))


@FAMILIES
@ROOTS
@pytest.mark.nojit
def test_resuming_equals_one_go(family: Family, single_root: bool) -> None:
    """What the caller does to its arrays later does not change a list that is still growing."""
    stream, lengths = np.random.default_rng(6), np.array([5, 3, 7, 1])
    scores = np.stack([random_graph(stream, 7, "tied", 0.1) for _ in lengths])
    whole = family.lists(scores, lengths, single_root=single_root)
    whole.extend(90)
    changing, words = scores.copy(), lengths.copy()
    parts = family.lists(changing, words, single_root=single_root)
    assert parts.heads.shape == (4, 0, 8)
    for count in (1, 2, 2, 1, 9, 10, 57, 90):
        parts.extend(count)
        changing[:], words[:] = 0.0, 1
        np.testing.assert_array_equal(parts.heads, whole.heads[:, : parts.heads.shape[1]])
        np.testing.assert_array_equal(parts.scores, whole.scores[:, : parts.heads.shape[1]])
    assert parts.heads.shape == (4, 90, 8)


@FAMILIES
@ROOTS
@pytest.mark.nojit
def test_an_item_is_the_same_alone_and_in_a_batch(family: Family, single_root: bool) -> None:
    def decode(lengths: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        trees = family.lists(scores, lengths, single_root=single_root)
        trees.extend(20, threads=2)
        return trees.heads, trees.scores

    heads, _ = assert_same_alone(decode, (-1, np.nan), *mixed_batch(7, "random", "tied"))
    assert (heads[3] == -1).all()
