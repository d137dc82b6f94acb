"""Non-projective arcs, by a scan of pre-orders, and the trees that are left without them."""

import pytest
import torch

from treeparse import NonProjectiveCRF, ProjectiveCRF
from treeparse.sentence import nonprojective_words
from treeparse.trees.arc_conflicts import has_nonprojective_arc


@pytest.mark.parametrize("single_root", [True, False])
def test_nonprojective_arcs_of_random_trees(single_root: bool) -> None:
    generator = torch.Generator().manual_seed(5)
    lengths = torch.randint(1, 10, (600,), generator=generator)
    p = NonProjectiveCRF(torch.randn(600, 10, 10, generator=generator), lengths, single_root=single_root)
    heads = p.sample(generator=generator)
    crossing = has_nonprojective_arc(heads)
    for tree, length, row in zip(heads.tolist(), lengths.tolist(), crossing, strict=True):
        assert row.nonzero().flatten().tolist() == nonprojective_words(tree[1 : length + 1])
    assert 100 < int(crossing.any(-1).sum()) < 500
    projective = ProjectiveCRF(torch.zeros(600, 10, 10), lengths, single_root=single_root)
    assert projective.given(heads.masked_fill(crossing, -1)).log_partition.isfinite().all()
