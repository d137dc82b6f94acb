"""Samples without replacement of every kind of distribution, by every method: their law, shapes and randomness."""

from typing import get_args

import numpy as np
import pytest
import torch
from helpers.drawn_orders import Trees, assert_gumbel, assert_sequence_law, places_in
from helpers.tree_cases import CASES, TORCH, Case, every_case_and_order, every_sampled_case_and_order, generator
from torch import Tensor

from treeparse import NoTreeError, TreeparseError
from treeparse.trees.families import DistinctMethod

REPETITIONS = 6000


def methods_of(case: Case) -> list[DistinctMethod]:
    return [name for name in get_args(DistinctMethod) if name != "beam" or case.kind.crossing]


def rows_of(columns: list[Tensor]) -> Trees:
    """Heads, and labels, of the words of trees as rows ``(..., n)`` or ``(..., 2n)``."""
    return torch.cat([column[..., 1:] for column in columns], -1).numpy()


@every_sampled_case_and_order
@pytest.mark.parametrize(("scale", "forbidden"), [(1.0, 0.0), (4.0, 0.2)])
def test_the_first_trees_come_in_the_order_of_the_law(case: Case, scale: float, forbidden: float) -> None:
    words = 2 if case.labels else 3
    parameters = case.parameters(words, seed=2, scale=scale, forbidden=forbidden)
    oracle = case.enumerated(parameters)
    support = rows_of(oracle.values)[oracle.probs.numpy() > 0]
    log_probs = oracle.log_probs.numpy()[oracle.probs.numpy() > 0]
    assert len(support) > 2
    p = case.make(parameters).expand((REPETITIONS,))
    for method in methods_of(case):
        *columns, found, keys = p.sample_without_replacement(2, generator=generator(4), method=method)
        places = places_in(support, rows_of(columns)).T
        np.testing.assert_allclose(found.T, log_probs[places], rtol=0, atol=1e-12)
        assert_sequence_law(places, log_probs)
        assert_gumbel(keys[0].numpy())


@every_case_and_order
@pytest.mark.parametrize("scale", [0.0, 1.0, 20.0, 1e4])
def test_more_trees_than_there_are(case: Case, scale: float) -> None:
    """Each of them comes once, with its probability; all of them have mass 1, and nothing follows."""
    words = 2 if case.labels else 4
    parameters = case.parameters(words, seed=9, scale=scale, forbidden=0.2)
    oracle = case.enumerated(parameters)
    exists = oracle.log_probs.numpy() > -np.inf
    assert exists.any()
    for method in methods_of(case):
        *columns, found, keys = case.make(parameters).sample_without_replacement(
            len(exists) + 7, generator=generator(6), method=method
        )
        count = int(exists.sum())
        places = places_in(rows_of(oracle.values), rows_of(columns)[:count])
        assert sorted(places) == exists.nonzero()[0].tolist()
        np.testing.assert_allclose(found[:count], oracle.log_probs[places], rtol=0, atol=1e-12 * oracle.scale)
        assert (np.diff(keys[:count]) <= 0).all()
        assert all((column[count:] == -1).all() for column in columns)
        assert (found[count:] == -torch.inf).all()
        assert (keys[count:] == -torch.inf).all()


@every_case_and_order
def test_shapes_batches_and_generators(case: Case) -> None:
    lengths = torch.tensor([[4, 2, 3], [1, 4, 4]])
    parameters = case.parameters(4, seed=7, batch=(2, 3))
    p = case.make(parameters, lengths)
    generators = [generator(seed) for seed in range(6)]
    for method in methods_of(case):
        found = p.sample_without_replacement(6, generator=[own.manual_seed(9) for own in generators], method=method)
        few = p.sample_without_replacement(2, generator=[own.manual_seed(9) for own in generators], method=method)
        for column, first in zip(found, few, strict=True):
            assert column.shape[:3] == (6, 2, 3)
            torch.testing.assert_close(first, column[:2], rtol=0, atol=1e-12)
        for item, place in enumerate(np.ndindex(2, 3)):
            n = int(lengths[place])
            alone = case.make(case.of_item(parameters, place, n))
            own = alone.sample_without_replacement(6, generator=generators[item].manual_seed(9), method=method)
            for column, expected in zip(own[:-2], found, strict=False):
                assert torch.equal(column, expected[:, *place, : n + 1])
                assert (expected[:, *place, n + 1 :] == -1).all()
            for column, expected in zip(own[-2:], found[-2:], strict=True):
                torch.testing.assert_close(column, expected[:, *place], rtol=0, atol=1e-12)


@every_case_and_order
def test_trees_in_memory_are_drawn_by_repeats(case: Case) -> None:
    p = case.make(case.parameters(4, seed=14, batch=(3,), forbidden=0.1), validate_args=False)
    pairs = zip(
        p.sample_without_replacement(5, generator=generator(15)),
        p.sample_without_replacement(5, generator=generator(15), method="repeat"),
        strict=True,
    )
    assert all(torch.equal(*pair) for pair in pairs)


@every_case_and_order
def test_what_cannot_be_sampled(case: Case) -> None:
    parameters = case.parameters(3, seed=8, batch=(2,))
    parameters[0][1, :, 2] = -torch.inf
    for method in methods_of(case):
        with pytest.raises(NoTreeError, match="in batch item 1"):
            case.make(parameters).sample_without_replacement(2, method=method)
        *columns, log_probs, keys = case.make(parameters, validate_args=False).sample_without_replacement(
            2, method=method
        )
        assert all((column[:, 1] == -1).all() and (column[:, 0, 1:] >= 0).all() for column in columns)
        assert (log_probs[:, 1] == -torch.inf).all()
        assert (keys[:, 1] == -torch.inf).all()


def test_arguments_are_checked() -> None:
    for case in CASES:
        p = case.make(case.parameters(2, seed=9))
        with pytest.raises(TreeparseError, match="1 or more, got 0"):
            p.sample_without_replacement(0)
        with pytest.raises(TreeparseError, match=r"Unknown sampler 'guess'\. Samplers: 'repeat', 'trie', 'beam'"):
            p.sample_without_replacement(1, method="guess")
        if not case.kind.crossing:
            with pytest.raises(TreeparseError, match="'beam' does not draw projective trees"):
                p.sample_without_replacement(1, method="beam")


@pytest.mark.parametrize(
    "case", [case for case in CASES if not case.labels and case.kind != TORCH], ids=lambda case: case.name
)
@pytest.mark.parametrize("scale", [0.1, 10.0, 1000.0])
def test_different_trees_at_every_scale(case: Case, scale: float) -> None:
    for words, shift in ((10, -50.0), (10, 50.0), (40, 50.0), (160, -50.0)):
        [scores] = case.parameters(words, seed=words, scale=scale)
        scores[0] += shift
        p = case.make([scores])
        for method in methods_of(case):
            if method == "beam" and words > 40:
                continue  # seconds on a CPU
            heads, log_probs, keys = p.sample_without_replacement(8, generator=generator(11), method=method)
            assert p.support.check(heads).all()
            assert len(heads.unique(dim=0)) == 8
            torch.testing.assert_close(log_probs, p.log_prob(heads), rtol=0, atol=1e-9 * scale * words)
            assert (keys.diff() <= 0).all()
            assert keys.isfinite().all()


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@every_case_and_order
def test_a_gpu_gives_the_same(case: Case) -> None:
    parameters = case.parameters(4, seed=12)
    on_cpu, on_gpu = case.make(parameters), case.make([part.cuda() for part in parameters])
    for method in methods_of(case):
        expected = on_cpu.sample_without_replacement(9, generator=generator(13), method=method)
        found = on_gpu.sample_without_replacement(9, generator=generator(13), method=method)
        for own, other in zip(found, expected, strict=True):
            assert own.device.type == "cuda"
            torch.testing.assert_close(own.cpu(), other, rtol=0, atol=1e-9)
