"""Non-projective arcs, by a scan of pre-orders, and the trees that are left without them."""

from itertools import product

import numpy as np
import pytest
import torch
from helpers.oracles import all_trees

from treeparse import NonProjectiveCRF, ProjectiveCRF
from treeparse.sentence import nonprojective_words, tree_problem
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


@pytest.mark.parametrize("single_root", [True, False])
@pytest.mark.parametrize("length", [1, 2, 3, 4, 5])
def test_nonprojective_arcs_of_every_part_of_a_tree(length: int, single_root: bool) -> None:
    """Heads are opened exactly where no projective tree has all known arcs, and then one has the others."""
    every = product(*([head for head in range(-1, length + 1) if head != word] for word in range(1, length + 1)))
    parts = [each for each in every if not tree_problem(each, single_root=single_root, partial=True)]
    heads = torch.tensor([(-1, *part) for part in parts])
    lengths = torch.full((len(parts),), length)
    trees = ProjectiveCRF(torch.zeros(len(parts), length + 1, length + 1), lengths, single_root=single_root)
    opened = has_nonprojective_arc(heads)
    assert trees.given(heads.masked_fill(opened, -1)).log_partition.isfinite().all()
    known, projective = np.array(parts)[:, None], all_trees(length, single_root, projective=True)[None]
    has_tree = ((known == -1) | (known == projective)).all(-1).any(-1)
    assert has_tree.tolist() == (~opened.any(-1)).tolist()
