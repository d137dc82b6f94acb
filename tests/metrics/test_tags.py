"""Scores of tags against the official scorer (udtools), in its counts."""

import io
import random
from dataclasses import replace

import pytest
from udtools import udeval

from treeparse.metrics import tag_scores
from treeparse.metrics.tags import TAG_SCORES, UNIVERSAL_FEATURES
from treeparse.sentence import Sentence

UPOS, XPOS = ["NOUN", "VERB", "_"], ["NN", "VB:x", "_"]
FEATS = ["_", "Case=Nom|Number=Sing", "Number=Sing|Case=Nom", "Case=Nom|Number=Sing|Typo=Yes", "Number[psor]=Sing"]


def sentences(seed: int, count: int = 12) -> list[Sentence]:
    """Words of random tags; the lengths do not depend on the seed."""
    stream = random.Random(seed)
    found = []
    for number in range(count):
        words = range(1 + number % 5)
        upos, xpos, feats = (tuple(stream.choice(choices) for _ in words) for choices in (UPOS, XPOS, FEATS))
        heads = tuple(range(len(words)))
        found.append(Sentence(tuple(f"w{word}" for word in words), upos, xpos, feats, heads, ("dep",) * len(words)))
    return found


def conllu(side: list[Sentence]) -> str:
    blocks = []
    for s in side:
        empty = ("_",) * len(s)
        columns = zip(s.forms, s.upos or empty, s.xpos or empty, s.feats or empty, s.heads or (), strict=True)
        rows = (f"{n}\t{w}\t_\t{u}\t{x}\t{f}\t{h}\tdep\t_\t_\n" for n, (w, u, x, f, h) in enumerate(columns, 1))
        blocks.append("".join(rows).replace("0\tdep", "0\troot") + "\n")
    return "".join(blocks)


def official(gold: list[Sentence], system: list[Sentence]) -> dict[str, float]:
    scores = udeval.evaluate(*(udeval.load_conllu(io.StringIO(conllu(side)), "memory", {}) for side in (gold, system)))
    return {name: scores[title].f1 for name, title in TAG_SCORES.items()}


@pytest.mark.parametrize("seed", range(10))
def test_all_columns(seed: int) -> None:
    gold, system = sentences(seed), sentences(seed + 100)
    assert tag_scores(gold, system) == pytest.approx(official(gold, system))
    assert tag_scores(gold, gold) == dict.fromkeys(TAG_SCORES, 1.0)


@pytest.mark.parametrize("lacking", [("xpos",), ("upos", "feats"), ("xpos", "feats")])
def test_columns_that_neither_has(lacking: tuple[str, ...]) -> None:
    """As None on one side and ``_`` on the other."""
    gold = [replace(s, **{column: ("_",) * len(s) for column in lacking}) for s in sentences(1)]
    system = [replace(s, **dict.fromkeys(lacking)) for s in sentences(2)]
    found, expected = tag_scores(gold, system), official(gold, system)
    columns = {"upos": "upos", "xpos": "xpos", "ufeats": "feats"}
    assert found.keys() == {"all_tags", *(name for name, column in columns.items() if column not in lacking)}
    assert found == pytest.approx({name: expected[name] for name in found})


def test_columns_that_one_side_lacks() -> None:
    gold, system = sentences(1), [replace(s, xpos=None, feats=None) for s in sentences(2)]
    assert tag_scores(gold, system) == {"upos": pytest.approx(official(gold, system)["upos"])}
    assert tag_scores(system, gold).keys() == {"upos"}
    bare = [Sentence(s.forms) for s in gold]
    assert tag_scores(gold, bare) == tag_scores(bare, bare) == {}


def test_features_are_those_of_the_official_scorer() -> None:
    assert set(udeval.UNIVERSAL_FEATURES) == UNIVERSAL_FEATURES
