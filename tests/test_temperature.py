"""The temperature of a parser: fitted by likelihood, saved with the model, and no change to what is best."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.parsers import random_parser
from helpers.sentences import learnable_sentences

from treeparse.errors import TreeparseError
from treeparse.model import Ensemble, Parse, Parser
from treeparse.model.temperature import fit_temperature, golden_section
from treeparse.sentence import Sentence

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


def test_impossible_trees_are_left_out() -> None:
    sentences = drawn(at(1.0), 5)
    odd = replace(sentences[0], labels=("unknown",) * len(sentences[0]))
    found = fit_temperature(at(1.0), [odd, *sentences])
    assert (found.left_out, found.sentences) == (1, len(sentences))
    assert found.temperature == pytest.approx(fit_temperature(at(1.0), sentences).temperature)
    with pytest.raises(TreeparseError, match="No tree of the sentences is possible"):
        fit_temperature(at(1.0), [odd])


@pytest.mark.parametrize("least", [-1.9, 0.0, 0.37, 2.0])
def test_golden_sections(least: float) -> None:
    places = []

    def function(place: float) -> float:
        places.append(place)
        return abs(place - least) ** 1.5

    assert golden_section(function, -2.0, 2.0, 1e-3) == pytest.approx(least, abs=1e-3)
    assert len(places) <= 2 + math.ceil(math.log(4 / 1e-3) / math.log(1.618))


def test_it_is_saved_and_models_of_before_have_none(tmp_path: Path) -> None:
    torch.manual_seed(1)
    parser = random_parser().float()
    parser.save_pretrained(tmp_path / "model")
    before = (tmp_path / "model" / "model.safetensors").read_bytes()
    parser.config = replace(parser.config, temperature=1.7)
    parser.save_config(tmp_path / "model")
    assert (tmp_path / "model" / "model.safetensors").read_bytes() == before
    found = Parser.from_pretrained(tmp_path / "model")
    assert found.config == parser.config
    path = tmp_path / "model" / "config.json"
    settings = json.loads(path.read_text(encoding="utf-8"))
    assert settings.pop("temperature") == 1.7
    path.write_text(json.dumps(settings), encoding="utf-8")
    assert Parser.from_pretrained(tmp_path / "model").config.temperature == 1


@pytest.mark.parametrize("temperature", [0.0, -1.0, 1e-4, 1e4, math.nan])
def test_temperatures_that_are_none(temperature: float) -> None:
    with pytest.raises(TreeparseError, match=r"temperature is .*, but must be from 0.001 to 1000"):
        replace(random_parser().config, temperature=temperature)
