"""Training ends with the temperatures that fit the dev set, of any scorer, and says so."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from helpers.commands import Capture
from helpers.sentences import text_of

from treeparse import Parser, Sentence
from treeparse.data.conllu import load_treebank
from treeparse.training import load_config, train
from treeparse.training import run as runs

LINEAR = ["--model.scorer=LinearConfig", "--model.scorer.bits=14", "--model.scorer.label_bits=10"]
LEARNERS = {name: [*LINEAR, "--learning.epochs=2", f"--learning.algorithm={name}"] for name in ("perceptron", "mira")}
SPOILED = 6  # of 12 sentences of the dev set


def spoil(dev: Path) -> list[Sentence]:
    """Give half of the dev set wrong labels and arcs, so that the parser is too sure; return its sentences."""
    sentences = [sentence.words for sentence in load_treebank(dev)]
    for place, sentence in enumerate(sentences[:SPOILED]):
        words = len(sentence)
        heads, labels = [*range(2, words + 1), 0], ["amod"] * (words - 1) + ["root"]
        sentences[place] = sentence.with_tree(heads, labels)
    dev.write_text(text_of(sentences), encoding="utf-8")
    return sentences


def loss(parser: Parser, sentences: list[Sentence]) -> float:
    values = [parse.log_prob for parse in parser.score_trees(sentences)]
    return -math.fsum(value for value in values if value > -math.inf)


@pytest.mark.parametrize("options", [[], ["--model.trees=projective"], *LEARNERS.values()])
def test_no_temperatures_near_them_fit_the_dev_set_better(options: list[str], tiny_config: Path) -> None:
    dev = spoil(tiny_config.with_name("dev.conllu"))
    parser = Parser.from_pretrained(train(load_config(tiny_config, options), quiet=True))
    assert 1 not in (parser.config.temperature, parser.config.label_temperature)
    config, least = parser.config, loss(parser, dev)
    for factors in ((0.95, 1), (1.05, 1), (1, 0.95), (1, 1.05)):
        arcs, labels = np.multiply((config.temperature, config.label_temperature), factors).tolist()
        parser.config = replace(config, temperature=arcs, label_temperature=labels)
        assert loss(parser, dev) > least


def test_a_run_says_what_it_fitted(tiny_config: Path, capsys: Capture) -> None:
    config = Parser.from_pretrained(train(load_config(tiny_config, ["--optimization.epochs=1"]))).config
    shown = capsys.readouterr().out
    assert f"probabilities fitted to the dev set: temperature {config.temperature} of arcs (loss a word" in shown
    assert f", {config.label_temperature} of labels (loss a word" in shown
    card = (tiny_config.parent / "run" / "model" / "README.md").read_text(encoding="utf-8")
    assert f"temperature {config.temperature} of arcs, {config.label_temperature} of labels" in card


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (
            ["--data.dev=null", "--data.dev_share=0"],
            ", without a dev set: treeparse calibrate MODEL DEV fits them",
        ),
        (
            ["--model.trees=projective"],
            ". The model allows none of the trees that its temperatures are",
        ),
    ],
)
def test_a_run_that_cannot_fit_them_says_why(
    options: list[str], reason: str, tiny_config: Path, capsys: Capture
) -> None:
    crossing = Sentence(("a", "b", "c", "d"), upos=("X",) * 4).with_tree([3, 4, 0, 3], ["x", "y", "root", "z"])
    tiny_config.with_name("dev.conllu").write_text(text_of([crossing]), encoding="utf-8")
    model = train(load_config(tiny_config, ["--optimization.epochs=1", *options]))
    assert f"probabilities stay as trained{reason}" in capsys.readouterr().out
    config = Parser.from_pretrained(model).config
    assert (config.temperature, config.label_temperature) == (1, 1)


def test_many_dev_sentences_are_thinned_out(
    tiny_config: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    fitted: list[int] = []
    fit = runs.fit_temperatures
    monkeypatch.setattr(runs, "ENOUGH_WORDS", 20)
    monkeypatch.setattr(runs, "fit_temperatures", lambda parser, dev: fitted.append(len(dev)) or fit(parser, dev))
    train(load_config(tiny_config, ["--optimization.epochs=1"]), quiet=True)
    dev = load_treebank(tiny_config.with_name("dev.conllu"))
    assert fitted == [math.ceil(len(dev) / (1 + sum(len(sentence.words) for sentence in dev) // 20))]
