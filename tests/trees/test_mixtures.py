"""Mixtures are distributions: expectations by enumeration, conditions, selection, and errors that name what exists."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from helpers.tree_cases import NUMBA, Case, every_labeled_case, generator
from torch import Tensor
from torch.distributions import Distribution, kl_divergence

from treeparse import LabeledCRF, Mixture, NonProjectiveCRF, NoTreeError, TreeparseError

WEIGHTS = torch.tensor([0.3, 0.7]).log()


def components(case: Case, words: int = 3, batch: tuple[int, ...] = ()) -> list[LabeledCRF]:
    return [case.make(case.parameters(words, seed=seed, batch=batch)) for seed in (1, 2)]


def mixture(case: Case, words: int = 3) -> tuple[Mixture, tuple[Tensor, Tensor], Tensor]:
    """A mixture, all trees, and their probabilities."""
    parts = components(case, words)
    trees = parts[0].enumerate_support()
    probs = sum((w.exp() * p.log_prob(trees).exp() for w, p in zip(WEIGHTS, parts, strict=True)), torch.zeros(()))
    return Mixture(parts, WEIGHTS), trees, probs


@every_labeled_case
def test_expectations_by_enumeration(case: Case) -> None:
    p, (heads, labels), probs = mixture(case)
    torch.testing.assert_close(p.log_prob(heads, labels), probs.log())
    right = (heads == heads[0])[:, 1:]
    torch.testing.assert_close(p.expected_uas((heads[0], labels[0])), probs @ right.double().mean(-1))
    right = right & (labels == labels[0])[:, 1:]
    torch.testing.assert_close(p.expected_las((heads[0], labels[0])), probs @ right.double().mean(-1))
    torch.testing.assert_close(p.risk(heads[0], labels[0]), 1 - probs @ right.double().mean(-1))
    r = torch.randn(4, 4, case.labels, 2, generator=generator(3), dtype=torch.float64)
    words = torch.arange(1, 4)
    values = r[heads[:, 1:], words, labels[:, 1:]].sum(1)
    torch.testing.assert_close(p.expectation(r), probs @ values)
    torch.testing.assert_close(p.expectation(r[..., 0]), (probs @ values)[0])
    assert p.support.check((heads, labels)).all()


@every_labeled_case
def test_a_condition_divides_by_its_probability(case: Case) -> None:
    p, (heads, labels), probs = mixture(case)
    known, names = torch.full_like(heads[0], -1), torch.full_like(labels[0], -1)
    known[2], names[1] = heads[0, 2], labels[0, 1]
    meets = (heads[:, 2] == known[2]) & (labels[:, 1] == names[1])
    expected = torch.where(meets, probs, 0.0) / probs[meets].sum()
    torch.testing.assert_close(p.given(known, names).log_prob(heads, labels).exp(), expected)
    mask = torch.ones(4, 4, dtype=torch.bool)
    mask[1, 2] = False
    meets = heads[:, 2] != 1
    expected = torch.where(meets, probs, 0.0) / probs[meets].sum()
    torch.testing.assert_close(p.within(mask).log_prob(heads, labels).exp(), expected)


def test_a_component_without_the_known_tree_has_no_weight() -> None:
    """As where one of several models has not the label that a word has."""
    scores, labels = torch.randn(2, 4, 4, generator=generator(1)), torch.randn(2, 4, 4, 2, generator=generator(2))
    forbidden = labels.clone()
    forbidden[0, ..., 1] = -torch.inf
    with_both, without = LabeledCRF(NonProjectiveCRF(scores), labels), LabeledCRF(NonProjectiveCRF(scores), forbidden)
    names = torch.tensor([[-1, 1, -1, -1], [-1, 1, -1, -1]])
    heads = torch.full_like(names, -1)
    expected = with_both.given(heads, names)
    for parts in ([with_both, without], [without, with_both]):
        found = Mixture(parts).given(heads, names)
        weights = found.log_weights.exp()
        torch.testing.assert_close(weights[:, 0], torch.tensor([float(p is with_both) for p in parts]).double())
        torch.testing.assert_close(found.marginals[0], expected.marginals[0])
        sample = found.sample((5,), generator=generator(3))
        assert found.log_prob(sample).isfinite().all() and (sample.labels[..., 1] == 1).all()
        assert found.minimum_risk().labels[0, 1] == 1 and found.log_prob(found.minimum_risk()).isfinite().all()
    with pytest.raises(NoTreeError, match="in batch item 0"):
        Mixture([without, without]).given(heads, names)


@every_labeled_case
def test_a_mixture_is_a_distribution_over_a_batch(case: Case) -> None:
    parts, weights = components(case, batch=(2, 3)), torch.randn(2, 2, 3, generator=generator(4))
    p = Mixture(parts, weights)
    assert isinstance(p, Distribution)
    assert (p.batch_shape, p.event_shape, p.dtype, p.device.type) == ((2, 3), (4,), torch.float64, "cpu")
    tree = p.minimum_risk()
    log_probs = p.log_prob(tree)
    torch.testing.assert_close(p[1].log_prob(tree.heads[1], tree.labels[1]), log_probs[1])
    torch.testing.assert_close(p[1, 2].log_prob(tree.heads[1, 2], tree.labels[1, 2]), log_probs[1, 2])
    wide = p.expand((4, 2, 3)).log_prob(*(part.expand(4, 2, 3, 4) for part in tree))
    torch.testing.assert_close(wide, log_probs.expand(4, 2, 3))
    torch.testing.assert_close(p.to("cpu").log_prob(tree), log_probs)
    assert repr(p).startswith("Mixture(LabeledCRF(")
    short = Mixture([case.make([part.float() for part in case.parameters(3, seed=1)])])
    heads, labels, found, keys = short.sample_without_replacement(2, generator=generator(5))
    values = found, keys, short.log_prob(heads, labels), short.score(heads, labels), short.marginals
    assert {value.dtype for value in values} == {torch.float32}


SUMS: dict[str, Callable[[Mixture], Any]] = {
    "log_partition": lambda p: p.log_partition,
    "entropy": lambda p: p.entropy(),
    "renyi_entropy": lambda p: p.renyi_entropy(2.0),
    "log_norm": lambda p: p.log_norm(2.0),
    "cross_entropy": lambda p: p.cross_entropy(p),
    "kl_divergence": lambda p: kl_divergence(p, p),
    "kl_divergence to": lambda p: kl_divergence(p, p.components[0]),
    "covariance": lambda p: p.covariance(p.marginals, p.marginals),
    "expected_gradient": lambda p: p.expected_gradient(),
    "score_variance": lambda p: p.score_variance(),
    "mode": lambda p: p.mode,
    "topk": lambda p: p.topk(2),
}


@pytest.mark.parametrize("name", SUMS)
def test_what_a_mixture_lacks_names_what_it_has(name: str) -> None:
    case = Case(True, NUMBA, labels=2)
    p = Mixture(components(case))
    with pytest.raises(TreeparseError, match=r"A mixture has no .* It has log_prob, .*minimum_risk"):
        SUMS[name](p)


def test_a_divergence_to_a_mixture_is_refused() -> None:
    p = Mixture(components(Case(True, NUMBA, labels=2)))
    with pytest.raises(TreeparseError, match="must be compared with a LabeledCRF, got a Mixture"):
        kl_divergence(p.components[0], p)


@every_labeled_case
def test_marginals_and_variances_of_labelled_parts(case: Case) -> None:
    """Of labelled trees, too: log marginals, marginals of parts, and the variance of scores."""
    p = case.make(case.parameters(3, seed=6, forbidden=0.1))
    torch.testing.assert_close(p.part_marginals.arcs, p.marginals)
    torch.testing.assert_close(p.log_marginals.exp(), p.marginals, rtol=0, atol=1e-14)
    assert torch.equal(p.log_marginals > -torch.inf, p.marginals > 0)
    trees = p.enumerate_support()
    probs, scores = p.log_prob(trees).exp(), p.score(trees)
    torch.testing.assert_close(p.score_variance(), probs @ scores.square() - (probs @ scores) ** 2)
