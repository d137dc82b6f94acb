"""Minimum risk over drawn trees, against the exact one; over the K best, against enumeration."""

from typing import Any

import pytest
import torch
from helpers.derivatives import assert_objective_derivatives
from helpers.tree_cases import NUMBA, PROJECTIVE, Case, Enumerated, every_labeled_case, every_sampled_labeled_case
from torch import Tensor

from treeparse import LabeledCRF
from treeparse.batch import Batch
from treeparse.errors import TreeparseError
from treeparse.objectives import KBestRisk, MinimumRisk, Objective, SampledRisk
from treeparse.objectives.risk import wrong_words

LENGTHS = torch.tensor([3, 2, 3])
HEADS = torch.tensor([[-1, 2, 0, 2], [-1, 2, 0, -1], [-1, 0, -1, 1]])
LABELS = torch.tensor([[-1, 0, 1, 1], [-1, 1, -1, -1], [-1, 0, 1, 1]])
BATCH = Batch(LENGTHS, torch.arange(3), {}, HEADS, LABELS)
COSTS = pytest.mark.parametrize("cost", ["las", "uas"])


def repeated(parameters: list[Tensor], count: int) -> tuple[list[Tensor], Tensor, Batch]:
    """Every item ``count`` times, whose trees are drawn apart."""
    inputs = [
        part.nan_to_num(0.0, neginf=-torch.inf).repeat_interleave(count, 0).requires_grad_() for part in parameters
    ]
    lengths, heads, labels = (part.repeat_interleave(count, 0) for part in (LENGTHS, HEADS, LABELS))
    return inputs, lengths, Batch(lengths, torch.arange(len(lengths)), {}, heads, labels)


def values_and_gradients(case: Case, objective: Objective, parameters: list[Tensor], count: int) -> Tensor:
    """What an objective gives for each of ``count`` copies of every item, ``(3, count, 1 + numbers)``."""
    inputs, lengths, batch = repeated(parameters, count)
    values = objective(case.make(inputs, lengths), batch)
    gradients = torch.autograd.grad(values.sum(), inputs)
    columns = [values.detach().unsqueeze(-1), *(gradient.flatten(1) for gradient in gradients)]
    return torch.cat(columns, 1).reshape(len(LENGTHS), count, -1)


@every_sampled_labeled_case
@pytest.mark.parametrize(
    ("cost", "replacement", "samples"),  # every two of them
    [("las", True, 2), ("uas", True, 5), ("uas", False, 2), ("las", False, 5)],
)
def test_drawn_trees_give_the_risk_and_its_gradient(case: Case, cost: Any, replacement: bool, samples: int) -> None:
    """Within six standard errors of the mean."""
    torch.manual_seed(5)
    count, parameters = 1000, case.parameters(3, seed=3, batch=(3,), scale=0.5)  # so that all arcs are drawn often
    found = values_and_gradients(case, SampledRisk(samples, replacement, cost), parameters, count)
    exact = values_and_gradients(case, MinimumRisk(cost), parameters, 1).squeeze(1)
    errors = found.std(1) / count**0.5
    assert ((found.mean(1) - exact).abs() <= 6 * errors + 1e-12).all()
    assert (errors[:, 0] > 0).all() and errors.max() < 0.1


@every_labeled_case
@COSTS
def test_without_replacement_all_trees_give_the_exact_risk(case: Case, cost: Any) -> None:
    parameters = case.parameters(3, seed=4, batch=(3,), forbidden=0.1)
    torch.manual_seed(6)
    found = values_and_gradients(case, SampledRisk(200, False, cost), parameters, 1)
    exact = values_and_gradients(case, MinimumRisk(cost), parameters, 1)
    torch.testing.assert_close(found, exact, rtol=0, atol=1e-9)


@pytest.mark.parametrize("case", [Case(True, NUMBA, 2), Case(False, PROJECTIVE, 2)], ids=lambda case: case.name)
def test_without_replacement_the_gradient_varies_less(case: Case) -> None:
    torch.manual_seed(7)
    parameters = case.parameters(3, seed=3, batch=(3,), scale=1.5)
    variances = [
        values_and_gradients(case, SampledRisk(6, replacement), parameters, 1000)[:, :, 1:].var(1).sum()
        for replacement in (True, False)
    ]
    assert variances[1] < 0.8 * variances[0]


@every_labeled_case
@COSTS
@pytest.mark.parametrize(("trees", "scale"), [(1, 1.0), (4, 1.0), (4, 0.3), (500, 2.0)])
def test_the_risk_of_the_best_trees_by_enumeration(case: Case, cost: Any, trees: int, scale: float) -> None:
    parameters = case.parameters(3, seed=8, batch=(3,), forbidden=0.1)
    found = KBestRisk(trees, scale, cost)(case.make(parameters, LENGTHS), BATCH)
    for item, words in enumerate(LENGTHS.tolist()):
        size = words + 1
        oracle = Enumerated(case, [part[item, :size, :size] for part in parameters])
        best = oracle.totals.argsort(descending=True)[:trees]
        gold = Batch(LENGTHS[[item]], torch.arange(1), {}, HEADS[[item], :size], LABELS[[item], :size])
        heads, labels = (column[best].unsqueeze(1) for column in oracle.values)
        costs = wrong_words(heads, labels, gold, cost).squeeze(1)
        expected = (scale * oracle.totals[best]).softmax(0) @ costs
        torch.testing.assert_close(found[item], expected, rtol=0, atol=1e-11)


@every_labeled_case
def test_derivatives_of_the_risk_of_the_best_trees(case: Case) -> None:
    inputs = [part.nan_to_num(0.0) for part in case.parameters(3, seed=9, batch=(3,))]
    assert_objective_derivatives(KBestRisk(4, 0.7), case.make, inputs, BATCH)


def test_wrong_words_by_hand() -> None:
    heads = torch.tensor(
        [[[-1, 2, 0, 2], [-1, 0, 1, -1], [-1, 0, 1, 2]], [[-1, 0, 1, 1], [-1, 2, 0, -1], [-1, 3, 3, 0]]]
    )
    labels = torch.tensor(
        [[[-1, 0, 0, 1], [-1, 1, 1, -1], [-1, 1, 0, 1]], [[-1, 0, 1, 1], [-1, 0, 1, -1], [-1, 0, 1, 1]]]
    )
    assert wrong_words(heads, labels, BATCH, "uas").tolist() == [[0, 2, 1], [3, 0, 2]]
    assert wrong_words(heads, labels, BATCH, "las").tolist() == [[1, 1, 2], [3, 1, 2]]


class AnyMistake(SampledRisk):
    """A cost that is no sum over words."""

    def cost_of(self, heads: Tensor, labels: Tensor, batch: Batch) -> Tensor:
        return (wrong_words(heads, labels, batch, "las") > 0).double()


def test_a_cost_of_ones_own() -> None:
    """All trees drawn: one less the probability of those without a mistake."""
    case = Case(True, NUMBA, labels=2)
    p: LabeledCRF = case.make(case.parameters(3, seed=10, batch=(3,)), LENGTHS)
    known = (HEADS >= 0) & (LABELS >= 0)
    of_known = p.given(torch.where(known, HEADS, -1), torch.where(known, LABELS, -1)).log_partition - p.log_partition
    torch.testing.assert_close(AnyMistake(200)(p, BATCH), 1 - of_known.exp(), rtol=0, atol=1e-9)


def test_faults() -> None:
    for make in (SampledRisk, KBestRisk):
        with pytest.raises(TreeparseError, match="number of trees of a sentence must be at least 1, got 0"):
            make(0)
        with pytest.raises(TreeparseError, match="cost must be 'las' or 'uas', got 'clas'"):
            make(2, cost="clas")  # pyright: ignore[reportArgumentType]
    with pytest.raises(TreeparseError, match="scale must be a number above 0, or a ramp of such numbers, got 0"):
        KBestRisk(2, scale=0)
