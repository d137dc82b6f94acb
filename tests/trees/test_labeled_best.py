"""Lists of the best labelled trees by the tie rule, and what only labelled trees have, against enumeration."""

import itertools
from collections.abc import Sequence

import numpy as np
import pytest
import torch
from helpers.tree_cases import CASES, Case, Enumerated
from torch import Tensor

from treeparse import LabeledCRF, NonProjectiveCRF, TreeparseError
from treeparse.kernels.ties import tree_key
from treeparse.trees.labels.best_labels import LabeledKBest

KINDS = pytest.mark.parametrize("kind", ["random", "tied"])
labeled_cases = pytest.mark.parametrize("case", [case for case in CASES if case.labels], ids=lambda case: case.name)

Row = tuple[float, tuple[int, ...], tuple[int, ...]]  # score, heads and labels


def parameters_of(case: Case, words: int, kind: str, seed: int, forbidden: float = 0.0) -> list[Tensor]:
    """Scores of arcs and labels; what must be ignored is NaN."""
    parameters = case.parameters(words, seed=seed, forbidden=forbidden)
    return [part.round() for part in parameters] if kind == "tied" else parameters


def ordered(case: Case, parameters: Sequence[Tensor]) -> list[Row]:
    """All labelled trees of one item by score, summed arc keys, and the ranks of their labels."""
    oracle = Enumerated(case, parameters)
    heads, labels = (column.numpy() for column in oracle.values)
    # Places of labels among those of their arc, sorted: best first, of equal ones the lowest.
    ranks = parameters[1].sort(dim=-1, descending=True, stable=True).indices.argsort(-1).numpy()
    rows = []
    for score, own, names in zip(oracle.totals.tolist(), heads, labels, strict=True):
        if score > -np.inf:
            places = tuple(ranks[own[word], word, names[word]] for word in range(1, len(own)))
            rows.append((-score, -tree_key(own, len(own) - 1), places, own.tolist(), names.tolist()))
    return [(-score, tuple(own), tuple(names)) for score, _, _, own, names in sorted(rows)]


def listed(heads: Tensor, labels: Tensor, scores: Tensor, log_probs: Tensor) -> list[Row]:
    """The list of one item up to its first empty place; what follows must be empty."""
    count = int((scores > -torch.inf).sum())
    assert bool((heads[count:] == -1).all() and (labels[count:] == -1).all() and (scores[count:] == -torch.inf).all())
    assert bool((log_probs[count:] == -torch.inf).all() and log_probs[:count].isfinite().all())
    pairs = zip(map(tuple, heads[:count].tolist()), map(tuple, labels[:count].tolist()), strict=True)
    return [(score, *pair) for score, pair in zip(scores.tolist(), pairs, strict=False)]


def assert_same(found: list[Row], expected: list[Row]) -> None:
    """The same labelled trees in the same order, scores within rounding."""
    assert [row[1:] for row in found] == [row[1:] for row in expected]
    assert [row[0] for row in found] == pytest.approx([row[0] for row in expected], rel=0, abs=1e-13)
    scores = [row[0] for row in found]
    assert scores == sorted(scores, reverse=True)


@labeled_cases
@KINDS
@pytest.mark.parametrize("forbidden", [0.0, 0.4])
def test_the_whole_list_equals_enumeration(case: Case, kind: str, forbidden: float) -> None:
    for words, seed in itertools.product(range(1, 4), range(4)):
        parameters = parameters_of(case, words, kind, seed, forbidden)
        expected = ordered(case, parameters)
        p = case.make(parameters, validate_args=False)
        assert_same(listed(*p.topk(len(expected) + 3)), expected)
        assert_same(listed(*p.topk(5)), expected[:5])
        assert_same(listed(*p.topk(1)), expected[:1])
        assert torch.equal(torch.stack(p.mode), torch.stack(p.topk(1)[:2])[:, 0])


@labeled_cases
def test_one_by_one_is_lazy(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    counts = []
    extend = LabeledKBest.extend

    def counted(found: LabeledKBest, count: int, threads: int = 1) -> None:
        counts.append(count)
        extend(found, count, threads)

    monkeypatch.setattr(LabeledKBest, "extend", counted)
    trees = case.make(case.parameters(5, seed=6)).best_first()
    assert len(list(itertools.islice(trees, 3))) == 3
    assert max(counts) <= 4


@labeled_cases
def test_scores_are_rounded_once(case: Case) -> None:
    parameters = [part.float() for part in case.parameters(3, seed=7, batch=(2,), forbidden=0.1)]
    found, exact = (case.make(parts).topk(30) for parts in (parameters, [part.double() for part in parameters]))
    assert found.scores.dtype == torch.float32
    for column, expected in zip(found, exact, strict=True):
        assert torch.equal(column, expected.to(column.dtype))


class Swapped:
    """The two trees over two words, the worse one first, as rounding may have it in a list of trees."""

    heads, scores = np.empty((1, 0, 3), np.int64), np.empty((1, 0))

    def extend(self, count: int, threads: int = 1) -> None:
        self.heads = np.array([[[-1, 0, 1], [-1, 2, 0], *[[-1] * 3] * count]])[:, :count]


def test_trees_that_rounding_made_change_places_come_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    case = next(case for case in CASES if case.labels and case.single_root)
    parameters = [torch.zeros(3, 3, dtype=torch.float64), torch.zeros(3, 3, 2, dtype=torch.float64)]
    parameters[0][0, 2] = 2.0**-52
    parameters[1][0, :, 0] = 1.0
    p = case.make(parameters)
    expected = listed(*p.topk(9))
    monkeypatch.setattr(type(p.base.family), "k_best", lambda *_: Swapped())
    found = listed(*p.topk(9))
    assert len(found) == 8
    assert [row[0] for row in found] == [row[0] for row in expected]
    assert set(found) == set(expected)
    assert found[0][1] == (-1, 2, 0)


def test_minimum_risk_is_not_always_the_mode() -> None:
    """Word 2 prefers no head so much as in the best tree, but many worse trees agree on another one."""
    case = next(case for case in CASES if case.labels and case.single_root)
    p = case.make(case.parameters(4, seed=12, batch=(40,)))
    accuracies = [p.expected_las(*tree) for tree in (p.minimum_risk(), p.mode)]
    assert bool((accuracies[0] >= accuracies[1] - 1e-12).all())
    assert bool((accuracies[0] > accuracies[1] + 1e-3).any())


@labeled_cases
def test_conditions_on_labels_that_do_not_fit(case: Case) -> None:
    p = case.make(case.parameters(3, seed=11, batch=(2,)), validate_args=True)
    open_ = torch.full((2, 4), -1)
    for wrong, problem in (
        (open_[:, 1:], "Known labels must have the shape"),
        (open_.expand(3, 2, 4), r"Known labels must have the shape \(\*batch, n\+1\), here \(2, 4\), got \(3, 2, 4\)"),
        (open_.double(), "Known labels must be integers"),
        (torch.full((2, 4), case.labels), "Known labels must be below the number of labels, 2"),
    ):
        with pytest.raises(TreeparseError, match=problem):
            p.given(open_, wrong)


def test_arcs_first_falls_back_on_the_best_labelled_tree_item_by_item() -> None:
    """The best tree without labels, unless one of its arcs has no allowed label; the other items keep theirs."""
    stream = torch.Generator().manual_seed(4)
    scores = torch.randn(3, 6, 6, generator=stream, dtype=torch.float64) * 3
    labels = torch.randn(3, 6, 6, 4, generator=stream, dtype=torch.float64)
    free = LabeledCRF(NonProjectiveCRF(scores), labels)
    heads, best_labels = free.decode("arcs_first")
    assert torch.equal(heads, free.base.mode)
    word = torch.arange(1, 6)
    assert torch.equal(best_labels[:, 1:], labels[torch.arange(3).unsqueeze(-1), heads[:, 1:], word].argmax(-1))
    forbidden = labels.clone()
    forbidden[1, heads[1, 2], 2] = -torch.inf
    p = LabeledCRF(NonProjectiveCRF(scores), forbidden)
    found = p.decode("arcs_first")
    for kept in (0, 2):
        assert torch.equal(found.heads[kept], heads[kept]) and torch.equal(found.labels[kept], best_labels[kept])
    assert torch.equal(found.heads[1], p.mode.heads[1]) and torch.equal(found.labels[1], p.mode.labels[1])
    assert p.log_prob(*found).isfinite().all()
