"""Properties of all samplers of non-projective trees, those for comparison included, and of the choice between them."""

import numpy as np
import pytest
from helpers.batches import mixed_batch
from helpers.chi_square import LIMIT
from helpers.ranking import random_graph
from helpers.tree_samples import ROOTS, Sampler, deviation, draw, flat_graphs, hostile_graphs
from scripts.support.sampling import methods as compared

from treeparse.kernels.best.arborescence import are_trees
from treeparse.kernels.samples.nonprojective_samples import (
    AUTO,
    AUTO_LIMIT,
    EXPANSION,
    STEPS_A_PAIR,
    WILSON,
    WILSON_MARGINAL,
    sample_trees,
)

METHODS = pytest.mark.parametrize(
    ("sampler", "method", "single_root"),
    [
        (sample_trees, AUTO, True),
        (sample_trees, AUTO, False),
        (sample_trees, EXPANSION, True),
        (sample_trees, EXPANSION, False),
        (sample_trees, WILSON, False),
        (sample_trees, WILSON_MARGINAL, True),
        (compared.sample_trees, compared.WILSON_REJECT, True),
        (compared.sample_trees, compared.COLBOURN, True),
        (compared.sample_trees, compared.COLBOURN, False),
    ],
)


@ROOTS
def test_the_law_of_the_sampler_that_chooses(single_root: bool) -> None:
    for scores in flat_graphs(1):
        assert deviation(scores, single_root, AUTO, 20_000) < LIMIT
    for scores in hostile_graphs(2):
        assert deviation(scores, single_root, AUTO, 20_000) < LIMIT


@METHODS
@pytest.mark.parametrize("scale", [0.1, 1.0, 10.0, 100.0, 1000.0])
@pytest.mark.parametrize("shift", [-50.0, 50.0])
def test_trees_at_every_scale(sampler: Sampler, method: int, single_root: bool, scale: float, shift: float) -> None:
    for n in (10, 40, 160):
        scores = scale * random_graph(np.random.default_rng(n), n, "random", 0.0)
        scores[0] += shift
        heads, steps = draw(scores, single_root, method, 4, sampler)
        assert are_trees(heads, np.full(4, n), single_root=single_root).all()
        assert (n - 1 <= steps).all()
        assert (steps <= max(STEPS_A_PAIR * n**2, AUTO_LIMIT * n)).all()


@METHODS
@pytest.mark.nojit
def test_a_tree_depends_on_scores_seed_and_number_alone(sampler: Sampler, method: int, single_root: bool) -> None:
    lengths, scores = mixed_batch(3, "random")
    scores[1] *= 9.0
    seeds = np.random.default_rng(3).integers(2**64, size=5, dtype=np.uint64)
    before = scores.copy()
    options = {"single_root": single_root, "method": method}
    heads, steps = sampler(scores, lengths, seeds, 7, **options, threads=2)
    np.testing.assert_array_equal(scores, before)
    assert (heads[3] == -1).all()
    assert not steps[3].any()
    for item, n in enumerate(lengths):
        alone = np.ascontiguousarray(scores[item, : n + 1, : n + 1])
        found, found_steps = draw(alone, single_root, method, 5, sampler, seed=int(seeds[item]))
        np.testing.assert_array_equal(found, heads[item, :5, : n + 1])
        np.testing.assert_array_equal(found_steps, steps[item, :5])
        assert (heads[item, :, n + 1 :] == -1).all()
        assert item == 3 or are_trees(found, np.full(5, n), single_root=single_root).all()


@METHODS
def test_another_seed_gives_other_trees(sampler: Sampler, method: int, single_root: bool) -> None:
    scores = random_graph(np.random.default_rng(4), 20, "random", 0.0)
    heads = [draw(scores, single_root, method, 50, sampler, seed=seed)[0] for seed in (0, 1, 2**63, 2**64 - 1)]
    assert len(np.unique(np.concatenate(heads), axis=0)) == 200


@METHODS
def test_graphs_without_a_tree(sampler: Sampler, method: int, single_root: bool) -> None:
    """A word without heads, a root without dependents, and words that only reach one another."""
    for forbidden in (np.s_[:, 2], np.s_[0, :], np.s_[[0, 3, 4], 1:3]):
        scores = np.zeros((5, 5))
        scores[forbidden] = -np.inf
        heads, steps = draw(scores, single_root, method, 6, sampler)
        assert (heads == -1).all()
        assert not steps.any()


def test_methods_of_another_number_of_roots_are_refused() -> None:
    for method, single_root in ((WILSON, True), (WILSON_MARGINAL, False)):
        with pytest.raises(ValueError, match="with any number of"):
            draw(np.zeros((3, 3)), single_root, method, 1)
    with pytest.raises(ValueError, match="with any number of"):
        draw(np.zeros((3, 3)), False, compared.WILSON_REJECT, 1, compared.sample_trees)


@ROOTS
def test_the_choice_is_bounded_in_steps(single_root: bool) -> None:
    """Walks where scores are flat, and expansion where two words prefer each other."""
    scores = random_graph(np.random.default_rng(5), 30, "random", 0.0)
    _, steps = draw(scores, single_root, AUTO, 100)
    assert (steps != 30).mean() > 0.9
    scores[3, 5] += 30.0
    scores[5, 3] += 30.0
    _, steps = draw(scores, single_root, AUTO, 100)
    assert (steps == 30).all()
