"""Probabilities of a parser's parses, against its distribution of all labelled trees, each by itself."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from helpers.parsers import random_parser
from helpers.sentences import learnable_sentences

from treeparse.errors import TreeparseError
from treeparse.model import Ensemble, Parse, Parser
from treeparse.names import DECODERS
from treeparse.sentence import Sentence

SENTENCES = learnable_sentences(6, seed=4, longest=4)


@pytest.fixture(scope="module")
def parser() -> Parser:
    return random_parser()


def enumerated(parser: Parser, sentence: Sentence) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Heads and labels of all labelled trees of a sentence, and their probabilities."""
    with torch.inference_mode():
        p = parser.distribution(parser.collate([sentence]))
        heads, labels = (part[:, 0, 1:].numpy() for part in p.enumerate_support())
        probs = p.log_prob(*p.enumerate_support())[:, 0].exp().numpy()
    assert probs.sum() == pytest.approx(1)
    return heads, labels, probs


def assert_probabilities(parse: Parse, names: Any, heads: np.ndarray, labels: np.ndarray, probs: np.ndarray) -> None:
    """Those of the parse are the sums over all trees that share an arc with it."""
    ids = [list(names).index(label) for label in parse.labels]
    arcs = heads == np.array(parse.heads)
    np.testing.assert_allclose(parse.arc_probs or (), probs @ arcs, atol=1e-7)
    np.testing.assert_allclose(parse.label_probs or (), probs @ (arcs & (labels == np.array(ids))), atol=1e-7)


@pytest.mark.parametrize("decoder", DECODERS)
def test_of_a_parser_by_enumeration(parser: Parser, decoder: Any) -> None:
    for sentence, parse in zip(SENTENCES, parser.parse(SENTENCES, decoder=decoder, probabilities=True), strict=True):
        heads, labels, probs = enumerated(parser, sentence)
        assert_probabilities(parse, parser.label_names, heads, labels, probs)
        assert parse.entropy == pytest.approx(-(probs @ np.log(probs)), abs=1e-6)


def test_nothing_else_changes_and_nothing_is_there_unasked(parser: Parser) -> None:
    bare, full = parser.parse(SENTENCES), parser.parse(SENTENCES, probabilities=True)
    for one, other in zip(bare, full, strict=True):
        assert (one.arc_probs, one.label_probs, one.entropy, one.expected_gradient) == (None,) * 4
        assert (one.heads, one.labels, one.log_prob, one.score) == (
            *(other.heads, other.labels),
            *(pytest.approx(other.log_prob, abs=1e-9), pytest.approx(other.score)),
        )


def expected_gradient(heads: np.ndarray, labels: np.ndarray, probs: np.ndarray) -> float:
    """The summed variances of all labelled arcs, word by word."""
    total = 0.0
    for word in np.stack([heads, labels], -1).swapaxes(0, 1):
        _, arc = np.unique(word, axis=0, return_inverse=True)
        marginals = np.bincount(arc.reshape(-1), probs)
        total += float(marginals @ (1 - marginals))
    return total


@pytest.mark.parametrize("combine", ["scores", "marginals"])
def test_expected_gradients_by_enumeration(parser: Parser, combine: Any) -> None:
    """Of a parser, and of two models as one, by the mean of whose marginals there is none."""
    other = random_parser_of_other_weights()
    alone, together = (model.parse(SENTENCES, gradient=True) for model in (parser, Ensemble([parser, other], combine)))
    for sentence, one, both in zip(SENTENCES, alone, together, strict=True):
        heads, labels, probs = enumerated(parser, sentence)
        assert one.expected_gradient == pytest.approx(expected_gradient(heads, labels, probs), abs=1e-6)
        assert one.entropy is None
        joint = np.sqrt(probs * enumerated(other, sentence)[2])
        expected = expected_gradient(heads, labels, joint / joint.sum())
        assert both.expected_gradient == (None if combine == "marginals" else pytest.approx(expected, abs=1e-6))


@pytest.mark.parametrize("combine", ["scores", "marginals"])
def test_of_an_ensemble(parser: Parser, combine: Any) -> None:
    """Of two models, one of which counts twice; the mean of marginals has no entropy that is known exactly."""
    parsers = [parser, random_parser_of_other_weights()]
    ensemble = Ensemble(parsers, combine)
    for sentence, parse in zip(SENTENCES, ensemble.parse(SENTENCES, probabilities=True), strict=True):
        heads, labels, _ = enumerated(parser, sentence)
        logs = np.log([enumerated(each, sentence)[2] for each in parsers])
        joint = np.exp(logs).mean(0) if combine == "marginals" else np.exp(logs.mean(0))
        joint /= joint.sum()
        assert_probabilities(parse, ensemble.label_names, heads, labels, joint)
        entropy = -(joint @ np.log(joint))
        assert parse.entropy is None if combine == "marginals" else parse.entropy == pytest.approx(entropy, abs=1e-6)


def test_given_trees_by_enumeration(parser: Parser) -> None:
    """Each sentence's own tree; several sentences, whose trees are those of their places."""
    for sentence, found in zip(SENTENCES, parser.score_trees(SENTENCES, batch_words=9), strict=True):
        heads, labels, probs = enumerated(parser, sentence)
        assert (found.heads, found.labels) == (sentence.heads, sentence.labels)
        assert_probabilities(found, parser.label_names, heads, labels, probs)
        ids = [parser.label_names.index(label) for label in found.labels]
        [own] = ((heads == found.heads) & (labels == ids)).all(-1).nonzero()[0]
        assert found.log_prob == pytest.approx(np.log(probs[own]), abs=1e-6)
        assert found.expected_errors == pytest.approx(len(sentence) - sum(found.label_probs or ()))


def test_given_trees_that_are_impossible(parser: Parser) -> None:
    """A label that the model does not know, and two roots: other words keep their probabilities."""
    sentence = Sentence(("Adj1", "Noun1", "Verb1"), heads=(2, 3, 0), labels=("amod", "nsubj", "root"))
    for model in (parser, Ensemble([parser, random_parser_of_other_weights()], "marginals")):
        unknown, roots = (
            replace(sentence, labels=("amod", "nsubj:x", "root")),
            sentence.with_tree((2, 0, 0), ["root"] * 3),
        )
        sound, odd, many = model.score_trees([sentence, unknown, roots])
        assert sound.log_prob > odd.log_prob == many.log_prob == -math.inf
        assert odd.labels == ("amod", "nsubj:x", "root")
        assert odd.arc_probs == pytest.approx(sound.arc_probs)
        found = [np.array(parse.label_probs) for parse in (sound, odd, many)]
        np.testing.assert_allclose(found[1], found[0] * [1, 0, 1], atol=1e-7)
        assert found[2][0] == 0 < found[2][1]


@pytest.mark.parametrize(
    ("sentence", "problem"),
    [
        (Sentence(("a", "b")), "Sentence 2 has no tree: it came without heads or labels"),
        (Sentence(("a", "b"), heads=(2, 1), labels=("x", "y")), "Sentence 2 has no tree: no word hangs from the root"),
        (
            Sentence(("a", "b"), heads=(-1, 0), labels=("x", "y")),
            "Sentence 2 has no tree: the head of word 1 must be from 0 to 2, got -1",
        ),
    ],
)
def test_sentences_without_trees_are_named(parser: Parser, sentence: Sentence, problem: str) -> None:
    with pytest.raises(TreeparseError, match=problem):
        parser.score_trees([SENTENCES[0], sentence])


def random_parser_of_other_weights() -> Parser:
    other = random_parser()
    torch.manual_seed(8)
    for parameter in other.scorer.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return other
