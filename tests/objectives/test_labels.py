import math

import pytest
import torch

from treeparse.objectives import label_cross_entropy


def test_cross_entropy_arc_by_arc_without_unknown_labels() -> None:
    torch.manual_seed(1)
    scores = torch.randn(5, 3, dtype=torch.float64, requires_grad=True)
    labels = [2, -1, 0, 0, -1]
    expected = sum(
        math.log(sum(math.exp(score) for score in row)) - row[label]
        for row, label in zip(scores.tolist(), labels, strict=True)
        if label >= 0
    )
    loss = label_cross_entropy(scores, torch.tensor(labels))
    assert loss.item() == pytest.approx(expected)
    (gradient,) = torch.autograd.grad(loss, scores)
    assert not gradient[[1, 4]].any()
    assert torch.autograd.gradcheck(lambda s: label_cross_entropy(s, torch.tensor(labels)), (scores,))


@pytest.mark.parametrize("labels", [[], [-1, -1]])
def test_no_known_label_costs_nothing(labels: list[int]) -> None:
    scores = torch.randn(len(labels), 3, requires_grad=True)
    loss = label_cross_entropy(scores, torch.tensor(labels, dtype=torch.int64))
    loss.backward()
    assert loss.item() == 0
    assert scores.grad is not None
    assert not scores.grad.any()
