"""Which labels are taken for which, and scores by the length of arcs, counted by hand and word by word."""

import random

from treeparse.metrics.error_analysis import (
    Advantage,
    Confusion,
    DepthScore,
    advantages,
    arc_length_scores,
    depth_scores,
    label_confusions,
    wrong_words,
)
from treeparse.sentence import Sentence

GOLD = [
    Sentence(("a", "b", "c", "d"), heads=(2, 0, 2, 3), labels=("nsubj", "root", "obj", "acl:relcl")),
    Sentence(("e", "f"), heads=(0, 1), labels=("root", "obj")),
]
SYSTEM = [
    Sentence(("a", "b", "c", "d"), heads=(2, 0, 2, 2), labels=("nsubj", "root", "iobj", "acl")),
    Sentence(("e", "f"), heads=(2, 0), labels=("iobj", "root")),
]


def test_labels_that_are_confused() -> None:
    assert label_confusions(GOLD, SYSTEM) == [
        Confusion("obj", "iobj", 1, 1),
        Confusion("obj", "root", 1, 0),
        Confusion("root", "iobj", 1, 0),
    ]
    assert label_confusions(GOLD * 2, [*SYSTEM, *GOLD]) == label_confusions(GOLD, SYSTEM)
    assert label_confusions(GOLD, GOLD) == []


def test_the_most_frequent_come_first() -> None:
    gold = [Sentence(("x",) * 3, heads=(0, 1, 1), labels=("root", "obj", "obj"))]
    system = [Sentence(("x",) * 3, heads=(2, 0, 1), labels=("zz", "iobj", "iobj"))]
    assert [(each.gold, each.system, each.words, each.heads) for each in label_confusions(gold, system)] == [
        ("obj", "iobj", 2, 1),
        ("root", "zz", 1, 0),
    ]


def test_words_that_are_wrong() -> None:
    assert [wrong_words(*pair) for pair in zip(GOLD, SYSTEM, strict=True)] == [2, 2]
    assert wrong_words(GOLD[0], GOLD[0]) == 0


def test_arcs_by_their_length() -> None:
    stream = random.Random(3)
    gold, system = (
        [Sentence(("x",) * 20, heads=tuple(stream.choice([0, 21 - j, j - 1]) if j > 1 else 0 for j in range(1, 21)),
                  labels=("x",) * 20) for _ in range(10)]
        for _ in range(2)
    )  # fmt: skip
    bounds = {"1": (1, 1), "2": (2, 2), "3": (3, 3), "4-6": (4, 6), "7-10": (7, 10), "11+": (11, 99)}
    found = arc_length_scores(gold, system)
    assert set(found) <= {"root", *bounds}
    for name, score in found.items():
        least, most = bounds.get(name, (0, 0))
        arcs = [
            {(place, j, head) for place, s in enumerate(side) for j, head in enumerate(s.heads or (), 1)
             if (head == 0 if name == "root" else head and least <= abs(j - head) <= most)}
            for side in (gold, system)
        ]  # fmt: skip
        both = arcs[0] & arcs[1]
        assert (score.gold, score.system, score.correct) == (len(arcs[0]), len(arcs[1]), len(both))
        assert score.recall == len(both) / len(arcs[0]) and score.precision == len(both) / len(arcs[1])
    assert sum(score.gold for score in found.values()) == 200


def test_unknown_heads_are_no_arcs_of_the_system() -> None:
    system = [Sentence(("e", "f"), heads=(-1, 1), labels=("_", "obj"))]
    found = arc_length_scores(GOLD[1:], system)
    assert (found["root"].gold, found["root"].system, found["root"].precision) == (1, 0, 0.0)
    assert (found["1"].gold, found["1"].system, found["1"].recall) == (1, 1, 1.0)


def test_heads_by_the_depth_of_the_word() -> None:
    chain = Sentence(tuple("abcdefgh"), heads=(0, 1, 2, 3, 4, 5, 6, -1), labels=("x",) * 8)
    system = Sentence(tuple("abcdefgh"), heads=(0, 1, 1, 3, 4, 5, 5, 1), labels=("x",) * 8)
    right, wrong = DepthScore(1, 1), DepthScore(1, 0)
    expected = {"1": right, "2": right, "3": wrong, "4": right, "5": right}
    assert depth_scores([chain], [system]) == expected | {"6+": DepthScore(2, 1)}  # the last word's head is unknown


def test_without_a_gold_label_any_label_is_right() -> None:
    gold = [GOLD[0].with_tree(GOLD[0].heads or (), ("nsubj", "root", "_", "_"))]
    assert label_confusions(gold, SYSTEM[:1]) == []
    assert wrong_words(gold[0], SYSTEM[0]) == 1  # the head of d
    assert advantages(gold, GOLD[:1], SYSTEM[:1]) == [Advantage(0, 4, "_", "acl")]
    assert advantages(gold, GOLD[:1], SYSTEM[:1])[0].mistake == "_ at another head"
