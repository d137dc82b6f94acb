"""Gabow and Tarjan's single-root trees against enumeration, the naive search root by root, reweighting and networkx."""

import networkx
import numpy as np
import pytest
from helpers.batches import assert_same_alone, mixed_batch
from helpers.oracles import Array, all_trees, tree_scores
from helpers.ranking import KINDS, Trees, random_graph, ranked_trees

from treeparse.kernels.best import arborescence
from treeparse.kernels.best.gabow_tarjan import best_trees


def best_tree(scores: Array) -> Trees:
    """The head list (n,) of one item."""
    heads = best_trees(scores[None], np.array([len(scores) - 1]))[0]
    assert heads[0] == -1
    return heads[1:]


def best_of(scores: Array, trees: Trees) -> Trees:
    """The best of some head lists (trees, n) by (score, summed keys); all -1 if none is allowed."""
    ranked, _ = ranked_trees(scores, trees)
    return ranked[0] if len(ranked) else np.full(trees.shape[1], -1)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("forbidden", [0.0, 0.3, 0.6])
def test_the_very_tree_of_enumeration(kind: str, forbidden: float) -> None:
    stream = np.random.default_rng(1)
    for n in (1, 2, 3, 3, 4, 4, 5, 5, 6) * 25:
        scores = random_graph(stream, n, kind, forbidden)
        np.testing.assert_array_equal(best_tree(scores), best_of(scores, all_trees(n, True)))


@pytest.mark.nojit
@pytest.mark.parametrize("kind", KINDS)
def test_small_graphs(kind: str) -> None:
    stream = np.random.default_rng(2)
    for trial in range(60):
        scores = random_graph(stream, 1 + trial % 4, kind, 0.2 * (trial % 3))
        np.testing.assert_array_equal(best_tree(scores), best_of(scores, all_trees(len(scores) - 1, True)))


def root_by_root(scores: Array) -> Trees:
    """The best single-root tree as the best over all choices of the root's word, each without a constraint."""
    n = len(scores) - 1
    allowed = np.repeat(scores[None], n, 0)
    allowed[:, 0] = -np.inf
    for word in range(1, n + 1):
        allowed[word - 1, 0, word] = scores[0, word]
    heads = arborescence.best_trees(allowed, np.full(n, n), single_root=False)[:, 1:]
    heads = heads[heads[:, 0] >= 0]
    return best_of(scores, heads) if len(heads) else np.full(n, -1)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [10, 30, 60, 100])
def test_all_ways_find_one_tree(n: int, kind: str) -> None:
    stream = np.random.default_rng(n)
    for forbidden in (0.0, 0.0, 0.5, 0.9, 1.0 - 2.5 / n):
        scores = random_graph(stream, n, kind, forbidden)
        lengths = np.array([n])
        heads = best_tree(scores)
        np.testing.assert_array_equal(heads, root_by_root(scores))
        reweighted = arborescence.best_trees(scores[None], lengths, single_root=True)[0, 1:]
        np.testing.assert_array_equal(heads, reweighted)
        if heads[0] >= 0:
            assert arborescence.are_trees(np.array([[-1, *heads]]), lengths, single_root=True)[0]


@pytest.mark.parametrize(("n", "forbidden"), [(10, 0.0), (30, 0.0), (60, 0.8), (100, 0.93)])
@pytest.mark.parametrize("kind", ["random", "tied", "rootward"])
def test_networkx_agrees(n: int, forbidden: float, kind: str) -> None:
    """Its arborescence, with root arcs so low that it takes as few as it can."""
    scores = random_graph(np.random.default_rng(n), n, kind, forbidden)
    found = networkx.DiGraph()
    found.add_nodes_from(range(n + 1))
    for (i, j), score in np.ndenumerate(scores):
        if np.isfinite(score):
            found.add_edge(i, j, weight=score - 1e4 * (i == 0))
    arborescence = networkx.maximum_spanning_arborescence(found)
    assert arborescence.out_degree(0) == 1
    expected = sum(scores[arc] for arc in arborescence.edges)
    assert tree_scores(scores, best_tree(scores)[None])[0] == pytest.approx(expected, rel=1e-12)


def test_graphs_without_a_tree() -> None:
    """Every word has arcs, and yet: two parts that only the root reaches; a part that nothing reaches; no root arc."""
    scores = np.full((5, 5), -np.inf)
    scores[0, 1:] = scores[1, 2] = scores[2, 1] = scores[3, 4] = scores[4, 3] = 0.0
    assert best_tree(scores).tolist() == [-1] * 4
    scores[2, 3] = -5.0
    assert best_tree(scores).tolist() in ([0, 1, 2, 3], [2, 0, 2, 3])
    scores[0] = -np.inf
    assert best_tree(scores).tolist() == [-1] * 4
    scores[0, 3] = 0.0
    assert best_tree(scores).tolist() == [-1] * 4


@pytest.mark.nojit
def test_an_item_is_the_same_alone_and_in_a_batch() -> None:
    def decode(lengths: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray]:
        return (best_trees(scores, lengths, threads=2),)

    (heads,) = assert_same_alone(decode, (-1,), *mixed_batch(4, "tied"))
    assert (heads[3] == -1).all()


def test_threads_change_nothing() -> None:
    stream = np.random.default_rng(5)
    scores = np.stack([random_graph(stream, 40, "tied", 0.0) for _ in range(300)])
    lengths = stream.integers(1, 41, size=300)
    np.testing.assert_array_equal(best_trees(scores, lengths), best_trees(scores, lengths, threads=2))


def test_two_thousand_words() -> None:
    """A chain of nested cycles, and one where every word prefers the root."""
    n = 2000
    words = np.arange(1, n)
    scores = np.full((n + 1, n + 1), -np.inf)
    scores[words + 1, words] = 2.0 * n - words
    scores[words, words + 1] = 1.0 * n - words
    scores[0, n], scores[0, 1] = 0.0, -1.0
    assert best_tree(scores).tolist() == [*range(2, n + 1), 0]
    scores[0, 1:] = 3.0 * n + words[0] * np.arange(n)
    heads = best_tree(scores)
    lengths = np.array([n])
    np.testing.assert_array_equal(heads, arborescence.best_trees(scores[None], lengths, single_root=True)[0, 1:])
