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
from helpers.oracles import (
    Array,
    precise_log_marginals,
    precise_log_partition,
    precise_projective_log_partition,
    score_scale,
)
from torch import Tensor

from treeparse.device import nonprojective, projective
from treeparse.device.launcher import Launcher
from treeparse.kernels.sums import conditionals, elimination, hessian, inside_outside

ROOTS = pytest.mark.parametrize("single_root", [True, False], ids=["single-root", "multi-root"])
CROSSING = pytest.mark.parametrize("crossing", [True, False], ids=["all-trees", "projective"])
SCALES = (1e-3, 1.0, 10.0, 1e2, 1e3, 1e4)


def sums(crossing: bool, scores: Tensor, lengths: Tensor, vectors: Tensor, **options: Any) -> list[Tensor]:
    """Log partitions, marginals, Hessian-vector products and log marginals."""
    device = nonprojective if crossing else projective
    log_z, marginals = device.log_partition_and_marginals(scores, lengths, **options)
    assert torch.equal(device.log_partition(scores, lengths, **options), log_z)
    product = device.hessian_vector_product(scores, lengths, vectors, **options)
    return [log_z, marginals, product, device.log_marginals(scores, lengths, **options)]


class Batch:
    """Items of several sizes in one batch, NaN in every place that is to be ignored, and their sums."""

    def __init__(self, items: Sequence[Array], crossing: bool, single_root: bool, launcher: Launcher) -> None:
        self.scores, self.lengths = padded(items)
        self.items, self.crossing, self.single_root = items, crossing, single_root
        self.vectors = np.full(self.scores.shape, np.nan)
        for own, item in zip(self.vectors, items, strict=True):
            own[: len(item), : len(item)] = np.random.default_rng(len(item)).normal(size=item.shape)
        self.vectors[~(self.scores > -np.inf)] = np.nan
        arguments = [on_device(each, launcher) for each in (self.scores, self.lengths, self.vectors)]
        before = [argument.clone() for argument in arguments]
        found = sums(crossing, *arguments, single_root=single_root, launcher=launcher)
        for argument, copy in zip(arguments, before, strict=True):
            torch.testing.assert_close(argument, copy, rtol=0, atol=0, equal_nan=True)
        self.sums = [tensor.cpu().numpy() for tensor in found]
        self.log_z, self.marginals, self.product, self.logs = self.sums

    def assert_as_kernels(self) -> None:
        """Errors are measured by the summed magnitudes of an item's scores."""
        options: Any = {"single_root": self.single_root}
        of_sums, of_products, of_logs = (elimination, hessian, conditionals) if self.crossing else [inside_outside] * 3
        expected = [
            *of_sums.log_partition_and_marginals(self.scores, self.lengths, **options),
            of_products.hessian_vector_product(self.scores, self.lengths, self.vectors, **options),
            of_logs.log_marginals(self.scores, self.lengths, **options),
        ]
        scale = np.array([score_scale(item) for item in self.items])
        for own, other in zip(self.sums, expected, strict=True):
            digits = 1e-13 if self.crossing and own is self.log_z else 1e-14
            tolerance = digits * scale.reshape(-1, *[1] * (own.ndim - 1))
            with np.errstate(invalid="ignore"):  # infinities are equal, nothing is NaN
                assert ((own == other) | (abs(own - other) <= tolerance)).all()
        ignored = ~(self.scores > -np.inf)
        assert (self.logs[ignored] == -np.inf).all() and (self.marginals >= 0).all()
        for values in (self.marginals, self.product):
            assert not values[ignored].any() and not values[self.log_z == -np.inf].any()


def random_items(stream: np.random.Generator, lengths: Sequence[int], scale: float, forbidden: float) -> list[Array]:
    items = [stream.normal(size=(n + 1, n + 1)) * scale for n in lengths]
    for item in items:
        item[stream.random(item.shape) < forbidden] = -np.inf
    return items


@CROSSING
@ROOTS
def test_sums_agree_with_the_kernels(crossing: bool, single_root: bool, launcher: Launcher) -> None:
    stream, items = np.random.default_rng(1), []
    for scale in SCALES:
        for share in (0.0, 0.3, 0.6):
            items += random_items(stream, (12, 1, 5, 3, 2, 11, 8, 4), scale, share)
    batch = Batch(items, crossing, single_root, launcher)
    assert 0 < np.isfinite(batch.log_z).sum() < len(items)  # some have no tree
    batch.assert_as_kernels()


@CROSSING
@ROOTS
def test_hostile_scores(crossing: bool, single_root: bool, launcher: Launcher) -> None:
    stream = np.random.default_rng(4)
    items = [hostile_scores(stream, int(stream.integers(2, 8))) for _ in range(150)]
    Batch(items, crossing, single_root, launcher).assert_as_kernels()


@ROOTS
def test_scores_that_plain_weights_get_wrong(single_root: bool, launcher: Launcher) -> None:
    items = [np.zeros((5, 5)), np.zeros((4, 4)), *(np.full((size, size), -np.inf) for size in (4, 4, 5))]
    # The better trees are lost in plain weights, and others are left whose sum is off by 70 nats.
    items[0][0, 1:], items[0][1, 1:], items[0][2, 1:] = (
        (560, 350, 240, -310),
        (0, -380, -160, -600),
        (-200, 0, -270, 570),
    )
    items[0][3, 1:], items[0][4, 1:] = (-10, -1260, 0, 40), (-750, 640, 100, 0)
    # The log partition is safe in plain weights, which holds nothing against a quotient of two tiny derivatives.
    items[1][:, 1:] = [[-4.6, -23.6, -25.4], [0.0, -743.0, -735.1], [-103.2, 0.0, -743.4], [-58.0, -22.8, 0.0]]
    # Every arc has a weight, but some products of weights do not, so that log marginals need log space.
    items[2][:, 1:] = [(0, 0, -250), (-np.inf, -300, 0), (0, -200, -30), (-200, -np.inf, 0)]
    items[3][:, 1:] = [(0, -300, -300), (0, 0, 0), (-300, -np.inf, -250), (-np.inf, -200, -np.inf)]
    items[4][:3, 1:] = (0, -30, -100, -300), (-30, -30, 0, -250), (-np.inf, 0, -np.inf, -200)
    items[4][3:, 1:] = (-300, 0, -200, 0), (-np.inf, -250, -300, -100)
    stream, values = np.random.default_rng(3), [0, -30, -100, -200, -250, -300, -np.inf]
    others = stream.choice(values, size=(100, 5, 5), p=[0.2, 0.1, 0.1, 0.15, 0.15, 0.15, 0.15])
    Batch([*items, *others], True, single_root, launcher).assert_as_kernels()


@CROSSING
@ROOTS
def test_every_pattern_of_forbidden_arcs_over_three_words(
    crossing: bool, single_root: bool, launcher: Launcher
) -> None:
    """One batch, in which a word that only the root reaches shows itself at any stage, and many items have no tree."""
    items = list(forbidden_arcs() + 0.1 * np.arange(16).reshape(4, 4))
    Batch(items, crossing, single_root, launcher).assert_as_kernels()


@ROOTS
def test_items_that_find_their_root_word_at_different_steps(single_root: bool, launcher: Launcher) -> None:
    items = random_items(np.random.default_rng(5), [7] * 8, 3.0, 0.0)
    for word, item in enumerate(items[1:], 1):
        item[1:, word] = -np.inf
    Batch(items, True, single_root, launcher).assert_as_kernels()


@CROSSING
@ROOTS
@pytest.mark.parametrize("gap", [30, 100, 300, 1000])
def test_words_that_prefer_each_other(crossing: bool, single_root: bool, gap: float, launcher: Launcher) -> None:
    """The determinant of the Laplacian loses gap / ln 10 digits here; improbable arcs keep theirs."""
    n = 12 if crossing else 8
    pairs = [(3, 4), (8, 11), (1, 12)] if crossing else [(3, 4), (2, 5), (1, 8)]
    item = prefer_each_other(np.random.default_rng(8).normal(size=(n + 1, n + 1)), pairs, gap)
    batch = Batch([item], crossing, single_root, launcher)
    batch.assert_as_kernels()
    log_partition = precise_log_partition if crossing else precise_projective_log_partition
    error = abs(batch.log_z[0] - log_partition(item, single_root))
    assert error <= (1e-12 if crossing else 1e-13) * score_scale(item)
    arcs = np.array([(3, 4), (4, 3), (0, 3), (2, 7), (n, 1), (0, n)])
    expected = precise_log_marginals(item, arcs, single_root, log_partition)
    np.testing.assert_allclose(batch.logs[0][tuple(arcs.T)], expected, rtol=0, atol=1e-13 * score_scale(item))


@ROOTS
def test_rivals_of_large_scores(single_root: bool, launcher: Launcher) -> None:
    """Where log space is needed and yet many marginals are neither 0 nor 1."""
    stream = np.random.default_rng(7)
    item = 1e4 * stream.integers(-1, 2, size=(11, 11)) + stream.normal(size=(11, 11))
    batch = Batch([prefer_each_other(item, [(1, 2), (3, 4), (5, 6)], 3e4)], True, single_root, launcher)
    batch.assert_as_kernels()
    assert ((batch.marginals > 0.01) & (batch.marginals < 0.99)).sum() > 8


@CROSSING
@ROOTS
def test_an_item_has_the_same_bits_in_any_batch_block_and_memory(crossing: bool, single_root: bool) -> None:
    items = random_items(np.random.default_rng(9), (12, 7, 9), 3.0, 0.1)
    items += random_items(np.random.default_rng(9), (11,), 1e4, 0.1)
    expected = Batch(items, crossing, single_root, Emulator())
    for launcher in (Emulator(most_warps=1), Emulator(most_warps=3), Emulator(most_shared_bytes=0)):
        for place, item in enumerate(items):
            alone, n = Batch([item], crossing, single_root, launcher), len(item)
            assert alone.log_z[0] == expected.log_z[place]
            for own, others in zip(alone.sums[1:], expected.sums[1:], strict=True):
                np.testing.assert_array_equal(own[0, :n, :n], others[place, :n, :n])


@CROSSING
def test_tensors_may_lie_in_any_way_in_memory_and_nothing_is_left_for_autograd(
    crossing: bool, launcher: Launcher
) -> None:
    scores = on_device(np.random.default_rng(10).normal(size=(5, 3, 5)), launcher).transpose(0, 1).requires_grad_()
    lengths = on_device(np.array([4, 0, 2, 0, 3, 0]), launcher)[::2]
    options: Any = {"single_root": True, "launcher": launcher}
    found = sums(crossing, scores, lengths, scores.mT, **options)
    expected = sums(crossing, scores.contiguous(), lengths.contiguous(), scores.mT.contiguous(), **options)
    for own, other in zip(found, expected, strict=True):
        assert torch.equal(own, other) and not own.requires_grad


@CROSSING
def test_an_empty_batch_has_no_sums(crossing: bool, launcher: Launcher) -> None:
    scores, lengths = on_device(np.empty((0, 3, 3)), launcher), on_device(np.empty(0, np.int64), launcher)
    found = sums(crossing, scores, lengths, scores, single_root=True, launcher=launcher)
    assert [part.shape for part in found] == [(0,), (0, 3, 3), (0, 3, 3), (0, 3, 3)]
