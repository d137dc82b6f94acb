"""The figures of confidence are made once, from a tiny treebank, and are what the library says."""

import json
from pathlib import Path

import experiment_confidence
import pytest
from helpers.sentences import learnable_sentences

from treeparse.data import load_treebank
from treeparse.model import Parser
from treeparse.model.temperature import fit_label_temperature, fit_temperature
from treeparse.sentence import Sentence, tree_problem


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
    assert records[0]["temperature"] == 1
    assert records[1]["temperature"] == pytest.approx(fit_temperature(parser, dev).temperature, rel=1e-2)
    labels = fit_label_temperature(parser, dev)
    assert labels is not None and records[1]["label_temperature"] == pytest.approx(labels.temperature, rel=1e-2)
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
        marginals = parser.distribution(parser.collate([sentence])).arcs.flat.marginals[0]
        for word, (head, own) in enumerate(zip(sentence.heads or (), parse.heads, strict=True), 1):
            held.append(head == own or marginals[head, word].item() >= threshold)
    return sum(held) / len(held)


def test_wrong_heads_are_other_heads_of_trees() -> None:
    gold = learnable_sentences(30, seed=2)
    sentences, changed = experiment_confidence.with_wrong_heads(gold, 20, seed=1)
    assert len(changed) == 20
    differ = set()
    for place, (before, after) in enumerate(zip(gold, sentences, strict=True)):
        assert before.heads is not None and after.heads is not None
        assert tree_problem(after.heads) is None
        assert after.labels == before.labels
        differ |= {(place, w) for w, pair in enumerate(zip(before.heads, after.heads, strict=True)) if len({*pair}) > 1}
    assert differ == changed
    assert experiment_confidence.with_wrong_heads(gold, 20, seed=1)[1] == changed
    assert experiment_confidence.with_wrong_heads(gold, 20, seed=2)[1] != changed


def test_labels_with_a_temperature_of_their_own_in_tables() -> None:
    figures = {"confidence": 0.9, "accuracy": 0.8, "ece": 0.1, "ece_mass": 0.11, "brier": 0.07}
    record = {"setting": "calibrated", "temperature": 1.62, "label_temperature": 0.9}
    record |= dict.fromkeys(experiment_confidence.KINDS, figures)
    found = {"setting": "suspects", "changed": 1, "words": 10, "found_in_1": 1, "found_in_2": 1}
    sets = {"held": 0.95, "error": 0.001, "size": 1.5, "held_in_halves": 0.9}
    lines = list(experiment_confidence.tables([record, found, {"0.05": sets, "0.1": sets}]))
    assert [line.split(" | ")[1] for line in lines[2:5]] == ["1.62", "0.90", "1.62, 0.90"]


def test_tables_by_hand() -> None:
    figures = {"confidence": 0.9, "accuracy": 0.8, "ece": 0.1, "ece_mass": 0.11, "brier": 0.07}
    parts = dict.fromkeys(("arcs", "labels", "labeled_arcs"), figures)
    records = [
        {"setting": "as trained", "temperature": 1.0, **parts},
        {"setting": "calibrated", "temperature": 1.62, **parts},
        {"setting": "suspects", "changed": 200, "words": 25_000, "found_in_1": 90, "found_in_2": 120},
        {
            "setting": "head sets",
            **{alpha: {"held": 0.95, "error": 0.001, "size": 1.5, "held_in_halves": 0.9} for alpha in ("0.05", "0.1")},
        },
    ]
    lines = list(experiment_confidence.tables(records))
    assert lines[2] == "| arcs, as trained | 1.00 | 90.00 | 80.00 | 10.00 | 11.00 | 0.0700 |"
    assert lines[7] == "| arcs and labels, calibrated | 1.62 | 90.00 | 80.00 | 10.00 | 11.00 | 0.0700 |"
    assert lines[-2:] == [
        "| 95% | 95.00 ± 0.10 | 1.50 | 90.00 |",
        "| 90% | 95.00 ± 0.10 | 1.50 | 90.00 |",
    ]
    assert lines[9:11] == [
        "Of 200 changed heads 90 (45.0%) are among the 200 least probable of 25,000; by chance 0.8%.",
        "Of 200 changed heads 120 (60.0%) are among the 400 least probable of 25,000; by chance 1.6%.",
    ]
