"""The structured hinge loss against the enumeration of all labelled trees."""

import pytest
import torch
from helpers.derivatives import assert_objective_derivatives
from helpers.gold_batches import BATCH, HEADS, LABELS, LENGTHS
from helpers.tree_cases import Case, Enumerated, every_labeled_case
from torch import Tensor

from treeparse.batch import Batch
from treeparse.errors import NoTreeError, TreeparseError
from treeparse.objectives import MaxMargin
from treeparse.trees import LabeledCRF, ProjectiveCRF


def hinge(case: Case, parameters: list[Tensor], item: int, cost: float) -> float:
    """By all labelled trees of an item."""
    size = int(LENGTHS[item]) + 1
    oracle = Enumerated(case, [part[item, :size, :size] for part in parameters])
    heads, labels = (column[:, 1:] for column in oracle.values)
    gold_heads, gold_labels = (gold[item, 1:size] for gold in (HEADS, LABELS))
    wrong_head = (gold_heads >= 0) & (heads != gold_heads)
    wrong_label = (gold_labels >= 0) & (labels != gold_labels)
    agrees = ~(wrong_head | wrong_label).any(-1)
    wrong = (wrong_head | ((gold_heads >= 0) & wrong_label)).sum(-1)
    return float((oracle.totals + cost * wrong).max() - oracle.totals[agrees].max())


@every_labeled_case
@pytest.mark.parametrize("cost", [0.0, 1.0, 3.5])
@pytest.mark.parametrize("forbidden", [0.0, 0.15])
def test_the_loss_by_enumeration(case: Case, cost: float, forbidden: float) -> None:
    found_any = False
    for seed in range(12):
        parameters = case.parameters(4, seed=seed, batch=(3,), forbidden=forbidden)
        p = case.make(parameters, LENGTHS)
        try:
            found = MaxMargin(cost)(p, BATCH)
        except NoTreeError:  # what is known fits no tree, or there is none
            continue
        found_any = True
        expected = [hinge(case, parameters, item, cost) for item in range(3)]
        torch.testing.assert_close(found, torch.tensor(expected, dtype=torch.float64), rtol=0, atol=1e-11)
        assert (found >= 0).all()
    assert found_any


@every_labeled_case
def test_derivatives(case: Case) -> None:
    lengths = torch.tensor([3, 2])
    batch = Batch(lengths, torch.arange(2), {}, HEADS[[2, 1], :4], LABELS[[2, 1], :4])
    inputs = [part.nan_to_num(0.0) for part in case.parameters(3, seed=24, batch=(2,))]
    p = case.make(inputs, lengths)
    assert (MaxMargin()(p, batch) > 0.1).all()  # not at a kink
    assert_objective_derivatives(MaxMargin(), case.make, inputs, batch)


def test_faults() -> None:
    for cost in (-1.0, float("nan"), float("inf")):
        with pytest.raises(TreeparseError, match="cost must be a finite number that is at least 0, got"):
            MaxMargin(cost)


def test_crossing_arcs_are_open_where_no_tree_has_them() -> None:
    heads, labels = torch.tensor([[-1, 0, 1, 1, 2]]), torch.tensor([[-1, 0, 0, 0, 0]])
    scores = torch.randn(1, 5, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(4))
    p = LabeledCRF(ProjectiveCRF(scores), torch.zeros(1, 5, 5, 1))
    opened = torch.tensor([[False, False, False, False, True]])

    def loss(heads: Tensor, labels: Tensor) -> Tensor:
        return MaxMargin()(p, Batch(torch.tensor([4]), torch.arange(1), {}, heads, labels))

    found = loss(heads, labels)
    assert found.isfinite().all()
    assert torch.equal(found, loss(heads.masked_fill(opened, -1), labels.masked_fill(opened, -1)))
