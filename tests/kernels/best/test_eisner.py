"""Best projective trees against enumeration, and the check that trees are projective."""

import numpy as np
import pytest
from helpers.batches import assert_same_alone, mixed_batch
from helpers.oracles import all_trees
from helpers.ranking import random_graph, ranked_trees

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
@pytest.mark.parametrize("kind", ["random", "tied", "equal", "large"])
@pytest.mark.parametrize("forbidden", [0.0, 0.3, 0.6])
def test_best_tree_equals_enumeration(single_root: bool, kind: str, forbidden: float) -> None:
    stream = np.random.default_rng(2)
    for n in (1, 2, 3, 4, 5, 6) * 30:
        assert_best(random_graph(stream, n, kind, forbidden), single_root)


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
def test_projective_trees_are_told_from_other_head_lists(single_root: bool) -> None:
    n = 4
    grid = np.stack(np.meshgrid(*[np.arange(-1, n + 2)] * n, indexing="ij"), -1).reshape(-1, n)
    heads = np.pad(grid, ((0, 0), (1, 2)), constant_values=-1)
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
