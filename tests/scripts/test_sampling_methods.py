"""What holds of the samplers that exist to be compared with the library's."""

import numpy as np
import pytest
from helpers.batches import mixed_batch
from helpers.ranking import random_graph
from helpers.tree_samples import draw
from support.sampling.methods import COLBOURN, WILSON_REJECT, sample_trees

from treeparse.kernels.best.arborescence import are_trees
from treeparse.kernels.samples.nonprojective import AUTO_LIMIT
from treeparse.kernels.samples.walks import STEPS_A_PAIR

METHODS = pytest.mark.parametrize(
    ("method", "single_root"), [(WILSON_REJECT, True), (COLBOURN, True), (COLBOURN, False)]
)


@METHODS
@pytest.mark.parametrize("scale", [0.1, 1.0, 10.0, 100.0, 1000.0])
@pytest.mark.parametrize("shift", [-50.0, 50.0])
def test_trees_at_every_scale(method: int, single_root: bool, scale: float, shift: float) -> None:
    for n in (10, 40, 160):
        scores = scale * random_graph(np.random.default_rng(n), n, "random", 0.0)
        scores[0] += shift
        heads, steps = draw(scores, single_root, method, 4, sample_trees)
        assert are_trees(heads, np.full(4, n), single_root=single_root).all()
        assert (n - 1 <= steps).all()
        assert (steps <= max(STEPS_A_PAIR * n**2, AUTO_LIMIT * n)).all()


@METHODS
@pytest.mark.nojit
def test_a_tree_depends_on_scores_seed_and_number_alone(method: int, single_root: bool) -> None:
    lengths, scores = mixed_batch(3, "random")
    scores[1] *= 9.0
    seeds = np.random.default_rng(3).integers(2**64, size=5, dtype=np.uint64)
    before = scores.copy()
    options = {"single_root": single_root, "method": method}
    heads, steps = sample_trees(scores, lengths, seeds, 7, **options, threads=2)
    np.testing.assert_array_equal(scores, before)
    assert (heads[3] == -1).all()
    assert not steps[3].any()
    for item, n in enumerate(lengths):
        alone = np.ascontiguousarray(scores[item, : n + 1, : n + 1])
        found, found_steps = draw(alone, single_root, method, 5, sample_trees, seed=int(seeds[item]))
        np.testing.assert_array_equal(found, heads[item, :5, : n + 1])
        np.testing.assert_array_equal(found_steps, steps[item, :5])
        assert (heads[item, :, n + 1 :] == -1).all()
        assert item == 3 or are_trees(found, np.full(5, n), single_root=single_root).all()


@METHODS
def test_another_seed_gives_other_trees(method: int, single_root: bool) -> None:
    scores = random_graph(np.random.default_rng(4), 20, "random", 0.0)
    heads = [draw(scores, single_root, method, 50, sample_trees, seed=seed)[0] for seed in (0, 1, 2**63, 2**64 - 1)]
    assert len(np.unique(np.concatenate(heads), axis=0)) == 200


@METHODS
def test_graphs_without_a_tree(method: int, single_root: bool) -> None:
    """A word without heads, a root without dependents, and words that only reach one another."""
    for forbidden in (np.s_[:, 2], np.s_[0, :], np.s_[[0, 3, 4], 1:3]):
        scores = np.zeros((5, 5))
        scores[forbidden] = -np.inf
        heads, steps = draw(scores, single_root, method, 6, sample_trees)
        assert (heads == -1).all()
        assert not steps.any()


def test_rejection_of_any_number_of_roots_is_refused() -> None:
    with pytest.raises(ValueError, match="with any number of"):
        draw(np.zeros((3, 3)), False, WILSON_REJECT, 1, sample_trees)
