"""The temperatures of a parser: fitted by likelihood, saved with the model, and what they do to its distribution."""

import json
import math
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from helpers.parsers import CONFIG, random_parser
from helpers.sentences import learnable_sentences

from treeparse.errors import TreeparseError
from treeparse.model import Ensemble, Parse, Parser, ParserConfig
from treeparse.model.scorer import ScorerOutput
from treeparse.model.temperature import fit_temperatures, golden_section
from treeparse.sentence import Sentence

SENTENCES = learnable_sentences(8, seed=4, longest=4)


def at(arcs: float, labels: float = 1.0, config: ParserConfig = CONFIG) -> Parser:
    parser = random_parser(config)
    parser.config = replace(parser.config, temperature=arcs, label_temperature=labels)
    return parser


class Listed(NamedTuple):
    """All labelled trees of a sentence, and their log probabilities."""

    trees: list[Parse]
    log_probs: np.ndarray


def listed(sentence: Sentence, arcs: float, labels: float) -> Listed:
    """By the trained scores: trees to one power, the labels of each arc to another, each normalised."""
    parser = random_parser()
    [trees] = parser.kbest([sentence], 10**5)
    with torch.inference_mode():
        p = parser.distribution(parser.collate([sentence]))
        heads = torch.tensor([[-1, *tree.heads] for tree in trees]).unsqueeze(1)
        of_trees, rows = p.base.log_prob(heads)[:, 0].numpy() / arcs, p.labels.log_probs()[0].numpy() / labels
    distinct = dict(zip([tree.heads for tree in trees], of_trees, strict=True))
    of_trees = of_trees - np.logaddexp.reduce([*distinct.values()])
    rows = rows - np.logaddexp.reduce(rows, -1, keepdims=True)
    ids = [[parser.label_names.index(label) for label in tree.labels] for tree in trees]
    words = np.arange(1, len(sentence) + 1)
    of_labels = [rows[tree.heads, words, own].sum() for tree, own in zip(trees, ids, strict=True)]
    return Listed(trees, of_trees + of_labels)


@pytest.mark.parametrize(("arcs", "labels"), [(0.3, 1.0), (1.0, 2.0), (2.5, 0.6)])
def test_trees_and_labels_have_powers_of_their_own(arcs: float, labels: float) -> None:
    """Log probabilities, marginals, the entropy, the best tree and lists are those of a list of all labelled trees."""
    parser = at(arcs, labels)
    for sentence in SENTENCES[:3]:
        every, logs = listed(sentence, arcs, labels)
        probs = np.exp(logs)
        [found] = parser.kbest([sentence], 10**5)
        order = np.argsort(-logs, kind="stable")
        np.testing.assert_allclose([parse.log_prob for parse in found], logs[order], atol=1e-5)
        [parse] = parser.parse([sentence], probabilities=True)
        best = every[order[0]]
        assert (parse.heads, parse.labels) == (best.heads, best.labels)
        assert parse.entropy == pytest.approx(-(probs @ logs), abs=1e-5)
        rights = [np.array([tree.heads[word] == parse.heads[word] for tree in every]) for word in range(len(sentence))]
        assert parse.arc_probs == pytest.approx([probs @ right for right in rights], abs=1e-5)
        rights = [
            right & [tree.labels[word] == parse.labels[word] for tree in every] for word, right in enumerate(rights)
        ]
        assert parse.label_probs == pytest.approx([probs @ right for right in rights], abs=1e-5)


@pytest.mark.parametrize("labels", [1.0, 0.6])
def test_label_scores_in_a_tensor_have_the_rule_of_the_root_the_temperature_and_the_treebanks_labels(
    labels: float,
) -> None:
    parser = at(1.0, labels)
    batch, count = parser.collate(SENTENCES[:2]), len(parser.label_names)
    lengths, nodes = batch.lengths.tolist(), int(batch.lengths.max()) + 1
    scores = torch.randn(2, nodes, nodes, count, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    possible = torch.ones(2, count, dtype=torch.bool)
    possible[1, (parser.root_label + 1) % count] = False
    for mask in (None, possible):
        given = replace(batch, possible_labels=mask)
        found = parser.distribution(given, ScorerOutput(torch.zeros(2, nodes, nodes), scores)).labels.log_probs()
        for item, length in enumerate(lengths):
            for word, head in permutations(range(length + 1), 2):
                if not word:
                    continue
                allowed = torch.tensor([(head == 0) == (label == parser.root_label) for label in range(count)])
                allowed = allowed if mask is None else allowed & possible[item]
                weights = torch.where(allowed, (scores[item, head, word] / labels).exp(), 0.0)
                torch.testing.assert_close(found[item, head, word].exp(), weights / weights.sum())


def test_a_decoder_of_arcs_first_chooses_the_same_trees() -> None:
    cold, warm = (at(*temperatures).parse(SENTENCES, decoder="arcs_first") for temperatures in ((1, 1), (3, 0.4)))
    assert [(parse.heads, parse.labels) for parse in cold] == [(parse.heads, parse.labels) for parse in warm]


@pytest.mark.parametrize("combine", ["scores", "log_probs", "marginals"])
def test_one_parser_alone_or_twice_is_itself_at_its_temperatures(combine: Any) -> None:
    """But for log probabilities of trees where arcs are scored by their marginals."""
    warm = at(2.0, 0.7)
    for one, other in zip(warm.parse(SENTENCES), Ensemble([warm]).parse(SENTENCES), strict=True):
        assert other.log_prob == pytest.approx(one.log_prob)
    twice = Ensemble([warm, warm], combine)
    for sentence, parse in zip(SENTENCES, twice.parse(SENTENCES, probabilities=True), strict=True):
        [one] = warm.score_trees([sentence.with_tree(parse.heads, parse.labels)])
        ratio, expected = (np.divide(each.label_probs or (), each.arc_probs or ()) for each in (parse, one))
        np.testing.assert_allclose(ratio, expected, atol=1e-6)


def test_a_mixture_has_the_temperatures_of_each_parser() -> None:
    parsers = [at(0.8, 0.5), at(1.5, 2.0)]
    for parse, sentence in zip(
        Ensemble(parsers, "marginals").parse(SENTENCES, probabilities=True), SENTENCES, strict=True
    ):
        own = sentence.with_tree(parse.heads, parse.labels)
        alone = [parser.score_trees([own])[0].label_probs or () for parser in parsers]
        assert parse.label_probs == pytest.approx(np.mean(alone, axis=0), abs=1e-6)


def drawn(parser: Parser, count: int) -> list[Sentence]:
    """Sentences with trees that are drawn from the parser's own distributions."""
    lists = parser.sample(SENTENCES, count, seed=5)
    pairs = [(s, parse) for s, parses in zip(SENTENCES, lists, strict=True) for parse in parses]
    return [sentence.with_tree(parse.heads, parse.labels) for sentence, parse in pairs]


def mean_loss(parser: Parser, sentences: list[Sentence]) -> float:
    return -math.fsum(parse.log_prob for parse in parser.score_trees(sentences)) / sum(map(len, sentences))


@pytest.mark.parametrize(("arcs", "labels"), [(0.6, 1.6), (2.0, 0.8)])
def test_temperatures_are_found_at_which_trees_were_drawn(arcs: float, labels: float) -> None:
    """From others; there the loss is least, and what it is said to be."""
    sentences = drawn(at(arcs, labels), 60)
    parser = at(1.3, 0.8)
    before = mean_loss(parser, sentences)
    fits = fit_temperatures(parser, sentences, batch_words=200)
    assert fits.arcs is not None and fits.labels is not None
    assert fits.arcs.temperature == parser.config.temperature == pytest.approx(arcs, rel=0.1)
    assert fits.labels.temperature == parser.config.label_temperature == pytest.approx(labels, rel=0.1)
    assert (fits.sentences, fits.left_out) == (len(sentences), 0)
    words, roots = sum(map(len, sentences)), len(sentences)  # the label of the root's arc is no choice
    assert (fits.arcs.words, fits.labels.words) == (words, words - roots)
    shares = 1, (words - roots) / words
    assert before == pytest.approx(np.dot(shares, (fits.arcs.before, fits.labels.before)), abs=1e-6)
    least = mean_loss(parser, sentences)
    assert least == pytest.approx(np.dot(shares, (fits.arcs.after, fits.labels.after)), abs=1e-6)
    found = fits.arcs.temperature, fits.labels.temperature
    for factors in ((0.97, 1), (1.03, 1), (1, 0.97), (1, 1.03)):
        assert least < mean_loss(at(*np.multiply(found, factors).tolist()), sentences)


def test_scores_of_any_scale_are_fitted() -> None:
    """As those of perceptrons, whose scale is arbitrary."""
    sentences, parser = drawn(at(1.0), 20), random_parser()
    expected = fit_temperatures(random_parser(), sentences).arcs
    with torch.no_grad():
        for parameter in parser.scorer.arcs.parameters():  # pyright: ignore[reportAttributeAccessIssue]
            parameter *= 80
    found = fit_temperatures(parser, sentences).arcs
    assert found is not None and expected is not None
    assert found.temperature == pytest.approx(80 * expected.temperature, rel=5e-3)
    assert found.after == pytest.approx(expected.after, abs=1e-4)


def test_impossible_trees_are_left_out_and_unknown_labels_count_for_arcs_alone() -> None:
    sentences = drawn(at(1.0), 5)
    long = next(sentence for sentence in sentences if len(sentence) > 1)
    rootless = long.with_tree([0] * len(long), ["root"] * len(long))
    found, alone = fit_temperatures(at(1.0), [rootless, *sentences]), fit_temperatures(at(1.0), sentences)
    assert (found.left_out, found.sentences) == (1, len(sentences))
    assert (found.arcs, found.labels) == (alone.arcs, alone.labels)
    for label in ("unknown", "_"):
        bare = [sentence.with_tree(sentence.heads or (), [label] * len(sentence)) for sentence in sentences]
        found = fit_temperatures(parser := at(1.0, 0.7), bare)
        assert (found.arcs, found.labels, found.left_out) == (alone.arcs, None, 0)
        assert parser.config.label_temperature == 0.7
    with pytest.raises(TreeparseError, match="The model allows none of the trees that"):
        fit_temperatures(at(1.0), [rootless])
    with pytest.raises(TreeparseError, match="but there is no sentence"):
        fit_temperatures(at(1.0), [])
    with pytest.raises(TreeparseError, match="Sentence 1 has no tree"):
        fit_temperatures(at(1.0), [Sentence(("a",))])


def test_trees_without_probabilities_have_labels_to_fit() -> None:
    parser = random_parser(replace(CONFIG, trees="nonprojective_siblings", part_size=4))
    fits = fit_temperatures(parser, SENTENCES)
    assert fits.arcs is None and fits.labels is not None
    assert parser.config.temperature == 1 and parser.config.label_temperature == fits.labels.temperature


@pytest.mark.parametrize("least", [-1.9, 0.0, 0.37, 2.0])
def test_golden_sections(least: float) -> None:
    places = []

    def function(place: float) -> float:
        places.append(place)
        return abs(place - least) ** 1.5

    assert golden_section(function, -2.0, 2.0, 1e-3) == pytest.approx(least, abs=1e-3)
    assert len(places) <= 2 + math.ceil(math.log(4 / 1e-3) / math.log(1.618))


def test_they_are_saved(tmp_path: Path) -> None:
    parser = random_parser().float()
    parser.save_pretrained(tmp_path / "model")
    before = (tmp_path / "model" / "model.safetensors").read_bytes()
    parser.config = replace(parser.config, temperature=1.7, label_temperature=0.8)
    parser.save_config(tmp_path / "model")
    assert (tmp_path / "model" / "model.safetensors").read_bytes() == before
    assert Parser.from_pretrained(tmp_path / "model").config == parser.config
    path = tmp_path / "model" / "config.json"
    settings = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**settings, "label_temperature": "warm"}), encoding="utf-8")
    with pytest.raises(TreeparseError, match=r"(?s)label_temperature.*warm"):
        Parser.from_pretrained(tmp_path / "model")


@pytest.mark.parametrize("temperature", [0.0, -1.0, 1e-4, 1e4, math.nan])
@pytest.mark.parametrize("name", ["temperature", "label_temperature"])
def test_temperatures_that_are_none(name: str, temperature: float) -> None:
    with pytest.raises(TreeparseError, match=rf"{name} must be from 0.001 to 1000, got .*"):
        replace(random_parser().config, **{name: temperature})
