"""Best trees with siblings, crossing arcs included, against the enumeration of all trees; climbing, step by step."""

import numpy as np
import pytest
from helpers.oracles import Array, all_trees
from helpers.second_order import siblings_of_trees
from numpy.typing import NDArray

from treeparse.kernels.best import arborescence
from treeparse.kernels.best.climbing import climb, new_climbing_memory, step
from treeparse.kernels.best.nonprojective_siblings import best_trees_with_bounds

BATCH = 12
both_roots = pytest.mark.parametrize("single_root", [True, False])


def random_parts(words: int, seed: int, scale: float = 1.0, forbidden: float = 0.0) -> tuple[Array, Array]:
    generator = np.random.default_rng(seed)
    arcs, siblings = (scale * generator.standard_normal((BATCH, *(words + 1,) * axes)) for axes in (2, 3))
    for part in (arcs, siblings):
        part[generator.random(part.shape) < forbidden] = -np.inf
    return arcs, siblings


def totals_of(arcs: Array, siblings: Array, single_root: bool) -> Array:
    """Scores ``(T,)`` of all trees."""
    flat = np.concatenate([arcs.ravel(), siblings.ravel()])
    return flat[siblings_of_trees(len(arcs) - 1, single_root)].sum(1)


@both_roots
@pytest.mark.parametrize("forbidden", [0.0, 0.2])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4])
@pytest.mark.parametrize("words", range(1, 6))
def test_the_best_tree_by_enumeration(words: int, scale: float, forbidden: float, single_root: bool) -> None:
    arcs, siblings = random_parts(words, words, scale, forbidden)
    heads, scores, bounds, certified, _ = best_trees_with_bounds(
        arcs, siblings, np.full(BATCH, words), single_root=single_root, limit=None
    )
    trees = all_trees(words, single_root)
    for item in range(BATCH):
        totals = totals_of(arcs[item], siblings[item], single_root)
        best = totals.max()
        assert certified[item]
        if best == -np.inf:
            assert scores[item] == bounds[item] == -np.inf and (heads[item] == -1).all()
            continue
        assert abs(scores[item] - best) <= 1e-12 * scale * words and bounds[item] >= best - 1e-11 * scale
        assert totals[(trees == heads[item, 1:]).all(1)].item() == pytest.approx(best, abs=1e-12 * scale * words)


@both_roots
def test_a_bound_holds_at_every_limit(single_root: bool) -> None:
    arcs, siblings = random_parts(5, 3, scale=2.0)
    lengths = np.full(BATCH, 5)
    best = np.array([totals_of(arcs[item], siblings[item], single_root).max() for item in range(BATCH)])
    for limit in (1, 2, 5):
        _, scores, bounds, certified, branches = best_trees_with_bounds(
            arcs, siblings, lengths, single_root=single_root, limit=limit
        )
        assert (scores <= best + 1e-12).all() and (bounds >= best - 1e-12).all() and (branches <= limit).all()
        np.testing.assert_allclose(scores[certified], best[certified], rtol=0, atol=1e-12)


@both_roots
def test_longer_sentences_under_scores_that_need_branches(single_root: bool) -> None:
    """No climbing from random trees finds a better one; an item alone, in float32, has the same tree."""
    arcs, siblings = random_parts(12, 5, scale=1.0)
    lengths = np.arange(BATCH) + 1
    heads, scores, bounds, certified, branches = best_trees_with_bounds(
        arcs, siblings, lengths, single_root=single_root, limit=None
    )
    assert certified.all() and branches.max() > 1 and (bounds <= scores + 1e-9).all()
    memory, generator = new_climbing_memory(13), np.random.default_rng(1)
    for item, n in enumerate(lengths):
        for _ in range(40):
            noisy = arcs[item : item + 1] + generator.gumbel(size=(1, 13, 13))
            tree = arborescence.best_trees(noisy, lengths[item : item + 1], single_root=single_root)[0]
            assert climb(arcs[item], siblings[item], n, single_root, tree, *memory) <= scores[item] + 1e-9
    alone = best_trees_with_bounds(
        arcs[7:8], siblings.astype(np.float32), lengths[7:8], single_root=single_root, limit=None, items=np.array([7])
    )
    assert (alone[0][0] == heads[7]).all()


@both_roots
def test_without_scores_of_siblings(single_root: bool) -> None:
    arcs, siblings = random_parts(20, 4)
    lengths = np.arange(BATCH) + 9
    heads, scores, *_ = best_trees_with_bounds(arcs, 0 * siblings, lengths, single_root=single_root, limit=None)
    np.testing.assert_array_equal(heads, arborescence.best_trees(arcs, lengths, single_root=single_root))
    words = [arcs[item][heads[item, 1 : n + 1], np.arange(1, n + 1)].sum() for item, n in enumerate(lengths)]
    np.testing.assert_allclose(scores, words, rtol=1e-12)


@both_roots
@pytest.mark.parametrize("forbidden", [0.0, 0.1])
def test_every_step_of_climbing_keeps_a_tree_and_raises_its_score(single_root: bool, forbidden: float) -> None:
    """It is the best of all trees that differ in one head or, with a single root, in the root word and its new head."""
    words, steps = 5, 0
    trees, memory = all_trees(words, single_root), new_climbing_memory(words + 1)
    for seed in range(4):
        arcs, siblings = random_parts(words, seed, forbidden=forbidden)
        for item in range(BATCH):
            totals = totals_of(arcs[item], siblings[item], single_root)
            heads = np.concatenate([[-1], trees[np.flatnonzero(totals > -np.inf)[seed]]])
            while True:
                before = heads[1:].copy()
                here = totals[(trees == before).all(1)].item()
                gain = step(arcs[item], siblings[item], words, single_root, heads, *memory)
                best = totals[are_neighbours(before, trees, single_root)].max(initial=-np.inf)
                assert gain == pytest.approx(max(best - here, 0.0), abs=1e-12)
                if gain == 0:
                    break
                steps += 1
                assert totals[(trees == heads[1:]).all(1)].item() == pytest.approx(here + gain, abs=1e-12)
    assert steps > 50


def are_neighbours(tree: NDArray[np.int64], trees: NDArray[np.int64], single_root: bool) -> NDArray[np.bool_]:
    """Which trees ``(T, n)`` differ in one head or, with a single root, in the root word and its new head."""
    changed = trees != tree
    is_swap = single_root & (changed.sum(1) == 2) & (changed & (tree == 0)).any(1) & (changed & (trees == 0)).any(1)
    return (changed.sum(1) == 1) | is_swap
