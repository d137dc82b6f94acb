"""No call waits for the device where arguments are not validated: on tensors that raise when somebody looks at them."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from helpers.far_tensors import FarEmulator, nothing_waits
from helpers.hostile_scores import prefer_each_other
from helpers.tree_cases import EmulatedCRF, EmulatedProjectiveCRF, generator
from torch import Tensor
from torch.distributions import kl_divergence
from torch.utils._pytree import tree_leaves

from treeparse import LabeledCRF, NonProjectiveCRF, ProjectiveCRF
from treeparse.trees.crf import TreeCRF

LENGTHS = torch.tensor([5, 3, 5, 1, 4], dtype=torch.int32)
Step = Callable[..., Any]  # of a kind of distribution and tensors


class FarCRF(EmulatedCRF):
    launcher = FarEmulator()


class FarProjectiveCRF(EmulatedProjectiveCRF):
    launcher = FarEmulator()


BASES = pytest.mark.parametrize(
    ("far", "near"), [(FarCRF, NonProjectiveCRF), (FarProjectiveCRF, ProjectiveCRF)], ids=["all-trees", "projective"]
)
ROOTS = pytest.mark.parametrize("single_root", [True, False], ids=["single-root", "multi-root"])


def batch(labels: int = 0) -> tuple[Tensor, ...]:
    """Scores, and those of labels: in plain weights, in log space, without a tree, of one word, with forbidden arcs."""
    stream = generator(1)
    scores = torch.randn(5, 6, 6, generator=stream, dtype=torch.float64)
    prefer_each_other(scores[1].numpy(), [(1, 2)], 900.0)
    scores[2, :, 3] = -torch.inf
    scores[4, 1:3, 4] = -torch.inf
    for item, length in enumerate(LENGTHS):
        scores[item, :, length + 1 :] = scores[item, length + 1 :] = torch.nan
    scores[:, :, 0] = torch.nan
    if not labels:
        return (scores,)
    of_labels = torch.randn(5, 6, 6, labels, generator=stream, dtype=torch.float64)
    of_labels[0, 1, 2] = of_labels[:, 0, :, 1] = -torch.inf
    return scores, of_labels


def assert_nothing_waits(step: Step, far: Any, near: Any, *tensors: Tensor, copies: bool = False) -> None:
    """A step gives the same numbers and gradients as on the CPU, by other kernels, and waits for nothing."""
    own = [each.clone().requires_grad_(each.is_floating_point()) for each in tensors]
    expected = step(near, *own)
    found, gradients = nothing_waits(lambda *far_tensors: step(far, *far_tensors), *own, copies=copies)
    for pair in zip(tree_leaves(found), tree_leaves(expected), strict=True):
        torch.testing.assert_close(*pair, rtol=1e-12, atol=1e-11)
    for tensor, gradient in zip(own, gradients, strict=True):
        assert (tensor.grad is None) == (gradient is None)
        if gradient is not None:
            torch.testing.assert_close(gradient, tensor.grad, rtol=1e-12, atol=1e-11)


@ROOTS
@BASES
def test_a_training_step(far: type[TreeCRF], near: type[TreeCRF], single_root: bool) -> None:
    def step(kind: type[TreeCRF], scores: Tensor, lengths: Tensor, heads: Tensor) -> list[Tensor]:
        p = kind(scores, lengths, single_root=single_root, validate_args=False)
        terms = [p.log_prob(heads), p.entropy(), p.log_partition, p.marginals.square(), p.risk(heads)]
        loss = sum(torch.where(term > -torch.inf, term, 0.0).sum() for term in terms)
        assert isinstance(loss, Tensor)
        loss.backward()
        return terms

    (scores,) = batch()
    heads = near(scores, LENGTHS, single_root=single_root, validate_args=False).mode.int()
    assert_nothing_waits(step, far, near, scores, LENGTHS, heads)


@BASES
def test_a_training_step_with_labels(far: type[TreeCRF], near: type[TreeCRF]) -> None:
    def step(kind: type[TreeCRF], scores: Tensor, label_scores: Tensor, lengths: Tensor, *tree: Tensor) -> list[Tensor]:
        p = LabeledCRF(kind(scores, lengths, validate_args=False), label_scores)
        terms = [p.log_prob(*tree), p.entropy(), p.log_partition, p.risk(*tree), p.marginals.square()]
        terms.append(p.expected_gradient())
        loss = sum(torch.where(term > -torch.inf, term, 0.0).sum() for term in terms)
        assert isinstance(loss, Tensor)
        loss.backward()
        return terms

    scores, label_scores = batch(labels=3)
    tree = LabeledCRF(near(scores, LENGTHS, validate_args=False), label_scores).mode
    assert_nothing_waits(step, far, near, scores, label_scores, LENGTHS, *tree)


@BASES
def test_values_and_other_distributions(far: type[TreeCRF], near: type[TreeCRF]) -> None:
    def step(kind: type[TreeCRF], scores: Tensor, lengths: Tensor, heads: Tensor, other: Tensor) -> list[Tensor]:
        p = kind(scores.detach(), lengths, validate_args=False)
        q = kind(other.detach(), lengths, validate_args=False)
        values = other.detach().unsqueeze(-1)
        return [
            *(p.renyi_entropy(0.5), p.log_norm(3.0), p.expected_gradient(), p.log_marginals),
            *(p.cross_entropy(q), kl_divergence(q, p), p.expectation(values), p.covariance(values, values)),
            *(p.given(heads).log_partition, p.within(p.marginals > 0.1).log_partition, p.tempered(2.0).entropy()),
        ]

    (scores,) = batch()
    heads = torch.full((5, 6), -1)
    heads[:, 1] = torch.tensor([3, -1, 0, 0, 2])
    other = torch.randn(5, 6, 6, generator=generator(2), dtype=torch.float64)
    assert_nothing_waits(step, far, near, scores, LENGTHS, heads, other)


@BASES
def test_best_trees_and_draws(far: type[TreeCRF], near: type[TreeCRF]) -> None:
    """Seeds of a generator of the CPU are copied to the device at once; those of a device's generator lie there."""

    def step(kind: type[TreeCRF], scores: Tensor, label_scores: Tensor, lengths: Tensor) -> list[Tensor]:
        p = kind(scores.detach(), lengths, validate_args=False)
        labelled = LabeledCRF(p, label_scores.detach())
        drawn = [q.sample((7,), generator=generator(3)) for q in (p, labelled)]
        relaxed = [q.relaxed_sample(0.5, hard, generator=generator(4)) for q in (p, labelled) for hard in (True, False)]
        return tree_leaves([p.mode, p.minimum_risk(), labelled.mode, labelled.minimum_risk(), drawn, relaxed])

    assert_nothing_waits(step, far, near, *batch(labels=3), LENGTHS, copies=True)


def test_draws_without_replacement() -> None:
    def step(kind: type[NonProjectiveCRF], scores: Tensor, label_scores: Tensor, lengths: Tensor) -> list[Tensor]:
        p = kind(scores.detach(), lengths, validate_args=False)
        labelled = LabeledCRF(p, label_scores.detach())
        return tree_leaves(
            [q.sample_without_replacement(5, generator=generator(5), method="beam") for q in (p, labelled)]
        )

    assert_nothing_waits(step, FarCRF, NonProjectiveCRF, *batch(labels=2), LENGTHS, copies=True)


def test_lengths_out_of_range_are_forced_into_it() -> None:
    def step(kind: type[NonProjectiveCRF], scores: Tensor, lengths: Tensor) -> Tensor:
        return kind(scores.detach(), lengths, validate_args=False).log_partition

    scores = torch.randn(3, 4, 4, generator=generator(6), dtype=torch.float64)
    found, _ = nothing_waits(lambda *far: step(FarCRF, *far), scores, torch.tensor([0, 2, 9]))
    assert torch.equal(found, step(EmulatedCRF, scores, torch.tensor([1, 2, 3])))


@pytest.mark.parametrize(
    "look",
    [
        lambda far: far.sum().item(),
        lambda far: bool((far > 0).any()),
        lambda far: far.cpu(),
        lambda far: far[far > 0],
        lambda far: far.nonzero(),
        lambda far: far + torch.from_numpy(torch.ones(4).numpy()).to(far.device),
    ],
)
def test_such_tensors_find_who_waits(look: Callable[[Tensor], Any]) -> None:
    with pytest.raises(AssertionError):
        nothing_waits(look, torch.ones(4))
