"""The conformal threshold: which probability it is, and that sets hold the truth as often as they should."""

import math
from fractions import Fraction

import numpy as np
import pytest

from treeparse.errors import TreeparseError
from treeparse.metrics import conformal_threshold


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
def test_mistakes_become_sentences(probs: list[float], alpha: float, problem: str) -> None:
    with pytest.raises(TreeparseError, match=problem):
        conformal_threshold(probs, alpha)
