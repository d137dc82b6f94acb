"""Samples of every kind of distribution: their law over the support, their shapes, and where randomness comes from."""

import numpy as np
import pytest
import torch
from helpers.chi_square import LIMIT, chi_square_z, tree_counts
from helpers.tree_cases import NUMBA, Case, every_case_and_order, every_sampled_case_and_order, generator
from torch import Tensor

from treeparse import NoTreeError, TreeparseError


def columns(value: Tensor | tuple[Tensor, ...]) -> list[Tensor]:
    """Heads, or heads and labels."""
    return [value] if isinstance(value, Tensor) else list(value)


@every_sampled_case_and_order
@pytest.mark.parametrize(("scale", "forbidden"), [(0.0, 0.0), (1.0, 0.0), (1.0, 0.3), (8.0, 0.0)])
def test_the_law_over_the_support(case: Case, scale: float, forbidden: float) -> None:
    for words in range(1, 4 if case.labels else 6):
        parameters = case.parameters(words, seed=words, scale=scale, forbidden=forbidden)
        oracle = case.enumerated(parameters)
        if not oracle.exists:
            continue
        drawn = columns(case.make(parameters).sample((20_000,), generator=generator(words)))
        values = torch.cat([column[:, 1:] for column in oracle.values], 1).numpy()
        counts = tree_counts(torch.cat([column[:, 1:] for column in drawn], 1).numpy(), values)
        assert chi_square_z(counts, oracle.probs.numpy()) < LIMIT


@every_case_and_order
def test_shapes_batches_and_generators(case: Case) -> None:
    lengths = torch.tensor([[4, 2, 3], [1, 4, 4]])
    p = case.make(case.parameters(4, seed=5, batch=(2, 3)), lengths)
    for column in columns(p.sample()):
        assert column.shape == (2, 3, 5)
    assert columns(p.sample((0,)))[0].shape == (0, 2, 3, 5)
    whole = columns(p.sample((2, 7), generator=generator(1)))
    few = columns(p.sample((5,), generator=generator(1)))
    own = columns(p.sample((5,), generator=[generator(seed) for seed in range(6)]))
    for column, first, by_item in zip(whole, few, own, strict=True):
        assert column.shape == (2, 7, 2, 3, 5)
        assert torch.equal(column.flatten(0, 1)[:5], first)
        assert ((column >= 0).sum(-1) == lengths).all()
        assert not torch.equal(first, by_item)
    for item, place in enumerate(np.ndindex(2, 3)):
        n = int(lengths[place])
        parameters = case.of_item(case.parameters(4, seed=5, batch=(2, 3)), place, n)
        alone = columns(case.make(parameters).sample((5,), generator=generator(item)))
        for column, by_item in zip(alone, own, strict=True):
            assert torch.equal(column, by_item[(slice(None), *place)][:, : n + 1])


@every_case_and_order
def test_torch_seeds_the_default_generator(case: Case) -> None:
    p = case.make(case.parameters(5, seed=6))
    torch.manual_seed(3)
    first, second = columns(p.sample((9,))), columns(p.sample((9,)))
    torch.manual_seed(3)
    again = columns(p.sample((9,)))
    assert all(torch.equal(*pair) for pair in zip(first, again, strict=True))
    assert not torch.equal(first[0], second[0])


@every_case_and_order
def test_what_cannot_be_sampled(case: Case) -> None:
    parameters = case.parameters(3, seed=7, batch=(2,))
    parameters[0][1, :, 2] = -torch.inf
    with pytest.raises(NoTreeError, match="in batch item 1"):
        case.make(parameters).sample()
    drawn = columns(case.make(parameters, validate_args=False).sample((3,)))
    assert all((column[:, 1] == -1).all() and (column[:, 0, 1:] >= 0).all() for column in drawn)
    with pytest.raises(TreeparseError, match="one for each of the 2 batch items, got 3"):
        case.make(parameters).sample(generator=[generator(seed) for seed in range(3)])


@pytest.mark.parametrize("single_root", [True, False], ids=["single-root", "multi-root"])
def test_every_method_draws_by_the_same_law(single_root: bool) -> None:
    case = Case(single_root, NUMBA)
    parameters = case.parameters(4, seed=8, forbidden=0.1)
    oracle, p = case.enumerated(parameters), case.make(parameters)
    for method in ("expansion", "wilson_marginal" if single_root else "wilson"):
        drawn = p.sample((20_000,), generator=generator(9), method=method)[:, 1:].numpy()
        counts = tree_counts(drawn, oracle.values[0][:, 1:].numpy())
        assert chi_square_z(counts, oracle.probs.numpy()) < LIMIT
    for method in ("wilson" if single_root else "wilson_marginal", "guess", "colbourn"):
        with pytest.raises(TreeparseError, match=r"Samplers: |; use 'wilson"):
            p.sample(method=method)
