"""Trees within a set of arcs, against the enumeration of all trees."""

import pytest
import torch
from helpers.tree_cases import Case, every_case_and_order, generator
from torch import Tensor

from treeparse import NoTreeError, TreeparseError

LENGTHS = torch.tensor([4, 2, 3])


def random_mask(batch: int, words: int, seed: int) -> Tensor:
    return torch.rand(batch, words + 1, words + 1, generator=generator(seed)) < 0.7


@every_case_and_order
@pytest.mark.parametrize("forbidden", [0.0, 0.2])
def test_the_trees_within_a_mask_by_enumeration(case: Case, forbidden: float) -> None:
    parameters = case.parameters(4, seed=3, batch=(3,), forbidden=forbidden)
    mask = random_mask(3, 4, seed=4)
    p = case.make(parameters, LENGTHS, validate_args=False)
    within = p.within(mask)
    assert type(within) is type(p) and within.marginals.shape == p.marginals.shape
    for item, words in enumerate(LENGTHS.tolist()):
        oracle = case.enumerated(case.of_item(parameters, item, words))
        heads = oracle.values[0][:, 1:]
        fits = mask[item, heads, torch.arange(1, words + 1)].all(-1)
        total = oracle.totals[fits].logsumexp(0) if fits.any() else torch.tensor(-torch.inf, dtype=torch.float64)
        torch.testing.assert_close(within.log_partition[item], total, rtol=0, atol=1e-11)
        if total > -torch.inf and oracle.exists:
            share = (p.log_partition - within.log_partition)[item]
            torch.testing.assert_close(share, -oracle.log_probs[fits].logsumexp(0), rtol=0, atol=1e-11)


@every_case_and_order
def test_what_the_mask_says_of_no_arc_is_ignored(case: Case) -> None:
    parameters = case.parameters(4, seed=5, batch=(3,))
    mask = random_mask(3, 4, seed=6) | True
    node = torch.arange(5)
    mask[:, :, 0] = mask[:, node, node] = False
    mask &= (node <= LENGTHS[:, None]).unsqueeze(-1) & (node <= LENGTHS[:, None]).unsqueeze(-2)
    p = case.make(parameters, LENGTHS)
    assert torch.equal(p.within(mask).log_partition, p.log_partition)


@every_case_and_order
def test_faults(case: Case) -> None:
    p = case.make(case.parameters(3, seed=9, batch=(2,)))
    with pytest.raises(TreeparseError, match=r"A mask of arcs must be torch\.bool .* got torch\.int64 \(2, 4, 4\)"):
        p.within(torch.ones(2, 4, 4, dtype=torch.int64))
    nothing = torch.ones(2, 4, 4, dtype=torch.bool)
    nothing[1, :, 2] = False
    with pytest.raises(NoTreeError, match="batch item 1"):
        _ = p.within(nothing).log_partition
