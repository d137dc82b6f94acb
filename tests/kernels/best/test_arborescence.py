"""Best trees against enumeration, contraction by reweighting, and networkx."""

import networkx
import numpy as np
import pytest
from helpers.batches import assert_same_alone, mixed_batch
from helpers.oracles import Array, all_trees, tree_scores
from helpers.ranking import KINDS, Trees, random_graph, ranked_trees

from treeparse.kernels.best.arborescence import are_trees, best_trees
from treeparse.kernels.lists.nonprojective_lists import NonprojectiveKBest

ROOTS = pytest.mark.parametrize("single_root", [True, False], ids=["single-root", "multi-root"])
ALL_KINDS = pytest.mark.parametrize("kind", KINDS)


def best_tree(scores: Array, single_root: bool) -> Trees:
    """The best head list (n,) of one item, whose ignored entries hold NaN."""
    item = scores.copy()
    item[:, 0] = np.nan
    np.fill_diagonal(item, np.nan)
    heads = best_trees(item[None], np.array([len(item) - 1]), single_root=single_root)[0]
    assert heads[0] == -1
    return heads[1:]


def best_of(scores: Array, trees: Trees) -> Trees:
    """The best of some head lists (trees, n) by (score, summed keys); all -1 if none is allowed."""
    ranked, _ = ranked_trees(scores, trees)
    return ranked[0] if len(ranked) else np.full(trees.shape[1], -1)


@ROOTS
@ALL_KINDS
@pytest.mark.parametrize("forbidden", [0.0, 0.3, 0.6])
def test_the_very_tree_of_enumeration(single_root: bool, kind: str, forbidden: float) -> None:
    stream = np.random.default_rng(1)
    for n in (1, 2, 3, 3, 4, 4, 5, 5, 6) * 15:
        scores = random_graph(stream, n, kind, forbidden)
        np.testing.assert_array_equal(best_tree(scores, single_root), best_of(scores, all_trees(n, single_root)))


@ROOTS
@ALL_KINDS
@pytest.mark.nojit
def test_small_graphs(single_root: bool, kind: str) -> None:
    stream = np.random.default_rng(2)
    for trial in range(60):
        n = 1 + trial % 4
        scores = random_graph(stream, n, kind, 0.2 * (trial % 3))
        np.testing.assert_array_equal(best_tree(scores, single_root), best_of(scores, all_trees(n, single_root)))


@ALL_KINDS
@pytest.mark.parametrize("n", [10, 30, 60, 100])
def test_all_ways_find_one_tree(n: int, kind: str) -> None:
    stream = np.random.default_rng(n)
    for forbidden in (0.0, 0.0, 0.5, 0.9, 1.0 - 2.5 / n):
        scores, lengths = random_graph(stream, n, kind, forbidden), np.array([n])
        for single_root in (True, False):
            heads = best_trees(scores[None], lengths, single_root=single_root)
            contracted = NonprojectiveKBest(scores[None], lengths, single_root=single_root)
            contracted.extend(1)
            np.testing.assert_array_equal(heads, contracted.heads[:, 0])
            assert heads[0, 1] < 0 or are_trees(heads, lengths, single_root=single_root)[0]


@ROOTS
@pytest.mark.parametrize(("n", "forbidden"), [(10, 0.0), (30, 0.0), (60, 0.8), (100, 0.93)])
@pytest.mark.parametrize("kind", ["random", "tied", "rootward"])
def test_networkx_agrees(n: int, forbidden: float, kind: str, single_root: bool) -> None:
    """Its arborescence; for a single root with root arcs so low that it takes as few as it can."""
    scores = random_graph(np.random.default_rng(n), n, kind, forbidden)
    found = networkx.DiGraph()
    found.add_nodes_from(range(n + 1))
    for (i, j), score in np.ndenumerate(scores):
        if np.isfinite(score):
            found.add_edge(i, j, weight=score - 1e4 * (single_root and i == 0))
    arborescence = networkx.maximum_spanning_arborescence(found)
    assert not single_root or arborescence.out_degree(0) == 1
    expected = sum(scores[arc] for arc in arborescence.edges)
    assert tree_scores(scores, best_tree(scores, single_root)[None])[0] == pytest.approx(expected, rel=1e-12)


@ROOTS
def test_two_thousand_words(single_root: bool) -> None:
    """A chain of nested cycles, which recursion would not survive; one where words prefer the root; and noise."""
    n = 2000
    words, lengths = np.arange(1, n), np.array([n])
    scores = np.full((n + 1, n + 1), -np.inf)
    scores[words + 1, words] = 2.0 * n - words
    scores[words, words + 1] = 1.0 * n - words
    scores[0, n], scores[0, 1] = 0.0, -1.0
    assert best_tree(scores, single_root).tolist() == [*range(2, n + 1), 0]
    scores[0, 1:] = 3.0 * n + words[0] * np.arange(n)
    for graph in (scores, np.random.default_rng(3).normal(size=(n + 1, n + 1))):
        heads = np.array([[-1, *best_tree(graph, single_root)]])
        assert are_trees(heads, lengths, single_root=single_root)[0]
        contracted = NonprojectiveKBest(graph[None], lengths, single_root=single_root)
        contracted.extend(1)
        np.testing.assert_array_equal(heads, contracted.heads[:, 0])


@ROOTS
@pytest.mark.nojit
def test_an_item_is_the_same_alone_and_in_a_batch(single_root: bool) -> None:
    def decode(lengths: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray]:
        return (best_trees(scores, lengths, single_root=single_root, threads=2),)

    (heads,) = assert_same_alone(decode, (-1,), *mixed_batch(4, "tied"))
    assert (heads[3] == -1).all()


@ROOTS
def test_threads_change_nothing(single_root: bool) -> None:
    stream = np.random.default_rng(5)
    scores = np.stack([random_graph(stream, 40, "tied", 0.0) for _ in range(300)])
    lengths = stream.integers(1, 41, size=300)
    one, two = (best_trees(scores, lengths, single_root=single_root, threads=threads) for threads in (1, 2))
    np.testing.assert_array_equal(one, two)


@ROOTS
@pytest.mark.nojit
def test_trees_are_told_from_other_head_lists(single_root: bool) -> None:
    n = 4
    grid = np.stack(np.meshgrid(*[np.arange(-1, n + 2)] * n, indexing="ij"), -1).reshape(-1, n)[::3]
    heads = np.pad(grid, ((0, 0), (1, 2)), constant_values=-1)
    found = are_trees(heads, np.full(len(heads), n), single_root=single_root)
    known = {tuple(tree) for tree in all_trees(n, single_root).tolist()}
    assert found.tolist() == [tuple(heads) in known for heads in grid.tolist()]
    assert found.any()


@pytest.mark.nojit
def test_a_tree_is_minus_one_at_the_root_and_at_padding() -> None:
    heads = np.array([[-1, 0, 1, -1], [0, 0, 1, -1], [-1, 0, 1, 0], [-1, 0, 1, 2]])
    assert are_trees(heads, np.full(4, 2), single_root=True).tolist() == [True, False, False, False]
