"""The expected LAS and UAS of a list's parses, against sums over pairs of parses."""

import math
import random
from collections.abc import Sequence

import pytest
from helpers.nbest_lists import nbest_list, random_list

from treeparse.data.parses import NBestList, Parse
from treeparse.errors import TreeparseError
from treeparse.rerank import ExpectedAccuracy


def right_words(parse: Parse, gold: Parse, metric: str) -> int:
    rows = zip(parse.heads, parse.labels, gold.heads, gold.labels, strict=True)
    return sum(h == g and (metric == "uas" or a.split(":")[0] == b.split(":")[0]) for h, a, g, b in rows)


def expected(nbest: NBestList, weights: Sequence[float], metric: str) -> list[float]:
    """By brute force: every parse against every other as if that were gold."""
    pairs = [[right_words(parse, gold, metric) for gold in nbest.parses] for parse in nbest.parses]
    return [sum(w * right for w, right in zip(weights, row, strict=True)) / len(nbest.tokens) for row in pairs]


@pytest.mark.parametrize("metric", ["las", "uas"])
@pytest.mark.parametrize("seed", range(5))
def test_scores_are_expectations_over_the_list(metric: str, seed: int) -> None:
    nbest = random_list(6, 9, random.Random(seed))
    probs = [math.exp(parse.log_prob - 2) for parse in nbest.parses]  # any scale: they are renormalised
    shares = [prob / sum(probs) for prob in probs]
    assert len({(p.heads, p.labels) for p in nbest.parses}) == 9
    found = ExpectedAccuracy(metric)(nbest)  # type: ignore[arg-type]
    assert found == pytest.approx(expected(nbest, shares, metric))


def test_draws_count_the_same_where_a_tree_comes_again() -> None:
    one, two = ((0, 1), ("root", "obj"), math.log(0.9)), ((2, 0), ("nsubj", "root"), math.log(0.01))
    drawn = nbest_list("ab", [two, one, two])
    assert ExpectedAccuracy()(drawn) == pytest.approx([2 / 3, 1 / 3, 2 / 3])
    assert ExpectedAccuracy(weights="probabilities")(drawn) == pytest.approx([1 / 91, 90 / 91, 1 / 91])
    different = nbest_list("ab", [two, one])
    assert ExpectedAccuracy()(different) == pytest.approx([1 / 91, 90 / 91])
    assert ExpectedAccuracy(weights="draws")(different) == pytest.approx([1 / 2, 1 / 2])


def test_scores_of_another_scorer_in_the_place_of_log_probabilities() -> None:
    nbest = random_list(5, 6, random.Random(7))
    scores = [math.log(weight) for weight in (1, 2, 3, 4, 5, 5)]
    found = ExpectedAccuracy("uas", scorer=lambda _: scores)(nbest)
    assert found == pytest.approx(expected(nbest, [weight / 20 for weight in (1, 2, 3, 4, 5, 5)], "uas"))
    again = nbest_list("ab", [((0, 1), ("root", "obj"), -1.0)] * 3 + [((2, 0), ("obj", "root"), -1.0)])
    assert ExpectedAccuracy(scorer=lambda _: [0.0] * 4)(again) == pytest.approx([1 / 2] * 4)


def test_labels_count_without_subtypes() -> None:
    nbest = nbest_list("ab", [((0, 1), ("root", "nmod"), -1.0), ((0, 1), ("root", "nmod:poss"), -1.0)])
    assert ExpectedAccuracy()(nbest) == pytest.approx([1.0, 1.0])


def test_improbable_lists_do_not_underflow() -> None:
    nbest = nbest_list("ab", [((0, 1), ("root", "obj"), -2000.0), ((2, 0), ("obj", "root"), -2001.0)])
    share = 1 / (1 + math.exp(-1))
    assert ExpectedAccuracy()(nbest) == pytest.approx([share, 1 - share])


def test_unknown_choices() -> None:
    with pytest.raises(TreeparseError, match=r"Unknown metric 'lass': choose one of las, uas; did you mean las\?"):
        ExpectedAccuracy("lass")  # type: ignore[arg-type]
    with pytest.raises(TreeparseError, match="Unknown weighting 'same'"):
        ExpectedAccuracy(weights="same")  # type: ignore[arg-type]
    with pytest.raises(TreeparseError, match="cannot be combined with a scorer"):
        ExpectedAccuracy(weights="draws", scorer=lambda nbest: [0.0])
