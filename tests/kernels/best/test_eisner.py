"""Best projective trees against enumeration and the textbook's chart, and the check that trees are projective."""

import numpy as np
import pytest
from helpers.batches import assert_same_alone, mixed_batch
from helpers.oracles import all_trees, tree_scores
from helpers.ranking import random_graph, ranked_trees

from treeparse.kernels.best import arborescence
from treeparse.kernels.best.eisner import are_projective_trees, best_trees

ROOTS = pytest.mark.parametrize("single_root", [True, False], ids=["single-root", "multi-root"])


def best_tree(scores: np.ndarray, single_root: bool) -> np.ndarray:
    """The best head list (n,) of one item."""
    heads = best_trees(scores[None], np.array([len(scores) - 1]), single_root=single_root)[0]
    assert heads[0] == -1
    return heads[1:]


def assert_best(scores: np.ndarray, single_root: bool) -> None:
    trees, _ = ranked_trees(scores, all_trees(len(scores) - 1, single_root, True))
    expected = trees[0] if len(trees) else np.full(len(scores) - 1, -1)
    np.testing.assert_array_equal(best_tree(scores, single_root), expected)


@ROOTS
@pytest.mark.nojit
def test_best_tree_of_small_graphs(single_root: bool) -> None:
    stream = np.random.default_rng(1)
    for trial in range(90):
        kind = ("random", "tied")[trial % 2]
        assert_best(random_graph(stream, int(stream.integers(1, 5)), kind, 0.2 * (trial % 3)), single_root)


@ROOTS
@pytest.mark.parametrize("kind", ["random", "tied", "large"])
@pytest.mark.parametrize("forbidden", [0.0, 0.3, 0.6])
def test_best_tree_equals_enumeration(single_root: bool, kind: str, forbidden: float) -> None:
    stream = np.random.default_rng(2)
    for n in (1, 2, 3, 4, 5, 6) * 40:
        assert_best(random_graph(stream, n, kind, forbidden), single_root)


@ROOTS
@pytest.mark.nojit
def test_where_everything_ties_the_keys_decide(single_root: bool) -> None:
    for n in range(1, 6):
        assert_best(np.zeros((n + 1, n + 1)), single_root)


@pytest.mark.nojit
def test_a_single_root_can_cost_a_better_score() -> None:
    scores = np.array([[0.0, 5, 5, 5], [0, 0, 1, 0], [0, 0, 0, 2], [0, 0, 0, 0]])
    assert best_tree(scores, single_root=False).tolist() == [0, 0, 0]
    assert best_tree(scores, single_root=True).tolist() == [0, 1, 2]


@pytest.mark.nojit
def test_only_a_crossing_tree_is_none() -> None:
    """The arcs 0 -> 2, 2 -> 4, 4 -> 1 and 2 -> 3: the third one spans 2, whose head is outside."""
    scores = np.full((5, 5), -np.inf)
    scores[[0, 2, 4, 2], [2, 4, 1, 3]] = 0.0
    assert best_tree(scores, single_root=True).tolist() == [-1] * 4
    scores[2, 1] = -100.0
    assert best_tree(scores, single_root=True).tolist() == [2, 0, 2, 2]


def textbook_score(scores: np.ndarray) -> float:
    """The best score over any number of roots by Eisner's chart as the textbook writes it, span by span."""
    size = len(scores)
    complete, incomplete = np.zeros((2, size, size)), np.full((2, size, size), -np.inf)
    for width in range(1, size):
        for i in range(size - width):
            j = i + width
            inner = max(complete[1, i, k] + complete[0, k + 1, j] for k in range(i, j))
            incomplete[0, i, j] = inner + scores[j, i] if i else -np.inf
            incomplete[1, i, j] = inner + scores[i, j]
            complete[0, i, j] = max(complete[0, i, k] + incomplete[0, k, j] for k in range(i, j))
            complete[1, i, j] = max(incomplete[1, i, k] + complete[1, k, j] for k in range(i + 1, j + 1))
    return complete[1, 0, -1]


def textbook_single_root_score(scores: np.ndarray) -> float:
    """The same with one root, by trying every word as the root."""
    best = -np.inf
    for word in range(1, len(scores)):
        allowed = scores.copy()
        allowed[0] = -np.inf
        allowed[0, word] = scores[0, word]
        best = max(best, textbook_score(allowed))
    return best


@pytest.mark.parametrize("n", [9, 12])
@pytest.mark.parametrize("forbidden", [0.0, 0.5])
def test_longer_sentences_equal_the_textbook(n: int, forbidden: float) -> None:
    stream = np.random.default_rng(n)
    for kind in ("random", "tied"):
        scores = random_graph(stream, n, kind, forbidden)
        for single_root, expected in ((True, textbook_single_root_score(scores)), (False, textbook_score(scores))):
            heads = best_tree(scores, single_root)
            if expected == -np.inf:
                assert (heads == -1).all()
                continue
            assert are_projective_trees(np.array([[-1, *heads]]), np.array([n]), single_root=single_root)[0]
            assert tree_scores(scores, heads[None])[0] == pytest.approx(expected, rel=1e-13, abs=1e-13)


@ROOTS
def test_never_above_the_best_tree_of_all(single_root: bool) -> None:
    stream = np.random.default_rng(3)
    scores, lengths = stream.normal(size=(20, 31, 31)), np.full(20, 30)
    heads = best_trees(scores, lengths, single_root=single_root)
    assert are_projective_trees(heads, lengths, single_root=single_root).all()
    free = arborescence.best_trees(scores, lengths, single_root=single_root)
    for item in range(20):
        own, other = (tree_scores(scores[item], found[item : item + 1, 1:])[0] for found in (heads, free))
        assert own <= other


@ROOTS
def test_more_words_than_treebanks_have(single_root: bool) -> None:
    n, sure = 1200, 600
    scores = np.random.default_rng(4).normal(size=(n + 1, n + 1))
    scores[np.arange(2, sure + 1), np.arange(1, sure)] += 1e6  # which no way to avoid these arcs makes up for
    heads = best_tree(scores, single_root)
    assert heads[: sure - 1].tolist() == [*range(2, sure + 1)]
    assert are_projective_trees(np.array([[-1, *heads]]), np.array([n]), single_root=single_root)[0]


@ROOTS
@pytest.mark.nojit
def test_an_item_is_the_same_alone_and_in_a_batch(single_root: bool) -> None:
    def decode(lengths: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray]:
        return (best_trees(scores, lengths, single_root=single_root, threads=2),)

    (heads,) = assert_same_alone(decode, (-1,), *mixed_batch(5, "tied"))
    assert (heads[3] == -1).all()


@ROOTS
@pytest.mark.nojit
def test_projective_trees_are_told_from_other_trees(single_root: bool) -> None:
    """The textbook's definition: every word under an arc descends from the arc's head."""
    for n in (1, 2, 3, 4):
        heads = np.pad(all_trees(n, single_root), ((0, 0), (1, 2)), constant_values=-1)
        heads[:, 0] = -1
        found = are_projective_trees(heads, np.full(len(heads), n), single_root=single_root)
        projective = all_trees(n, single_root, True).tolist()
        assert found.tolist() == [tree[1 : n + 1] in projective for tree in heads.tolist()]
        assert found.sum() == len(projective)


@ROOTS
def test_all_head_lists_of_five_words(single_root: bool) -> None:
    n = 5
    grid = np.stack(np.meshgrid(*[np.arange(-1, n + 2)] * n, indexing="ij"), -1).reshape(-1, n)
    heads = np.pad(grid, ((0, 0), (1, 0)), constant_values=-1)
    found = are_projective_trees(heads, np.full(len(heads), n), single_root=single_root)
    known = {tuple(tree) for tree in all_trees(n, single_root, True).tolist()}
    assert found.tolist() == [tuple(heads) in known for heads in grid.tolist()]


@pytest.mark.parametrize(
    ("single_root", "counts"), [(False, [1, 3, 12, 55, 273, 1428]), (True, [1, 2, 7, 30, 143, 728])]
)
def test_the_number_of_projective_trees(single_root: bool, counts: list[int]) -> None:
    """OEIS A001764 and A006013: binomial(3n, n) / (2n + 1), and binomial(3n - 2, n - 1) / n."""
    for n, count in enumerate(counts, 1):
        trees = all_trees(n, single_root)
        heads = np.pad(trees, ((0, 0), (1, 0)), constant_values=-1)
        assert are_projective_trees(heads, np.full(len(heads), n), single_root=single_root).sum() == count


def test_long_trees_are_checked_in_no_time() -> None:
    n = 100_000
    chain = np.arange(-1, n)[None]
    backwards = np.array([[-1, *range(2, n + 1), 0]])
    for heads in (chain, backwards):
        assert are_projective_trees(heads, np.array([n]), single_root=True).all()
    crossing = chain.copy()
    crossing[0, n] = n - 2
    crossing[0, n - 1] = n
    assert are_projective_trees(crossing, np.array([n]), single_root=True).all()
    crossing[0, n - 2], crossing[0, n] = n - 4, n - 3
    assert not are_projective_trees(crossing, np.array([n]), single_root=True).any()
