"""Projective trees with scores of siblings and grandparents: what the contract suite does not say, by enumeration."""

import itertools
from collections.abc import Callable
from typing import Any

import pytest
import torch
from helpers.second_order import grandparents_of, random_scores, ranked, siblings_of
from helpers.tree_cases import SecondOrderCase, generator, is_grandparent, is_sibling
from torch import Tensor
from torch.distributions import kl_divergence

from treeparse import (
    LabeledCRF,
    NonProjectiveCRF,
    NoTreeError,
    ProjectiveCRF,
    SecondOrderCRF,
    SiblingCRF,
    TreeparseError,
)
from treeparse.trees import TreeCRF, combined
from treeparse.trees.families.second_order import GRANDPARENTS, SIBLINGS
from treeparse.trees.parts import PartKind, arcs_of

KINDS = {SiblingCRF: [siblings_of], SecondOrderCRF: [siblings_of, grandparents_of]}
FAMILIES = pytest.mark.parametrize("family", KINDS, ids=["siblings", "second-order"])
ROOTS = pytest.mark.parametrize("single_root", [True, False], ids=["single-root", "multi-root"])


@ROOTS
@FAMILIES
@pytest.mark.parametrize("ties", ["random", "tied", "equal"])
def test_best_trees_and_lists_equal_enumeration(single_root: bool, family: type[TreeCRF], ties: str) -> None:
    for words, seed in itertools.product(range(1, 6), range(4)):
        scores = random_scores(words, seed=seed, kinds=len(KINDS[family]), ties=ties)
        if ties == "tied" and seed % 2:
            for part in scores[1:]:
                part[torch.rand(part.shape, generator=generator(seed)) < 0.2] = -torch.inf
        heads, totals = ranked(scores, single_root, KINDS[family])
        p = family(*scores, single_root=single_root, validate_args=False)
        found, found_totals, _ = p.topk(60)
        count = min(60, len(heads))
        assert torch.equal(found[:count], heads[:count])
        torch.testing.assert_close(found_totals[:count], totals[:count], rtol=1e-12, atol=0)
        assert (found[count:] == -1).all() and (found_totals[count:] == -torch.inf).all()
        assert torch.equal(p.mode, found[0])
        one_by_one = [tree for tree, _ in itertools.islice(p.best_first(), count)]
        assert torch.equal(torch.stack(one_by_one or [found[0]]), found[: max(count, 1)])


@ROOTS
def test_long_lists_are_in_order_and_keep_to_the_tree(single_root: bool) -> None:
    lengths = torch.tensor([12, 3, 20])
    arcs, siblings = random_scores(20, 3, seed=1)
    p = SiblingCRF(arcs, siblings, lengths, single_root=single_root)
    heads, totals, _ = p.topk(200)
    assert (totals.diff(dim=0)[totals[1:] > -torch.inf] <= 0).all()
    torch.testing.assert_close(totals[:, [0, 2]], p.score(heads)[:, [0, 2]])
    assert torch.equal(heads[0], p.mode)
    for item in (0, 2):
        assert len(heads[:, item].unique(dim=0)) == 200
    assert (totals[:, 1] > -torch.inf).sum() == (7 if single_root else 12)  # all projective trees of three words


@ROOTS
@FAMILIES
def test_parts_of_score_zero_leave_the_trees_of_lower_order(single_root: bool, family: Any) -> None:
    lengths = torch.tensor([9, 1, 5])
    *parts, last = random_scores(9, 3, seed=2, kinds=len(KINDS[family]))
    p = family(*parts, torch.zeros_like(last), lengths, single_root=single_root)
    lower: Any = SiblingCRF if len(parts) == 2 else ProjectiveCRF
    q = lower(*parts, lengths, single_root=single_root)
    assert torch.equal(p.mode, q.mode)
    for name in ("log_partition", "marginals", "log_marginals"):
        torch.testing.assert_close(getattr(p, name), getattr(q, name), rtol=0, atol=1e-12)
    torch.testing.assert_close(p.entropy(), q.entropy(), rtol=0, atol=1e-12)
    torch.testing.assert_close(p.cross_entropy(q), q.entropy(), rtol=0, atol=1e-11)
    assert torch.equal(p.topk(50).heads, q.topk(50).heads)
    values = torch.randn(3, 10, 10, 2, generator=generator(1), dtype=torch.float64)
    torch.testing.assert_close(p.covariance(values, values), q.covariance(values, values), rtol=0, atol=1e-12)
    torch.testing.assert_close(kl_divergence(p, p.tempered(2.0)), kl_divergence(q, q.tempered(2.0)), rtol=0, atol=1e-12)
    with pytest.raises(TreeparseError, match=r"p scores arcs.*, q scores arcs.* and (siblings|grandparents)"):
        kl_divergence(q, p)


@ROOTS
def test_temperatures_and_cross_entropies_of_both_kinds(single_root: bool) -> None:
    scores = random_scores(4, seed=3)
    p = SiblingCRF(*scores, single_root=single_root)
    trees = p.enumerate_support()
    log_probs = p.log_prob(trees)
    torch.testing.assert_close(p.tempered(3.0).log_prob(trees), (log_probs / 3).log_softmax(0))
    q = ProjectiveCRF(scores[0], single_root=single_root)
    torch.testing.assert_close(p.cross_entropy(q), -(log_probs.exp() * q.log_prob(trees)).sum())
    with pytest.raises(TreeparseError, match="p scores arcs, q scores arcs and siblings"):
        q.cross_entropy(p)
    wide = NonProjectiveCRF(scores[0], single_root=single_root)
    torch.testing.assert_close(p.cross_entropy(wide), -(log_probs.exp() * wide.log_prob(trees)).sum())
    one = p.with_scores(torch.zeros(5, 5).double())
    torch.testing.assert_close(one.score(trees), p.score(trees) - q.score(trees))


@ROOTS
def test_forbidden_siblings_leave_no_tree_with_them(single_root: bool) -> None:
    arcs, siblings = random_scores(4, seed=5)
    before = SiblingCRF(arcs, siblings.clone(), single_root=single_root)
    siblings[2, 4, 3] = siblings[3, 1, 2] = -torch.inf
    p = SiblingCRF(arcs, siblings, single_root=single_root)
    has_forbidden = torch.tensor(
        [not {(2, 4, 3), (3, 1, 2)}.isdisjoint(siblings_of(heads[1:])) for heads in before.enumerate_support().tolist()]
    )
    assert has_forbidden.any()
    assert (p.log_prob(before.enumerate_support()[has_forbidden]) == -torch.inf).all()
    assert len(p.enumerate_support()) == (~has_forbidden).sum()
    assert p.part_marginals[1][2, 4, 3] == 0
    assert before.cross_entropy(p) == torch.inf
    assert p.cross_entropy(before).isfinite()
    siblings[:, 3] = -torch.inf
    with pytest.raises(NoTreeError, match=r"no .*tree has finite scores of its arcs and siblings"):
        _ = SiblingCRF(arcs, siblings, single_root=single_root).log_partition


@ROOTS
def test_short_scores_give_what_their_conversion_gives(single_root: bool) -> None:
    """In 16 and 32 bits siblings are read as they are; all values are those of float64, rounded once."""
    for dtype in (torch.bfloat16, torch.float32):
        short = [part.to(dtype) for part in random_scores(7, 2, seed=6)]
        p = SiblingCRF(*short, single_root=single_root)
        exact = SiblingCRF(*(part.double() for part in short), single_root=single_root)
        for part, expected in zip(p.part_marginals, exact.part_marginals, strict=True):
            assert torch.equal(part, expected.float())
        assert torch.equal(p.entropy(), exact.entropy().float())
        assert torch.equal(p.topk(9).heads, exact.topk(9).heads)
        assert torch.equal(p.topk(9).scores, exact.topk(9).scores.float())
        seeds = [generator(seed) for seed in (1, 1)]
        assert torch.equal(p.sample((5,), generator=seeds[0]), exact.sample((5,), generator=seeds[1]))
        leaves = [part.requires_grad_() for part in short]
        gradients = torch.autograd.grad(SiblingCRF(*leaves, single_root=single_root).log_partition.sum(), leaves)
        for gradient, expected in zip(gradients, exact.part_marginals, strict=True):
            assert gradient.dtype == dtype
            torch.testing.assert_close(
                gradient, expected.to(dtype), rtol=1e-2 if dtype == torch.bfloat16 else 1e-6, atol=0
            )


@ROOTS
@FAMILIES
def test_products_of_labelled_distributions_keep_all_kinds(single_root: bool, family: type[TreeCRF]) -> None:
    labels = torch.randn(4, 4, 2, generator=generator(1), dtype=torch.float64)
    both = [
        LabeledCRF(family(*random_scores(3, seed=seed, kinds=len(KINDS[family])), single_root=single_root), labels)
        for seed in (1, 2)
    ]
    trees = both[0].enumerate_support()
    expected = sum(p.log_prob(*trees) / 2 for p in both)
    torch.testing.assert_close(combined(both, "scores").log_prob(*trees), torch.as_tensor(expected).log_softmax(0))


@ROOTS
@FAMILIES
def test_lists_of_labelled_trees_equal_enumeration(single_root: bool, family: type[TreeCRF]) -> None:
    for seed in range(5):
        scores = random_scores(3, seed=seed, kinds=len(KINDS[family]))
        labels = torch.randn(4, 4, 2, generator=generator(seed), dtype=torch.float64)
        p = LabeledCRF(family(*scores, single_root=single_root), labels)
        support = p.enumerate_support()
        totals = p.score(*support)
        order = totals.argsort(descending=True)
        found = p.topk(len(totals) + 3)
        assert torch.equal(found.heads[: len(order)], support[0][order])
        assert torch.equal(found.labels[: len(order)], support[1][order])
        torch.testing.assert_close(found.scores[: len(order)], totals[order])
        assert (found.scores[len(order) :] == -torch.inf).all()
        assert p.for_decoder("projective") is p
        with pytest.raises(TreeparseError, match="trees score arcs and siblings"):
            p.for_decoder("nonprojective")


@pytest.mark.parametrize(("kind", "is_part"), [(SIBLINGS, is_sibling), (GRANDPARENTS, is_grandparent)])
def test_entries_that_are_parts(kind: PartKind, is_part: Callable[..., bool]) -> None:
    """Those of trees are among them; padding has none, whatever it holds."""
    mask = kind.mask(torch.tensor([4, 2]), 5)
    for (item, *triple), value in zip(
        torch.cartesian_prod(*map(torch.arange, (2, 5, 5, 5))).tolist(), mask.flatten(), strict=True
    ):
        assert value == (is_part(*triple) and max(triple) <= (4, 2)[item])
    (trees,) = SecondOrderCase(False).trees(2)
    padded = torch.nn.functional.pad(trees, (0, 2), value=4)
    found = kind.of_trees(padded, torch.full((len(trees),), 2))
    assert mask[1].flatten()[found[found >= 0]].all() and (found[:, 3:] < 0).all()


@pytest.mark.parametrize("kind", ["siblings", "grandparents"])
def test_scores_of_other_parts_are_checked(kind: str) -> None:
    arcs, siblings, grandparents = random_scores(3, seed=1, kinds=2)
    part = siblings if kind == "siblings" else grandparents
    is_part, is_none = ((2, 3, 2), (2, 3, 1)) if kind == "siblings" else ((2, 3, 1), (1, 3, 2))

    def make(part: Tensor) -> TreeCRF:
        return SiblingCRF(arcs, part) if kind == "siblings" else SecondOrderCRF(arcs, siblings, part)

    with pytest.raises(TreeparseError, match=rf"Scores of {kind} must have shape \(4, 4, 4\), got \(3, 4, 4\)"):
        make(part[1:])
    part[is_part] = torch.nan
    with pytest.raises(TreeparseError, match=rf"The score of {kind} at \({', '.join(map(str, is_part))}\) is nan"):
        make(part)
    part[is_part], part[is_none] = 0.0, torch.nan
    assert make(part).log_partition.isfinite()


def test_arguments_that_are_no_scores_of_siblings() -> None:
    arcs, siblings = random_scores(3, seed=1)
    with pytest.raises(TreeparseError, match=r"siblings must be floating-point numbers .*, got torch\.int64"):
        SiblingCRF(arcs, siblings.long())
    with pytest.raises(TreeparseError, match="These trees need scores of arcs and siblings, got 3 tensor"):
        TreeCRF.__init__(SiblingCRF(arcs, siblings), arcs, others=(siblings, siblings))
    with pytest.raises(TreeparseError, match="one sampler, got 'wilson'"):
        SiblingCRF(arcs, siblings).family.sample((arcs, siblings), torch.tensor([3]), torch.tensor([1]), 1, "wilson")


@ROOTS
def test_relaxed_samples_are_differentiable_in_both_kinds(single_root: bool) -> None:
    leaves = [part.requires_grad_() for part in random_scores(4, seed=7)]
    p = SiblingCRF(*leaves, single_root=single_root)
    sample = p.relaxed_sample(0.5, hard=True, generator=generator(1))
    assert p.log_prob(torch.nn.functional.pad(sample[:, 1:].argmax(0), (1, 0), value=-1)) > -torch.inf
    for gradient in torch.autograd.grad((sample * torch.arange(5.0)[:, None]).sum(), leaves):
        assert gradient.any()


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
