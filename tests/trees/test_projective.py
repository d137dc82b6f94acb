"""The distribution over projective trees as users meet it, and beside the one over all trees."""

import itertools
import math
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.distributions import kl_divergence

from treeparse import LabeledCRF, NonProjectiveCRF, NoTreeError, ProjectiveCRF

ROOTS = pytest.mark.parametrize("single_root", [True, False], ids=["single-root", "multi-root"])
FAMILIES = list(itertools.product((NonProjectiveCRF, ProjectiveCRF), (True, False)))
CROSSING = torch.tensor([-1, 0, 4, 1, 1])  # 1 -> 3 and 4 -> 2


@ROOTS
def test_projective_trees_are_some_of_all_trees(single_root: bool) -> None:
    generator = torch.Generator().manual_seed(2)
    scores = 3 * torch.randn(50, 9, 9, generator=generator, dtype=torch.float64)
    lengths = torch.randint(1, 9, (50,), generator=generator)
    every = NonProjectiveCRF(scores, lengths, single_root=single_root)
    projective = ProjectiveCRF(scores, lengths, single_root=single_root)
    assert (projective.log_partition <= every.log_partition + 1e-12).all()
    assert (every.log_prob(projective.mode) <= every.log_prob(every.mode)).all()
    assert projective.support.check(projective.mode).all()
    share = projective.log_partition - every.log_partition  # log probability that a tree is projective
    torch.testing.assert_close(kl_divergence(projective, every), -share)


@pytest.mark.parametrize("labels", [0, 2])
def test_cross_entropy_between_families_equals_enumeration(labels: int) -> None:
    """Infinite exactly where q forbids a tree of p, be it by an arc, by crossing arcs or by several roots."""
    generator = torch.Generator().manual_seed(3)
    counts = {True: 0, False: 0}
    for n, (first, single), (second, other) in itertools.product((2, 3, 4), FAMILIES, FAMILIES):
        scores, label_scores = sparse_scores(30, n, generator), torch.zeros(30, n + 1, n + 1, labels or 1)
        p = first(scores[0], single_root=single, validate_args=False)
        q = second(scores[1], single_root=other, validate_args=False)
        trees = p.enumerate_support()
        log_probs, codes = p.log_prob(trees), -q.log_prob(trees)
        possible = log_probs > -torch.inf
        expected = torch.where(possible, log_probs.exp() * codes, 0.0).nansum(0)
        found = p.cross_entropy(q)
        if labels:
            found = LabeledCRF(p, label_scores).cross_entropy(LabeledCRF(q, label_scores))
            expected = expected + n * math.log(labels)
        expected = torch.where(possible.any(0), expected, -torch.inf)
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-9)
        for infinite in counts:
            counts[infinite] += int((possible.any(0) & (found.isinf() == infinite)).sum())
    assert min(counts.values()) > 200


def sparse_scores(items: int, n: int, generator: torch.Generator) -> Tensor:
    """Two batches with few allowed arcs, those of the second mostly those of the first and some more."""
    shape = (2, items, n + 1, n + 1)
    scores = torch.randn(shape, generator=generator, dtype=torch.float64)
    chances = torch.rand(shape[1:], generator=generator)
    scores[0][chances < 0.5] = -torch.inf
    scores[1][chances < 0.5 - 0.3 * torch.rand(items, 1, 1, generator=generator)] = -torch.inf
    return scores


def test_an_item_whose_trees_all_cross_is_named() -> None:
    scores = torch.zeros(3, 5, 5, dtype=torch.float64)
    scores[2] = -torch.inf
    scores[2, CROSSING[1:], torch.arange(1, 5)] = 0.0
    assert NonProjectiveCRF(scores).mode[2].tolist() == CROSSING.tolist()
    message = r"no projective {} in batch item 2: arcs of finite score lead from the root to all words, but every {} "
    for single_root, kind in ((True, "single-root tree"), (False, "tree")):
        strict = ProjectiveCRF(scores, single_root=single_root, validate_args=True)
        for quantity in ("log_partition", "marginals", "log_marginals", "mode"):
            with pytest.raises(NoTreeError, match=message.format(kind, kind)):
                getattr(strict, quantity)
        p = ProjectiveCRF(scores, single_root=single_root, validate_args=False)
        assert p.log_partition[2] == p.entropy()[2] == p.log_prob(CROSSING)[2] == -torch.inf
        assert not p.marginals[2].any()
        assert (p.mode[2] == -1).all()
        assert kl_divergence(NonProjectiveCRF(scores, single_root=single_root), p)[2] == torch.inf


@pytest.mark.parametrize("family", [NonProjectiveCRF, ProjectiveCRF])
def test_words_that_are_not_reached_are_named(family: Any) -> None:
    scores = torch.full((4, 4), -torch.inf)
    scores[0, 1] = scores[0, 3] = scores[1, 2] = 0.0
    with pytest.raises(NoTreeError, match=r"word 1, the best, does not reach word 3\."):
        family(scores).mode  # noqa: B018
    assert family(scores, single_root=False).mode.tolist() == [-1, 0, 1, 0]
    scores[0, 3] = -torch.inf
    with pytest.raises(NoTreeError, match=r"no arcs of finite score lead from the root to word 3\."):
        family(scores, single_root=False).log_partition  # noqa: B018


def test_several_roots_of_which_each_tree_has_one() -> None:
    """Both 2 and 4 can hang from node 0, but not both at once without crossing an arc to 3."""
    scores = torch.full((6, 6), -torch.inf, dtype=torch.float64)
    for head, word in [(0, 4), (4, 1), (1, 3), (3, 2), (4, 5), (0, 2), (2, 1), (2, 5), (5, 3), (3, 4)]:
        scores[head, word] = 0.0
    several, one = (ProjectiveCRF(scores, single_root=single_root) for single_root in (False, True))
    assert several.log_partition.item() == pytest.approx(math.log(2))
    assert kl_divergence(several, one).item() == pytest.approx(0.0)
    scores[4, 3] = 0.0
    assert kl_divergence(several, one).item() == torch.inf
