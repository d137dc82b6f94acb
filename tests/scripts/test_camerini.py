"""Both algorithms of the literature list what enumeration lists."""

import numpy as np
import pytest
from helpers.oracles import all_trees, tree_scores
from scripts.support.kbest import camerini


@pytest.mark.parametrize("original", [True, False], ids=["Camerini", "KBest"])
def test_lists_equal_enumeration(original: bool) -> None:
    stream = np.random.default_rng(1)
    for trial in range(150):
        n = int(stream.integers(1, 6))
        scores = stream.normal(size=(n + 1, n + 1))
        scores[stream.random(scores.shape) < 0.3 * (trial % 3 == 0)] = -np.inf
        expected = np.sort(tree_scores(scores, all_trees(n, False)))[::-1]
        if expected[0] == -np.inf:
            continue
        for k in (1, 2, 30, 1300):
            heads, totals = camerini.k_best(scores[None], np.array([n]), k, original=original)
            count = min(k, int((expected > -np.inf).sum()))
            np.testing.assert_allclose(totals[0, :count], expected[:count], rtol=1e-12, atol=1e-12)
            np.testing.assert_allclose(tree_scores(scores, heads[0, :count, 1:]), totals[0, :count], atol=1e-12)
            assert len(np.unique(heads[0, :count], axis=0)) == count
            assert (heads[0, count:] == -1).all() and (totals[0, count:] == -np.inf).all()


@pytest.mark.parametrize("original", [True, False], ids=["Camerini", "KBest"])
def test_padding_does_not_count(original: bool) -> None:
    stream = np.random.default_rng(2)
    lengths = np.array([4, 7, 2])
    scores = stream.normal(size=(3, 8, 8))
    heads, totals = camerini.k_best(scores, lengths, 10, original=original)
    for item, n in enumerate(lengths):
        own = np.ascontiguousarray(scores[item : item + 1, : n + 1, : n + 1])
        own_heads, own_totals = camerini.k_best(own, lengths[item : item + 1], 10, original=original)
        np.testing.assert_array_equal(own_heads[0], heads[item, :, : n + 1])
        np.testing.assert_array_equal(own_totals[0], totals[item])
        assert (heads[item, :, n + 1 :] == -1).all()
