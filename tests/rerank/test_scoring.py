"""Scorers of one's own, and lists in the order of their scores."""

import random
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.docstrings import block_after
from helpers.nbest_lists import nbest_list, random_list

import treeparse.rerank
from treeparse.errors import TreeparseError
from treeparse.rerank import rerank, reranked, scorer_named


def test_lists_come_in_the_order_of_their_scores() -> None:
    nbest = random_list(4, 5, random.Random(1))
    scores = [0.5, 2.0, -1.0, 2.0, 0.5]
    for kind in (list, tuple, np.array, torch.tensor):
        [found] = rerank([nbest], lambda _, kind=kind: kind(scores))
        assert [parse.score for parse in found.parses] == [2.0, 2.0, 0.5, 0.5, -1.0]
        order = [nbest.parses[place] for place in (1, 3, 0, 4, 2)]
        trees = [(p.heads, p.labels, p.log_prob) for p in found.parses]
        assert trees == [(p.heads, p.labels, p.log_prob) for p in order]
        assert found.sentence == nbest.sentence


def test_only_as_many_lists_are_read_as_asked_for() -> None:
    lists = (random_list(3, 2, random.Random(1)) for _ in range(2))
    next(rerank(lists, lambda nbest: [1, 2]))
    assert next(lists)


@pytest.mark.parametrize(
    ("scores", "problem"),
    [
        ([1.0], "must return a number for each parse, got 1 for 2 parses of sentence s"),
        ([1.0, float("nan")], "must return finite numbers, got another score of a parse of sentence s"),
        ([1.0, float("-inf")], "must return finite numbers"),
        (None, r"got None \(.*\) for the list of sentence s"),
        (["a", "b"], "must return a number for each parse, got"),
    ],
)
def test_scores_that_are_none(scores: object, problem: str) -> None:
    nbest = nbest_list("ab", [((0, 1), ("root", "obj"), -1.0)] * 2)
    with pytest.raises(TreeparseError, match=problem):
        reranked(nbest, lambda _: scores)  # type: ignore[arg-type, return-value]


OWN = """
class Longest:
    def __call__(self, nbest):
        return [sum(abs(head - word) for word, head in enumerate(p.heads, 1) if head) for p in nbest.parses]

class Needy:
    def __init__(self, argument): ...

number = 3
"""


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module of another name for each test."""
    name = f"mine_{abs(hash(tmp_path))}"
    (tmp_path / f"{name}.py").write_text(OWN, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    return name


def test_a_class_goes_by_its_path(mine: str) -> None:
    nbest = nbest_list("abc", [((0, 1, 2), ("root", "x", "x"), -1.0), ((0, 1, 1), ("root", "x", "x"), -2.0)])
    assert scorer_named(f"{mine}.Longest")(nbest) == [2, 3]


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("mine.Longer", "has nothing named 'Longer'; did you mean Longest"),
        ("mine.Needy", "cannot be made without arguments"),
        ("mine.number", "cannot be called"),
        ("no_such_module.flat", "'no_such_module' cannot be imported"),
        ("flat", "must be the dotted path of a function or class"),
        ("mine.", "must be the dotted path of a function or class"),
    ],
)
def test_paths_of_no_scorer(mine: str, name: str, problem: str) -> None:
    with pytest.raises(TreeparseError, match=problem):
        scorer_named(name.replace("mine", mine))


def test_the_documented_scorer_runs_as_it_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    block = block_after(treeparse.rerank.__doc__, "A custom scorer reads")
    assert len([line for line in block.splitlines() if line.strip()]) <= 10
    (tmp_path / "mine.py").write_text(block, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    labels = ["x"] * 9
    long_arc, chain = ([9, *range(1, 9)], labels, -1.0), ([0, *range(1, 9)], labels, -1.2)
    nbest = nbest_list("abcdefghi", [long_arc, chain])
    try:
        [found] = rerank([nbest], scorer_named("mine.flat"))
    finally:
        sys.modules.pop("mine", None)
    assert [parse.heads[0] for parse in found.parses] == [0, 9]
    assert [parse.score for parse in found.parses] == pytest.approx([-1.2, -1.5])
