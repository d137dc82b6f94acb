"""The paired bootstrap: against a naive one, on equal and clearly unequal systems, and under the null hypothesis."""

import random
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from treeparse.errors import TreeparseError
from treeparse.metrics import Count, compare_counts, paired_bootstrap, sentence_counts
from treeparse.sentence import Sentence


def simulated(sentences: int, accuracies: tuple[float, float], seed: int) -> list[NDArray[np.int64]]:
    """Counts of two systems whose words are right independently, with the accuracies given."""
    rng = np.random.default_rng(seed)
    words = rng.integers(1, 25, sentences)
    systems = []
    for accuracy in accuracies:
        counts = np.zeros((sentences, len(Count)), dtype=np.int64)
        counts[:, Count.WORDS] = counts[:, Count.WITH_LABEL] = words
        counts[:, Count.HEADS] = rng.binomial(words, accuracy)
        counts[:, Count.LABELED] = rng.binomial(counts[:, Count.HEADS], 0.95)
        counts[:, Count.CONTENT_GOLD] = words // 2
        counts[:, Count.CONTENT_SYSTEM] = rng.binomial(words, 0.5)
        counts[:, Count.CONTENT_CORRECT] = np.minimum(counts[:, Count.CONTENT_SYSTEM], words // 2) // 2
        systems.append(counts)
    return systems


def test_equal_systems_have_p_value_one():
    counts, _ = simulated(50, (0.8, 0.8), seed=0)
    for comparison in compare_counts(counts, counts, resamples=500).values():
        assert comparison.p_value == comparison.p_value_one_sided == 1
        assert comparison.difference == comparison.low == comparison.high == 0


def test_a_clear_difference_is_significant_in_either_direction():
    worse, better = simulated(300, (0.80, 0.90), seed=1)
    upward, downward = compare_counts(worse, better)["uas"], compare_counts(better, worse)["uas"]
    assert upward.p_value == upward.p_value_one_sided == 1 / 10_001
    assert 0 < upward.low < upward.difference < upward.high
    # The same sentences are drawn, so swapping the systems mirrors everything.
    assert (downward.p_value, downward.p_value_one_sided) == (upward.p_value, upward.p_value_one_sided)
    assert downward.difference == -upward.difference
    assert downward.low == pytest.approx(-upward.high)


def test_the_seed_decides():
    systems = simulated(40, (0.8, 0.83), seed=2)
    first, again, other = (compare_counts(*systems, resamples=400, seed=seed)["uas"] for seed in (5, 5, 6))
    assert first == again
    assert first != other


def naive(systems: list[NDArray[np.int64]], resamples: int) -> dict[str, tuple[float, float, float, float]]:
    """Two-sided and one-sided p-value and interval by name, by plain loops over drawn sentences."""

    def scores(rows: NDArray[np.int64]) -> dict[str, float]:
        total = [sum(int(row[column]) for row in rows) for column in Count]
        content = total[Count.CONTENT_GOLD] + total[Count.CONTENT_SYSTEM]
        return {
            "uas": total[Count.HEADS] / total[Count.WORDS],
            "las": total[Count.LABELED] / total[Count.WORDS],
            "clas": 2 * total[Count.CONTENT_CORRECT] / content if content else 0.0,
        }

    def differences(drawn: list[int]) -> dict[str, float]:
        first, second = (scores(counts[drawn]) for counts in systems)
        return {name: second[name] - first[name] for name in first}

    rng = random.Random(7)
    everything = range(len(systems[0]))
    observed = differences(list(everything))
    drawn = [differences(rng.choices(everything, k=len(everything))) for _ in range(resamples)]
    results = {}
    for name, difference in observed.items():
        values = sorted(sample[name] for sample in drawn)
        two_sided = sum(abs(value - difference) >= abs(difference) for value in values) / resamples
        sign = 1 if difference > 0 else -1
        one_sided = sum(sign * (value - difference) >= sign * difference for value in values) / resamples
        tail = round(0.025 * resamples)
        results[name] = (two_sided, one_sided, values[tail], values[-tail])
    return results


def test_agreement_with_a_naive_bootstrap():
    systems = simulated(30, (0.80, 0.84), seed=3)
    expected = naive(systems, resamples=4000)
    comparisons = compare_counts(*systems, resamples=40_000)
    assert 0.02 < comparisons["uas"].p_value < 0.5  # a case that says something
    for name, comparison in comparisons.items():
        found = (comparison.p_value, comparison.p_value_one_sided, comparison.low, comparison.high)
        # Four standard errors of a share of 4,000 draws; the interval's ends are smoother.
        for value, reference, tolerance in zip(found, expected[name], (0.032, 0.032, 0.005, 0.005), strict=True):
            assert value == pytest.approx(reference, abs=tolerance)


def test_under_the_null_hypothesis_p_values_are_uniform():
    p_values = [
        compare_counts(*simulated(150, (0.85, 0.85), seed=seed), resamples=400)["uas"].p_value
        for seed in range(1000, 1400)
    ]
    for level in (0.05, 0.2, 0.5, 0.8):
        share = np.mean([p_value <= level for p_value in p_values])
        assert abs(share - level) < 4 * np.sqrt(level * (1 - level) / len(p_values))


def test_the_interval_holds_the_true_difference_as_often_as_it_says():
    held = 0
    for seed in range(300):
        comparison = compare_counts(*simulated(150, (0.80, 0.83), seed=seed), resamples=400, confidence=0.9)["uas"]
        held += comparison.low <= 0.03 <= comparison.high
    assert abs(held / 300 - 0.9) < 4 * np.sqrt(0.09 / 300)


def test_from_sentences_it_is_the_same_as_from_counts():
    gold = [Sentence(("a", "b", "c"), heads=(0, 1, 1), labels=("root", "obj", "obl"))] * 4
    first = [tree.with_tree((0, 1, 2), ("root", "obj", "obl")) for tree in gold]
    second = [*gold[:3], *first[3:]]
    comparisons = paired_bootstrap(gold, first, second, resamples=200, seed=1)
    counts = [sentence_counts(gold, system)[:, 0] for system in (first, second)]
    assert comparisons == compare_counts(*counts, resamples=200, seed=1)
    assert (comparisons["uas"].first, comparisons["uas"].second) == (2 / 3, 11 / 12)


def test_nothing_to_compare_is_an_error():
    with pytest.raises(TreeparseError, match="no sentence"):
        paired_bootstrap([], [], [])
    counts, _ = simulated(5, (0.8, 0.8), seed=0)
    options: list[dict[str, Any]] = [{"resamples": 0}, {"seed": -1}, {"confidence": 1.0}]
    for [(name, value)] in map(dict.items, options):
        with pytest.raises(TreeparseError, match=f"{name} {value}"):
            compare_counts(counts, counts, **{name: value})


def test_without_gold_labels_systems_differ_by_heads_alone() -> None:
    gold = [Sentence(("a", "b"), heads=(0, 1), labels=("_", "_"))]
    other = [Sentence(("a", "b"), heads=(2, 0), labels=("x", "y"))]
    comparison = paired_bootstrap(gold, gold, other, resamples=10)
    assert [*comparison] == ["uas"] and comparison["uas"].difference == -1
