"""The losses over lists and what rerankers learn from them, against finite differences and planted preferences."""

import math
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers.docstrings import block_after
from helpers.nbest_lists import nbest_list

import treeparse.rerank
from treeparse.data.parses import NBestList
from treeparse.errors import TreeparseError
from treeparse.rerank import LearningConfig, LogLinearConfig, Reranker, reranked
from treeparse.rerank.learning import BASE_WEIGHTS, LogLinear, Target, example, list_loss, right_words, tune
from treeparse.sentence import Sentence


def by_enumeration(scores: Sequence[float], right: Sequence[float], target: Target) -> float:
    """Of one list, from the definitions."""
    weights = [math.exp(score) for score in scores]
    if target == "best":
        return -math.log(sum(w for w, r in zip(weights, right, strict=True) if r == max(right)) / sum(weights))
    return max(right) - sum(w * r for w, r in zip(weights, right, strict=True)) / sum(weights)


LISTS = [([0.3, -1.2, 2.0, 0.1], [3.0, 5.0, 2.0, 5.0]), ([0.7, 0.2], [1.0, 0.0]), ([0.4], [2.0])]


@pytest.mark.parametrize("target", ["expected", "best"])
def test_losses_are_those_of_the_definitions(target: Target) -> None:
    scores = torch.full((3, 4), -math.inf)
    right = torch.full((3, 4), -1.0)
    for row, (values, counts) in enumerate(LISTS):
        scores[row, : len(values)] = torch.tensor(values)
        right[row, : len(values)] = torch.tensor(counts)
    expected = [by_enumeration(*each, target) for each in LISTS]
    assert list_loss(scores, right, target).tolist() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("target", ["expected", "best"])
def test_gradients_are_those_of_finite_differences(target: Target) -> None:
    scores = torch.tensor([LISTS[0][0], [0.5, 0.2, -0.4, 0.0]], dtype=torch.float64, requires_grad=True)
    right = torch.tensor([LISTS[0][1], [1.0, 1.0, 0.0, 1.0]], dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda values: list_loss(values, right, target), scores)


@pytest.mark.parametrize("target", ["expected", "best"])
def test_gradients_of_short_lists_are_finite(target: Target) -> None:
    values = torch.tensor([0.5, 0.1, 0.3], requires_grad=True)
    scores = torch.stack([values, torch.cat([values[:1], torch.full((2,), -math.inf)])])
    list_loss(scores, torch.tensor([[1.0, 0, 1], [2, -1, -1]]), target).sum().backward()
    assert values.grad is not None and values.grad.isfinite().all()


def test_right_words_have_the_right_head_and_universal_label() -> None:
    gold = Sentence(("a", "b", "c"), heads=(0, 1, 1), labels=("root", "nmod:poss", "obj"))
    rows = [((0, 1, 1), ("root", "nmod", "obj")), ((0, 1, 2), ("root", "nmod:of", "obj")), ((0, 1, 1), ("x", "y", "z"))]
    assert right_words(gold, nbest_list("abc", [(*row, -1.0) for row in rows])) == [3, 2, 0]


def planted(count: int, seed: int) -> tuple[list[Sentence], list[NBestList]]:
    """Words x hang from the verb, at any place: in gold trees all as obj where they are two, as nsubj where one.

    So the labels of siblings must agree; a list has all labellings, the parser knows nothing of them.
    """
    stream, gold, lists = random.Random(seed), [], []
    for _ in range(count):
        dependents = stream.choice((1, 2))
        forms = ("v", *"xx"[:dependents])
        name = ("nsubj", "obj")[dependents - 1]
        heads = (0, *[1] * dependents)
        labellings = [("root", *rest) for rest in _labellings(dependents)]
        stream.shuffle(labellings)
        lists.append(nbest_list(forms, [(heads, labels, -math.log(len(labellings))) for labels in labellings]))
        gold.append(Sentence(forms, heads=heads, labels=("root", *[name] * dependents)))
    return gold, lists


def _labellings(words: int) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [()]
    for _ in range(words):
        rows = [(*row, label) for row in rows for label in ("nsubj", "obj")]
    return rows


@pytest.mark.parametrize("target", ["expected", "best"])
def test_a_preference_for_siblings_is_learned(target: Target) -> None:
    gold, lists = planted(120, seed=1)
    learning = LearningConfig(target=target, epochs=6, batch_lists=8, learning_rate=0.02)
    reranker = Reranker.train(LogLinearConfig(bits=12), gold, lists, learning)
    gold, lists = planted(40, seed=2)
    chosen = [reranked(nbest, reranker).parses[0].labels for nbest in lists]
    assert chosen == [sentence.labels for sentence in gold]


def test_weights_of_nothing_leave_the_order_as_it_was() -> None:
    _, lists = planted(10, seed=3)
    lists = [_with_log_probs(nbest, seed) for seed, nbest in enumerate(lists)]
    reranker = Reranker(LogLinear.build(LogLinearConfig(bits=8), [n.sentence.words for n in lists]), 0.7)
    for nbest in lists:
        found = reranked(nbest, reranker)
        assert [p.log_prob for p in found.parses] == sorted((p.log_prob for p in nbest.parses), reverse=True)
        assert [p.score for p in found.parses] == pytest.approx([0.7 * p.log_prob for p in found.parses])


def _with_log_probs(nbest: NBestList, seed: int) -> NBestList:
    stream = random.Random(seed)
    return nbest_list(nbest.tokens, [(p.heads, p.labels, -stream.random()) for p in nbest.parses])


def test_the_base_weight_is_the_one_that_chooses_best() -> None:
    """Two lists: the parser is right by 2 in one, the model by 1 in the other; only weights between decide both."""
    gold = Sentence(("a", "b"), heads=(0, 1), labels=("root", "obj"))
    right, wrong = ((0, 1), ("root", "obj")), ((2, 0), ("obj", "root"))
    model = LogLinear.build(LogLinearConfig(bits=4), [gold])
    lists = [nbest_list("ab", [(*right, -1.0), (*wrong, -3.0)]), nbest_list("ab", [(*wrong, -1.0), (*right, -1.5)])]
    examples = [example(model, gold, nbest) for nbest in lists]
    scores = [torch.tensor([0.0, 1.0]), torch.tensor([0.0, 1.0])]
    tuned = tune(examples, scores)
    # Right in both for weights w with 2 w > 1 and w / 2 < 1; of those tried the highest.
    assert tuned.base_weight == max(weight for weight in BASE_WEIGHTS if weight < 2)
    assert (tuned.las, tuned.base, tuned.oracle) == (1.0, 0.5, 1.0)
    assert tune(examples[:1], [torch.tensor([0.0, 0.0])]).base_weight == max(BASE_WEIGHTS)


def test_another_parsers_lists_get_their_own_base_weight() -> None:
    gold, lists = planted(60, seed=1)
    reranker = Reranker.train(LogLinearConfig(bits=12), gold, lists, LearningConfig(learning_rate=0.02, batch_lists=8))
    # A parser that is sure of wrong labels: the less it counts the better.
    sure = [_sure_of_wrong(nbest, sentence) for nbest, sentence in zip(lists, gold, strict=True)]
    reranker.base_weight = 100.0
    tuned = reranker.tuned(gold, sure)
    assert tuned.base_weight < 100
    assert _right(reranker, gold, sure) == 0 and _right(tuned, gold, sure) == len(gold)


def _sure_of_wrong(nbest: NBestList, gold: Sentence) -> NBestList:
    return nbest_list(nbest.tokens, [(p.heads, p.labels, -0.5 * (p.labels == gold.labels)) for p in nbest.parses])


def _right(reranker: Reranker, gold: Sequence[Sentence], lists: Sequence[NBestList]) -> int:
    return sum(reranked(n, reranker).parses[0].labels == s.labels for n, s in zip(lists, gold, strict=True))


def test_the_same_seed_learns_the_same() -> None:
    gold, lists = planted(30, seed=1)
    model = LogLinearConfig(bits=12)
    first, second = (Reranker.train(model, gold, lists, LearningConfig(epochs=2, seed=4)) for _ in range(2))
    assert first(lists[0]) == second(lists[0])


def test_lists_of_other_sentences_are_refused() -> None:
    gold, lists = planted(6, seed=1)
    other, bare = Sentence(("y",), heads=(0,), labels=("root",)), Sentence(gold[0].forms)
    for sentences, their_lists, problem in (
        (gold, lists[:5], "must have one list, got 5 lists for 6 sentences"),
        (gold[:5], lists, "must have one list, got more lists than 5 sentences"),
        ([other, *gold[1:]], lists, "list of sentence s is not of its gold sentence"),
        ([bare, *gold[1:]], lists, "has no tree"),
        (gold[:1], lists[:1], "needs two or more lists to learn from, got 1"),
    ):
        with pytest.raises(TreeparseError, match=problem):
            Reranker.train(LogLinearConfig(bits=8), sentences, their_lists)
    with pytest.raises(TreeparseError, match="Unknown target 'bets'"):
        LearningConfig(target="bets")  # type: ignore[arg-type]


def test_the_documented_lines_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    gold, lists = planted(40, seed=1)
    names: dict[str, Any] = {"gold": gold, "lists": lists, "others": planted(5, seed=2)[1]}
    exec(block_after(treeparse.rerank.__doc__, "and a list of each"), names)
    assert len(names["best"]) == 5 and (tmp_path / "reranker" / "config.json").is_file()
