"""Conformal thresholds: those of brute force, and promises that hold over many draws."""

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest

from treeparse.errors import TreeparseError
from treeparse.metrics import conformal_threshold, conformal_trees
from treeparse.metrics.conformal import PromiseFor

Held = tuple[list[list[float]], list[list[bool]]]


@pytest.mark.parametrize("alpha", ["0.05", "0.1", "0.3", "0.5", "0.99"])
@pytest.mark.parametrize("words", [1, 9, 10, 19, 99, 200])
def test_which_probability_it_is(alpha: str, words: int) -> None:
    """By exact fractions."""
    probs = np.random.default_rng(words).permutation(words) / words
    rank = math.floor(Fraction(alpha) * (words + 1))
    assert conformal_threshold(probs, float(alpha)) == (sorted(probs)[rank - 1] if rank else 0)


@pytest.mark.parametrize("alpha", [0.05, 0.1, 0.25])
def test_a_new_word_is_held_as_often_as_promised(alpha: float) -> None:
    """Whatever the law: over many draws of 39 words and a new one, from 1 - alpha to 1 - alpha + 1/40."""
    stream, times = np.random.default_rng(3), 20_000
    probs = stream.beta(4, 0.7, (times, 40))
    held = np.mean([row[-1] >= conformal_threshold(row[:-1], alpha) for row in probs])
    error = 4 * math.sqrt(alpha * (1 - alpha) / times)
    assert 1 - alpha - error < held < 1 - alpha + 1 / 40 + error


@pytest.mark.parametrize(
    ("probs", "alpha", "problem"),
    [([0.5], 0.0, "must be between 0 and 1, got 0.0"), ([], 0.1, "one or more"), ([1.2], 0.1, "one or")],
)
def test_thresholds_that_cannot_be(probs: list[float], alpha: float, problem: str) -> None:
    with pytest.raises(TreeparseError, match=problem):
        conformal_threshold(probs, alpha)


def drawn(seed: int, count: int, digits: int = 9) -> Held:
    """Sentences of 1 to 6 words, whose certainties fall as they do along a tree, and whether the words are right."""
    stream, certainties, right = np.random.default_rng(seed), [], []
    for _ in range(count):
        probs = np.sort(stream.beta(3, 0.5, stream.integers(1, 7)))[::-1]
        order = stream.permutation(len(probs))
        certainties.append(np.round(np.cumprod(probs), digits)[order].tolist())
        right.append((stream.random(len(probs)) < probs**2)[order].tolist())
    return certainties, right


def loss(certainties: Sequence[float], right: Sequence[bool], least: float, of: PromiseFor) -> float:
    """The loss of a sentence by its definition: for words, the highest share from any certainty from ``least`` on."""
    shares = [0.0]
    for level in (certainty for certainty in certainties if certainty >= least):
        kept = [outcome for certainty, outcome in zip(certainties, right, strict=True) if certainty >= level]
        shares.append(1 - sum(kept) / len(kept))
    return max(shares) if of == "words" else float(max(shares) > 0)


def allowed(errors: float, count: int, alpha: float, of: PromiseFor, delta: float | None) -> bool:
    """Whether the summed losses of held-out sentences allow the promise, by the formulas of the papers."""
    if delta is None:
        return (errors + 1) / (count + 1) <= alpha
    most = math.ceil(errors - 1e-9)
    tail = sum(math.comb(count, k) * alpha**k * (1 - alpha) ** (count - k) for k in range(most + 1))
    return (tail if of == "sentences" else math.e * tail) <= delta


@pytest.mark.parametrize("of", ["sentences", "words"])
@pytest.mark.parametrize("delta", [None, 0.1])
@pytest.mark.parametrize("alpha", [0.02, 0.11, 0.4, 0.9])
@pytest.mark.parametrize("count", [4, 60])
def test_the_least_certainty_that_the_sentences_allow(
    of: PromiseFor, delta: float | None, alpha: float, count: int
) -> None:
    """By brute force over all certainties, whose ties have all words or none."""
    certainties, right = drawn(count, count, digits=9 if of == "sentences" else 2)
    if of == "words":  # ties within a sentence are the case of rounding alone, in which the losses may be higher
        certainties = [[*dict.fromkeys(row)] if len({*row}) == len(row) else row[:1] for row in certainties]
        right = [row[: len(kept)] for row, kept in zip(right, certainties, strict=True)]
    found = conformal_trees(certainties, right, alpha, of=of, delta=delta)
    levels = sorted({0.0, math.inf, *(level for row in certainties for level in row)})
    expected = math.inf
    for least in reversed(levels):
        pairs = zip(certainties, right, strict=True)
        if not allowed(sum(loss(*pair, least, of) for pair in pairs), count, alpha, of, delta):
            break
        expected = least
    kept = [[level >= found for level in row] for row in certainties]
    assert kept == [[level >= expected for level in row] for row in certainties]


@pytest.mark.parametrize("of", ["sentences", "words"])
@pytest.mark.parametrize("alpha", [0.05, 0.2])
def test_new_sentences_are_as_right_as_promised(of: PromiseFor, alpha: float) -> None:
    """On average over draws of 29 sentences and a new one."""
    risks = []
    for seed in range(600):
        certainties, right = drawn(seed, 30)
        least = conformal_trees(certainties[:-1], right[:-1], alpha, of=of)
        risks.append(loss(certainties[-1], right[-1], least, of))
    error = 4 * np.std(risks) / math.sqrt(len(risks))
    assert alpha - 1 / 15 - error < np.mean(risks) < alpha + error


@pytest.mark.parametrize("of", ["sentences", "words"])
def test_but_for_a_share_of_draws(of: PromiseFor) -> None:
    """The risk of new sentences, by many of them, is above alpha for a share delta of the draws, at most."""
    alpha, delta, draws, above, average = 0.15, 0.2, 100, 0, 0
    certainties, right = drawn(0, 600)
    for seed in range(draws):
        held_out = drawn(seed + 1, 40)
        leasts = [conformal_trees(*held_out, alpha, of=of, delta=level) for level in (delta, None)]
        risks = [np.mean([loss(*pair, least, of) for pair in zip(certainties, right, strict=True)]) for least in leasts]
        above, average = above + (risks[0] > alpha), average + (risks[1] > alpha)
    assert above <= draws * delta + 4 * math.sqrt(draws * delta * (1 - delta)) < average


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (([[0.5]], [[True]], 1.0), "alpha, the share of errors, must be between 0 and 1, got 1.0"),
        (([[0.5]], [[False]], 0.1, 0.0), "delta, the share of draws without the promise, must be between"),
        (([], [], 0.1), "needs sentences, with a certainty and an outcome of every word"),
        (([[0.5, 0.4]], [[True]], 0.1), "needs sentences"),
        (([[1.5]], [[False]], 0.1), "probabilities, from 0 to 1"),
        (([[math.nan]], [[False]], 0.1), "probabilities, from 0 to 1"),
    ],
)
def test_promises_that_cannot_be(arguments: tuple[list[list[float]], list[list[bool]], float], problem: str) -> None:
    certainties, right, alpha, *delta = arguments
    with pytest.raises(TreeparseError, match=problem):
        conformal_trees(certainties, right, alpha, delta=next(iter(delta), None))
    with pytest.raises(TreeparseError, match="sentences or words, got 'heads'"):
        conformal_trees([[0.5]], [[True]], 0.1, of="heads")  # pyright: ignore[reportArgumentType]
