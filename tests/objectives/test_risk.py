"""Minimum risk and entropy against the enumeration of all labelled trees."""

from typing import Any

import pytest
import torch
from helpers.constrained import oracles
from helpers.derivatives import assert_objective_derivatives
from helpers.gold_batches import BATCH, HEADS, LABELS, LENGTHS
from helpers.tree_cases import CASES, Case, Enumerated, every_labeled_case
from torch import Tensor

from treeparse.batch import Batch
from treeparse.errors import TreeparseError
from treeparse.objectives import Entropy, MinimumRisk, Objective


def expected_wrong(oracle: Enumerated, item: int, cost: str) -> Tensor:
    """The expected number of wrong words among those of which enough is known."""
    heads, labels = (column[:, 1:] for column in oracle.values)
    gold_heads, gold_labels = (gold[item, 1 : oracle.words + 1] for gold in (HEADS, LABELS))
    wrong, known = heads != gold_heads, gold_heads >= 0
    if cost == "las":
        wrong, known = wrong | (labels != gold_labels), known & (gold_labels >= 0)
    return oracle.probs @ (wrong & known).sum(-1).double()


@every_labeled_case
@pytest.mark.parametrize("cost", ["las", "uas"])
@pytest.mark.parametrize("forbidden", [0.0, 0.2])
def test_risk_by_enumeration(case: Case, cost: Any, forbidden: float) -> None:
    parameters = case.parameters(4, seed=23, batch=(3,), forbidden=forbidden)
    every = oracles(case, parameters)
    assert all(oracle.exists for oracle in every)
    found = MinimumRisk(cost)(case.make(parameters, LENGTHS), BATCH)
    expected = torch.stack([expected_wrong(oracle, item, cost) for item, oracle in enumerate(every)])
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-11)


@every_labeled_case
@pytest.mark.parametrize("order", [0.0, 0.5, 1.0, 2.0])
def test_entropy_by_enumeration(case: Case, order: float) -> None:
    parameters = case.parameters(4, seed=23, batch=(3,), forbidden=0.2)
    unlabelled = Batch(LENGTHS, torch.arange(3), {}, None, None)
    found = Entropy(order)(case.make(parameters, LENGTHS), unlabelled)
    every = oracles(case, parameters)
    expected = torch.stack([each.entropy if order == 1 else each.renyi_entropy(order) for each in every])
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-11)


@every_labeled_case
@pytest.mark.parametrize("objective", [MinimumRisk(), MinimumRisk("uas"), Entropy(), Entropy(2.0)], ids=repr)
def test_derivatives(case: Case, objective: Objective) -> None:
    lengths = torch.tensor([3, 2])
    batch = Batch(lengths, torch.arange(2), {}, HEADS[[2, 1], :4], LABELS[[2, 1], :4])
    inputs = [part.nan_to_num(0.0) for part in case.parameters(3, seed=24, batch=(2,))]
    assert_objective_derivatives(objective, case.make, inputs, batch)


def test_faults() -> None:
    with pytest.raises(TreeparseError, match="cost must be 'las' or 'uas', got 'clas'"):
        MinimumRisk("clas")  # pyright: ignore[reportArgumentType]
    with pytest.raises(TreeparseError, match="order must be a number that is at least 0, got -1"):
        Entropy(-1)
    case = next(case for case in CASES if case.labels)
    p = case.make(case.parameters(4, seed=25, batch=(3,)), LENGTHS)
    with pytest.raises(TreeparseError, match="training batch must hold trees, got none"):
        MinimumRisk()(p, Batch(LENGTHS, torch.arange(3), {}, None, None))
