"""The lecture's chart in O(n^5) against the kernels: right for the best tree, and how it overcounts under sums."""

import numpy as np
import pytest
from helpers.lecture import best_score, derivations, log_sum
from helpers.oracles import all_trees, tree_scores
from helpers.ranking import random_graph

from treeparse.kernels.best.eisner import best_trees
from treeparse.kernels.sums.inside_outside import log_partition


@pytest.mark.parametrize("single_root", [True, False])
@pytest.mark.parametrize("forbidden", [0.0, 0.3])
@pytest.mark.parametrize("words", [1, 2, 5, 8, 9])
def test_its_best_score_is_that_of_the_best_tree(words: int, forbidden: float, single_root: bool) -> None:
    """With one root, the best score is that of the best choice of its word."""
    scores = random_graph(np.random.default_rng(words), words, "random", forbidden)
    heads = best_trees(scores[None], np.array([words]), single_root=single_root)[0, 1:]
    tops = np.full((words if single_root else 1, *scores.shape), scores)
    for word, allowed in enumerate(tops if single_root else [], 1):
        allowed[0, np.arange(words + 1) != word] = -np.inf
    best = max(map(best_score, tops))
    assert best == -np.inf if heads[0] < 0 else best == pytest.approx(tree_scores(scores, heads[None])[0], abs=1e-12)


@pytest.mark.parametrize("words", [1, 2, 3, 5])
def test_its_sum_counts_a_tree_once_for_every_order_of_its_dependents(words: int) -> None:
    scores = np.random.default_rng(words).normal(size=(words + 1, words + 1))
    trees = all_trees(words, single_root=False, projective=True)
    times = np.array([derivations(heads) for heads in trees])
    totals = tree_scores(scores, trees)
    assert log_sum(scores) == pytest.approx(np.logaddexp.reduce(totals + np.log(times)), abs=1e-12)
    exact = log_partition(scores[None], np.array([words]), single_root=False)[0]
    assert exact == pytest.approx(np.logaddexp.reduce(totals), abs=1e-12)
    assert (log_sum(scores) > exact + 1e-3) == (times > 1).any() == (words > 2)
