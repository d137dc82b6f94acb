"""The best trees, their lists, minimum risk and conditions of every distribution, against enumeration."""

import itertools
from typing import Any

import numpy as np
import pytest
import torch
from helpers.derivatives import assert_derivatives
from helpers.ranking import KINDS, random_graph, ranked_trees
from helpers.tree_cases import CASES, Case, every_case, every_case_and_order, generator
from torch import Tensor

from treeparse import NoTreeError, TreeparseError
from treeparse.kernels.lists.nonprojective_lists import NonprojectiveKBest
from treeparse.kernels.lists.projective_lists import ProjectiveKBest

tree_cases = pytest.mark.parametrize("case", [case for case in CASES if not case.labels], ids=lambda case: case.name)
every_kind = pytest.mark.parametrize("kind", KINDS)


def graph(words: int, kind: str, seed: int, forbidden: float = 0.0) -> Tensor:
    return torch.from_numpy(random_graph(np.random.default_rng(seed), words, kind, forbidden))


def columns_of(tree: Any) -> list[Tensor]:
    """Heads, or heads and labels."""
    return [tree] if isinstance(tree, Tensor) else list(tree)


def expected_list(case: Case, scores: Tensor) -> tuple[Tensor, Tensor]:
    """All trees ``(trees, n+1)`` of one item and their scores, by the tie rule."""
    words = len(scores) - 1
    trees, totals = ranked_trees(scores.numpy(), case.trees(words)[0][:, 1:].numpy())
    return torch.nn.functional.pad(torch.from_numpy(trees), (1, 0), value=-1), torch.from_numpy(totals)


@tree_cases
@every_kind
@pytest.mark.parametrize("forbidden", [0.0, 0.4])
def test_lists_equal_enumeration(case: Case, kind: str, forbidden: float) -> None:
    for words in range(1, 6):
        scores = graph(words, kind, seed=words, forbidden=forbidden)
        heads, totals = expected_list(case, scores)
        p = case.make([scores], validate_args=False)
        for k in (1, 7, 40):
            found_heads, found_totals, log_probs = p.topk(k)
            assert found_heads.shape == (k, words + 1)
            assert found_totals.shape == log_probs.shape == (k,)
            count = min(k, len(heads))
            assert torch.equal(found_heads[:count], heads[:count])
            torch.testing.assert_close(found_totals[:count], totals[:count], rtol=1e-12, atol=0)
            assert (found_heads[count:] == -1).all()
            assert (found_totals[count:] == -torch.inf).all() and (log_probs[count:] == -torch.inf).all()
            expected = totals.log_softmax(0)[:count]
            digits = 1e-14 * (1 + totals.abs().amax() if len(totals) else 1)
            torch.testing.assert_close(log_probs[:count], expected, rtol=0, atol=float(digits))
        assert torch.equal(p.mode, p.topk(1).heads[0])


@every_case
@pytest.mark.parametrize("ties", [False, True])
def test_one_by_one_as_all_at_once(case: Case, ties: bool) -> None:
    lengths = torch.tensor([[3, 1], [2, 3 if case.labels else 4]])
    parameters = case.parameters(int(lengths.max()), seed=5, batch=(2, 2), forbidden=0.2 if case.labels else 0.1)
    p = case.make([part.round() for part in parameters] if ties else parameters, lengths, validate_args=False)
    steps = list(p.best_first())
    *columns, log_probs = p.topk(len(steps) + 1)
    for found, expected in zip(zip(*steps, strict=True), columns, strict=True):
        assert torch.equal(torch.stack(found), expected[:-1])
    assert (log_probs[-1] == -torch.inf).all() and (log_probs[-2] > -torch.inf).any()


@tree_cases
def test_one_by_one_is_lazy(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    counts = []
    for family in (NonprojectiveKBest, ProjectiveKBest):

        def extend(found: Any, count: int, threads: int = 1, original: Any = family.extend) -> None:
            counts.append(count)
            original(found, count, threads)

        monkeypatch.setattr(family, "extend", extend)
    assert len(list(itertools.islice(case.make(case.parameters(6, seed=6)).best_first(), 5))) == 5
    assert counts == [1, 2, 4, 8]


@every_case
def test_lists_of_a_batch_and_what_is_ignored(case: Case) -> None:
    """Items of several lengths, one without any tree; NaN at padding."""
    lengths = torch.tensor([4, 2, 5, 3, 1])
    parameters = [part.float() for part in case.parameters(5, seed=1, batch=(5,))]
    for part in parameters:
        for item, n in enumerate(lengths.tolist()):
            part[item, n + 1 :] = part[item, :, n + 1 :] = torch.nan
    parameters[0][3, :, 2] = -torch.inf
    p, strict = (case.make(parameters, lengths, validate_args=validate) for validate in (False, True))
    *trees, totals, log_probs = p.topk(20)
    assert totals.dtype == log_probs.dtype == torch.float32
    for item, n in enumerate(lengths.tolist()):
        *alone, scores, _ = case.make(case.of_item(parameters, item, n), validate_args=False).topk(20)
        for found, expected in zip(trees, alone, strict=True):
            assert torch.equal(found[:, item, : n + 1], expected)
            assert (found[:, item, n + 1 :] == -1).all()
        assert torch.equal(totals[:, item], scores)
    assert (totals[:, 3] == -torch.inf).all() and (log_probs[:, 3] == -torch.inf).all()
    for column in columns_of(p.minimum_risk()):
        assert (column[3] == -1).all() and (column[2, 1:] >= 0).all()
    for method in (lambda: strict.topk(2), lambda: next(strict.best_first()), strict.minimum_risk):
        with pytest.raises(NoTreeError, match=r"in batch item 3: .*word 2"):
            method()


@every_case
@pytest.mark.parametrize("k", [0, -1])
def test_a_list_of_no_length(case: Case, k: int) -> None:
    with pytest.raises(TreeparseError, match=f"must be an integer.*1 or more, got {k}"):
        case.make(case.parameters(2, seed=1)).topk(k)


@every_case_and_order
@pytest.mark.parametrize(("scale", "forbidden"), [(1e-3, 0.0), (1.0, 0.0), (1.0, 0.4), (1e3, 0.4)])
def test_minimum_risk_is_the_highest_expected_accuracy_of_the_support(
    case: Case, scale: float, forbidden: float
) -> None:
    for words, seed in itertools.product(range(1, 4 if case.labels else 5), range(4)):
        parameters = case.parameters(words, seed=seed, scale=scale, forbidden=forbidden)
        oracle, p = case.enumerated(parameters), case.make(parameters, validate_args=False)
        if not oracle.exists:
            continue
        tree = columns_of(p.minimum_risk())
        assert p.log_prob(*tree) > -torch.inf
        arcs = oracle.parts[:, :words]  # with their labels, if there are any
        possible = arcs[oracle.log_probs > -torch.inf]
        correct = (possible[:, None] == arcs[None]).double().mean(-1) @ oracle.probs
        torch.testing.assert_close(1 - p.risk(*tree), correct.max(), rtol=0, atol=1e-12)


@every_case_and_order
def test_a_condition_leaves_the_trees_that_meet_it(case: Case) -> None:
    """Random heads and labels of random trees are known."""
    stream, met = generator(8), 0
    for seed in range(20):
        words = 2 + seed % (2 if case.labels else 4)
        parameters = case.parameters(words, seed=seed, forbidden=0.1)
        before = [part.clone() for part in parameters]
        oracle, p = case.enumerated(parameters), case.make(parameters, validate_args=False)
        chosen = torch.randint(len(oracle.values[0]), (), generator=stream)
        known = [
            torch.where(torch.rand(words + 1, generator=stream) < 0.4, column[chosen], -1) for column in oracle.values
        ]
        q = p.given(*known)
        assert type(q) is type(p)
        fits = [((column == own) | (own < 0)).all(-1) for column, own in zip(oracle.values, known, strict=True)]
        expected = torch.where(torch.stack(fits).all(0), oracle.totals, -torch.inf)
        torch.testing.assert_close(q.log_partition, expected.logsumexp(0), rtol=0, atol=1e-12)
        count = min(5, int((expected > -torch.inf).sum()))
        scores = q.topk(5).scores
        torch.testing.assert_close(scores[:count], expected.sort(descending=True).values[:count], rtol=0, atol=1e-12)
        assert (scores[count:] == -torch.inf).all()
        if count == 0:
            assert all((column == -1).all() for column in columns_of(q.mode))
            continue
        met += 1
        torch.testing.assert_close(q.log_prob(*oracle.values), expected.log_softmax(0), rtol=0, atol=1e-12)
        assert q.log_prob(*columns_of(q.mode)) == pytest.approx(float(expected.log_softmax(0).max()), abs=1e-12)
        for part, copy in zip(parameters, before, strict=True):
            torch.testing.assert_close(part, copy, rtol=0, atol=0, equal_nan=True)
    assert met > 10


@every_case
def test_derivatives_through_a_condition(case: Case) -> None:
    lengths = torch.tensor([3, 2])
    stream = generator(2)
    inputs = [torch.randn(shape, generator=stream, dtype=torch.float64) for shape in case.shapes(3, (2,))]
    heads, labels = torch.tensor([[-1, 2, -1, -1], [-1, -1, -1, -1]]), torch.tensor([[-1, -1, 1, -1], [-1, 0, -1, -1]])
    known = [heads, labels] if case.labels else [heads]

    def conditioned(*copies: Tensor) -> tuple[Tensor, Tensor]:
        count = len(copies[0])
        p = case.make(copies, lengths.expand(count, 2))
        q = p.given(*(part.expand(count, 2, 4) for part in known))
        return q.log_partition, q.entropy()

    assert_derivatives(conditioned, inputs)


@every_case
def test_conditions_that_no_tree_meets(case: Case) -> None:
    p = case.make(case.parameters(3, seed=3, batch=(2,)), torch.tensor([3, 2]), validate_args=True)
    cycle = torch.tensor([[-1, -1, -1, -1], [-1, 2, 1, -1]])
    q = p.given(cycle, torch.full((2, 4), -1)) if case.labels else p.given(cycle)
    for method in (lambda: q.mode, lambda: q.topk(1)):
        with pytest.raises(NoTreeError, match="in batch item 1"):
            method()
