"""Scorers of one's own, and lists in the order of their scores."""

import random
import re
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.nbest_lists import nbest_list, random_list

import treeparse.rerank
from treeparse.data.parses import NBestList
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
        ("Longer", "has nothing named 'Longer'; did you mean Longest"),
        ("Needy", "cannot be made without arguments"),
        ("number", "cannot be called"),
    ],
)
def test_paths_of_no_scorer(mine: str, name: str, problem: str) -> None:
    with pytest.raises(TreeparseError, match=problem):
        scorer_named(f"{mine}.{name}")


def test_paths_of_no_module() -> None:
    with pytest.raises(TreeparseError, match="'no_such_module' cannot be imported"):
        scorer_named("no_such_module.flat")
    for path in ("flat", ".flat", "mine."):
        with pytest.raises(TreeparseError, match="must be the dotted path of a function or class"):
            scorer_named(path)


def documented(sentence: str) -> str:
    """The block of the package's docstring behind a sentence."""
    pattern = re.escape(sentence) + r"[\s\S]*?::\n\n((?:(?: {4}.*)?\n)+)"
    found = re.search(pattern, f"{treeparse.rerank.__doc__}\n")
    assert found
    return textwrap.dedent(found[1])


def test_the_documented_scorer_runs_as_it_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    block = documented("A custom scorer reads")
    assert len([line for line in block.splitlines() if line.strip()]) <= 10
    (tmp_path / "mine.py").write_text(block, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    long_arc = ([9, *range(1, 9)], ["x"] * 9)
    assert long_arc[0][0] - 1 > 7
    chain = ([0, *range(1, 9)], ["x"] * 9)
    nbest: NBestList = nbest_list("abcdefghi", [(*long_arc, -1.0), (*chain, -1.2)])
    try:
        [found] = rerank([nbest], scorer_named("mine.flat"))
    finally:
        sys.modules.pop("mine", None)
    assert [parse.heads[0] for parse in found.parses] == [0, 9]
    assert [parse.score for parse in found.parses] == pytest.approx([-1.2, -1.5])
