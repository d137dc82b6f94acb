"""Lists of the best non-projective trees against enumeration, and what holds of lists too long for it."""

import numpy as np
import pytest
from helpers.batches import assert_same_alone, mixed_batch
from helpers.oracles import Array, all_trees, tree_scores
from helpers.ranking import KINDS, Trees, random_graph, ranked_trees

from treeparse.kernels.best.arborescence import are_trees, best_trees
from treeparse.kernels.lists.nonprojective_lists import NonprojectiveKBest

ROOTS = pytest.mark.parametrize("single_root", [True, False], ids=["single-root", "multi-root"])
EVERY_KIND = pytest.mark.parametrize("kind", KINDS)


def k_best(scores: Array, single_root: bool, count: int) -> NonprojectiveKBest:
    """A list of one item."""
    found = NonprojectiveKBest(scores[None], np.array([len(scores) - 1]), single_root=single_root)
    found.extend(count)
    return found


def assert_ranked(scores: Array, single_root: bool, count: int) -> None:
    """The first trees are those of enumeration, in its order; nothing stands behind the last."""
    n = len(scores) - 1
    trees, totals = ranked_trees(scores, all_trees(n, single_root))
    found = k_best(scores, single_root, count)
    assert found.heads.shape == (1, count, n + 1)
    assert (found.heads[..., 0] == -1).all()
    trees, totals = trees[:count], totals[:count]
    np.testing.assert_allclose(found.scores[0, : len(totals)], totals, rtol=1e-12)
    np.testing.assert_array_equal(found.heads[0, : len(trees), 1:], trees)
    assert (found.heads[0, len(trees) :] == -1).all()
    assert (found.scores[0, len(trees) :] == -np.inf).all()


@ROOTS
@EVERY_KIND
@pytest.mark.parametrize("forbidden", [0.0, 0.3, 0.6])
def test_whole_lists_equal_enumeration(single_root: bool, kind: str, forbidden: float) -> None:
    stream = np.random.default_rng(1)
    for n in (1, 2, 3, 3, 4, 4) * 15:
        assert_ranked(random_graph(stream, n, kind, forbidden), single_root, len(all_trees(n, single_root)) + 2)


@ROOTS
@EVERY_KIND
def test_whole_lists_of_five_words(single_root: bool, kind: str) -> None:
    stream = np.random.default_rng(2)
    for forbidden in (0.0, 0.0, 0.4):
        assert_ranked(random_graph(stream, 5, kind, forbidden), single_root, 1300)


@ROOTS
@EVERY_KIND
def test_the_first_trees_of_six_words(single_root: bool, kind: str) -> None:
    stream = np.random.default_rng(3)
    for forbidden in (0.0, 0.3, 0.6) * 4:
        assert_ranked(random_graph(stream, 6, kind, forbidden), single_root, 100)


@ROOTS
@EVERY_KIND
@pytest.mark.nojit
def test_small_graphs(single_root: bool, kind: str) -> None:
    stream = np.random.default_rng(4)
    for trial in range(12):
        n = 1 + trial % 4
        assert_ranked(random_graph(stream, n, kind, 0.2 * (trial % 3)), single_root, 20)


@ROOTS
def test_graphs_without_a_tree(single_root: bool) -> None:
    scores = np.zeros((4, 4))
    scores[:, 2] = -np.inf
    assert_ranked(scores, single_root, 3)
    scores = np.zeros((4, 4))
    scores[0] = -np.inf
    assert_ranked(scores, single_root, 3)


def test_a_tie_that_forbidding_an_arc_makes() -> None:
    """Two heads of a word tie for the best only once its best head is forbidden."""
    inf = np.inf
    scores = np.array(
        [[0, 2, -inf, 3, -inf], [0, 0, 6, 0, 0], [0, -inf, 0, -2, 2], [0, -inf, 0, 0, 0], [0, 0, -1, 7, 0]]
    )
    for count in range(1, 25):
        assert_ranked(scores, False, count)


def changed_trees(heads: Trees, n: int) -> Trees:
    """All trees (trees, n+1) that have another head than a tree in one or two places, and the tree itself."""
    lists = [heads]
    for first in range(1, n + 1):
        for second in range(first, n + 1):
            grid = np.stack(np.meshgrid(np.arange(n + 1), np.arange(n + 1), indexing="ij"), -1).reshape(-1, 2)
            changed = np.repeat(heads[None], len(grid), 0)
            changed[:, first], changed[:, second] = grid[:, 0], grid[:, 1]
            lists.extend(changed)
    lists = np.unique(np.array(lists), axis=0)
    return lists[are_trees(lists, np.full(len(lists), n), single_root=True)]


@EVERY_KIND
def test_no_tree_near_the_best_is_missed(kind: str) -> None:
    """Twelve words: every tree that differs from the best in up to two heads and beats the last one is in the list."""
    n, count = 12, 60
    scores = random_graph(np.random.default_rng(5), n, kind, 0.1)
    found = k_best(scores, True, count)
    trees, totals = ranked_trees(scores, changed_trees(found.heads[0, 0], n)[:, 1:])
    listed = {tuple(heads) for heads in found.heads[0, :, 1:].tolist()}
    better = [tuple(heads) for heads in trees[totals > found.scores[0, -1]].tolist()]
    assert set(better) <= listed
    np.testing.assert_array_equal(trees[0], found.heads[0, 0, 1:])


@ROOTS
@EVERY_KIND
@pytest.mark.parametrize("n", [20, 40, 100])
def test_longer_lists_are_distinct_ordered_trees(single_root: bool, kind: str, n: int) -> None:
    scores = random_graph(np.random.default_rng(n), n, kind, 0.2)
    lengths = np.array([n])
    found = k_best(scores, single_root, 40)
    heads = found.heads[0]
    assert are_trees(heads, np.repeat(lengths, 40), single_root=single_root).all()
    assert len(np.unique(heads, axis=0)) == 40
    np.testing.assert_array_equal(heads[0], best_trees(scores[None], lengths, single_root=single_root)[0])
    np.testing.assert_allclose(found.scores[0], tree_scores(scores, heads[:, 1:]), rtol=1e-12)
    slack = 1e-14 * np.abs(found.scores[0]).max() * (kind not in ("tied", "equal"))
    assert (np.diff(found.scores[0]) <= slack).all()


@pytest.mark.parametrize("magnitude", [1.0, 1e17, 1e20])
def test_rounding_neither_repeats_nor_loses_trees(magnitude: float) -> None:
    """Sums that tie but for rounding; from 1e17 on, a class may be found to have another best tree than before."""
    stream = np.random.default_rng(6)
    for n in (4, 5):
        trees = all_trees(n, True)
        for _ in range(30):
            scores = stream.choice([0.1, 0.2, 0.3, 0.7], size=(n + 1, n + 1))
            scores += magnitude * stream.integers(0, 2, size=scores.shape)
            found = k_best(scores, True, len(trees) + 1)
            listed = found.heads[0, : len(trees), 1:]
            np.testing.assert_array_equal(np.unique(listed, axis=0), np.unique(trees, axis=0))
            assert (found.heads[0, -1] == -1).all()
            expected = np.sort(tree_scores(scores, trees))[::-1]
            np.testing.assert_allclose(found.scores[0, :-1], expected, rtol=0, atol=1e-14 * n * (1 + magnitude))


@ROOTS
@EVERY_KIND
def test_more_trees_later_equal_all_at_once(single_root: bool, kind: str) -> None:
    scores = random_graph(np.random.default_rng(7), 7, kind, 0.2)
    whole = k_best(scores, single_root, 50)
    parts = k_best(scores, single_root, 1)
    for count in (2, 3, 10, 5, 49, 50):
        parts.extend(count)
    np.testing.assert_array_equal(parts.heads, whole.heads)
    np.testing.assert_array_equal(parts.scores, whole.scores)


@ROOTS
@pytest.mark.nojit
def test_an_item_is_the_same_alone_and_in_a_batch(single_root: bool) -> None:
    def decode(lengths: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        trees = NonprojectiveKBest(scores, lengths, single_root=single_root)
        trees.extend(12, threads=2)
        return trees.heads, trees.scores

    heads, _ = assert_same_alone(decode, (-1, np.nan), *mixed_batch(8, "random", "tied"))
    assert (heads[3] == -1).all()


def test_a_list_keeps_its_scores() -> None:
    """What the caller does to its array later does not change a list that is still growing."""
    scores = random_graph(np.random.default_rng(9), 6, "random", 0.0)[None]
    lengths = np.array([6])
    whole = k_best(scores[0], True, 20)
    found = NonprojectiveKBest(scores, lengths, single_root=True)
    found.extend(5)
    scores[:], lengths[:] = 0.0, 1
    found.extend(20)
    np.testing.assert_array_equal(found.heads, whole.heads)
