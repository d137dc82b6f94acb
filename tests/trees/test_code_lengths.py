"""Entropies and divergences at huge scores, against exact differences of the scores of all trees."""

import math
from collections.abc import Callable
from fractions import Fraction

import pytest
import torch
from torch import Tensor
from torch.distributions import kl_divergence

from treeparse.trees import NonProjectiveCRF, ProjectiveCRF, SecondOrderCRF, SiblingCRF, TreeCRF

KINDS = {NonProjectiveCRF: 0, ProjectiveCRF: 0, SiblingCRF: 1, SecondOrderCRF: 2}  # and the kinds of part besides arcs
WORDS = 4


def distribution(
    kind: Callable[..., TreeCRF], scale: float, seed: int, *, single_root: bool, others: bool = True
) -> TreeCRF:
    """Scores are a few multiples of ``scale``, so that trees are tied, plus small numbers that tell some apart."""
    stream = torch.Generator().manual_seed(seed)
    parts = []
    for axes in (2, *[3] * KINDS[kind]):  # pyright: ignore
        part = torch.randint(-1, 2, (1, *[WORDS + 1] * axes), generator=stream).double() * scale
        near = torch.randint(0, 3, part.shape, generator=stream).double()
        parts.append((part + (near if others else 0.0)).requires_grad_())
    return kind(*parts, single_root=single_root)


def log_probs(p: TreeCRF) -> tuple[Tensor, Tensor]:
    """All trees ``(T, n+1)`` and their log probabilities, from exact sums of scores."""
    trees = p.enumerate_support()[:, 0]
    lengths = torch.full((len(trees),), WORDS)
    kinds = [(p.scores, (torch.arange(WORDS + 1) + trees.clamp_min(0) * (WORDS + 1))[:, 1:])]
    kinds += [
        (part, kind.of_trees(trees, lengths))
        for kind, part in zip(p.flat.family.kinds, p.flat.given.others, strict=True)
    ]
    scores = [Fraction(0)] * len(trees)
    for part, cells in kinds:
        values = part.detach().flatten().tolist()
        for tree, row in enumerate(cells.tolist()):
            scores[tree] += sum(Fraction(values[cell]) for cell in row if cell >= 0)
    best = max(scores)
    below = [float(score - best) for score in scores]
    log_total = math.log(math.fsum(map(math.exp, below)))
    return trees, torch.tensor([score - log_total for score in below], dtype=torch.float64)


ROOTS = pytest.mark.parametrize("single_root", [True, False], ids=["single-root", "multi-root"])


@ROOTS
@pytest.mark.parametrize("scale", [1.0, 1e5, 1e8, 1e11])
@pytest.mark.parametrize("kind", KINDS)
def test_entropies_and_divergences(kind: Callable[..., TreeCRF], scale: float, single_root: bool) -> None:
    for seed in range(4):
        p = distribution(kind, scale, seed, single_root=single_root)
        q = distribution(kind, scale, seed, single_root=single_root, others=False)
        of_p, of_q = log_probs(p)[1], log_probs(q)[1]
        entropy, cross = -(of_p.exp() * of_p).sum(), -(of_p.exp() * of_q).sum()
        torch.testing.assert_close(p.entropy()[0], entropy, rtol=1e-12, atol=1e-12)
        torch.testing.assert_close(p.cross_entropy(q)[0], cross, rtol=1e-12, atol=1e-12)
        assert kl_divergence(p, distribution(kind, scale, seed, single_root=single_root)) == 0.0


@ROOTS
@pytest.mark.parametrize("scale", [1e5, 1e11])
@pytest.mark.parametrize("kind", KINDS)
def test_gradients(kind: Callable[..., TreeCRF], scale: float, single_root: bool) -> None:
    """The derivative of ``-E_p[log q]`` in p's score of an arc is the covariance of the arc with ``-log q``."""
    p = distribution(kind, scale, 1, single_root=single_root)
    q = distribution(kind, scale, 1, single_root=single_root, others=False)
    (trees, of_p), (_, of_q) = log_probs(p), log_probs(q)
    arcs = torch.zeros(len(trees), WORDS + 1, WORDS + 1, dtype=torch.float64)
    for tree, heads in enumerate(trees.tolist()):
        arcs[tree, heads[1:], range(1, WORDS + 1)] = 1.0
    probs = of_p.exp()

    def covariance(lengths: Tensor) -> Tensor:
        return torch.einsum("t,tij->ij", probs * (lengths - (probs * lengths).sum()), arcs)

    marginals = [torch.einsum("t,tij->ij", each.exp(), arcs) for each in (of_p, of_q)]
    (found,) = torch.autograd.grad(p.entropy().sum(), [p.scores])
    torch.testing.assert_close(found[0], covariance(-of_p), rtol=0, atol=1e-11)
    p = distribution(kind, scale, 1, single_root=single_root)
    found = torch.autograd.grad(p.cross_entropy(q).sum(), [p.scores, q.scores])
    largest = float(of_q.abs().max())
    torch.testing.assert_close(found[0][0], covariance(-of_q), rtol=0, atol=1e-14 * max(largest, 1e3))
    torch.testing.assert_close(found[1][0], marginals[1] - marginals[0], rtol=0, atol=1e-12)


@ROOTS
@pytest.mark.parametrize("kind", KINDS)
def test_trees_far_apart(kind: Callable[..., TreeCRF], single_root: bool) -> None:
    """What is probable under p has a probability under q that no float64 holds, but its log has."""
    p, q = (distribution(kind, 1e5, seed, single_root=single_root) for seed in (5, 6))
    of_p, of_q = log_probs(p)[1], log_probs(q)[1]
    expected = -(of_p.exp() * of_q).sum()
    assert expected > 1e4
    torch.testing.assert_close(p.cross_entropy(q)[0], expected, rtol=1e-12, atol=0)


@ROOTS
@pytest.mark.parametrize("kind", KINDS)
def test_arcs_that_only_one_allows(kind: Callable[..., TreeCRF], single_root: bool) -> None:
    """Divergence is infinite where q forbids a tree of p, and finite where it allows more."""
    p = distribution(kind, 1e9, 2, single_root=single_root)
    mask = torch.ones(1, WORDS + 1, WORDS + 1, dtype=torch.bool)
    mask[0, 1, 2] = mask[0, 3, 4] = mask[0, 0, 4] = False
    narrow = p.within(mask)
    (trees, of_p), (all_trees, of_q) = log_probs(narrow), log_probs(p)
    rows = [all_trees.tolist().index(tree) for tree in trees.tolist()]
    expected = -(of_p.exp() * of_q[rows]).sum()
    torch.testing.assert_close(narrow.cross_entropy(p)[0], expected, rtol=1e-12, atol=1e-12)
    assert p.cross_entropy(narrow) == math.inf


def test_only_items_of_huge_scores_are_computed_anew() -> None:
    scores = torch.zeros(3, WORDS + 1, WORDS + 1, dtype=torch.float64)
    scores[1] = 1e11
    scores[1, :, 1] = -1e11
    scores[1, 0] = 7e10
    p = ProjectiveCRF(scores.requires_grad_(), torch.tensor([4, 4, 2]))
    alone = [ProjectiveCRF(scores[item : item + 1], p.lengths[item : item + 1]).entropy()[0] for item in range(3)]
    assert p.entropy().tolist() == [each.item() for each in alone]
    torch.autograd.grad(p.entropy().sum(), scores)
