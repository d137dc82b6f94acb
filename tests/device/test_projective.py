"""Sums over projective trees by the CUDA sources against the compiled kernels, which are tested by enumeration."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from helpers.emulator import Emulator
from helpers.hostile_scores import forbidden_arcs, hostile_scores, prefer_each_other
from helpers.launched import on_device, padded
from helpers.oracles import Array, precise_projective_log_partition, score_scale

from treeparse.device import projective
from treeparse.device.launcher import Launcher
from treeparse.kernels.sums import inside_outside

ROOTS = pytest.mark.parametrize("single_root", [True, False], ids=["single-root", "multi-root"])


class Batch:
    """The sums of items of several sizes in one batch."""

    def __init__(self, items: Sequence[Array], single_root: bool, launcher: Launcher) -> None:
        self.items, self.single_root = items, single_root
        self.scores, self.lengths = padded(items)
        self.vectors = np.random.default_rng(len(items)).normal(size=self.scores.shape)
        self.vectors[~(self.scores > -np.inf)] = np.nan
        arguments = on_device(self.scores, launcher), on_device(self.lengths, launcher)
        options: Any = {"single_root": single_root, "launcher": launcher}
        log_z, marginals = projective.log_partition_and_marginals(*arguments, **options)
        assert torch.equal(projective.log_partition(*arguments, **options), log_z)
        product = projective.hessian_vector_product(*arguments, on_device(self.vectors, launcher), **options)
        logs = projective.log_marginals(*arguments, **options)
        self.sums = [tensor.cpu().numpy() for tensor in (log_z, marginals, product, logs)]

    def assert_as_kernels(self) -> None:
        """Errors are measured by the summed magnitudes of an item's scores."""
        options: Any = {"single_root": self.single_root}
        expected = [
            *inside_outside.log_partition_and_marginals(self.scores, self.lengths, **options),
            inside_outside.hessian_vector_product(self.scores, self.lengths, self.vectors, **options),
            inside_outside.log_marginals(self.scores, self.lengths, **options),
        ]
        scale = np.array([score_scale(item) for item in self.items])
        for own, other in zip(self.sums, expected, strict=True):
            tolerance = 1e-14 * scale.reshape(-1, *[1] * (own.ndim - 1))
            with np.errstate(invalid="ignore"):
                assert ((own == other) | (abs(own - other) <= tolerance)).all()
        _, marginals, product, logs = self.sums
        ignored = ~(self.scores > -np.inf)
        assert not marginals[ignored].any()
        assert not product[ignored].any()
        assert (logs[ignored] == -np.inf).all()


@ROOTS
def test_sums_agree_with_the_kernels(single_root: bool, launcher: Launcher) -> None:
    stream = np.random.default_rng(1)
    items = []
    for scale in (1e-3, 1.0, 10.0, 1e2, 1e3, 1e4):
        for forbidden in (0.0, 0.3, 0.6):
            for n in (12, 1, 5, 2, 3, 9):
                item = stream.normal(size=(n + 1, n + 1)) * scale
                item[stream.random(item.shape) < forbidden] = -np.inf
                items.append(item)
    batch = Batch(items, single_root, launcher)
    assert 0 < np.isfinite(batch.sums[0]).sum() < len(items)  # some have no tree
    batch.assert_as_kernels()


@ROOTS
def test_hostile_scores(single_root: bool, launcher: Launcher) -> None:
    stream = np.random.default_rng(2)
    items = [hostile_scores(stream, int(stream.integers(2, 8))) for _ in range(100)]
    Batch(items, single_root, launcher).assert_as_kernels()


@ROOTS
def test_every_pattern_of_forbidden_arcs_over_three_words(single_root: bool) -> None:
    Batch(list(forbidden_arcs() + 0.1 * np.arange(16).reshape(4, 4)), single_root, Emulator()).assert_as_kernels()


@ROOTS
@pytest.mark.parametrize("gap", [30, 300, 1000])
def test_words_that_prefer_each_other(single_root: bool, gap: float, launcher: Launcher) -> None:
    item = prefer_each_other(np.random.default_rng(3).normal(size=(9, 9)), [(3, 4), (2, 5), (1, 8)], gap)
    batch = Batch([item], single_root, launcher)
    batch.assert_as_kernels()
    error = abs(batch.sums[0][0] - precise_projective_log_partition(item, single_root))
    assert error <= 1e-13 * score_scale(item)


@ROOTS
def test_an_item_has_the_same_bits_in_any_batch_block_and_memory(single_root: bool) -> None:
    stream = np.random.default_rng(4)
    items = [stream.normal(size=(n + 1, n + 1)) * scale for n, scale in ((11, 1.0), (6, 3.0), (9, 1e4))]
    expected = Batch(items, single_root, Emulator()).sums
    for launcher in (Emulator(most_warps=1), Emulator(most_warps=3), Emulator(most_shared_bytes=0)):
        for own, other in zip(Batch(items, single_root, launcher).sums, expected, strict=True):
            np.testing.assert_array_equal(own, other)
    for place, item in enumerate(items):
        alone, size = Batch([item], single_root, Emulator()), len(item)
        assert alone.sums[0][0] == expected[0][place]
        for which in (1, 3):
            np.testing.assert_array_equal(alone.sums[which][0, :size, :size], expected[which][place, :size, :size])


def test_tensors_may_lie_in_any_way_in_memory(launcher: Launcher) -> None:
    scores = on_device(np.random.default_rng(5).normal(size=(5, 3, 5)), launcher).transpose(0, 1)
    lengths = on_device(np.array([4, 0, 2, 0, 3, 0]), launcher)[::2]
    options: Any = {"single_root": True, "launcher": launcher}
    found = projective.hessian_vector_product(scores, lengths, scores.mT, **options)
    copies = scores.contiguous(), lengths.contiguous(), scores.mT.contiguous()
    assert torch.equal(found, projective.hessian_vector_product(*copies, **options))


def test_an_empty_batch_has_no_sums(launcher: Launcher) -> None:
    scores, lengths = on_device(np.empty((0, 3, 3)), launcher), on_device(np.empty(0, np.int64), launcher)
    options: Any = {"single_root": True, "launcher": launcher}
    log_z, marginals = projective.log_partition_and_marginals(scores, lengths, **options)
    assert (log_z.shape, marginals.shape) == ((0,), (0, 3, 3))
    assert projective.hessian_vector_product(scores, lengths, scores, **options).shape == (0, 3, 3)
