"""The temperature of a parser: fitted by likelihood, saved with the model, and no change to what is best."""

import json
import math
import operator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers.parsers import random_parser
from helpers.sentences import learnable_sentences

from treeparse.errors import TreeparseError
from treeparse.model import Ensemble, Parse, Parser
from treeparse.model.temperature import fit_label_temperature, fit_temperature, golden_section
from treeparse.names import DECODERS
from treeparse.sentence import Sentence

TREES_OF_THREE = [(0, 1, 1), (2, 0, 2), (3, 3, 0), (0, 1, 2), (0, 3, 1), (2, 3, 0), (3, 1, 0), (2, 0, 1), (3, 0, 2)]
SENTENCES = learnable_sentences(8, seed=4, longest=4)


def at(temperature: float) -> Parser:
    parser = random_parser()
    parser.config = replace(parser.config, temperature=temperature)
    return parser


def trees(parse: Parse) -> tuple[object, object]:
    return parse.heads, parse.labels


@pytest.mark.parametrize("temperature", [0.3, 2.5])
def test_the_best_trees_and_their_order_stay(temperature: float) -> None:
    """And their log probabilities are those of the power of the distribution, by its list of all labelled trees."""
    cold, warm = random_parser(), at(temperature)
    every = [cold.kbest([sentence], 10**5)[0] for sentence in SENTENCES[:3]]
    for sentence, expected in zip(SENTENCES, every, strict=False):
        [found] = warm.kbest([sentence], 10**5)
        assert [*map(trees, found)] == [*map(trees, expected)]
        logs = np.array([parse.score for parse in expected]) / temperature
        logs -= np.logaddexp.reduce(logs)
        np.testing.assert_allclose([parse.log_prob for parse in found], logs, atol=1e-6)
        [parse] = warm.parse([sentence], probabilities=True)
        assert parse.entropy == pytest.approx(-(np.exp(logs) @ logs), abs=1e-6)
        probs = [np.exp(logs) @ [other.heads[word] == head for other in found] for word, head in enumerate(parse.heads)]
        assert parse.arc_probs == pytest.approx(probs, abs=1e-6)
    for one, other in zip(cold.parse(SENTENCES), warm.parse(SENTENCES), strict=True):
        assert trees(one) == trees(other)
        assert other.score == pytest.approx(one.score / temperature)


def test_one_alone_as_an_ensemble_is_itself_at_its_temperature() -> None:
    warm = at(2.0)
    for one, other in zip(warm.parse(SENTENCES), Ensemble([warm]).parse(SENTENCES), strict=True):
        assert other.log_prob == pytest.approx(one.log_prob)


def drawn(parser: Parser, count: int) -> list[Sentence]:
    """Sentences with trees that are drawn from the parser's own distributions."""
    lists = parser.sample(SENTENCES, count, seed=5)
    pairs = [(s, parse) for s, parses in zip(SENTENCES, lists, strict=True) for parse in parses]
    return [sentence.with_tree(parse.heads, parse.labels) for sentence, parse in pairs]


def mean_loss(parser: Parser, sentences: list[Sentence]) -> float:
    return -math.fsum(parse.log_prob for parse in parser.score_trees(sentences)) / sum(map(len, sentences))


@pytest.mark.parametrize("temperature", [0.6, 2.0])
def test_the_temperature_is_found_at_which_trees_were_drawn(temperature: float) -> None:
    """From another one; there the loss is least, and what it is said to be."""
    sentences = drawn(at(temperature), 40)
    parser = at(1.3)
    fit = fit_temperature(parser, sentences, batch_words=200)
    assert fit.temperature == parser.config.temperature == pytest.approx(temperature, rel=0.1)
    assert (fit.sentences, fit.words, fit.left_out) == (len(sentences), sum(map(len, sentences)), 0)
    assert fit.before == pytest.approx(mean_loss(at(1.3), sentences), abs=1e-6)
    losses = [mean_loss(at(fit.temperature * factor), sentences) for factor in (0.98, 1.0, 1.02)]
    assert fit.after == pytest.approx(losses[1], abs=1e-6)
    assert losses[1] < min(losses[0], losses[2])


@pytest.mark.parametrize("label_temperature", [None, 0.7])
def test_fitting_the_temperature_of_trees_leaves_that_of_labels(label_temperature: float | None) -> None:
    parser = labels_at(label_temperature)
    before = label_probs(parser)
    assert fit_temperature(parser, drawn(at(2.0), 5)).temperature != pytest.approx(1.3, rel=0.1)
    assert label_probs(parser) == pytest.approx(before)


def test_impossible_trees_are_left_out() -> None:
    sentences = drawn(at(1.0), 5)
    odd = replace(sentences[0], labels=("unknown",) * len(sentences[0]))
    found = fit_temperature(at(1.0), [odd, *sentences])
    assert (found.left_out, found.sentences) == (1, len(sentences))
    assert found.temperature == pytest.approx(fit_temperature(at(1.0), sentences).temperature)
    with pytest.raises(TreeparseError, match="The model must allow the tree of a sentence, but allows none"):
        fit_temperature(at(1.0), [odd])


def labels_at(temperature: float | None, arcs: float = 1.3) -> Parser:
    parser = random_parser()
    parser.config = replace(parser.config, temperature=arcs, label_temperature=temperature)
    return parser


def label_probs(parser: Parser) -> list[float]:
    """P(label | arc) as it is written with the parses."""
    parses = parser.parse(SENTENCES, probabilities=True)
    pairs = [zip(parse.label_probs or (), parse.arc_probs or (), strict=True) for parse in parses]
    return [labeled / arc for pair in pairs for labeled, arc in pair]


def trained_log_probs(parser: Parser, sentence: Sentence, parse: Parse) -> list[np.ndarray]:
    """Log probabilities, as they were trained, of all labels at the arcs of a parse."""
    with torch.inference_mode():
        p = replaced(parser, 1.0).distribution(parser.collate([sentence]))
        rows = p.labels.log_probs()[0].numpy()
    return [rows[head, word] for word, head in enumerate(parse.heads, 1)]


def replaced(parser: Parser, temperature: float) -> Parser:
    parser.config = replace(parser.config, temperature=temperature)
    return parser


def test_written_probabilities_of_labels_have_a_temperature_of_their_own_and_nothing_else_does() -> None:
    """Trees, lists, samples and probabilities of arcs and trees are the same to the bit."""
    usual, apart = labels_at(None), labels_at(0.7)
    for one, other in zip(
        usual.parse(SENTENCES, probabilities=True, gradient=True, head_threshold=0.1),
        apart.parse(SENTENCES, probabilities=True, gradient=True, head_threshold=0.1),
        strict=True,
    ):
        assert one.label_probs != other.label_probs
        assert replace(one, label_probs=None) == replace(other, label_probs=None)
    for decoder in DECODERS:
        assert usual.parse(SENTENCES, decoder=decoder) == apart.parse(SENTENCES, decoder=decoder)
    assert usual.kbest(SENTENCES, 20) == apart.kbest(SENTENCES, 20)
    assert usual.sample(SENTENCES, 20, seed=3) == apart.sample(SENTENCES, 20, seed=3)
    distinct = [parser.sample(SENTENCES, 20, seed=3, replacement=False) for parser in (usual, apart)]
    assert distinct[0] == distinct[1]


def test_written_probabilities_of_labels_are_powers_of_the_trained_ones() -> None:
    parser = labels_at(0.7)
    parses = parser.parse(SENTENCES, probabilities=True)
    found = label_probs(parser)
    expected = []
    for sentence, parse in zip(SENTENCES, parses, strict=True):
        for row, label in zip(trained_log_probs(parser, sentence, parse), parse.labels, strict=True):
            weights = np.exp(row / 0.7)
            expected.append(weights[parser.label_names.index(label)] / weights.sum())
    assert found == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("combine", ["scores", "log_probs", "marginals"])
def test_models_of_one_label_temperature_have_it_together(combine: Any) -> None:
    alone, twice = labels_at(0.7, arcs=1.0), Ensemble([labels_at(0.7, arcs=1.0), labels_at(0.7, arcs=1.0)], combine)
    parses = alone.parse(SENTENCES, probabilities=True)
    together = twice.parse(SENTENCES, probabilities=True)
    usual = Ensemble([labels_at(None, arcs=1.0)] * 2, combine).parse(SENTENCES, probabilities=True)
    for one, other, plain in zip(parses, together, usual, strict=True):
        if trees(one) == trees(other):
            ratio, expected = (np.divide(each.label_probs or (), each.arc_probs or ()) for each in (other, one))
            np.testing.assert_allclose(ratio, expected, atol=1e-6)
        assert replace(other, label_probs=None) == replace(plain, label_probs=None)
        assert other.label_probs != plain.label_probs
    assert any(trees(one) == trees(other) for one, other in zip(parses, together, strict=True))


def test_models_of_different_label_temperatures_have_both() -> None:
    """By marginals each its own; elsewhere the geometric mean of the powers, which is 1 here."""
    parsers, usual = [labels_at(0.5, arcs=1.0), labels_at(2.0, arcs=1.0)], [labels_at(None, arcs=1.0)] * 2
    for parse, sentence in zip(
        Ensemble(parsers, "marginals").parse(SENTENCES, probabilities=True), SENTENCES, strict=True
    ):
        own = sentence.with_tree(parse.heads, parse.labels)
        alone = [parser.score_trees([own])[0].label_probs or () for parser in parsers]
        assert parse.label_probs == pytest.approx(np.mean(alone, axis=0), abs=1e-6)
    together, plain = (Ensemble(each).parse(SENTENCES, probabilities=True) for each in (parsers, usual))
    for one, other in zip(together, plain, strict=True):
        assert one.label_probs == pytest.approx(other.label_probs, abs=1e-6)


def with_drawn_labels(parser: Parser, temperature: float, count: int) -> list[Sentence]:
    """Sentences under the parser's own arcs, whose labels are drawn at a temperature."""
    stream, found = np.random.default_rng(2), []
    for sentence, parse in zip(SENTENCES, parser.parse(SENTENCES), strict=True):
        rows = [np.exp(row / temperature) for row in trained_log_probs(parser, sentence, parse)]
        for _ in range(count):
            labels = [stream.choice(parser.label_names, p=row / row.sum()) for row in rows]
            found.append(sentence.with_tree(parse.heads, [*map(str, labels)]))
    return found


@pytest.mark.parametrize("temperature", [0.5, 2.0])
def test_the_temperature_is_found_at_which_labels_were_drawn(temperature: float) -> None:
    """Where it is searched from another one; no other one of a grid has a lower loss."""
    parser = random_parser()
    sentences = with_drawn_labels(parser, temperature, 100)
    replaced(parser, 1.7)
    fit = fit_label_temperature(parser, sentences)
    assert fit is not None and fit.temperature == parser.config.label_temperature
    assert fit.temperature == pytest.approx(temperature, rel=0.15)
    assert parser.config.temperature == 1.7
    again = fit_label_temperature(parser, sentences)
    assert again is not None and again.before == pytest.approx(fit.after) == pytest.approx(again.after)
    assert again.temperature == pytest.approx(fit.temperature, rel=1e-2)
    grid = [loss_of_labels(parser, sentences, fit.temperature * factor) for factor in (0.5, 0.97, 1.03, 2.0)]
    assert fit.after == pytest.approx(loss_of_labels(parser, sentences, fit.temperature))
    assert fit.after <= min(grid) + 1e-5 and fit.after < fit.before


def loss_of_labels(parser: Parser, sentences: list[Sentence], temperature: float) -> float:
    """By the written probabilities of labels of right arcs, of which the root's is always 1."""
    parser.config = replace(parser.config, label_temperature=temperature)
    losses = []
    for sentence, parse in zip(sentences, parser.parse(sentences, probabilities=True), strict=True):
        given = np.divide(parse.label_probs or (), parse.arc_probs or ())
        right = np.array(sentence.labels) == np.array(parse.labels)
        losses += [-np.log(p if r else 1 - p) for p, r, head in zip(given, right, parse.heads, strict=True) if head]
    return float(np.mean(losses))


def test_labels_of_wrong_arcs_and_of_arcs_with_one_label_say_nothing() -> None:
    parser = random_parser()
    [parse] = parser.parse([["a", "b", "c"]])
    others = [tree for tree in TREES_OF_THREE if all(map(operator.ne, tree, parse.heads))]
    odd = Sentence(("a", "b", "c")).with_tree(others[0], ["root" if head == 0 else "det" for head in others[0]])
    assert fit_label_temperature(parser, [odd]) is None
    assert parser.config.label_temperature is None


@pytest.mark.parametrize("least", [-1.9, 0.0, 0.37, 2.0])
def test_golden_sections(least: float) -> None:
    places = []

    def function(place: float) -> float:
        places.append(place)
        return abs(place - least) ** 1.5

    assert golden_section(function, -2.0, 2.0, 1e-3) == pytest.approx(least, abs=1e-3)
    assert len(places) <= 2 + math.ceil(math.log(4 / 1e-3) / math.log(1.618))


def test_it_is_saved(tmp_path: Path) -> None:
    torch.manual_seed(1)
    parser = random_parser().float()
    parser.save_pretrained(tmp_path / "model")
    before = (tmp_path / "model" / "model.safetensors").read_bytes()
    parser.config = replace(parser.config, temperature=1.7)
    parser.save_config(tmp_path / "model")
    assert (tmp_path / "model" / "model.safetensors").read_bytes() == before
    found = Parser.from_pretrained(tmp_path / "model")
    assert found.config == parser.config


def test_the_temperature_of_labels_is_saved(tmp_path: Path) -> None:
    parser = labels_at(0.8)
    parser.float().save_pretrained(tmp_path / "model")
    assert Parser.from_pretrained(tmp_path / "model").config == parser.config
    path = tmp_path / "model" / "config.json"
    settings = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**settings, "label_temperature": "warm"}), encoding="utf-8")
    with pytest.raises(TreeparseError, match=r"(?s)label_temperature.*warm"):
        Parser.from_pretrained(tmp_path / "model")


@pytest.mark.parametrize("temperature", [0.0, -1.0, 1e-4, 1e4, math.nan])
def test_temperatures_that_are_none(temperature: float) -> None:
    with pytest.raises(TreeparseError, match=r"temperature must be from 0.001 to 1000, got .*"):
        replace(random_parser().config, temperature=temperature)
    with pytest.raises(TreeparseError, match=r"label_temperature must be from 0.001 to 1000, got .*"):
        replace(random_parser().config, label_temperature=temperature)


def test_trees_without_labels_fit_no_temperature() -> None:
    bare = SENTENCES[0].with_tree(SENTENCES[0].heads or (), ["_"] * len(SENTENCES[0]))
    for fit in (fit_temperature, fit_label_temperature):
        with pytest.raises(TreeparseError, match=r"trees with labels, but .* words with a head have no label"):
            fit(random_parser(), [*SENTENCES, bare])
