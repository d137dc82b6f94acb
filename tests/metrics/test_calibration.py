"""Calibration errors against a loop over words; sets of heads hold the truth as often as they should."""

import numpy as np
import pytest

from treeparse.errors import TreeparseError
from treeparse.metrics import Calibration, calibration, parse_calibration
from treeparse.sentence import Sentence


def error_by_loops(groups: list[list[tuple[float, bool]]]) -> float:
    total = sum(map(len, groups))
    distances = [abs(sum(prob for prob, _ in group) - sum(right for _, right in group)) for group in groups if group]
    return sum(distances) / total


@pytest.mark.parametrize("bins", [1, 4, 15])
@pytest.mark.parametrize("words", [1, 3, 200])
def test_errors_by_loops(bins: int, words: int) -> None:
    stream = np.random.default_rng(words)
    probs = stream.choice([0.0, 0.25, 0.5, 1.0, *stream.random(20)], words)
    right = stream.random(words) < probs**2
    pairs = [*zip(probs.tolist(), right.tolist(), strict=True)]
    found = calibration(probs, right, bins=bins)
    wide: list[list[tuple[float, bool]]] = [[] for _ in range(bins)]
    for prob, is_right in pairs:
        place = next(place for place in range(bins) if place == bins - 1 or prob < (place + 1) / bins)
        wide[place].append((prob, is_right))
    assert found.ece == pytest.approx(error_by_loops(wide))
    order = sorted(range(words), key=lambda place: (pairs[place][0], place))
    equal: list[list[tuple[float, bool]]] = [[] for _ in range(bins)]
    for rank, place in enumerate(order):
        equal[rank * bins // words].append(pairs[place])
    assert found.ece_mass == pytest.approx(error_by_loops(equal))
    assert found.brier == pytest.approx(sum((prob - is_right) ** 2 for prob, is_right in pairs) / words)
    assert (found.confidence, found.accuracy) == pytest.approx((probs.mean(), right.mean()))
    assert [(bin.low, bin.high, bin.words) for bin in found.bins] == [
        (pytest.approx(place / bins), pytest.approx((place + 1) / bins), len(group))
        for place, group in enumerate(wide)
        if group
    ]
    for bin, group in zip(found.bins, filter(None, wide), strict=True):
        assert (bin.confidence, bin.accuracy) == pytest.approx(tuple(np.mean(group, 0)))


def test_words_that_come_true_as_often_as_said_have_little_error() -> None:
    """Drawn by their probabilities, the error is that of sampling; by their square roots it is E|p - sqrt(p)|."""
    stream = np.random.default_rng(1)
    probs = stream.random(40_000)
    true, sure = (calibration(probs, stream.random(len(probs)) < chance) for chance in (probs, np.sqrt(probs)))
    assert true.ece < 0.01 and true.ece_mass < 0.01
    assert sure.ece == pytest.approx(2 / 3 - 1 / 2, abs=0.01)
    assert true.brier == pytest.approx(1 / 2 - 1 / 3, abs=0.005)


def sentence(heads: list[int], labels: list[str]) -> Sentence:
    return Sentence(tuple("abc"[: len(heads)]), heads=tuple(heads), labels=tuple(labels))


def test_what_counts_as_right() -> None:
    gold = [sentence([2, 0, 2], ["acl:relcl", "root", "obj"]), sentence([0], ["root"])]
    system = [sentence([2, 0, 1], ["acl", "root", "obj"]), sentence([0], ["root"])]
    found = parse_calibration(gold, system, [[0.9, 0.8, 0.7], [1.0]], [[0.45, 0.6, 0.7], [1.0]], bins=4)
    assert figures(found["arcs"]) == pytest.approx((4, 3.4 / 4, 3 / 4))
    assert figures(found["labels"]) == pytest.approx((3, (0.5 + 0.75 + 1) / 3, 2 / 3))
    assert figures(found["labeled_arcs"]) == pytest.approx((4, 2.75 / 4, 2 / 4))
    none = parse_calibration(gold[:1], [sentence([0, 1, 1], ["root", "a", "b"])], [[0.5] * 3], [[0.5] * 3])
    assert none.keys() == {"arcs", "labeled_arcs"}


def figures(found: Calibration) -> tuple[float, float, float]:
    return found.words, found.confidence, found.accuracy


@pytest.mark.parametrize(
    ("probs", "right", "problem"),
    [([], [], "of every word"), ([0.5], [True, False], "of every word"), ([np.nan], [True], "from 0 to 1")],
)
def test_what_is_no_probability(probs: list[float], right: list[bool], problem: str) -> None:
    with pytest.raises(TreeparseError, match=problem):
        calibration(probs, right)
    with pytest.raises(TreeparseError, match="bins"):
        calibration([0.5], [True], bins=0)


def test_words_without_a_gold_label_count_for_arcs_alone() -> None:
    system = Sentence(("a", "b", "c"), heads=(2, 0, 2), labels=("det", "root", "obj"))
    probs = [[0.5, 0.75, 1.0]], [[0.25, 0.75, 0.5]]
    half = parse_calibration([system.with_tree((2, 0, 2), ("_", "root", "obj"))], [system], *probs)
    assert [(name, part.words, part.accuracy) for name, part in half.items()] == [
        ("arcs", 3, 1),
        ("labels", 2, 1),
        ("labeled_arcs", 2, 1),
    ]
    bare = parse_calibration([system.with_tree((2, 0, 2), ("_",) * 3)], [system], *probs)
    assert [*bare] == ["arcs"] and bare["arcs"] == half["arcs"]
