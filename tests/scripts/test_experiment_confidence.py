"""The figures of confidence are made once, from a tiny treebank, and are what the library says."""

import json
from pathlib import Path

import pytest
from scripts.experiments import experiment_confidence

from treeparse.data import load_treebank
from treeparse.model import Parser
from treeparse.sentence import Sentence


def test_results_are_made_once(
    treebanks: Path, tiny_config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output, work = tmp_path / "results.jsonl", tmp_path / "work"
    arguments = ["--treebanks", str(treebanks), "--output", str(output), "--config", str(tiny_config)]
    arguments += ["--changed", "3", "--work", str(work)]
    experiment_confidence.main(arguments)
    shown = capsys.readouterr().out
    assert shown.count("epoch   1") == 1
    records = [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]
    assert [record["setting"] for record in records] == ["as trained", "calibrated", "suspects", "head sets"]
    parser = Parser.from_pretrained(work / "run" / "model")
    part = str(treebanks / experiment_confidence.EWT)
    dev, test = ([each.words for each in load_treebank(part.format(name))] for name in ("dev", "test"))
    assert records[0]["temperature"] == records[0]["label_temperature"] == 1
    config = parser.config
    assert (records[1]["temperature"], records[1]["label_temperature"]) == (
        config.temperature,
        config.label_temperature,
    )
    assert 1 not in (config.temperature, config.label_temperature)
    parses = parser.parse(test, probabilities=True)
    probs = [prob for parse in parses for prob in parse.arc_probs or ()]
    assert records[1]["arcs"]["confidence"] == pytest.approx(sum(probs) / len(probs), abs=1e-3)
    assert records[2]["words"] == sum(map(len, dev))
    assert records[3]["0.1"]["held"] == pytest.approx(
        share_held(Parser.from_pretrained(work / "run"), dev, test), abs=1e-3
    )
    assert records[3]["0.05"]["size"] >= records[3]["0.1"]["size"] >= 1
    assert 0.8 < records[3]["0.1"]["held_in_halves"] <= 1
    assert 0 <= records[2]["found_in_1"] <= records[2]["found_in_2"] <= 3

    experiment_confidence.main(arguments)
    again = capsys.readouterr().out
    assert "epoch" not in again
    assert again.strip() == shown[shown.index("| test set") :].strip()


def share_held(parser: Parser, dev: list[Sentence], test: list[Sentence]) -> float:
    """Of the heads of the test set: as probable as the lowest tenth of the dev set's is not, or those of the parse."""
    gold = sorted(prob for parse in parser.score_trees(dev) for prob in parse.arc_probs or ())
    threshold = gold[int(0.1 * (len(gold) + 1)) - 1]
    held = []
    for sentence, parse in zip(test, parser.parse(test), strict=True):
        marginals = parser.distribution(parser.collate([sentence])).arcs.batched.marginals[0]
        for word, (head, own) in enumerate(zip(sentence.heads or (), parse.heads, strict=True), 1):
            held.append(head == own or marginals[head, word].item() >= threshold)
    return sum(held) / len(held)
