"""The K best projective trees against enumeration, and lists of longer sentences."""

import numpy as np
import pytest
from helpers.batches import assert_same_alone, mixed_batch
from helpers.oracles import all_trees
from helpers.ranking import random_graph, ranked_trees, tree_keys

from treeparse.kernels.best.eisner import are_projective_trees, best_trees
from treeparse.kernels.lists.projective_lists import ProjectiveKBest

ROOTS = pytest.mark.parametrize("single_root", [True, False], ids=["single-root", "multi-root"])


def k_best(scores: np.ndarray, single_root: bool, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The heads (count, n) and scores (count,) of one item."""
    trees = ProjectiveKBest(scores[None], np.array([len(scores) - 1]), single_root=single_root)
    trees.extend(count)
    assert trees.heads.shape == (1, count, len(scores))
    assert (trees.heads[..., 0] == -1).all()
    return trees.heads[0, :, 1:], trees.scores[0]


def assert_ranked(scores: np.ndarray, single_root: bool, count: int) -> None:
    """The list is the enumerated one as far as it goes, and -1 and -inf behind its end."""
    n = len(scores) - 1
    expected, totals = ranked_trees(scores, all_trees(len(scores) - 1, single_root, True))
    heads, found = k_best(scores, single_root, count)
    known = min(count, len(expected))
    np.testing.assert_array_equal(heads[:known], expected[:known])
    np.testing.assert_array_equal(found[:known], totals[:known])
    np.testing.assert_array_equal(heads[known:], np.full((count - known, n), -1))
    assert (found[known:] == -np.inf).all()


@ROOTS
@pytest.mark.nojit
def test_whole_lists_of_small_graphs(single_root: bool) -> None:
    stream = np.random.default_rng(1)
    for trial in range(40):
        scores = random_graph(stream, int(stream.integers(1, 5)), ("random", "tied")[trial % 2], 0.2 * (trial % 3))
        assert_ranked(scores, single_root, 60)


@ROOTS
@pytest.mark.parametrize("kind", ["random", "tied", "large"])
@pytest.mark.parametrize("forbidden", [0.0, 0.2, 0.4, 0.6])
def test_whole_lists_equal_enumeration(single_root: bool, kind: str, forbidden: float) -> None:
    stream = np.random.default_rng(2)
    for n in (1, 2, 3, 4, 5) * 40 + (6,) * 10:
        scores = random_graph(stream, n, kind, forbidden)
        assert_ranked(scores, single_root, len(all_trees(n, single_root, True)) + 2)


@ROOTS
@pytest.mark.nojit
def test_where_everything_ties_the_keys_decide(single_root: bool) -> None:
    for n in range(1, 6):
        assert_ranked(np.zeros((n + 1, n + 1)), single_root, 300)


@pytest.mark.nojit
def test_no_tree_at_all() -> None:
    scores = np.zeros((4, 4))
    scores[:, 2] = -np.inf
    assert_ranked(scores, True, 3)
    scores[:, 2] = 0.0
    scores[0] = -np.inf
    assert_ranked(scores, False, 3)


def assert_valid_list(trees: ProjectiveKBest, scores: np.ndarray, lengths: np.ndarray, single_root: bool) -> None:
    """Projective trees, in order, no two the same, the best one first, with the scores that their arcs sum to."""
    heads, totals = trees.heads, trees.scores
    np.testing.assert_array_equal(heads[:, 0], best_trees(scores, lengths, single_root=single_root))
    for item, n in enumerate(lengths):
        own = heads[item]
        assert are_projective_trees(own, np.full(len(own), n), single_root=single_root).all()
        assert len(np.unique(own, axis=0)) == len(own)
        arcs = scores[item][own[:, 1 : n + 1], np.arange(1, n + 1)]
        np.testing.assert_array_equal(totals[item], np.cumsum(arcs, axis=1)[:, -1])
        keys = tree_keys(own[:, 1 : n + 1])
        order = np.lexsort((-keys, -totals[item]))
        np.testing.assert_array_equal(order, np.arange(len(own)))


@ROOTS
@pytest.mark.parametrize("kind", ["random", "tied"])
def test_longer_sentences(single_root: bool, kind: str) -> None:
    """Scores are multiples of 2^-20, so that sums are exact whatever their order."""
    stream = np.random.default_rng(4)
    lengths = np.array([40, 23, 40, 31])
    scores = np.stack([random_graph(stream, 40, kind, 0.1) for _ in lengths])
    scores = np.round(scores * 2.0**20) / 2.0**20
    trees = ProjectiveKBest(scores, lengths, single_root=single_root)
    trees.extend(300)
    assert_valid_list(trees, scores, lengths, single_root)


@ROOTS
def test_the_list_ends_where_the_next_tree_would_be_worse(single_root: bool) -> None:
    """All trees of 9 words that keep all but a few arcs of a sure tree, found by changing its heads word by word."""
    n, stream = 9, np.random.default_rng(5)
    scores = np.round(random_graph(stream, n, "random", 0.0) * 2.0**20) / 2.0**20
    best = best_trees(scores[None], np.array([n]), single_root=single_root)[0]
    scores[best[1:], np.arange(1, n + 1)] += 50.0
    changed = _trees_within(best, n, 2)
    changed = changed[are_projective_trees(changed, np.full(len(changed), n), single_root=single_root)]
    totals = scores[changed[:, 1:], np.arange(1, n + 1)].sum(1)
    order = np.lexsort((-tree_keys(changed[:, 1:]), -totals))
    count = int((totals > totals.max() - 125).sum())  # with the noise no three changed heads cost less
    assert count > 50
    heads, found = k_best(scores, single_root, count)
    np.testing.assert_array_equal(heads, changed[order[:count], 1:])
    np.testing.assert_array_equal(found, totals[order[:count]])


def _trees_within(heads: np.ndarray, n: int, changes: int) -> np.ndarray:
    """All head lists (lists, n+1) that differ from ``heads`` at ``changes`` words at most."""
    found = {tuple(heads.tolist())}
    for _ in range(changes):
        for known in list(found):
            for word in range(1, n + 1):
                found.update((*known[:word], head, *known[word + 1 :]) for head in range(n + 1))
    return np.array(sorted(found))


@ROOTS
@pytest.mark.nojit
def test_resuming_equals_one_go(single_root: bool) -> None:
    stream = np.random.default_rng(6)
    lengths = np.array([5, 3, 7, 1])
    scores = np.stack([random_graph(stream, 7, "tied", 0.1) for _ in lengths])
    whole = ProjectiveKBest(scores, lengths, single_root=single_root)
    whole.extend(90)
    parts = ProjectiveKBest(scores, lengths, single_root=single_root)
    changing = scores.copy()
    copied = ProjectiveKBest(changing, lengths, single_root=single_root)
    changing[:] = 0.0
    assert parts.heads.shape == (4, 0, 8)
    for count in (1, 2, 2, 1, 9, 10, 57, 90):
        parts.extend(count)
        copied.extend(count)
        np.testing.assert_array_equal(parts.heads, whole.heads[:, : parts.heads.shape[1]])
        np.testing.assert_array_equal(copied.scores, whole.scores[:, : parts.heads.shape[1]])
    assert parts.heads.shape == (4, 90, 8)


@ROOTS
@pytest.mark.nojit
def test_an_item_is_the_same_alone_and_in_a_batch(single_root: bool) -> None:
    def decode(lengths: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        trees = ProjectiveKBest(scores, lengths, single_root=single_root)
        trees.extend(20, threads=2)
        return trees.heads, trees.scores

    heads, _ = assert_same_alone(decode, (-1, np.nan), *mixed_batch(7, "random", "tied"))
    assert (heads[3] == -1).all()


@ROOTS
def test_a_pool_that_runs_out_is_enlarged(single_root: bool) -> None:
    """Thousands of trees of a short sentence beside one of 300 words."""
    stream = np.random.default_rng(8)
    lengths = np.array([8, 300])
    scores = np.round(stream.normal(size=(2, 301, 301)) * 2.0**20) / 2.0**20
    trees = ProjectiveKBest(scores, lengths, single_root=single_root)
    trees.extend(3000)
    assert_valid_list(trees, scores, lengths, single_root)
