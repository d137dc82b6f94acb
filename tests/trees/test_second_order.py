"""Projective trees with scores of siblings and grandparents: what the contract suite does not say."""

import pytest
import torch
from helpers.second_order import grandparents_of, random_scores, ranked, siblings_of
from helpers.tree_cases import generator, is_grandparent
from torch.distributions import kl_divergence

from treeparse import LabeledCRF, ProjectiveCRF, SecondOrderCRF, SiblingCRF, TreeparseError
from treeparse.trees.families.second_order import GRANDPARENTS
from treeparse.trees.parts import arcs_of

ROOTS = pytest.mark.parametrize("single_root", [True, False], ids=["single-root", "multi-root"])


@ROOTS
@pytest.mark.parametrize("ties", ["random", "tied", "equal"])
def test_best_trees_and_lists_equal_enumeration(single_root: bool, ties: str) -> None:
    for words in range(1, 6):
        scores = random_scores(words, seed=words, kinds=2, ties=ties)
        if ties == "tied":
            for part in scores[1:]:
                part[torch.rand(part.shape, generator=generator(words)) < 0.1] = -torch.inf
        heads, totals = ranked(scores, single_root, [siblings_of, grandparents_of])
        p = SecondOrderCRF(*scores, single_root=single_root, validate_args=False)
        found, found_totals, _ = p.topk(60)
        count = min(60, len(heads))
        assert torch.equal(found[:count], heads[:count])
        torch.testing.assert_close(found_totals[:count], totals[:count], rtol=1e-12, atol=0)
        assert (found[count:] == -1).all() and (found_totals[count:] == -torch.inf).all()
        assert torch.equal(p.mode, found[0])


@ROOTS
def test_grandparents_of_score_zero_leave_siblings(single_root: bool) -> None:
    lengths = torch.tensor([9, 1, 5])
    arcs, siblings, grandparents = random_scores(9, 3, seed=2, kinds=2)
    p = SecondOrderCRF(arcs, siblings, torch.zeros_like(grandparents), lengths, single_root=single_root)
    q = SiblingCRF(arcs, siblings, lengths, single_root=single_root)
    assert torch.equal(p.mode, q.mode)
    for name in ("log_partition", "marginals", "log_marginals"):
        torch.testing.assert_close(getattr(p, name), getattr(q, name), rtol=0, atol=1e-12)
    torch.testing.assert_close(p.entropy(), q.entropy(), rtol=0, atol=1e-12)
    torch.testing.assert_close(p.cross_entropy(q), q.entropy(), rtol=0, atol=1e-11)
    assert torch.equal(p.topk(50).heads, q.topk(50).heads)
    first_order = ProjectiveCRF(arcs, lengths, single_root=single_root)
    assert p.cross_entropy(first_order).isfinite().all()
    with pytest.raises(TreeparseError, match="p scores arcs and siblings, q scores arcs and siblings and grandparents"):
        kl_divergence(q, p)


@ROOTS
def test_lists_of_labelled_trees_equal_enumeration(single_root: bool) -> None:
    scores = random_scores(3, seed=3, kinds=2)
    labels = torch.randn(4, 4, 2, generator=generator(3), dtype=torch.float64)
    p = LabeledCRF(SecondOrderCRF(*scores, single_root=single_root), labels)
    support = p.enumerate_support()
    totals = p.score(*support)
    order = totals.argsort(descending=True)
    found = p.topk(len(totals))
    assert torch.equal(found.heads, support[0][order])
    assert torch.equal(found.labels, support[1][order])
    torch.testing.assert_close(found.scores, totals[order])


def test_parts_of_trees_by_a_scan() -> None:
    (trees, _) = ranked(random_scores(4, seed=1), False, [siblings_of])
    found = GRANDPARENTS.of_trees(trees, torch.full((len(trees),), 4))
    for heads, indices in zip(trees[:, 1:].tolist(), found, strict=True):
        assert indices[indices >= 0].tolist() == [(h * 5 + d) * 5 + g for h, d, g in grandparents_of(heads)]
    mask = GRANDPARENTS.mask(torch.tensor([4, 2]), 5)
    for (item, *triple), value in zip(
        torch.cartesian_prod(*map(torch.arange, (2, 5, 5, 5))).tolist(), mask.flatten(), strict=True
    ):
        assert value == (is_grandparent(*triple) and max(triple) <= (4, 2)[item])


def test_scores_of_grandparents_are_checked() -> None:
    arcs, siblings, grandparents = random_scores(3, seed=1, kinds=2)
    with pytest.raises(TreeparseError, match=r"Scores of grandparents must have shape \(4, 4, 4\), got \(3, 4, 4\)"):
        SecondOrderCRF(arcs, siblings, grandparents[1:])
    grandparents[2, 3, 1] = torch.nan
    with pytest.raises(TreeparseError, match=r"The score of grandparents at \(2, 3, 1\) is nan"):
        SecondOrderCRF(arcs, siblings, grandparents)
    grandparents[2, 3, 1], grandparents[1, 3, 2] = 0.0, torch.nan  # between 1 and 3
    assert SecondOrderCRF(arcs, siblings, grandparents).log_partition.isfinite()


@ROOTS
@pytest.mark.parametrize("words", [9, 26, 75])
def test_forbidden_arcs_equal_arcs_of_no_weight(single_root: bool, words: int) -> None:
    """Kernels skip arcs of -inf, but not those of so low a score that their weight is 0."""
    arcs, siblings, grandparents = random_scores(words, 2, seed=words, kinds=2)
    allowed = torch.rand(arcs.shape, generator=generator(words)) < 0.25
    lengths = torch.tensor([words, words - 2])
    allowed |= arcs_of(ProjectiveCRF(arcs, lengths).mode)
    forbidden, low = (
        SecondOrderCRF(
            arcs.masked_fill(~allowed, score),
            siblings,
            grandparents,
            lengths,
            single_root=single_root,
            validate_args=False,
        )
        for score in (-torch.inf, -1e5)
    )
    torch.testing.assert_close(forbidden.log_partition, low.log_partition, rtol=1e-12, atol=0)
    assert torch.equal(forbidden.mode, low.mode)
    for own, other in zip(forbidden.part_marginals, low.part_marginals, strict=True):
        torch.testing.assert_close(own, other, rtol=0, atol=1e-11)
    torch.testing.assert_close(forbidden.marginals, forbidden.log_marginals.exp(), rtol=0, atol=1e-11)
    torch.testing.assert_close(forbidden.entropy(), low.entropy(), rtol=1e-10, atol=0)
