"""Samples of projective trees: their law over the whole support, at every scale, and that seeds alone decide."""

import numpy as np
import pytest
from helpers.batches import mixed_batch
from helpers.chi_square import LIMIT, chi_square_z, tree_counts
from helpers.oracles import Array, all_trees, tree_scores
from helpers.ranking import random_graph

from treeparse.kernels.best.eisner import are_projective_trees
from treeparse.kernels.samples.projective_samples import sample_trees

ROOTS = pytest.mark.parametrize("single_root", [True, False], ids=["single-root", "multi-root"])


def draw(scores: Array, single_root: bool, count: int, seed: int = 1) -> np.ndarray:
    """Head lists (count, n) of one item."""
    heads = sample_trees(
        scores[None], np.array([len(scores) - 1]), np.array([seed], np.uint64), count, single_root=single_root
    )
    assert (heads[..., 0] == -1).all()
    return heads[0, :, 1:]


def deviation(scores: Array, single_root: bool, count: int) -> float:
    """How far draws are from the law, in standard deviations; 0 where there is no tree."""
    trees = all_trees(len(scores) - 1, single_root, True)
    totals = tree_scores(scores, trees)
    heads = draw(scores, single_root, count)
    if totals.max() == -np.inf:
        assert (heads == -1).all()
        return 0.0
    weights = np.exp(totals - totals.max())
    return chi_square_z(tree_counts(heads, trees), weights / weights.sum())


@ROOTS
@pytest.mark.nojit
def test_the_law_of_three_words(single_root: bool) -> None:
    assert deviation(random_graph(np.random.default_rng(2), 3, "random", 0.0), single_root, 400) < LIMIT


@ROOTS
def test_the_law_in_logs(single_root: bool) -> None:
    """Words that only improbable arcs lead to: plain weights would underflow."""
    stream = np.random.default_rng(3)
    scores = stream.normal(size=(6, 6))
    scores[1, 2] = scores[2, 1] = scores[3, 4] = scores[4, 3] = 400.0
    assert deviation(scores, single_root, 20_000) < LIMIT


@ROOTS
@pytest.mark.parametrize("scale", [0.1, 1.0, 10.0, 100.0, 1e4])
@pytest.mark.parametrize("n", [10, 40, 160])
def test_samples_are_projective_trees_at_every_scale(single_root: bool, scale: float, n: int) -> None:
    scores = scale * np.random.default_rng(5).normal(size=(n + 1, n + 1))
    scores[0] += np.random.default_rng(n).uniform(-50, 50)
    heads = np.pad(draw(scores, single_root, 10), ((0, 0), (1, 0)), constant_values=-1)
    assert are_projective_trees(heads, np.full(10, n), single_root=single_root).all()


@ROOTS
def test_a_sample_depends_on_scores_seed_and_number_alone(single_root: bool) -> None:
    lengths, scores = mixed_batch(6, "random")
    seeds = np.random.default_rng(6).integers(2**63, size=5).astype(np.uint64)
    heads = sample_trees(scores, lengths, seeds, 6, single_root=single_root, threads=2)
    assert (heads[3] == -1).all()
    for item, n in enumerate(lengths):
        alone = draw(np.ascontiguousarray(scores[item, : n + 1, : n + 1]), single_root, 3, seed=int(seeds[item]))
        np.testing.assert_array_equal(alone, heads[item, :3, 1 : n + 1])
        assert (heads[item, :, n + 1 :] == -1).all()
