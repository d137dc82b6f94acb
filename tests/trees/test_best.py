"""The best trees, their lists, minimum risk and conditions of unlabelled distributions, against enumeration."""

import itertools
from typing import Any

import numpy as np
import pytest
import torch
from helpers.ranking import KINDS, random_graph, ranked_trees
from helpers.tree_cases import CASES, Case, Distribution, Enumerated
from torch import Tensor
from torch.autograd import gradcheck

from treeparse import NoTreeError, TreeparseError
from treeparse.kernels.lists.nonprojective_lists import NonprojectiveKBest
from treeparse.kernels.lists.projective_lists import ProjectiveKBest

tree_cases = pytest.mark.parametrize("case", [case for case in CASES if not case.labels], ids=lambda case: case.name)
every_kind = pytest.mark.parametrize("kind", KINDS)


def graph(words: int, kind: str, seed: int, forbidden: float = 0.0) -> Tensor:
    return torch.from_numpy(random_graph(np.random.default_rng(seed), words, kind, forbidden))


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


@tree_cases
def test_one_by_one_as_all_at_once(case: Case) -> None:
    lengths = torch.tensor([[3, 1], [2, 4]])
    p = case.make(case.parameters(4, seed=5, batch=(2, 2), forbidden=0.1), lengths, validate_args=False)
    steps = list(p.best_first())
    heads, totals, _ = p.topk(len(steps) + 1)
    assert torch.equal(torch.stack([step[0] for step in steps]), heads[:-1])
    assert torch.equal(torch.stack([step[1] for step in steps]), totals[:-1])
    assert (totals[-1] == -torch.inf).all()
    assert (totals[-2] > -torch.inf).any()


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


@tree_cases
def test_lists_of_a_batch_and_what_is_ignored(case: Case) -> None:
    """Items of several lengths and dtypes, one without any tree; NaN at padding."""
    lengths = torch.tensor([4, 2, 5, 3, 1])
    scores = torch.full((5, 6, 6), torch.nan)
    for item, n in enumerate(lengths.tolist()):
        scores[item, : n + 1, : n + 1] = graph(n, "random", seed=item)
    scores[3, :, 2] = -torch.inf
    p = case.make([scores], lengths, validate_args=False)
    heads, totals, log_probs = p.topk(20)
    assert totals.dtype == log_probs.dtype == torch.float32
    for item, n in enumerate(lengths.tolist()):
        alone = case.make([scores[item, : n + 1, : n + 1]], validate_args=False).topk(20)
        assert torch.equal(heads[:, item, : n + 1], alone.heads)
        assert torch.equal(totals[:, item], alone.scores)
        assert (heads[:, item, n + 1 :] == -1).all()
    assert (totals[:, 3] == -torch.inf).all() and (log_probs[:, 3] == -torch.inf).all()
    with pytest.raises(NoTreeError, match=r"in batch item 3: .*word 2"):
        case.make([scores], lengths, validate_args=True).topk(2)
    with pytest.raises(NoTreeError, match=r"in batch item 3: .*word 2"):
        next(case.make([scores], lengths, validate_args=True).best_first())


@tree_cases
@pytest.mark.parametrize("k", [0, -1])
def test_a_list_of_no_length(case: Case, k: int) -> None:
    with pytest.raises(TreeparseError, match="must be an integer"):
        case.make(case.parameters(2, seed=1)).topk(k)


@tree_cases
@pytest.mark.parametrize("scale", [1e-3, 1.0, 10.0, 1e3])
@pytest.mark.parametrize("forbidden", [0.0, 0.4])
def test_minimum_risk_is_the_highest_expected_uas_of_the_support(case: Case, scale: float, forbidden: float) -> None:
    for words in range(1, 6):
        parameters = case.parameters(words, seed=words, scale=scale, forbidden=forbidden)
        oracle, p = Enumerated(case, parameters), case.make(parameters)
        if not oracle.exists:
            continue
        heads = p.minimum_risk()
        assert p.log_prob(heads) > -torch.inf
        trees = oracle.values[0][oracle.log_probs > -torch.inf]
        correct = (trees[:, None, 1:] == oracle.values[0][None, :, 1:]).double().mean(-1) @ oracle.probs
        torch.testing.assert_close(p.expected_uas(heads), correct.max(), rtol=0, atol=1e-12)


def conditioned(case: Case, scores: Tensor, known: Tensor) -> Distribution:
    """The condition by hand: the score of every other arc into a word of known head is -inf."""
    scores = scores.clone()
    for word in range(1, len(known)):
        if known[word] >= 0:
            kept = scores[known[word], word].clone()
            scores[:, word] = -torch.inf
            scores[known[word], word] = kept
    return case.make([scores], validate_args=False)


@tree_cases
def test_given_heads(case: Case) -> None:
    generator = torch.Generator().manual_seed(8)
    for seed in range(30):
        words = 2 + seed % 4
        (scores,) = case.parameters(words, seed=seed, forbidden=0.1)
        oracle, p = Enumerated(case, [scores]), case.make([scores], validate_args=False)
        tree = oracle.values[0][torch.randint(len(oracle.values[0]), (), generator=generator)]
        known = torch.where(torch.rand(words + 1, generator=generator) < 0.4, tree, -1)
        q = p.given(known)
        assert type(q) is type(p)
        keep = ((oracle.values[0] == known) | (known < 0))[:, 1:].all(-1)
        expected = torch.where(keep, oracle.totals, -torch.inf)
        torch.testing.assert_close(q.log_partition, expected.logsumexp(0), rtol=0, atol=1e-12)
        if not bool((expected > -torch.inf).any()):
            assert (q.mode == -1).all()
            continue
        log_probs = expected - expected.logsumexp(0)
        torch.testing.assert_close(q.log_prob(oracle.values[0]), log_probs, rtol=0, atol=1e-12)
        found = q.topk(5).heads
        assert torch.equal(found, conditioned(case, scores, known).topk(5).heads)
        best = expected.sort(descending=True).values[: len(found)]
        best = torch.nn.functional.pad(best, (0, len(found) - len(best)), value=-torch.inf)
        torch.testing.assert_close(q.topk(5).scores, best, rtol=0, atol=1e-12)
        assert torch.equal(q.minimum_risk(), conditioned(case, scores, known).minimum_risk())


@tree_cases
def test_given_heads_in_a_batch_with_gradients(case: Case) -> None:
    lengths = torch.tensor([3, 2, 3])
    scores = case.parameters(3, seed=3, batch=(3,))[0].nan_to_num(0.0).requires_grad_()
    known = torch.tensor([[-1, 2, -1, -1], [-1, -1, 0, 7], [5, -1, -1, -1]])  # what stands at no word is ignored
    gradcheck(lambda scores: case.make([scores], lengths).given(known).log_partition, scores)
    q = case.make([scores], lengths).given(known)
    torch.testing.assert_close(q.marginals[0, 2, 1], torch.ones((), dtype=torch.float64), rtol=0, atol=1e-13)
    torch.testing.assert_close(q.marginals[1, 0, 2], torch.ones((), dtype=torch.float64), rtol=0, atol=1e-13)
    assert torch.equal(q.marginals[2], case.make([scores], lengths).marginals[2])


@tree_cases
def test_given_heads_that_cannot_be(case: Case) -> None:
    p = case.make(case.parameters(3, seed=3, batch=(2,)), torch.tensor([3, 2]), validate_args=True)
    known = torch.full((2, 4), -1)
    known[1, 1] = 3
    with pytest.raises(
        TreeparseError, match=r"The head of word 1 in batch item 1 must be .* nodes 0 to 2 other.*got 3"
    ):
        p.given(known)
    known[1, 1] = 1
    with pytest.raises(TreeparseError, match=r"The head of word 1 in batch item 1 must be .*, got 1;"):
        p.given(known)
    with pytest.raises(TreeparseError, match=r"Known heads must have the shape \(\*batch, n\+1\), here \(2, 4\)"):
        p.given(known.expand(3, 2, 4))
    known[1] = torch.tensor([-1, 2, 1, -1])
    with pytest.raises(NoTreeError, match="in batch item 1"):
        _ = p.given(known).mode
