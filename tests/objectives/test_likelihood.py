import math
from typing import Any

import numpy as np
import pytest
import torch
from helpers.oracles import all_trees, tree_scores
from torch import Tensor

from treeparse.core import NoTreeError
from treeparse.objectives import HeadSelection, TreeLikelihood
from treeparse.trees import NonProjectiveCRF

LENGTHS = [4, 2, 1]
HEADS = torch.tensor([[-1, 2, 0, 2, 3], [-1, 2, 0, -1, -1], [-1, 0, -1, -1, -1]])
BOTH = pytest.mark.parametrize("objective", [TreeLikelihood(), HeadSelection()], ids=["trees", "heads"])


def make_scores(scale: float = 1.0) -> Tensor:
    """Scores of three sentences; what stands for no arc is NaN."""
    generator = torch.Generator().manual_seed(11)
    scores = scale * torch.randn(3, 5, 5, dtype=torch.float64, generator=generator)
    return scores.masked_fill(~arcs(), torch.nan)


def arcs() -> Tensor:
    """(3, 5, 5): the arcs between nodes of a sentence, into words."""
    node = torch.arange(5)
    inside = node <= torch.tensor(LENGTHS).unsqueeze(-1)
    words = inside & (node > 0)
    return inside.unsqueeze(-1) & words.unsqueeze(-2) & (node.unsqueeze(-1) != node)


def distribution(scores: Tensor, **options: Any) -> NonProjectiveCRF:
    return NonProjectiveCRF(scores, torch.tensor(LENGTHS), **options)


def head_selection_by_words(scores: Tensor, heads: Tensor) -> list[float]:
    losses = []
    for item, length in enumerate(LENGTHS):
        loss = 0.0
        for word in range(1, length + 1):
            if heads[item, word] >= 0:
                total = math.fsum(math.exp(scores[item, h, word]) for h in range(length + 1) if h != word)
                loss += math.log(total) - float(scores[item, heads[item, word], word])
        losses.append(loss)
    return losses


def tree_loss_by_enumeration(scores: Tensor, heads: Tensor, single_root: bool) -> list[float]:
    losses = []
    for item, length in enumerate(LENGTHS):
        own = scores[item, : length + 1, : length + 1].numpy()
        totals = tree_scores(own, all_trees(length, single_root))
        gold = tree_scores(own, heads[item, None, 1 : length + 1].numpy())[0]
        losses.append(float(np.logaddexp.reduce(totals) - gold))
    return losses


@pytest.mark.parametrize("scale", [0.1, 1, 20])
def test_head_selection_word_by_word(scale: float) -> None:
    scores = make_scores(scale)
    loss = HeadSelection()(distribution(scores), HEADS)
    assert loss.tolist() == pytest.approx(head_selection_by_words(scores, HEADS))


@pytest.mark.parametrize("single_root", [True, False])
@pytest.mark.parametrize("scale", [0.1, 1, 20])
def test_tree_likelihood_by_enumeration(scale: float, single_root: bool) -> None:
    scores = make_scores(scale)
    loss = TreeLikelihood()(distribution(scores, single_root=single_root), HEADS)
    expected = tree_loss_by_enumeration(scores, HEADS, single_root)
    assert loss.tolist() == pytest.approx(expected, abs=1e-12 * scale)


@BOTH
def test_what_is_no_arc_reaches_neither_loss_nor_gradient(objective: TreeLikelihood | HeadSelection) -> None:
    scores = make_scores().requires_grad_()
    loss = objective(distribution(scores), HEADS)
    loss.sum().backward()
    assert loss.isfinite().all()
    assert scores.grad is not None
    assert (scores.grad[~arcs()] == 0).all()
    # Each word's gradient is a distribution over heads minus the gold head.
    torch.testing.assert_close(scores.grad.sum(-2), torch.zeros(3, 5, dtype=torch.float64))
    clean = scores.detach().nan_to_num(0.0).requires_grad_()
    again = objective(distribution(clean), HEADS)
    again.sum().backward()
    assert torch.equal(again, loss)
    assert clean.grad is not None
    assert torch.equal(clean.grad, scores.grad)


@BOTH
def test_gradients(objective: TreeLikelihood | HeadSelection) -> None:
    scores = make_scores().nan_to_num(0.0).requires_grad_()
    assert torch.autograd.gradcheck(lambda s: objective(distribution(s), HEADS), (scores,))


@BOTH
def test_forbidden_arcs(objective: TreeLikelihood | HeadSelection) -> None:
    scores = make_scores()
    scores[0, 4, 1] = scores[0, 0, 3] = scores[1, 0, 1] = -torch.inf
    scores.requires_grad_()
    loss = objective(distribution(scores), HEADS)
    loss.sum().backward()
    if isinstance(objective, HeadSelection):
        expected = head_selection_by_words(scores.detach(), HEADS)
    else:
        expected = tree_loss_by_enumeration(scores.detach(), HEADS, True)
    assert loss.tolist() == pytest.approx(expected)
    assert scores.grad is not None
    assert scores.grad.isfinite().all()
    assert scores.grad[0, 4, 1] == scores.grad[0, 0, 3] == scores.grad[1, 0, 1] == 0


@BOTH
def test_a_forbidden_gold_arc_costs_infinitely_much(objective: TreeLikelihood | HeadSelection) -> None:
    scores = make_scores()
    scores[0, 2, 3] = -torch.inf
    loss = objective(distribution(scores), HEADS)
    assert loss[0] == torch.inf
    assert loss[1:].isfinite().all()


def test_head_selection_leaves_out_unknown_heads() -> None:
    heads = HEADS.clone()
    heads[0, 1] = heads[0, 3] = heads[2, 1] = -1
    scores = make_scores().requires_grad_()
    loss = HeadSelection()(distribution(scores), heads)
    loss.sum().backward()
    assert loss.tolist() == pytest.approx(head_selection_by_words(scores.detach(), heads))
    assert loss[2] == 0
    assert scores.grad is not None
    assert scores.grad.isfinite().all()
    assert not scores.grad[0, :, [1, 3]].any()
    assert not scores.grad[2].any()


def test_a_word_that_no_head_may_have_makes_no_nan() -> None:
    scores = make_scores()
    scores[0, :, 3] = -torch.inf
    scores.requires_grad_()
    loss = HeadSelection()(distribution(scores), HEADS)
    loss.sum().backward()
    assert loss[0] == torch.inf
    assert loss[1:].tolist() == pytest.approx(head_selection_by_words(make_scores(), HEADS)[1:])
    assert scores.grad is not None
    assert scores.grad.isfinite().all()


def test_an_incomplete_tree_has_no_likelihood() -> None:
    heads = HEADS.clone()
    heads[0, 1] = -1
    assert TreeLikelihood()(distribution(make_scores()), heads)[0] == torch.inf


def test_tree_likelihood_names_the_sentence_that_can_have_no_tree() -> None:
    scores = make_scores()
    scores[1, :, 2] = -torch.inf
    with pytest.raises(NoTreeError, match="batch item 1"):
        TreeLikelihood()(distribution(scores), HEADS)


def test_scores_are_not_changed() -> None:
    scores = make_scores()
    before = scores.clone()
    for objective in (TreeLikelihood(), HeadSelection()):
        objective(distribution(scores), HEADS)
    assert torch.equal(scores.nan_to_num(0.5), before.nan_to_num(0.5))
