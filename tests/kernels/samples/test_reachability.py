"""Walks leave out no tree that is not all but impossible: their conditional probabilities, by enumeration.

Expansion takes no difference, and ``test_expansion`` has its whole law; ``test_without_replacement`` finds every tree.
Walks could lose trees to rounding, by the thresholds of their bins. An arc that a walk takes at a step with a
probability below rounding, 1e-15, is taken in the C steps of its limit with one below 1e-15 C. Where its trees are more
probable, walks nearly always reach the limit, and the tree is drawn by expansion.
"""

import numpy as np
import pytest
from helpers.tree_samples import graphs_of_rare_trees

from treeparse.kernels.samples.nonprojective_samples import fill_bins, new_bins


@pytest.mark.parametrize("first", [0, 1], ids=["below-node-0", "below-a-word"])
def test_walks_come_to_every_tree(first: int) -> None:
    """Arcs lead to their heads as bins have it; where trees hang below one word, node 0 is no head."""
    for scores in graphs_of_rare_trees(60):
        n = len(scores) - 1
        keep, other = new_bins(n + 1)
        fill_bins(scores, n, first, 0.0, keep, other)
        found = np.zeros((n + 1, n + 1))
        for j in range(1, n + 1):
            for i in range(first, n + 1):
                found[i, j] += min(keep[j, i], 1.0)
                found[other[j, i], j] += 1.0 - min(keep[j, i], 1.0)
        expected = scores.copy()
        expected[:first] = -np.inf
        np.fill_diagonal(expected, -np.inf)
        expected = expected[:, 1:]
        expected = np.exp(expected - np.logaddexp.reduce(expected, 0))
        matters = expected > 1e-14
        np.testing.assert_allclose(found[:, 1:][matters] / (n + 1 - first), expected[matters], rtol=1e-3, atol=0)
