"""Best trees against enumeration, the naive search over roots, and networkx."""

import networkx
import numpy as np
import pytest
from helpers.batches import assert_same_alone, mixed_batch
from helpers.oracles import all_trees, tree_scores
from helpers.ranking import KINDS, random_graph, ranked_trees

from treeparse.kernels.best.arborescence import are_trees, best_trees

ROOTS = pytest.mark.parametrize("single_root", [True, False], ids=["single-root", "multi-root"])


def best_tree(scores: np.ndarray, single_root: bool) -> np.ndarray:
    """The best head list (n,) of one item, whose ignored entries hold NaN."""
    item = scores.copy()
    item[:, 0] = np.nan
    np.fill_diagonal(item, np.nan)
    heads = best_trees(item[None], np.array([len(item) - 1]), single_root=single_root)[0]
    assert heads[0] == -1
    return heads[1:]


def assert_best(scores: np.ndarray, single_root: bool) -> None:
    n = len(scores) - 1
    expected = tree_scores(scores, all_trees(n, single_root)).max()
    heads = best_tree(scores, single_root)
    if expected == -np.inf:
        assert (heads == -1).all()
        return
    assert (all_trees(n, single_root) == heads).all(1).any()
    assert tree_scores(scores, heads[None])[0] == pytest.approx(expected, rel=1e-12, abs=1e-12)


@ROOTS
@pytest.mark.nojit
def test_best_tree_of_small_graphs(single_root: bool) -> None:
    stream = np.random.default_rng(1)
    for trial in range(150):
        n = int(stream.integers(1, 5))
        kind = (stream.normal(size=(n + 1, n + 1)), stream.integers(0, 3, size=(n + 1, n + 1)).astype(float))
        scores = kind[trial % 2]
        if trial % 3:
            scores[stream.random(scores.shape) < 0.2 * (trial % 3)] = -np.inf
        assert_best(scores, single_root)


@ROOTS
@pytest.mark.parametrize("kind", ["random", "tied", "large"])
@pytest.mark.parametrize("forbidden", [0.0, 0.3, 0.6])
def test_best_tree_equals_enumeration(single_root: bool, kind: str, forbidden: float) -> None:
    stream = np.random.default_rng(2)
    for n in (2, 3, 4, 4, 5, 5, 6) * 30:
        scores = (
            stream.integers(0, 4, size=(n + 1, n + 1)).astype(float)
            if kind == "tied"
            else stream.normal(size=(n + 1, n + 1)) * (1e4 if kind == "large" else 1.0)
        )
        scores[stream.random(scores.shape) < forbidden] = -np.inf
        assert_best(scores, single_root)


def root_by_root(scores: np.ndarray) -> float:
    """The best single-root score as the best over all choices of the root's word, each without a constraint."""
    best = -np.inf
    for word in range(1, len(scores)):
        allowed = scores.copy()
        allowed[0] = -np.inf
        allowed[0, word] = scores[0, word]
        heads = best_tree(allowed, single_root=False)
        if heads[0] >= 0:
            best = max(best, tree_scores(scores, heads[None])[0])
    return best


@pytest.mark.parametrize("n", [10, 30, 60, 100])
def test_single_root_equals_the_best_root_by_root(n: int) -> None:
    stream = np.random.default_rng(n)
    for forbidden in (0.0, 0.5, 0.9):
        scores = stream.normal(size=(n + 1, n + 1)) * 3
        scores[0] += 5 * stream.random()  # several roots would be better
        scores[stream.random(scores.shape) < forbidden] = -np.inf
        expected = root_by_root(scores)
        heads = best_tree(scores, single_root=True)
        if expected == -np.inf:
            assert (heads == -1).all()
        else:
            assert are_trees(np.array([[-1, *heads]]), np.array([n]), single_root=True)[0]
            assert tree_scores(scores, heads[None])[0] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("n", [8, 20, 60])
def test_networkx_agrees(n: int) -> None:
    scores = np.random.default_rng(n).normal(size=(n + 1, n + 1))
    graph = networkx.DiGraph()
    graph.add_weighted_edges_from((i, j, scores[i, j]) for i in range(n + 1) for j in range(1, n + 1) if i != j)
    arborescence = networkx.maximum_spanning_arborescence(graph)
    expected = sum(scores[arc] for arc in arborescence.edges)
    assert tree_scores(scores, best_tree(scores, single_root=False)[None])[0] == pytest.approx(expected, rel=1e-12)


def test_a_worked_example() -> None:
    """John saw Mary (McDonald and Nivre 2007, lecture 4): greedy heads form a cycle of John and saw."""
    scores = np.array([[0, 9, 10, 9], [0, 0, 20, 3], [0, 30, 0, 30], [0, 11, 0, 0]], dtype=float)
    assert best_tree(scores, single_root=True).tolist() == [2, 0, 2]


@ROOTS
@pytest.mark.nojit
@pytest.mark.parametrize("kind", KINDS)
def test_among_equal_scores_keys_decide(single_root: bool, kind: str) -> None:
    stream = np.random.default_rng(9)
    for trial in range(40):
        n = 1 + trial % 4
        scores = random_graph(stream, n, kind, 0.2 * (trial % 3))
        trees, _ = ranked_trees(scores, all_trees(n, single_root))
        expected = trees[0].tolist() if len(trees) else [-1] * n
        assert best_tree(scores, single_root).tolist() == expected


def test_of_equal_trees_the_one_with_shorter_arcs_is_better() -> None:
    assert best_tree(np.zeros((5, 5)), single_root=True).tolist() == [0, 1, 2, 3]
    scores = np.zeros((5, 5))
    scores[0, 1] = -1.0
    assert best_tree(scores, single_root=True).tolist() == [2, 0, 2, 3]


@ROOTS
def test_two_thousand_words(single_root: bool) -> None:
    """A chain of nested cycles, which recursion would not survive."""
    n = 2000
    words = np.arange(1, n)
    scores = np.full((n + 1, n + 1), -np.inf)
    scores[words + 1, words] = 2.0 * n - words
    scores[words, words + 1] = 1.0 * n - words
    scores[0, n] = 0.0
    scores[0, 1] = -1.0
    heads = best_tree(scores, single_root)
    assert heads.tolist() == [*range(2, n + 1), 0]
    noise = np.random.default_rng(3).normal(size=(n + 1, n + 1))
    heads = best_tree(noise, single_root)
    assert are_trees(np.array([[-1, *heads]]), np.array([n]), single_root=single_root)[0]


@ROOTS
@pytest.mark.nojit
def test_an_item_is_the_same_alone_and_in_a_batch(single_root: bool) -> None:
    def decode(lengths: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray]:
        return (best_trees(scores, lengths, single_root=single_root, threads=2),)

    (heads,) = assert_same_alone(decode, (-1,), *mixed_batch(4, "tied"))
    assert (heads[3] == -1).all()


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
