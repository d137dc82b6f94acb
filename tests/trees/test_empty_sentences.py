"""Sentences without words: each has one tree, which has no arc, of weight 1, with a single root too.

Batches whose longest sentence has no words are in the contract suite.
"""

import math
from typing import Any, get_args

import pytest
import torch
from helpers.tree_cases import Case, Distribution
from helpers.tree_cases import every_case_order_and_backend as every_case
from torch import Tensor
from torch.distributions import kl_divergence

from treeparse import NonProjectiveSiblingCRF
from treeparse.trees.families import DistinctMethod

COUNT = 4
LENGTHS = torch.tensor([3, 0, 2])
EMPTY, OTHERS = 1, [0, 2]
DIFFERENTIABLE = "log_partition", "marginals", "entropy", "renyi_entropy(0.5)", "cross_entropy", "log_prob", "risk"


def tensors(value: Any) -> list[Tensor]:
    """The tensors of a value or of its parts."""
    return [value] if isinstance(value, Tensor) else [tensor for part in value for tensor in tensors(part)]


def numbers(p: Distribution, q: Distribution, best: list[Tensor]) -> dict[str, Any]:
    """Numbers that are 0 for a sentence without words, batch first."""
    r = p.marginals.detach().unsqueeze(-1)
    renyi = {f"renyi_entropy({order})": p.renyi_entropy(order) for order in (0.0, 0.5, 2.0, 1 + 1e-7, math.inf)}
    return {
        "log_partition": p.log_partition,
        "marginals": p.marginals,
        "entropy": p.entropy(),
        **renyi,
        "log_norm": p.log_norm(2.0),
        "cross_entropy": p.cross_entropy(q),
        "kl_divergence": kl_divergence(p, q),
        "expectation": p.expectation(r),
        "covariance": p.covariance(r, r),
        "second_moment": p.second_moment(r, r),
        "expected_gradient": p.expected_gradient(),
        "log_prob": p.log_prob(*best),
        "risk": p.risk(*best),
        "given": p.given(*best).log_partition,
    }


@every_case
def test_numbers_and_their_gradients(case: Case) -> None:
    def numbers_of(items: list[int]) -> dict[str, Any]:
        parameters = [part[items].requires_grad_() for part in case.parameters(3, seed=1, batch=(3,))]
        p, q = (case.make([scale * part for part in parameters], LENGTHS[items]) for scale in (1.0, 0.5))
        result = numbers(p, q, [column.detach() for column in tensors(p.mode)])
        totals = [tensor.sum() for name in DIFFERENTIABLE for tensor in tensors(result[name])]
        return result | {"gradients": torch.autograd.grad(totals, parameters)}

    with_empty, without = numbers_of([0, EMPTY, 2]), numbers_of(OTHERS)
    for name, value in with_empty.items():
        for found, expected in zip(tensors(value), tensors(without[name]), strict=True):
            assert not found[EMPTY].any(), name
            torch.testing.assert_close(found[OTHERS], expected, rtol=1e-13, atol=1e-13)


@every_case
def test_trees(case: Case) -> None:
    p = case.make(case.parameters(3, seed=1, batch=(3,)), LENGTHS)
    found = [p.mode, p.minimum_risk(), p.sample((COUNT,)), p.sample((COUNT,), generator=[torch.Generator()] * 3)]
    support = p.enumerate_support()
    assert case.labels or (p.log_marginals[EMPTY] == -torch.inf).all()
    for column in tensors([*found, support]):
        assert (column[..., EMPTY, :] == -1).all()
        assert (column[..., OTHERS, 1:3] >= 0).all() or column.shape[0] == len(tensors(support)[0])
    assert p.support.check(p.mode).all()
    assert (p.log_prob(*tensors(p.mode))[EMPTY] == 0.0).all()
    columns = tensors(support)
    wrong = [torch.full_like(column[0], -1) for column in columns]
    wrong[0][EMPTY, 1] = 0
    assert p.log_prob(*wrong)[EMPTY] == 0.0  # padding is not read


@every_case
def test_lists_hold_the_empty_tree_once(case: Case) -> None:
    p = case.make(case.parameters(3, seed=1, batch=(3,)), LENGTHS)
    once = torch.tensor([0.0] + [-torch.inf] * (COUNT - 1), dtype=torch.float64)
    *columns, scores, log_probs = p.topk(COUNT)
    assert torch.equal(scores[:, EMPTY], once) and torch.equal(log_probs[:, EMPTY], once)
    assert all((column[:, EMPTY] == -1).all() for column in columns)
    for method in (None, *get_args(DistinctMethod)):
        if method == "beam" and not case.kind.crossing:
            continue
        *columns, log_probs, keys = p.sample_without_replacement(COUNT, method=method)
        assert torch.equal(log_probs[:, EMPTY], once), method
        assert torch.equal(keys[:, EMPTY] > -torch.inf, once == 0.0), method
        assert all((column[:, EMPTY] == -1).all() for column in columns), method
        assert all((column[0, OTHERS, 1:3] >= 0).all() for column in columns), method


@pytest.mark.parametrize("single_root", [True, False])
@pytest.mark.parametrize("nodes", [1, 4])
def test_search_for_nonprojective_siblings(single_root: bool, nodes: int) -> None:
    stream = torch.Generator().manual_seed(1)
    arcs, siblings = (torch.randn((3, *(nodes,) * axes), generator=stream, dtype=torch.float64) for axes in (2, 3))
    lengths = LENGTHS if nodes > 1 else torch.zeros(3, dtype=torch.int64)
    p = NonProjectiveSiblingCRF(arcs, siblings, lengths, single_root=single_root)
    found = p.mode_with_bound()
    assert (found.heads[EMPTY] == -1).all()
    assert (found.scores[EMPTY], found.bounds[EMPTY], found.certified[EMPTY]) == (0.0, 0.0, True)
