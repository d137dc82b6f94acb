"""Sums by the CUDA sources against the compiled kernels, on the CPU by the emulator and on a device if there is one.

Against enumeration they are tested by the contract suite.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from helpers.emulator import Emulator
from helpers.hostile_scores import forbidden_arcs, hostile_scores, prefer_each_other
from helpers.launched import on_device, padded
from helpers.oracles import Array, precise_log_marginals, precise_log_partition, score_scale

from treeparse.device import nonprojective
from treeparse.device.launcher import Launcher
from treeparse.kernels.sums import conditionals, elimination, hessian

ROOTS = pytest.mark.parametrize("single_root", [True, False], ids=["single-root", "multi-root"])
SCALES = (1e-3, 1.0, 10.0, 1e2, 1e3, 1e4)


class Batch:
    """Items of several sizes in one batch, NaN in every place that is to be ignored, and their sums."""

    def __init__(self, items: Sequence[Array], single_root: bool, launcher: Launcher) -> None:
        self.scores, self.lengths = padded(items)
        self.vectors, self.single_root = np.full(self.scores.shape, np.nan), single_root
        for own, item in zip(self.vectors, items, strict=True):
            own[: len(item), : len(item)] = np.random.default_rng(len(item)).normal(size=item.shape)
        self.vectors[~(self.scores > -np.inf)] = np.nan
        arguments = on_device(self.scores, launcher), on_device(self.lengths, launcher)
        before = [argument.clone() for argument in arguments]
        options: Any = {"single_root": single_root, "launcher": launcher}
        log_z, marginals = nonprojective.log_partition_and_marginals(*arguments, **options)
        alone = nonprojective.log_partition(*arguments, **options)
        assert torch.equal(alone, log_z)
        product = nonprojective.hessian_vector_product(*arguments, on_device(self.vectors, launcher), **options)
        logs = nonprojective.log_marginals(*arguments, **options)
        for argument, copy in zip(arguments, before, strict=True):
            torch.testing.assert_close(argument, copy, rtol=0, atol=0, equal_nan=True)
        self.log_z, self.marginals, self.product, self.logs = (
            tensor.cpu().numpy() for tensor in (log_z, marginals, product, logs)
        )

    def assert_as_kernels(self) -> None:
        """Errors are measured by the summed magnitudes of an item's scores."""
        options: Any = {"single_root": self.single_root}
        log_z, marginals = elimination.log_partition_and_marginals(self.scores, self.lengths, **options)
        product = hessian.hessian_vector_product(self.scores, self.lengths, self.vectors, **options)
        logs = conditionals.log_marginals(self.scores, self.lengths, **options)
        ends = zip(self.scores, self.lengths + 1, strict=True)
        scale = np.array([score_scale(item[:end, :end]) for item, end in ends])
        near(self.log_z, log_z, 1e-13 * scale)
        scales = scale[:, None, None]
        near(self.marginals, marginals, 1e-14 * scales)
        near(self.product, product, 1e-14 * scales)
        near(self.logs, logs, 1e-14 * scales)
        ignored = ~(self.scores > -np.inf)
        assert not self.marginals[ignored].any()
        assert not self.product[ignored].any()
        assert (self.logs[ignored] == -np.inf).all()
        assert (self.marginals >= 0).all()
        for values in (self.marginals, self.product):
            assert not values[self.log_z == -np.inf].any()


def near(found: Array, expected: Array, tolerance: Array) -> None:
    """Within the tolerance, infinities equal, nothing NaN."""
    with np.errstate(invalid="ignore"):
        assert ((found == expected) | (abs(found - expected) <= tolerance)).all()


def random_items(stream: np.random.Generator, lengths: Sequence[int], scale: float, forbidden: float) -> list[Array]:
    items = [stream.normal(size=(n + 1, n + 1)) * scale for n in lengths]
    for item in items:
        item[stream.random(item.shape) < forbidden] = -np.inf
    return items


@ROOTS
@pytest.mark.parametrize("scale", SCALES)
def test_sums_agree_with_the_kernels(single_root: bool, scale: float, launcher: Launcher) -> None:
    stream = np.random.default_rng(1)
    items = [
        item for share in (0.0, 0.3, 0.6) for item in random_items(stream, (12, 1, 5, 3, 2, 11, 8, 4), scale, share)
    ]
    batch = Batch(items, single_root, launcher)
    assert 0 < np.isfinite(batch.log_z).sum() < len(items)  # some have no tree
    batch.assert_as_kernels()


@ROOTS
def test_hostile_scores(single_root: bool, launcher: Launcher) -> None:
    stream = np.random.default_rng(4)
    items = [hostile_scores(stream, int(stream.integers(2, 8))) for _ in range(150)]
    Batch(items, single_root, launcher).assert_as_kernels()


def test_underflow_is_never_silent(launcher: Launcher) -> None:
    """In plain weights the better trees are lost here, and others are left whose sum is off by 70 nats."""
    item = np.zeros((5, 5))
    item[0, 1:], item[1, 1:], item[2, 1:] = (560, 350, 240, -310), (0, -380, -160, -600), (-200, 0, -270, 570)
    item[3, 1:], item[4, 1:] = (-10, -1260, 0, 40), (-750, 640, 100, 0)
    batch = Batch([item], True, launcher)
    batch.assert_as_kernels()
    assert batch.log_z[0] == pytest.approx(1080)


def test_tiny_products_are_not_lost(launcher: Launcher) -> None:
    """Every arc has a weight, but some products of weights do not, so that log marginals need log space."""
    items = [np.full((4, 4), -np.inf) for _ in range(2)] + [np.full((5, 5), -np.inf)]
    items[0][:, 1:] = [(0, 0, -250), (-np.inf, -300, 0), (0, -200, -30), (-200, -np.inf, 0)]
    items[1][:, 1:] = [(0, -300, -300), (0, 0, 0), (-300, -np.inf, -250), (-np.inf, -200, -np.inf)]
    items[2][:3, 1:] = (0, -30, -100, -300), (-30, -30, 0, -250), (-np.inf, 0, -np.inf, -200)
    items[2][3:, 1:] = (-300, 0, -200, 0), (-np.inf, -250, -300, -100)
    stream, values = np.random.default_rng(3), [0, -30, -100, -200, -250, -300, -np.inf]
    others = stream.choice(values, size=(100, 5, 5), p=[0.2, 0.1, 0.1, 0.15, 0.15, 0.15, 0.15])
    Batch([*items, *others], True, launcher).assert_as_kernels()


@ROOTS
def test_every_pattern_of_forbidden_arcs_over_three_words(single_root: bool, launcher: Launcher) -> None:
    """One batch, in which a word that only the root reaches shows itself at any stage, and many items have no tree."""
    Batch(list(forbidden_arcs() + 0.1 * np.arange(16).reshape(4, 4)), single_root, launcher).assert_as_kernels()


@ROOTS
def test_items_that_find_their_root_word_at_different_steps(single_root: bool, launcher: Launcher) -> None:
    items = random_items(np.random.default_rng(5), [7] * 8, 3.0, 0.0)
    for word, item in enumerate(items[1:], 1):
        item[1:, word] = -np.inf
    Batch(items, single_root, launcher).assert_as_kernels()


@ROOTS
@pytest.mark.parametrize("gap", [30, 100, 300, 1000])
def test_words_that_prefer_each_other(single_root: bool, gap: float, launcher: Launcher) -> None:
    """The determinant of the Laplacian loses gap / ln 10 digits here; improbable arcs keep theirs."""
    item = prefer_each_other(np.random.default_rng(8).normal(size=(13, 13)), [(3, 4), (8, 11), (1, 12)], gap)
    batch = Batch([item], single_root, launcher)
    batch.assert_as_kernels()
    assert abs(batch.log_z[0] - precise_log_partition(item, single_root)) <= 1e-12 * score_scale(item)
    arcs = np.array([(3, 4), (4, 3), (0, 3), (2, 11), (12, 1), (0, 12)])
    expected = precise_log_marginals(item, arcs, single_root)
    np.testing.assert_allclose(batch.logs[0][tuple(arcs.T)], expected, rtol=0, atol=1e-13 * score_scale(item))


@ROOTS
def test_rivals_of_large_scores(single_root: bool, launcher: Launcher) -> None:
    """Where log space is needed and yet many marginals are neither 0 nor 1."""
    stream = np.random.default_rng(7)
    item = 1e4 * stream.integers(-1, 2, size=(11, 11)) + stream.normal(size=(11, 11))
    batch = Batch([prefer_each_other(item, [(1, 2), (3, 4), (5, 6)], 3e4)], single_root, launcher)
    batch.assert_as_kernels()
    assert ((batch.marginals > 0.01) & (batch.marginals < 0.99)).sum() > 8


@ROOTS
def test_a_derivative_that_overflows_is_found(single_root: bool, launcher: Launcher) -> None:
    """The log partition is safe in plain weights, which holds nothing against a quotient of two tiny derivatives."""
    item = np.zeros((4, 4))
    item[:, 1:] = [[-4.6, -23.6, -25.4], [0.0, -743.0, -735.1], [-103.2, 0.0, -743.4], [-58.0, -22.8, 0.0]]
    Batch([item], single_root, launcher).assert_as_kernels()


@ROOTS
def test_an_item_has_the_same_bits_in_any_batch_block_and_memory(single_root: bool) -> None:
    items = random_items(np.random.default_rng(9), (12, 7, 9), 3.0, 0.1)
    items += random_items(np.random.default_rng(9), (11,), 1e4, 0.1)
    expected = Batch(items, single_root, Emulator())
    launchers = [Emulator(most_warps=1), Emulator(most_warps=3), Emulator(most_shared_bytes=0)]
    for place, item in enumerate(items):
        n = len(item)
        for launcher in launchers:
            alone = Batch([item], single_root, launcher)
            assert alone.log_z[0] == expected.log_z[place]
            for name in ("marginals", "product", "logs"):
                np.testing.assert_array_equal(getattr(alone, name)[0, :n, :n], getattr(expected, name)[place, :n, :n])


def test_tensors_may_lie_in_any_way_in_memory(launcher: Launcher) -> None:
    scores = on_device(np.random.default_rng(10).normal(size=(5, 3, 5)), launcher).transpose(0, 1)
    lengths = on_device(np.array([4, 0, 2, 0, 3, 0]), launcher)[::2]
    options: Any = {"single_root": True, "launcher": launcher}
    found = nonprojective.hessian_vector_product(scores, lengths, scores.transpose(1, 2), **options)
    copies = scores.contiguous(), lengths.contiguous(), scores.transpose(1, 2).contiguous()
    assert torch.equal(found, nonprojective.hessian_vector_product(*copies, **options))
    assert torch.equal(
        nonprojective.log_marginals(scores, lengths, **options), nonprojective.log_marginals(*copies[:2], **options)
    )


def test_nothing_is_left_for_autograd(launcher: Launcher) -> None:
    scores = on_device(np.random.default_rng(11).normal(size=(2, 4, 4)), launcher).requires_grad_()
    lengths = on_device(np.array([3, 2]), launcher)
    options: Any = {"single_root": True, "launcher": launcher}
    found = [
        *nonprojective.log_partition_and_marginals(scores, lengths, **options),
        nonprojective.hessian_vector_product(scores, lengths, scores, **options),
        nonprojective.log_marginals(scores, lengths, **options),
    ]
    assert not any(tensor.requires_grad for tensor in found)


def test_an_empty_batch_has_no_sums(launcher: Launcher) -> None:
    scores, lengths = on_device(np.empty((0, 3, 3)), launcher), on_device(np.empty(0, np.int64), launcher)
    options: Any = {"single_root": True, "launcher": launcher}
    log_z, marginals = nonprojective.log_partition_and_marginals(scores, lengths, **options)
    assert (log_z.shape, marginals.shape) == ((0,), (0, 3, 3))
    assert nonprojective.hessian_vector_product(scores, lengths, scores, **options).shape == (0, 3, 3)
    assert nonprojective.log_marginals(scores, lengths, **options).shape == (0, 3, 3)
