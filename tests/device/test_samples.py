"""Samples by the CUDA sources against the compiled kernels, whose laws are tested by enumeration: the very same trees.

Both find a draw's place among sums that agree within rounding, so a tree may differ once in some 1e13 draws.
"""

from collections.abc import Sequence
from functools import partial

import numpy as np
import pytest
import torch
from helpers.emulator import Emulator
from helpers.hostile_scores import forbidden_arcs, hostile_scores, prefer_each_other
from helpers.launched import on_device, padded
from helpers.oracles import Array
from helpers.ranking import KINDS, random_graph

from treeparse import TreeparseError
from treeparse.device import nonprojective
from treeparse.device.launcher import Launcher
from treeparse.kernels.samples import nonprojective_samples as sampling
from treeparse.kernels.samples import projective_samples
from treeparse.trees.families import beam
from treeparse.trees.families.arc_families import Nonprojective
from treeparse.trees.families.on_cuda import NonprojectiveOnCuda, ProjectiveOnCuda

ROOTS = pytest.mark.parametrize("single_root", [True, False], ids=["single-root", "multi-root"])
METHODS = pytest.mark.parametrize("method", [None, "expansion", "walks"])


def assert_as_kernels(
    items: Sequence[Array], count: int, single_root: bool, method: nonprojective.Method | None, launcher: Launcher
) -> np.ndarray:
    """The same trees in one batch; the kernels' steps ``(B, count)``."""
    scores, lengths = padded(items)
    seeds = np.random.default_rng(len(items)).integers(0, 2**64, size=len(items), dtype=np.uint64)
    walks = sampling.WILSON_MARGINAL if single_root else sampling.WILSON
    number = {None: sampling.AUTO, "expansion": sampling.EXPANSION, "walks": walks}[method]
    expected, steps = sampling.sample_trees(scores, lengths, seeds, count, single_root=single_root, method=number)
    arguments = on_device(scores, launcher), on_device(lengths, launcher), on_device(seeds.view(np.int64), launcher)
    found = nonprojective.sample_trees(*arguments, count, single_root=single_root, launcher=launcher, method=method)
    np.testing.assert_array_equal(found.cpu().numpy(), expected)
    return steps


@METHODS
@ROOTS
def test_trees_are_those_of_the_kernels(
    single_root: bool, method: nonprojective.Method | None, launcher: Launcher
) -> None:
    """Flat and sharp scores, some without a tree; samples more than a block has threads."""
    stream = np.random.default_rng(1)
    items = [random_graph(stream, 1 + trial % 11, kind, 0.2 * (trial % 4)) for kind in KINDS for trial in range(24)]
    assert_as_kernels(items, 19, single_root, method, launcher)


@METHODS
@ROOTS
def test_hostile_scores(single_root: bool, method: nonprojective.Method | None, launcher: Launcher) -> None:
    """Many of these take logarithms."""
    stream = np.random.default_rng(2)
    items = [hostile_scores(stream, int(stream.integers(2, 8))) for _ in range(150)]
    assert_as_kernels(items, 4, single_root, method, launcher)


@ROOTS
def test_every_pattern_of_forbidden_arcs_over_three_words(single_root: bool, launcher: Launcher) -> None:
    items = list(forbidden_arcs() + 0.1 * np.arange(16).reshape(4, 4))
    assert_as_kernels(items, 2, single_root, None, launcher)


@METHODS
@ROOTS
def test_walks_that_are_too_long_are_given_up(
    single_root: bool, method: nonprojective.Method | None, launcher: Launcher
) -> None:
    """Among the samples of one item there are walks that end and such that do not."""
    stream = np.random.default_rng(3)
    items = [prefer_each_other(stream.normal(size=(10, 10)), [(3, 4), (6, 9)], gap) for gap in (4, 5, 6, 30)]
    steps = assert_as_kernels(items, 30, single_root, method, launcher)
    if method == "walks":
        given_up = steps >= 4 * 9**2
        assert given_up.any()
        assert not given_up[:-1].all()
        assert given_up[-1].all()


def test_a_longer_sentence(launcher: Launcher) -> None:
    item = random_graph(np.random.default_rng(4), 40, "random", 0.2)
    for single_root in (True, False):
        assert_as_kernels([item], 9, single_root, None, launcher)


def test_trees_do_not_depend_on_blocks_and_memory() -> None:
    stream = np.random.default_rng(5)
    items = [random_graph(stream, n, "random", 0.1) for n in (9, 4, 7)]
    for launcher in (Emulator(most_warps=1, most_blocks=1), Emulator(most_warps=5), Emulator(most_shared_bytes=3000)):
        for method in (None, "walks"):
            assert_as_kernels(items, 23, True, method, launcher)


@ROOTS
def test_projective_trees_are_those_of_the_kernels(single_root: bool, launcher: Launcher) -> None:
    stream = np.random.default_rng(7)
    items = [random_graph(stream, 1 + trial % 11, kind, 0.2 * (trial % 4)) for kind in KINDS for trial in range(12)]
    items += [hostile_scores(stream, int(stream.integers(2, 8))) for _ in range(80)]
    scores, lengths = padded(items)
    seeds = stream.integers(0, 2**64, size=len(items), dtype=np.uint64)
    parts, words = (on_device(scores, launcher),), on_device(lengths, launcher)
    for count in (1, 11):
        expected = projective_samples.sample_trees(scores, lengths, seeds, count, single_root=single_root)
        own_seeds = torch.from_numpy(seeds.view(np.int64))
        found = ProjectiveOnCuda(single_root, launcher).sample(parts, words, own_seeds, count)
        np.testing.assert_array_equal(found.cpu().numpy(), expected)
    with pytest.raises(TreeparseError, match="have one sampler"):
        ProjectiveOnCuda(single_root, launcher).sample(parts, words, words, 1, "expansion")


@ROOTS
def test_the_family_draws_as_that_of_the_cpu_by_every_method(single_root: bool, launcher: Launcher) -> None:
    scores, lengths = padded([random_graph(np.random.default_rng(6), n, "random", 0.1) for n in (5, 8)])
    arguments = on_device(scores, launcher), on_device(lengths, launcher)
    seeds = torch.tensor([-1, 7])
    for method in (None, "expansion", "wilson_marginal" if single_root else "wilson"):
        found = NonprojectiveOnCuda(single_root, launcher).sample(arguments[:1], arguments[1], seeds, 5, method)
        expected = Nonprojective(single_root).sample(arguments[:1], arguments[1], seeds, 5, method)
        assert torch.equal(found, expected), method
    with pytest.raises(TreeparseError, match="draws trees with"):
        wrong = "wilson" if single_root else "wilson_marginal"
        NonprojectiveOnCuda(single_root, launcher).sample(arguments[:1], arguments[1], seeds, 5, wrong)


@ROOTS
@pytest.mark.parametrize("labelled", [False, True])
def test_different_trees_are_those_of_the_torch_form(single_root: bool, labelled: bool, launcher: Launcher) -> None:
    """Flat, sharp and hostile scores, some in log space, some without a tree or with fewer trees than are asked for."""
    stream = np.random.default_rng(8)
    items = [random_graph(stream, n, kind, 0.2) for kind in KINDS for n in (1, 2, 5, 8)]
    items += [hostile_scores(stream, int(stream.integers(2, 6))) for _ in range(20)]
    scores, lengths = padded(items)
    arguments = on_device(scores, launcher), on_device(lengths, launcher), torch.arange(len(items))
    logs = on_device(stream.normal(size=(*scores.shape, 2)), launcher).log_softmax(-1) if labelled else None
    expected = beam.sample_by_beam(*arguments, 6, single_root=single_root, label_logs=logs)
    reach = partial(nonprojective.reach, launcher=launcher)
    found = beam.sample_by_beam(*arguments, 6, single_root=single_root, label_logs=logs, reach=reach)
    assert torch.equal(found.rows, expected.rows)
    torch.testing.assert_close(found.log_probs, expected.log_probs, rtol=1e-12, atol=1e-9)
    torch.testing.assert_close(found.keys, expected.keys, rtol=1e-12, atol=1e-9)


def test_no_samples_and_no_items(launcher: Launcher) -> None:
    scores, lengths = on_device(np.zeros((2, 3, 3)), launcher), on_device(np.array([2, 2]), launcher)
    for items, count in ((2, 0), (0, 3)):
        arguments = scores[:items], lengths[:items], lengths[:items], count
        found = nonprojective.sample_trees(*arguments, single_root=True, launcher=launcher)
        assert (found.shape, found.dtype) == ((items, count, 3), torch.int64)
