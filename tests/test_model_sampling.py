"""Parser.sample: the laws of its trees by enumeration, what is said about each, and what a list depends on."""

import math
import random
from dataclasses import replace
from functools import partial
from typing import Any, cast

import numpy as np
import pytest
import torch
from helpers.chi_square import LIMIT, chi_square_z
from helpers.commands import assert_refused
from helpers.drawn_orders import assert_sequence_law
from helpers.parsers import CONFIG, TRAINING, random_parser, same_lists

from treeparse.errors import TreeparseError
from treeparse.model import Parse, Parser
from treeparse.model.inference import parsing
from treeparse.names import Decoder
from treeparse.sentence import Sentence, nonprojective_words

WORDS = sorted({form for sentence in TRAINING for form in sentence.forms})
SENTENCES = [
    Sentence(tuple(random.Random(number).choices(WORDS, k=length))) for number, length in enumerate([3, 1, 4, 9, 2, 30])
]

DECODERS = pytest.mark.parametrize("decoder", ["nonprojective", "projective"])


Tree = tuple[tuple[int, ...], tuple[str, ...]]


@torch.no_grad()
def law_of(
    parser: Parser, sentence: Sentence, temperature: float, decoder: Decoder
) -> tuple[dict[Tree, int], np.ndarray, np.ndarray]:
    """The places of all labelled trees of a decoder, their log probabilities at a temperature, and their scores."""
    distribution = parser.distribution(parser.collate([sentence]))
    heads, labels = distribution.enumerate_support()
    scores = (distribution.log_prob(heads, labels) + distribution.log_partition).flatten().numpy()
    names = parser.indexer.labels.items
    trees = [
        (tuple(row), tuple(names[label] for label in columns))
        for row, columns in zip(heads[:, 0, 1:].tolist(), labels[:, 0, 1:].tolist(), strict=True)
    ]
    kept = [place for place, (row, _) in enumerate(trees) if decoder != "projective" or not nonprojective_words(row)]
    logs = scores[kept] / temperature
    return {trees[old]: new for new, old in enumerate(kept)}, logs - np.logaddexp.reduce(logs), scores[kept]


def places_of(parses: list[Parse], places: dict[Tree, int]) -> np.ndarray:
    return np.array([places[parse.heads, parse.labels] for parse in parses])


@pytest.mark.parametrize(
    ("decoder", "temperature", "single_root"),
    [
        ("nonprojective", 1.0, True),
        ("nonprojective", 0.6, False),
        ("projective", 4.0, True),
        ("projective", 1.0, False),
    ],
)
def test_trees_follow_the_law(decoder: Decoder, temperature: float, single_root: bool) -> None:
    parser = random_parser(replace(CONFIG, single_root=single_root))
    for sentence in SENTENCES[:3]:
        places, log_probs, scores = law_of(parser, sentence, temperature, decoder)
        [parses] = parser.sample([sentence], 8_000, seed=1, temperature=temperature, decoder=decoder)
        found = places_of(parses, places)
        assert abs(chi_square_z(np.bincount(found, minlength=len(places)), np.exp(log_probs))) < LIMIT
        np.testing.assert_allclose([parse.log_prob for parse in parses], log_probs[found], atol=1e-9)
        np.testing.assert_allclose([parse.score for parse in parses], scores[found], atol=1e-9)


@pytest.mark.parametrize(
    ("decoder", "temperature"), [("nonprojective", 1.0), ("nonprojective", 0.6), ("projective", 4.0)]
)
def test_different_trees_follow_the_law(decoder: Decoder, temperature: float) -> None:
    """Every place of the list has a stream of its own: the first two trees of many equal sentences."""
    parser = random_parser()
    for sentence in (SENTENCES[0], SENTENCES[4]):
        places, log_probs, scores = law_of(parser, sentence, temperature, decoder)
        options: dict[str, Any] = {"temperature": temperature, "decoder": decoder, "replacement": False}
        lists = parser.sample([sentence] * 4_000, 2, **options)
        found = np.array([places_of(parses, places) for parses in lists])
        assert_sequence_law(found, log_probs)
        for figure, expected in (("log_prob", log_probs), ("score", scores)):
            figures = [[getattr(parse, figure) for parse in parses] for parses in lists]
            np.testing.assert_allclose(figures, expected[found], rtol=0, atol=1e-9)


@DECODERS
def test_without_replacement_each_tree_comes_once(decoder: Decoder) -> None:
    parser = random_parser()
    lists = parser.sample(SENTENCES[:5], 50, replacement=False, decoder=decoder)
    for sentence, parses in zip(SENTENCES, lists, strict=False):
        assert len({(parse.heads, parse.labels) for parse in parses}) == len(parses)
        if len(sentence) < 4:
            assert len(parses) == len(law_of(parser, sentence, 1.0, decoder)[0])
            assert np.exp([parse.log_prob for parse in parses]).sum() == pytest.approx(1)
        else:
            assert len(parses) == 50
    [[only]] = parser.sample([["Verb1"]], 10**12, replacement=False, decoder=decoder)
    assert (only.heads, only.labels, only.log_prob) == ((0,), ("root",), 0)


@pytest.mark.parametrize("replacement", [True, False])
@DECODERS
def test_a_list_depends_on_its_place_and_seed_alone(
    replacement: bool, decoder: Decoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    parser = random_parser()
    options: dict[str, Any] = {"replacement": replacement, "decoder": decoder, "seed": 5, "temperature": 1.5}
    expected = parser.sample(SENTENCES, 12, **options)
    assert [parse.tokens for [parse, *_] in expected] == [sentence.forms for sentence in SENTENCES]
    for place, sentence in enumerate(SENTENCES):
        assert same_lists(parser.sample([sentence], 12, first=place, **options), expected[place : place + 1])
    assert same_lists(parser.sample(SENTENCES[2:], 12, first=2, **options), expected[2:])
    places = [2, 0]
    assert same_lists(
        parser.sample([SENTENCES[place] for place in places], 12, first=places, **options),
        [expected[place] for place in places],
    )
    assert same_lists(parser.sample(SENTENCES, 12, batch_words=1, **options), expected)
    few = parser.sample(SENTENCES, 5, **options)
    assert same_lists(few, [parses[:5] for parses in expected])
    monkeypatch.setattr(parsing, "LABEL_SCORES", 1)
    assert same_lists(parser.sample(SENTENCES, 12, **options), expected)
    monkeypatch.undo()
    others: list[dict[str, Any]] = [{"seed": 6}, {"first": 1}, {"seed": 2**40 + 5}]
    for other in others:
        assert not same_lists(parser.sample(SENTENCES[-1:], 12, **{**options, **other}), expected[-1:])


@pytest.mark.parametrize("replacement", [True, False])
def test_labels_are_summed_in_slices_too(replacement: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    parser = random_parser()
    expected = parser.sample(SENTENCES, 4, replacement=replacement)
    monkeypatch.setattr("treeparse.trees.labels.label_sums.SLICE", 1)
    assert same_lists(parser.sample(SENTENCES, 4, replacement=replacement), expected)


def test_the_torch_seed_does_not_matter() -> None:
    parser = random_parser()
    expected = parser.sample(SENTENCES, 3)
    torch.manual_seed(99)
    state = torch.get_rng_state()
    assert parser.sample(SENTENCES, 3, seed=0, first=0) == expected
    assert torch.equal(torch.get_rng_state(), state)


def test_decoders_say_which_trees_are_drawn() -> None:
    parser = random_parser(replace(CONFIG, decoder="projective"))
    by_default, projective, every, cautious = (
        parser.sample(SENTENCES, 20, decoder=decoder)
        for decoder in (None, "projective", "nonprojective", "minimum_risk")
    )
    assert by_default == projective
    assert every == cautious
    assert not any(nonprojective_words(parse.heads) for parses in projective for parse in parses)
    assert any(nonprojective_words(parse.heads) for parses in every for parse in parses)
    cautious_parser = random_parser(replace(CONFIG, decoder="minimum_risk"))
    assert cautious_parser.sample(SENTENCES, 20) == every


def test_scores_are_the_models_at_every_temperature() -> None:
    parser = random_parser()
    words = SENTENCES[3:4]
    [best] = parser.parse(words)
    [[cold]] = parser.sample(words, 1, temperature=1e-6)
    assert replace(cold, log_prob=0) == replace(best, log_prob=0, score=cold.score)
    assert cold.score == pytest.approx(best.score)
    assert cold.log_prob == pytest.approx(0, abs=1e-8)  # the last bit of a score over the temperature is worth 4e-9
    [hot] = parser.sample(words, 40, temperature=1e300)
    # At first there are the trees of 9 words with one root; then 1 label for the arc from it, 2 for others.
    assert [parse.log_prob for parse in hot] == pytest.approx([-np.log(9**8 * 2**8)] * 40)
    assert max(parse.score for parse in hot) < best.score
    known = {(parse.heads, parse.labels): parse.score for parse in parser.kbest(SENTENCES[:1], 50)[0]}
    for parse in parser.sample(SENTENCES[:1], 40, temperature=3.0)[0]:
        assert parse.score == pytest.approx(known[parse.heads, parse.labels])


def test_impossible_wishes_are_refused() -> None:
    parser = random_parser()
    sample, unknown = partial(parser.sample, [["a"]]), cast(Any, "finest")
    heat = "The temperature must be finite and at least 1e-06, got"
    assert_refused(
        (lambda: sample(1, decoder=unknown), "Unknown decoder 'finest'"),
        (lambda: sample(0), "k must be 1 or more, got 0"),
        (lambda: sample(-1), "k must be 1 or more, got -1"),
        *((lambda t=t: sample(1, temperature=t), f"{heat} {t}") for t in (0.0, -1.0, 1e-7, math.inf, math.nan)),
        (lambda: sample(1, seed=-1), "seed must be 0 or more, got -1"),
        (lambda: sample(1, first=-1), "index of a sentence must be 0 or more, got -1"),
        (lambda: sample(1, first=[0, 1]), "1 sentences came with 2 indices"),
        (lambda: sample(10**9), "1000000000 trees of 1 words are too many: ask for 134217728 or fewer"),
        (lambda: parser.sample([["a"] * 16], 10**9, replacement=False), "1000000000 trees of 16 words are too many"),
        (lambda: parser.sample([["a"], []], 1), r"Sentence 1 \(counted from 0\) has no words"),
    )
    options: list[dict[str, Any]] = [{"k": 2}, {"seed": 1}, {"replacement": False}, {"temperature": 2.0}]
    for option in options:
        with pytest.raises(TreeparseError, match=f"{next(iter(option))} is an option of .*sample, not of parse"):
            parser.parse([["a"]], **option)
    assert parser.sample([], 3) == []


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("decoder", ["nonprojective", "projective"])
def test_a_gpu_agrees_with_the_cpu(decoder: Decoder) -> None:
    parser = random_parser()
    expected = parser.sample(SENTENCES, 20, decoder=decoder)
    parser.cuda()
    assert same_lists(parser.sample(SENTENCES, 20, decoder=decoder), expected)
    for parses in parser.sample(SENTENCES, 20, replacement=False, decoder=decoder):
        assert len({(parse.heads, parse.labels) for parse in parses}) == len(parses)


@pytest.mark.parametrize("replacement", [True, False])
@DECODERS
def test_at_a_low_temperature_large_scores_give_the_best_tree(decoder: Decoder, replacement: bool) -> None:
    parser = random_parser(CONFIG)
    with torch.no_grad():
        parser.get_parameter("scorer.arcs.weight").mul_(1e4)
    options: dict[str, Any] = {"decoder": decoder, "replacement": replacement}
    [[parse]] = parser.sample(SENTENCES[:1], 1, **options, temperature=1e-6)
    [best] = parser.parse(SENTENCES[:1], decoder=decoder)
    assert (parse.heads, parse.labels) == (best.heads, best.labels)
