"""Best trees and tree checks by the CUDA sources against the compiled kernels, which are tested by enumeration."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from helpers.emulator import Emulator
from helpers.hostile_scores import forbidden_arcs
from helpers.launched import on_device, padded
from helpers.oracles import Array
from helpers.ranking import KINDS, random_graph

from treeparse.device import nonprojective, projective
from treeparse.device.launcher import Launcher
from treeparse.kernels.best import arborescence, eisner

ROOTS = pytest.mark.parametrize("single_root", [True, False], ids=["single-root", "multi-root"])
CROSSING = pytest.mark.parametrize("crossing", [True, False], ids=["all-trees", "projective"])


def assert_as_kernels(items: Sequence[Array], crossing: bool, single_root: bool, launcher: Launcher) -> None:
    """The same heads for every item, in one batch."""
    scores, lengths = padded(items)
    device, kernels = (nonprojective, arborescence) if crossing else (projective, eisner)
    arguments = on_device(scores, launcher), on_device(lengths, launcher)
    found = device.best_trees(*arguments, single_root=single_root, launcher=launcher)
    expected = kernels.best_trees(scores, lengths, single_root=single_root)
    np.testing.assert_array_equal(found.cpu().numpy(), expected)


@CROSSING
@ROOTS
@pytest.mark.parametrize("forbidden", [0.0, 0.4, 0.8])
def test_heads_are_those_of_the_kernels_ties_included(
    crossing: bool, single_root: bool, forbidden: float, launcher: Launcher
) -> None:
    stream = np.random.default_rng(1)
    items = [random_graph(stream, 1 + trial % 12, kind, forbidden) for kind in KINDS for trial in range(96)]
    assert_as_kernels(items, crossing, single_root, launcher)


@CROSSING
@ROOTS
def test_scores_that_tie_but_for_rounding(crossing: bool, single_root: bool, launcher: Launcher) -> None:
    """Whether 0.1 + 0.2 and 0.3 tie depends on the order of all that is added: it is the same."""
    stream = np.random.default_rng(2)
    items = [0.1 * stream.integers(0, 5, size=(n + 1, n + 1)).astype(float) for n in (4, 7, 10) for _ in range(200)]
    assert_as_kernels(items, crossing, single_root, launcher)


@CROSSING
@ROOTS
def test_every_pattern_of_forbidden_arcs_over_three_words(
    crossing: bool, single_root: bool, launcher: Launcher
) -> None:
    assert_as_kernels(list(forbidden_arcs()), crossing, single_root, launcher)


@CROSSING
def test_a_longer_sentence(crossing: bool, launcher: Launcher) -> None:
    item = random_graph(np.random.default_rng(3), 50, "rootward", 0.1)
    assert_as_kernels([item], crossing, True, launcher)


def test_warps_of_one_block_do_not_share_memory() -> None:
    """All that a launch asks for is one warp a block; the source is right for any number of them."""

    class Doubling(Emulator):
        def launch(self, kernel, shape, *arguments):  # pyright: ignore[reportMissingParameterType]
            super().launch(kernel, shape._replace(warps=2, shared_bytes=2 * shape.shared_bytes), *arguments)

    items = [random_graph(np.random.default_rng(4), n, "tied", 0.1) for n in (7, 9, 8, 3, 5)]
    assert_as_kernels(items, True, True, Doubling())


@ROOTS
def test_checks_are_those_of_the_kernels(single_root: bool, launcher: Launcher) -> None:
    """Random heads, heads before their words that are often trees, and trees with one entry changed."""
    stream = np.random.default_rng(5)
    heads, lengths = np.full((1500, 12), -1), stream.integers(1, 12, size=1500)
    for item, n in enumerate(lengths):
        heads[item, 1 : n + 1] = stream.integers(0, n + 1, size=n)
        if item % 3:
            heads[item, 1 : n + 1] = np.minimum(heads[item, 1 : n + 1], np.arange(n))
        if item % 3 == 2:
            heads[item, 1 : n + 1] = np.maximum(heads[item, 1 : n + 1], np.arange(n) > 0)
            heads[item, stream.integers(0, 12)] = stream.integers(-2, 14)
    arguments = on_device(heads, launcher), on_device(lengths, launcher)
    options: Any = {"single_root": single_root, "launcher": launcher}
    found = nonprojective.are_trees(*arguments, **options).cpu().numpy()
    np.testing.assert_array_equal(found, arborescence.are_trees(heads, lengths, single_root=single_root))
    without_crossing = nonprojective.are_trees(*arguments, crossing=False, **options).cpu().numpy()
    np.testing.assert_array_equal(
        without_crossing, eisner.are_projective_trees(heads, lengths, single_root=single_root)
    )
    assert 0.1 < without_crossing.mean() < found.mean() < 0.8


def test_tensors_may_lie_in_any_way_in_memory(launcher: Launcher) -> None:
    scores = on_device(np.random.default_rng(6).normal(size=(5, 3, 5)), launcher).transpose(0, 1)
    lengths = on_device(np.array([4, 0, 2, 0, 3, 0]), launcher)[::2]
    heads = nonprojective.best_trees(scores, lengths, single_root=True, launcher=launcher)
    expected = nonprojective.best_trees(scores.contiguous(), lengths.contiguous(), single_root=True, launcher=launcher)
    assert torch.equal(heads, expected)
    columns = heads.T.contiguous().T.to(torch.int32)
    assert nonprojective.are_trees(columns, lengths, single_root=True, launcher=launcher).all()


def test_an_empty_batch(launcher: Launcher) -> None:
    scores, lengths = on_device(np.empty((0, 3, 3)), launcher), on_device(np.empty(0, np.int64), launcher)
    heads = nonprojective.best_trees(scores, lengths, single_root=True, launcher=launcher)
    assert heads.shape == (0, 3)
    assert nonprojective.are_trees(heads, lengths, single_root=True, launcher=launcher).shape == (0,)
