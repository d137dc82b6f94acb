import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from helpers.derivatives import assert_objective_derivatives
from helpers.oracles import all_trees, tree_scores
from torch import Tensor

from treeparse.batch import Batch
from treeparse.errors import NoTreeError, TreeparseError
from treeparse.objectives import HeadSelection, Objective, TreeLikelihood
from treeparse.trees import LabeledCRF, NonProjectiveCRF, ProjectiveCRF

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


def loss_of(objective: Objective, scores: Tensor, heads: Tensor, **options: Any) -> Tensor:
    """The objective's loss where every arc has the same, only label."""
    p = LabeledCRF(NonProjectiveCRF(scores, torch.tensor(LENGTHS), **options), torch.zeros(*scores.shape, 1))
    return objective(p, batch_of(heads, heads.clamp(max=0)))


def batch_of(heads: Tensor | None, labels: Tensor | None, lengths: Sequence[int] = LENGTHS) -> Batch:
    return Batch(torch.tensor(lengths), torch.arange(len(lengths)), {}, heads, labels)


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
    loss = loss_of(HeadSelection(), scores, HEADS)
    assert loss.tolist() == pytest.approx(head_selection_by_words(scores, HEADS))


@pytest.mark.parametrize("single_root", [True, False])
@pytest.mark.parametrize("scale", [0.1, 1, 20])
def test_tree_likelihood_by_enumeration(scale: float, single_root: bool) -> None:
    scores = make_scores(scale)
    loss = loss_of(TreeLikelihood(), scores, HEADS, single_root=single_root)
    expected = tree_loss_by_enumeration(scores, HEADS, single_root)
    assert loss.tolist() == pytest.approx(expected, abs=1e-12 * scale)


@BOTH
def test_what_is_no_arc_reaches_neither_loss_nor_gradient(objective: TreeLikelihood | HeadSelection) -> None:
    scores = make_scores().requires_grad_()
    loss = loss_of(objective, scores, HEADS)
    loss.sum().backward()
    assert loss.isfinite().all()
    assert scores.grad is not None
    assert (scores.grad[~arcs()] == 0).all()
    # Each word's gradient is a distribution over heads minus the gold head.
    torch.testing.assert_close(scores.grad.sum(-2), torch.zeros(3, 5, dtype=torch.float64))
    clean = scores.detach().nan_to_num(0.0).requires_grad_()
    again = loss_of(objective, clean, HEADS)
    again.sum().backward()
    assert torch.equal(again, loss)
    assert clean.grad is not None
    assert torch.equal(clean.grad, scores.grad)


@BOTH
def test_gradients(objective: TreeLikelihood | HeadSelection) -> None:
    scores = make_scores().nan_to_num(0.0).requires_grad_()
    assert torch.autograd.gradcheck(lambda s: loss_of(objective, s, HEADS), (scores,))


@BOTH
def test_forbidden_arcs(objective: TreeLikelihood | HeadSelection) -> None:
    scores = make_scores()
    scores[0, 4, 1] = scores[0, 0, 3] = scores[1, 0, 1] = -torch.inf
    scores.requires_grad_()
    loss = loss_of(objective, scores, HEADS)
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
    loss = loss_of(objective, scores, HEADS)
    assert loss[0] == torch.inf
    assert loss[1:].isfinite().all()


def test_head_selection_leaves_out_unknown_heads() -> None:
    heads = HEADS.clone()
    heads[0, 1] = heads[0, 3] = heads[2, 1] = -1
    scores = make_scores().requires_grad_()
    loss = loss_of(HeadSelection(), scores, heads)
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
    loss = loss_of(HeadSelection(), scores, HEADS)
    loss.sum().backward()
    assert loss[0] == torch.inf
    assert loss[1:].tolist() == pytest.approx(head_selection_by_words(make_scores(), HEADS)[1:])
    assert scores.grad is not None
    assert scores.grad.isfinite().all()


KNOWN_HEADS = torch.tensor([[-1, 2, -1, 2], [-1, -1, 0, -1], [-1, -1, -1, -1], [-1, 3, 3, 0]])
KNOWN_LABELS = torch.tensor([[-1, 1, 0, -1], [-1, -1, 1, -1], [-1, -1, -1, -1], [-1, 0, 1, 1]])
PARTIAL_LENGTHS = [3, 2, 3, 3]


def log_sum_of_agreeing_trees(arcs: Tensor, labels: Tensor, heads: Tensor, names: Tensor, single_root: bool) -> float:
    """The log of the summed weight of an item's labelled trees that agree with what is known, tree by tree."""
    length = len(arcs) - 1
    total = -math.inf
    for tree in all_trees(length, single_root).tolist():
        for own in itertools.product(range(labels.shape[-1]), repeat=length):
            rows = list(zip(range(1, length + 1), tree, own, strict=True))
            if all(heads[j] in (-1, head) and names[j] in (-1, name) for j, head, name in rows):
                score = math.fsum(float(arcs[head, j] + labels[head, j, name]) for j, head, name in rows)
                total = float(np.logaddexp(total, score))
    return total


@pytest.mark.parametrize("single_root", [True, False])
@pytest.mark.parametrize("scale", [0.1, 1, 20])
def test_the_likelihood_of_a_partial_tree_sums_over_its_completions(scale: float, single_root: bool) -> None:
    generator = torch.Generator().manual_seed(5)
    arcs, labels = (
        scale * torch.randn(*shape, dtype=torch.float64, generator=generator) for shape in ((4, 4, 4), (4, 4, 4, 2))
    )
    p = LabeledCRF(NonProjectiveCRF(arcs, torch.tensor(PARTIAL_LENGTHS), single_root=single_root), labels)
    loss = TreeLikelihood()(p, batch_of(KNOWN_HEADS, KNOWN_LABELS, PARTIAL_LENGTHS))
    nothing = torch.full((4,), -1)
    for item, length in enumerate(PARTIAL_LENGTHS):
        own = arcs[item, : length + 1, : length + 1], labels[item, : length + 1, : length + 1]
        every = log_sum_of_agreeing_trees(*own, nothing, nothing, single_root)
        agreeing = log_sum_of_agreeing_trees(*own, KNOWN_HEADS[item], KNOWN_LABELS[item], single_root)
        assert loss[item].item() == pytest.approx(every - agreeing, abs=1e-10 * max(1, scale))
    assert loss[2] == 0


def labeled_crf(parameters: Sequence[Tensor], lengths: Tensor, single_root: bool = True) -> LabeledCRF:
    arcs, labels = parameters
    return LabeledCRF(NonProjectiveCRF(arcs, lengths, single_root=single_root), labels)


def allowed_arcs() -> Tensor:
    """Of four sentences: word 1 may hang from 2 or 3, word 3 from the root or 1; nothing; nothing; word 2 from 1."""
    allowed = torch.ones(4, 4, 4, dtype=torch.bool)
    for item, word, heads in ((0, 1, [2, 3]), (0, 3, [0, 1]), (3, 2, [1])):
        allowed[item, :, word] = False
        allowed[item, heads, word] = True
    return allowed


@pytest.mark.parametrize("single_root", [True, False])
def test_of_several_possible_heads_all_trees_count(single_root: bool) -> None:
    generator = torch.Generator().manual_seed(7)
    shapes = (4, 4, 4), (4, 4, 4, 2)
    scores = [torch.randn(*shape, dtype=torch.float64, generator=generator) for shape in shapes]
    heads = torch.where(torch.arange(4).unsqueeze(-1) == 1, KNOWN_HEADS, -1)  # of the second sentence alone
    batch = replace(batch_of(heads, KNOWN_LABELS, PARTIAL_LENGTHS), allowed=allowed_arcs())
    assert batch.is_labelled().tolist() == [True, True, False, True]
    found = TreeLikelihood()(labeled_crf(scores, batch.lengths, single_root=single_root), batch)
    nothing = torch.full((4,), -1)
    for item, length in enumerate(PARTIAL_LENGTHS):
        arcs, labels = (part[item, : length + 1, : length + 1] for part in scores)
        within = arcs.masked_fill(~allowed_arcs()[item, : length + 1, : length + 1], -torch.inf)
        every = log_sum_of_agreeing_trees(arcs, labels, nothing, nothing, single_root)
        agreeing = log_sum_of_agreeing_trees(within, labels, heads[item], KNOWN_LABELS[item], single_root)
        assert found[item].item() == pytest.approx(every - agreeing, abs=1e-10)
    make = partial(labeled_crf, single_root=single_root)
    assert_objective_derivatives(TreeLikelihood(), make, scores, batch)


def test_head_selection_adds_up_the_possible_heads() -> None:
    generator = torch.Generator().manual_seed(8)
    arcs = torch.randn(4, 4, 4, dtype=torch.float64, generator=generator)
    p = LabeledCRF(NonProjectiveCRF(arcs, torch.tensor(PARTIAL_LENGTHS)), torch.zeros(4, 4, 4, 1))
    open_heads = torch.full((4, 4), -1)
    open_heads[0, 1] = 2  # a known head wins
    batch = replace(batch_of(open_heads, torch.full((4, 4), -1), PARTIAL_LENGTHS), allowed=allowed_arcs())
    probs = arcs.masked_fill(torch.eye(4, dtype=torch.bool), -torch.inf).softmax(-2)
    expected = torch.zeros(4, dtype=torch.float64)
    expected[0] = -probs[0, 2, 1].log() - probs[0, [0, 1], 3].sum().log()
    expected[3] = -probs[3, 1, 2].log()
    torch.testing.assert_close(HeadSelection()(p, batch), expected)


def test_what_is_known_of_a_tree_must_fit_one() -> None:
    heads = torch.tensor([[-1, 2, 1, -1, 0], [-1, 2, 0, -1, -1], [-1, 0, -1, -1, -1]])  # words 1 and 2 in a cycle
    with pytest.raises(NoTreeError, match="batch item 0"):
        loss_of(TreeLikelihood(), make_scores(), heads)


@BOTH
def test_trees_are_needed(objective: Objective) -> None:
    p = LabeledCRF(NonProjectiveCRF(make_scores(), torch.tensor(LENGTHS)), torch.zeros(3, 5, 5, 1))
    with pytest.raises(TreeparseError, match="training batch must hold trees, got none"):
        objective(p, batch_of(None, None))


def test_labels_given_the_gold_arcs_are_part_of_both_losses() -> None:
    generator = torch.Generator().manual_seed(9)
    labels = torch.randn(3, 5, 5, 3, dtype=torch.float64, generator=generator)
    names = torch.tensor([[-1, 0, 2, -1, 1], [-1, 2, 2, -1, -1], [-1, -1, -1, -1, -1]])
    scores = make_scores().nan_to_num(0.0)
    p = LabeledCRF(NonProjectiveCRF(scores, torch.tensor(LENGTHS)), labels)
    # Arcs weigh what their labels weigh together.
    expected_trees = tree_loss_by_enumeration(scores + labels.logsumexp(-1), HEADS, True)
    expected_heads = head_selection_by_words(scores + labels.logsumexp(-1), HEADS)
    for item, length in enumerate(LENGTHS):
        for word in range(1, length + 1):
            if names[item, word] >= 0:
                options = labels[item, HEADS[item, word], word]
                cost = float(options.logsumexp(0) - options[names[item, word]])
                expected_trees[item] += cost
                expected_heads[item] += cost
    assert TreeLikelihood()(p, batch_of(HEADS, names)).tolist() == pytest.approx(expected_trees)
    assert HeadSelection()(p, batch_of(HEADS, names)).tolist() == pytest.approx(expected_heads)


def test_crossing_arcs_are_open_where_no_tree_has_them() -> None:
    """Word 4 crosses the arc of word 3, so that its head and label may be any; the second item has its tree.

    In the third item, part of a tree, neither arc of the two is the one to open: both are.
    """
    heads = torch.tensor([[-1, 0, 1, 1, 2], [-1, 0, 1, 2, 3], [-1, 0, -1, 1, 2]])
    generator = torch.Generator().manual_seed(2)
    scores = torch.randn(3, 5, 5, dtype=torch.float64, generator=generator)
    label_scores = torch.randn(3, 5, 5, 2, dtype=torch.float64, generator=generator).log_softmax(-1)
    lengths, labels = torch.tensor([4, 4, 4]), torch.where(heads >= 0, heads % 2, -1)
    p = LabeledCRF(ProjectiveCRF(scores, lengths), label_scores)
    found = TreeLikelihood()(p, Batch(lengths, torch.arange(3), {}, heads, labels))
    for item, known in enumerate(([0, 1, 1, None], [0, 1, 2, 3], [0, None, None, None])):
        trees = all_trees(4, single_root=True, projective=True)
        totals = torch.from_numpy(tree_scores(scores[item].numpy(), trees))
        agree = [all(k in (None, h) for k, h in zip(known, tree, strict=True)) for tree in trees.tolist()]
        words = [(head, word) for word, head in enumerate(known, 1) if head is not None]
        label = sum(label_scores[item, head, word, labels[item, word]] for head, word in words)
        expected = totals.logsumexp(0) - totals[torch.tensor(agree)].logsumexp(0) - label
        torch.testing.assert_close(found[item], expected)


SMOOTHED = 0.3


def smoothed_case(scale: float) -> tuple[LabeledCRF, Tensor, Tensor]:
    """A distribution of sentences of four words, one word and two, one head open, and their heads and labels."""
    scores = make_scores(scale)
    generator = torch.Generator().manual_seed(12)
    of_labels = scale * torch.randn(3, 5, 5, 3, dtype=torch.float64, generator=generator)
    heads = HEADS.clone()
    labels = torch.tensor([[-1, 2, 0, 1, 2], [-1, 1, 0, -1, -1], [-1, 2, -1, -1, -1]])
    return LabeledCRF(NonProjectiveCRF(scores, torch.tensor(LENGTHS)), of_labels), heads, labels


def smoothed_labels(p: LabeledCRF, heads: Tensor, labels: Tensor, item: int) -> float:
    """The cross-entropy of the labels of gold arcs, word by word."""
    assert isinstance(p.label_scores, Tensor)
    loss = 0.0
    for word in range(1, LENGTHS[item] + 1):
        log_probs = p.label_scores[item, heads[item, word], word].log_softmax(-1)
        loss -= float((1 - SMOOTHED) * log_probs[labels[item, word]] + SMOOTHED * log_probs.mean())
    return loss


@pytest.mark.parametrize("scale", [0.1, 1, 20])
def test_smoothed_likelihood_is_the_cross_entropy_to_gold_and_uniform_trees(scale: float) -> None:
    p, heads, labels = smoothed_case(scale)
    found = TreeLikelihood(SMOOTHED)(p, batch_of(heads, labels)).tolist()
    for item, length in enumerate(LENGTHS):
        own = p.arcs.scores[item, : length + 1, : length + 1].numpy()
        totals = tree_scores(own, all_trees(length, single_root=True))
        log_z = np.logaddexp.reduce(totals)
        gold = tree_scores(own, heads[item, None, 1 : length + 1].numpy())[0]
        loss = (1 - SMOOTHED) * (log_z - gold) + SMOOTHED * (log_z - totals.mean())
        assert found[item] == pytest.approx(loss + smoothed_labels(p, heads, labels, item))


@pytest.mark.parametrize("scale", [0.1, 1, 20])
def test_smoothed_head_selection_word_by_word(scale: float) -> None:
    p, heads, labels = smoothed_case(scale)
    found = HeadSelection(SMOOTHED)(p, batch_of(heads, labels)).tolist()
    for item, length in enumerate(LENGTHS):
        loss = smoothed_labels(p, heads, labels, item)
        for word in range(1, length + 1):
            others = [head for head in range(length + 1) if head != word]
            log_probs = dict(zip(others, p.arcs.scores[item, others, word].log_softmax(0).tolist(), strict=True))
            gold = log_probs[int(heads[item, word])]
            loss -= (1 - SMOOTHED) * gold + SMOOTHED * math.fsum(log_probs.values()) / len(others)
        assert found[item] == pytest.approx(loss)


@pytest.mark.parametrize("objective", [TreeLikelihood, HeadSelection])
def test_smoothing_spares_what_is_unknown_or_forbidden(objective: Any) -> None:
    """The mean of a word's heads, and labels, is that of the possible ones; open words have none; gradients exist."""
    p, heads, labels = smoothed_case(1.0)
    heads[0, 1], labels[0, 4] = -1, -1
    scores = p.base.scores.masked_fill(~arcs(), 0.0)
    scores[0, 1, 3] = -torch.inf
    assert isinstance(p.label_scores, Tensor)
    of_labels = p.label_scores.clone()
    of_labels[0, 2, 3, 2] = -torch.inf
    leaves = [scores.requires_grad_(), of_labels.requires_grad_()]
    p = LabeledCRF(NonProjectiveCRF(scores, torch.tensor(LENGTHS)), of_labels)
    extra = (objective(SMOOTHED)(p, batch_of(heads, labels)) - objective()(p, batch_of(heads, labels)))[0] / SMOOTHED
    expected = torch.tensor(0.0, dtype=torch.float64)
    for word, possible in ((2, [0, 1, 3, 4]), (3, [0, 2, 4]), (4, [0, 1, 2, 3])):
        column = p.arcs.scores[0, :, word]
        expected = expected + column[heads[0, word]] - column[possible].mean()
    for word, possible in ((2, [0, 1, 2]), (3, [0, 1])):
        row = of_labels[0, heads[0, word], word]
        expected = expected + row[labels[0, word]] - row[possible].mean()
    assert extra.item() == pytest.approx(expected.item())
    for found, wanted in zip(
        torch.autograd.grad(extra, leaves, retain_graph=True), torch.autograd.grad(expected, leaves), strict=True
    ):
        torch.testing.assert_close(found, wanted)


def test_smoothing_that_cannot_be() -> None:
    for smoothing in (-0.1, 1.0, math.nan):
        with pytest.raises(TreeparseError, match="smoothing must be at least 0 and less than 1, got"):
            TreeLikelihood(smoothing)
    scores = make_scores().nan_to_num()
    p = LabeledCRF(ProjectiveCRF(scores, torch.tensor(LENGTHS)), torch.zeros(3, 5, 5, 1))
    with pytest.raises(TreeparseError, match=r"projective trees do not allow: .*smoothing 0"):
        TreeLikelihood(0.1)(p, batch_of(HEADS, HEADS.clamp(max=0)))
