"""Oracle scores against enumeration by hand and the ordinary scores."""

import math
import random

import pytest
from helpers.sentences import learnable_sentences

from treeparse.errors import TreeparseError
from treeparse.metrics import attachment_scores, oracle_scores
from treeparse.sentence import Sentence, tree_problem

GOLD = [
    Sentence(("a", "b", "c"), heads=(2, 0, 2), labels=("nsubj:pass", "root", "obj")),
    Sentence(("d",), heads=(0,), labels=("root",)),
]


def tree(words: Sentence, heads: tuple[int, ...], labels: str) -> Sentence:
    return Sentence(words.forms, heads=heads, labels=tuple(labels.split()))


FIRST = [
    tree(GOLD[0], (0, 1, 1), "root obj obj"),  # no head right
    tree(GOLD[0], (2, 0, 1), "nsubj root obj"),  # 2 heads, 2 labelled
    tree(GOLD[0], (0, 1, 1), "root obj obj"),  # the first again
    tree(GOLD[0], (2, 0, 2), "obj root iobj"),  # 3 heads, 1 labelled
    tree(GOLD[0], (2, 0, 2), "nsubj root obj"),  # all, by universal labels
]
LISTS = [FIRST, [tree(GOLD[1], (0,), "root")]]
LOG_PROBS = [[math.log(p) for p in (0.4, 0.2, 0.4, 0.125, 0.0625)], [0.0]]


def test_by_hand() -> None:
    found = oracle_scores(GOLD, LISTS, LOG_PROBS)
    assert [scores.size for scores in found] == [1, 2, 4, 5]
    assert [scores.trees for scores in found] == [1, 1.5, 2, 2.5]
    assert [scores.uas for scores in found] == [1 / 4, 3 / 4, 1, 1]
    assert [scores.las for scores in found] == [1 / 4, 3 / 4, 3 / 4, 1]
    assert [scores.complete_match for scores in found] == [0.5, 0.5, 0.5, 1]
    assert [scores.mass for scores in found] == pytest.approx([1.4 / 2, 1.6 / 2, 1.725 / 2, 1.7875 / 2])
    assert found[0].as_dict()["uas"] == 0.25
    assert {scores.mass for scores in oracle_scores(GOLD, LISTS)} == {None}


@pytest.mark.parametrize("longest", [1, 2, 3, 4, 8, 9])
def test_sizes_are_powers_of_two_and_the_longest(longest: int) -> None:
    lists = [[tree(GOLD[1], (0,), "root")] * length for length in (1, longest)]
    expected = [size for size in (1, 2, 4, 8) if size < longest] + [longest]
    assert [scores.size for scores in oracle_scores([GOLD[1]] * 2, lists)] == expected


def random_tree(words: Sentence, rng: random.Random) -> Sentence:
    while True:
        heads = tuple(rng.randint(0, len(words)) for _ in words.forms)
        if tree_problem(heads) is None:
            return words.with_tree(heads, rng.choices(["nsubj", "amod", "amod:x", "root"], k=len(words)))


def test_one_tree_gets_the_ordinary_scores_and_no_score_falls() -> None:
    rng = random.Random(5)
    gold = learnable_sentences(40, seed=3, longest=4)
    lists = [[random_tree(words, rng) for _ in range(rng.randint(1, 12))] for words in gold]
    found = oracle_scores(gold, lists, [[-3.0] * len(trees) for trees in lists])
    ordinary = attachment_scores(gold, [trees[0] for trees in lists])
    names = ("uas", "las", "complete_match")
    assert [getattr(found[0], name) for name in names] == [getattr(ordinary, name) for name in names]
    for name in (*names, "trees", "mass"):
        values = [getattr(scores, name) for scores in found]
        assert values == sorted(values) and values[0] < values[-1]
    for scores in found:  # each choice made by the ordinary scores of single sentences
        cut = [trees[: scores.size] for trees in lists]
        for name in ("uas", "las"):
            total = sum(
                len(g) * max(getattr(attachment_scores([g], [t]), name) for t in trees)
                for g, trees in zip(gold, cut, strict=True)
            )
            assert getattr(scores, name) == pytest.approx(total / sum(map(len, gold)))


@pytest.mark.parametrize(
    ("lists", "log_probs", "problem"),
    [
        ([FIRST, []], None, "Sentence 2: its list has no tree"),
        ([[*FIRST, GOLD[1]], LISTS[1]], None, "Sentence 1, tree 6: word 1 is 'a' in gold but 'd'"),
        ([[*FIRST, Sentence(GOLD[0].forms)], LISTS[1]], None, "Sentence 1, tree 6: the system's parse has no heads"),
        (LISTS, [[0.0] * 4, [0.0]], "log probabilities do not fit the lists"),
    ],
)
def test_faults(lists: list[list[Sentence]], log_probs: list[list[float]] | None, problem: str) -> None:
    with pytest.raises(TreeparseError, match=problem):
        oracle_scores(GOLD, lists, log_probs)


def test_nothing_to_score() -> None:
    assert oracle_scores([], []) == []


def test_words_without_a_gold_label_do_not_count_for_labels() -> None:
    half = [tree(GOLD[0], (2, 0, 2), "_ root obj"), GOLD[1]]
    scores = oracle_scores(half, LISTS)
    assert [row.las for row in scores] == [1 / 3, 2 / 3, 2 / 3, 1]
    assert {row.complete_match for row in scores} == {1}, "of the second sentence alone"
    bare = oracle_scores([tree(GOLD[0], (2, 0, 2), "_ _ _")], LISTS[:1])[-1]
    assert bare.uas == 1 and bare.as_dict()["las"] is bare.as_dict()["complete_match"] is None
