"""Best trees with siblings and grandparents of longer sentences, against lists of the best trees."""

import numpy as np
import pytest

from treeparse.kernels.best.second_order_trees import best_trees
from treeparse.kernels.lists.projective_lists import ProjectiveKBest


@pytest.mark.parametrize("forbidden", [0.0, 0.3])
@pytest.mark.parametrize("single_root", [True, False], ids=["single-root", "multi-root"])
@pytest.mark.parametrize("integers", [False, True], ids=["", "ties"])
def test_best_trees_lead_the_lists(single_root: bool, forbidden: float, integers: bool) -> None:
    """At all lengths about those of whole vectors of contexts."""
    stream, lengths = np.random.default_rng(1), np.array([26, 6, 7, 8, 9, 14, 15, 16, 17, 25])
    arcs, siblings, grandparents = (stream.normal(size=(len(lengths), *[27] * axes)) for axes in (2, 3, 3))
    if integers:
        arcs, siblings, grandparents = arcs.round(), siblings.round(), grandparents.round()
    for part in (siblings, grandparents):
        part[stream.random(part.shape) < forbidden] = -np.inf
    listed = ProjectiveKBest(arcs, lengths, others=(siblings, grandparents), single_root=single_root)
    listed.extend(1)
    heads = best_trees(arcs, siblings, grandparents, lengths, single_root=single_root)
    np.testing.assert_array_equal(heads, listed.heads[:, 0])
    assert (listed.scores[:, 0] > -np.inf).any()
