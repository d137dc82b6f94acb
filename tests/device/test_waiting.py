"""No call waits for a device where arguments are not validated, and all find there what the CPU finds."""

from collections.abc import Callable, Collection
from typing import Any

import pytest
import torch
from helpers.hostile_scores import prefer_each_other
from helpers.pretended import TO, Pretended, pretended_device
from helpers.tree_cases import generator
from torch import Tensor
from torch.distributions import kl_divergence
from torch.utils._pytree import tree_leaves, tree_map_only

from treeparse import LabeledCRF, NonProjectiveCRF, ProjectiveCRF
from treeparse.trees.crf import TreeCRF

LENGTHS = torch.tensor([5, 3, 5, 1, 4], dtype=torch.int32)
Step = Callable[..., Any]  # of a kind of distribution and tensors


FAMILIES = pytest.mark.parametrize("kind", [NonProjectiveCRF, ProjectiveCRF], ids=["all-trees", "projective"])
ROOTS = pytest.mark.parametrize("single_root", [True, False], ids=["single-root", "multi-root"])


class LooksAtItsGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, tensor: Tensor, look: Callable[[Tensor], Any]) -> Tensor:
        ctx.look = look
        return tensor * 2

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor, None]:  # pyright: ignore
        ctx.look(grad_outputs[0])
        return grad_outputs[0] * 2, None


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


def nothing_waits(step: Step, *tensors: Tensor, free: Collection[str] = ()) -> tuple[Any, list[Tensor | None]]:
    """What a step gives on the device, and the gradients of its tensors, in CPU memory; copies in ``free`` alone."""
    with pretended_device(free=free) as waits:
        there = [Pretended(each.detach().clone()).requires_grad_(each.requires_grad) for each in tensors]
        found = step(*there)
        assert waits == []
    gradients = [None if each.grad is None else held(each.grad) for each in there]
    return tree_map_only(Tensor, held, found), gradients


def held(tensor: Tensor) -> Tensor:
    assert isinstance(tensor, Pretended)
    return tensor.held.detach()


def assert_nothing_waits(step: Step, *tensors: Tensor, free: Collection[str] = ()) -> None:
    """A step gives the same numbers and gradients as on the CPU, by other kernels, and waits for nothing."""
    own = [each.clone().requires_grad_(each.is_floating_point()) for each in tensors]
    expected = step(*own)
    found, gradients = nothing_waits(step, *own, free=free)
    for pair in zip(tree_leaves(found), tree_leaves(expected), strict=True):
        torch.testing.assert_close(*pair, rtol=1e-12, atol=1e-11)
    for tensor, gradient in zip(own, gradients, strict=True):
        assert (tensor.grad is None) == (gradient is None)
        if gradient is not None:
            torch.testing.assert_close(gradient, tensor.grad, rtol=1e-12, atol=1e-11)


@ROOTS
@FAMILIES
def test_a_training_step(kind: type[TreeCRF], single_root: bool) -> None:
    def step(scores: Tensor, lengths: Tensor, heads: Tensor) -> list[Tensor]:
        p = kind(scores, lengths, single_root=single_root, validate_args=False)
        terms = [p.log_prob(heads), p.entropy(), p.log_partition, p.marginals.square(), p.risk(heads)]
        loss = sum(torch.where(term > -torch.inf, term, 0.0).sum() for term in terms)
        assert isinstance(loss, Tensor)
        loss.backward()
        return terms

    (scores,) = batch()
    heads = kind(scores, LENGTHS, single_root=single_root, validate_args=False).mode.int()
    assert_nothing_waits(step, scores, LENGTHS, heads)


@FAMILIES
def test_a_training_step_with_labels(kind: type[TreeCRF]) -> None:
    def step(scores: Tensor, label_scores: Tensor, lengths: Tensor, *tree: Tensor) -> list[Tensor]:
        p = LabeledCRF(kind(scores, lengths, validate_args=False), label_scores)
        terms = [p.log_prob(*tree), p.entropy(), p.log_partition, p.risk(*tree), p.marginals.square()]
        terms.append(p.expected_gradient())
        loss = sum(torch.where(term > -torch.inf, term, 0.0).sum() for term in terms)
        assert isinstance(loss, Tensor)
        loss.backward()
        return terms

    scores, label_scores = batch(labels=3)
    tree = LabeledCRF(kind(scores, LENGTHS, validate_args=False), label_scores).mode
    assert_nothing_waits(step, scores, label_scores, LENGTHS, *tree)


@FAMILIES
def test_values_and_other_distributions(kind: type[TreeCRF]) -> None:
    def step(scores: Tensor, lengths: Tensor, heads: Tensor, other: Tensor) -> list[Tensor]:
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
    assert_nothing_waits(step, scores, LENGTHS, heads, other)


@FAMILIES
def test_best_trees_and_draws(kind: type[TreeCRF]) -> None:
    """Seeds of a generator of the CPU are copied to the device at once; those of a device's generator lie there."""

    def step(scores: Tensor, label_scores: Tensor, lengths: Tensor) -> list[Tensor]:
        p = kind(scores.detach(), lengths, validate_args=False)
        labelled = LabeledCRF(p, label_scores.detach())
        drawn = [q.sample((7,), generator=generator(3)) for q in (p, labelled)]
        relaxed = [q.relaxed_sample(0.5, hard, generator=generator(4)) for q in (p, labelled) for hard in (True, False)]
        return tree_leaves([p.mode, p.minimum_risk(), labelled.mode, labelled.minimum_risk(), drawn, relaxed])

    assert_nothing_waits(step, *batch(labels=3), LENGTHS, free=[TO])


def test_draws_without_replacement() -> None:
    def step(scores: Tensor, label_scores: Tensor, lengths: Tensor) -> list[Tensor]:
        p = NonProjectiveCRF(scores.detach(), lengths, validate_args=False)
        each = p, LabeledCRF(p, label_scores.detach())
        return tree_leaves([q.sample_without_replacement(5, generator=generator(5), method="beam") for q in each])

    assert_nothing_waits(step, *batch(labels=2), LENGTHS, free=[TO])


@FAMILIES
def test_checks_of_arguments_wait_at_most_once_each(kind: type[TreeCRF]) -> None:
    """For lengths, scores, those of labels, heads, whether there is a tree, and whether scores of arcs are large.

    With labels, these are the arcs' own ones, those of their labels together, and the sums of both.
    """
    stream = generator(7)
    scores, label_scores = (torch.randn(5, 6, 6, *more, generator=stream) for more in ((), (3,)))
    lengths = torch.tensor([5, 3, 5, 1, 4])
    heads, labels = LabeledCRF(kind(scores, lengths, validate_args=False), label_scores).mode
    methods: dict[str, Step] = {
        "log_prob": lambda p, heads, _: p.log_prob(heads),
        "risk": lambda p, heads, _: p.risk(heads),
        "given": lambda p, heads, _: p.given(heads),
    }
    for name, method in methods.items():
        with pretended_device() as waits:
            there = [Pretended(each.clone()) for each in (scores, lengths, heads, labels)]
            method(kind(there[0], there[1], validate_args=True), *there[2:])
        assert len(waits) <= 5, name
    with pretended_device() as waits:
        there = [Pretended(each.clone()) for each in (scores, label_scores, lengths, heads, labels)]
        LabeledCRF(kind(there[0], there[2], validate_args=True), there[1]).log_prob(*there[3:])
    assert len(waits) <= 8


def test_lengths_out_of_range_are_forced_into_it() -> None:
    def step(scores: Tensor, lengths: Tensor) -> Tensor:
        return NonProjectiveCRF(scores, lengths, validate_args=False).log_partition

    scores = torch.randn(3, 4, 4, generator=generator(6), dtype=torch.float64)
    found, _ = nothing_waits(step, scores, torch.tensor([-1, 2, 9]))
    expected, _ = nothing_waits(step, scores, torch.tensor([0, 2, 3]))
    assert torch.equal(found, expected)


@pytest.mark.parametrize(
    ("look", "what"),
    [
        (lambda there: there.sum().item(), "item"),
        (lambda there: there.cpu(), "copy"),
        (lambda there: there[there > 0], "index"),
        (lambda there: there + torch.tensor(1.0, device=there.device), "tensor"),
    ],
)
@pytest.mark.parametrize("backward", [False, True])
def test_who_waits_or_copies_is_found(look: Callable[[Tensor], Any], what: str, backward: bool) -> None:
    with pretended_device(free=()) as waits:
        there = Pretended(torch.ones(4))
        if backward:
            LooksAtItsGradient.apply(there.requires_grad_(), look).sum().backward()
        else:
            look(there)
    assert [wait for wait, _ in waits] == [what]
