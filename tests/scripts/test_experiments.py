"""Experiments are made once, from a tiny treebank: what is missing is trained, and figures are those of the library."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from helpers.commands import Capture
from helpers.parsers import random_parser
from helpers.pretrained import bert_folder
from helpers.sentences import learnable_sentences, text_of
from scripts.experiments import (
    experiment_annotation,
    experiment_confidence,
    experiment_ensemble,
    experiment_linear,
    experiment_partial,
    experiment_pretrained,
    experiment_rerank,
)

from treeparse.data import load_treebank
from treeparse.metrics import attachment_scores
from treeparse.model import Ensemble, Parser
from treeparse.sentence import Sentence


def test_confidence_is_measured_once(treebanks: Path, tiny_config: Path, tmp_path: Path, capsys: Capture) -> None:
    output, work = tmp_path / "results.jsonl", tmp_path / "work"
    arguments = ["--treebanks", str(treebanks), "--output", str(output), "--config", str(tiny_config)]
    arguments += ["--changed", "3", "--work", str(work)]
    experiment_confidence.main(arguments)
    shown = capsys.readouterr().out
    assert shown.count("epoch   1") == 1
    records = [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]
    assert [record["setting"] for record in records] == [*experiment_confidence.SETTINGS]
    parser = Parser.from_pretrained(work / "run" / "model")
    part = str(treebanks / experiment_confidence.EWT)
    dev, test = ([each.words for each in load_treebank(part.format(name))] for name in ("dev", "test"))
    assert records[0]["temperature"] == records[0]["label_temperature"] == 1
    fitted = parser.config.temperature, parser.config.label_temperature
    assert (records[1]["temperature"], records[1]["label_temperature"]) == fitted and 1 not in fitted
    parses = parser.parse(test, probabilities=True)
    probs = [prob for parse in parses for prob in parse.arc_probs or ()]
    assert records[1]["arcs"]["confidence"] == pytest.approx(sum(probs) / len(probs), abs=1e-3)
    assert records[2]["words"] == sum(map(len, dev))
    assert records[3]["0.1"]["held"] == pytest.approx(
        share_held(Parser.from_pretrained(work / "run"), dev, test), abs=1e-3
    )
    assert records[3]["0.05"]["size"] >= records[3]["0.1"]["size"] >= 1
    assert 0.8 < records[3]["0.1"]["held_in_halves"] <= 1
    assert all(0.8 < records[4][f"{of} 0.1"]["right"][0] <= 1 for of in ("sentences", "words"))
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


def test_ensembles_are_compared_once(
    treebanks: Path, tiny_config: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    for options in ("CONTINUING", "CONTINUING_WITH_TEXT"):
        monkeypatch.setitem(vars(experiment_ensemble)[options], "optimization.epochs", 1)
    tiny_config.write_text(tiny_config.read_text(encoding="utf-8").replace("epochs: 3", "epochs: 1"), encoding="utf-8")
    output, models = tmp_path / "results.jsonl", tmp_path / "models"
    arguments = ["--treebanks", str(treebanks), "--config", str(tiny_config), "--output", str(output)]
    arguments += ["--models", str(models), "--seeds", "1", "2", "--settings"]
    experiment_ensemble.main([*arguments, "scores"])
    assert "epoch   1" in capsys.readouterr().out
    assert [folder.name for folder in sorted(models.iterdir())] == ["config-1", "config-2"]
    with pytest.raises(SystemExit, match="needs it: name the file as --text"):
        experiment_ensemble.main([*arguments, experiment_ensemble.WITH_TEXT])
    assert not capsys.readouterr().out.count("epoch   1")
    (text := tmp_path / "text.txt").write_text("adj1 noun2 verb3\n" * 9, encoding="utf-8")
    experiment_ensemble.main([*arguments, *experiment_ensemble.SETTINGS, "--text", str(text)])
    shown = capsys.readouterr().out
    assert shown.count("epoch   1") == 3  # of the last three alone
    records = [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]
    runs = [(record["setting"], record["seeds"]) for record in records]
    both = [(name, [1, 2]) for name in experiment_ensemble.SETTINGS[2:]]
    assert runs == [("scores", [1, 2]), ("one model", [1]), ("one model", [2]), *both]

    gold = [sentence.words for sentence in load_treebank(treebanks / "UD_English-EWT" / "en_ewt-ud-test.conllu")]
    folders = [models / f"config-{seed}" / "model" for seed in (1, 2)]
    for record in records:
        parser = {
            "one model": lambda seeds=record["seeds"]: Parser.from_pretrained(folders[seeds[0] - 1]),
            "distilled": lambda: Parser.from_pretrained(models / "config-distilled" / "model"),
            "distilled, from the first one on": lambda: Parser.from_pretrained(models / "config-continued" / "model"),
            experiment_ensemble.WITH_TEXT: lambda: Parser.from_pretrained(models / "config-text" / "model"),
        }.get(record["setting"], lambda how=record["setting"]: Ensemble.from_pretrained(folders, how))()
        pairs = zip(gold, parser.parse(gold), strict=True)
        scores = attachment_scores(gold, [sentence.with_tree(parse.heads, parse.labels) for sentence, parse in pairs])
        assert (record["uas"], record["las"]) == pytest.approx((scores.uas, scores.las), abs=1e-6)
    settings = yaml.safe_load((models / "config-distilled" / "config.yaml").read_text(encoding="utf-8"))
    [divergence, likelihood] = settings["objective"]["init_args"]["terms"]
    teacher = divergence["objective"]["init_args"]["reference"]["init_args"]
    assert teacher["models"] == list(map(str, folders))
    assert likelihood["objective"]["class_path"] == "treeparse.objectives.TreeLikelihood"
    with_text = yaml.safe_load((models / "config-text" / "config.yaml").read_text(encoding="utf-8"))
    assert [with_text[key] for key in ("objective", "init_from")] == [settings["objective"], str(folders[0])]
    assert with_text["data"]["unlabelled"] == str(text)
    configs = [Parser.from_pretrained(folder).config for folder in (models / "config-distilled", folders[0])]
    distilled, teacher = (replace(config, temperature=1.0, label_temperature=1.0, promises={}) for config in configs)
    assert distilled == teacher

    experiment_ensemble.main([*arguments, *experiment_ensemble.SETTINGS])
    again = capsys.readouterr().out
    assert "seeds 1" not in again
    assert again.strip() == shown[shown.index("| parser") :].strip()


def test_linear_models_are_compared_once(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(
        experiment_linear.METHODS, "perceptron", ("linear", {"learning.epochs": 1, "model.scorer.bits": 12})
    )
    files = tmp_path / "treebanks" / "UD_Maltese-MUDT"
    files.mkdir(parents=True)
    for seed, part in enumerate(("train", "dev", "test")):
        text = text_of(learnable_sentences(20, seed=seed))
        (files / f"mt_mudt-ud-{part}.conllu").write_text(text, encoding="utf-8")
    output = tmp_path / "runs.jsonl"
    options = ["Maltese", "--methods", "perceptron", "--output", str(output), "--treebanks", str(files.parent)]
    for _ in range(2):
        experiment_linear.main([*options, "--threads", "1"])
    [record] = map(json.loads, output.read_text(encoding="utf-8").splitlines())
    assert record["words_per_second"] > 0 and record["dev_uas"] > 0.5
    rows = capsys.readouterr().out.splitlines()
    assert rows[-2].startswith(f"| Maltese | perceptron | {100 * record['dev_uas']:.2f} |")
    assert rows[-1] == "| Maltese | UDPipe 1.2, published | | | 82.2 | 77.9 | | |"


SMALL = {"optimization.epochs": 1, "data.batch_words": 60, "model.arc_size": 8, "model.label_size": 4}
SMALL |= {"model.encoder.mixed_layers": 2, "trainer.accelerator": "cpu"}


def test_pretrained_encoders_are_compared_once(
    treebanks: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = experiment_pretrained.SETTINGS
    for name in list(settings):
        config, options = settings[name]
        sizes = {key: 8 for key in ("model.encoder.hidden_size", "model.encoder.char_filters") if key in options}
        sizes |= {"model.encoder.hidden_size": 8} if config == "frozen" else {}
        monkeypatch.setitem(settings, name, (config, {**options, **SMALL, **sizes}))
    folder, work, output = bert_folder(tmp_path / "small-bert"), tmp_path / "work", tmp_path / "results.jsonl"
    arguments = ["--treebanks", str(treebanks), "--output", str(output), "--work", str(work), "--seeds", "2"]
    arguments += ["--model", str(folder)]
    experiment_pretrained.main(arguments)
    shown = capsys.readouterr().out
    assert shown.count("epoch   1") == len(settings)
    records = [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]
    assert [record["setting"] for record in records] == list(settings)
    assert {(record["seed"], record["model"]) for record in records} == {(2, "small-bert")}
    gold = [sentence.words for sentence in load_treebank(treebanks / "UD_English-EWT" / "en_ewt-ud-test.conllu")]
    for record in records:
        parser = Parser.from_pretrained(work / f"{record['setting']}-2".replace(" ", "_").replace(",", "") / "model")
        pairs = zip(gold, parser.parse(gold), strict=True)
        scores = attachment_scores(gold, [sentence.with_tree(parse.heads, parse.labels) for sentence, parse in pairs])
        assert (record["uas"], record["las"]) == pytest.approx((scores.uas, scores.las), abs=1e-6)
    experiment_pretrained.main(arguments)
    again = capsys.readouterr().out
    assert "epoch" not in again
    assert again.strip() == shown[shown.index("| encoder") :].strip()


def test_reranking_is_measured_once(treebanks: Path, tiny_config: Path, tmp_path: Path, capsys: Capture) -> None:
    output = tmp_path / "results.jsonl"
    options = [
        *("--treebanks", treebanks, "--output", output, "--work", tmp_path / "work", "--config", tiny_config),
        *("--folds", 2, "--train-k", 4, "-k", 4, "--lists", "best", "samples", "--seeds", 1),
    ]
    experiment_rerank.main([*map(str, options)])
    records = [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]
    chosen = [(each["lists"], each["chosen_by"]) for each in records]
    best = ["oracle", "expected las", "parser", "global", "global, expected las"]
    assert chosen == [*(("best", by) for by in best), *(("samples", by) for by in best if by != "parser")]
    oracle, own = records[0]["oracle"], records[2]
    assert [each["size"] for each in oracle] == [1, 2, 4]
    assert oracle[0]["las"] == own["las"] <= oracle[-1]["las"]
    assert all(own["las"] - 1 <= each["las"] <= oracle[-1]["las"] for each in records[1:5])
    before, shown = output.read_bytes(), capsys.readouterr().out
    experiment_rerank.main([*map(str, options)])
    assert output.read_bytes() == before
    again = capsys.readouterr().out
    assert again in shown and "| K best | global | 1 |" in again and "| 4 | " in again


def test_half_of_the_heads_are_hidden(treebanks: Path, tmp_path: Path) -> None:
    data = experiment_partial.settings_of(experiment_partial.HEADS, treebanks, tmp_path / "data")
    whole = load_treebank(treebanks / "UD_English-EWT" / "en_ewt-ud-train.conllu")
    partial = load_treebank(str(data["data.train"]), partial=True)
    pairs = [
        pair
        for ours, theirs in zip(partial, whole, strict=True)
        for pair in zip(ours.words.heads or (), ours.words.labels or (), theirs.words.heads or (), strict=True)
    ]
    assert all((head, label != "_") in ((-1, False), (gold, True)) for head, label, gold in pairs)
    hidden = sum(head == -1 for head, _, _ in pairs)
    assert abs(hidden / len(pairs) - 0.5) < 4 * 0.5 / len(pairs) ** 0.5
    assert [s.words.forms for s in partial] == [s.words.forms for s in whole]


def test_every_second_sentence_is_left_out(treebanks: Path, tmp_path: Path) -> None:
    data = experiment_partial.settings_of(experiment_partial.SENTENCES, treebanks, tmp_path / "data")
    whole = load_treebank(treebanks / "UD_English-EWT" / "en_ewt-ud-train.conllu")
    assert [s.words for s in load_treebank(str(data["data.train"]))] == [s.words for s in whole[::2]]


def test_partial_trees_are_compared_once(treebanks: Path, tiny_config: Path, tmp_path: Path, capsys: Capture) -> None:
    output = tmp_path / "runs.jsonl"
    arguments = ["--treebanks", str(treebanks), "--config", str(tiny_config), "--output", str(output)]
    arguments += ["--settings", experiment_partial.HEADS]
    experiment_partial.main(arguments)
    [record] = [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]
    assert record["setting"] == experiment_partial.HEADS
    shown = capsys.readouterr().out
    assert "epoch   3" in shown
    assert f"| {100 * record['uas']:.2f} | {100 * record['las']:.2f} |" in shown
    experiment_partial.main(arguments)
    assert "epoch" not in capsys.readouterr().out


def test_an_annotator_clicks_at_each_wrong_word(tmp_path: Path, capsys: Capture) -> None:
    """As one does who reads the sentences from the left, one after the other, with the parser at hand."""
    parser, clicks = random_parser(), {"anew": 0, "once": 0}
    gold = learnable_sentences(12, seed=6)
    for sentence in gold:
        right = [*zip(sentence.heads or (), sentence.labels or (), strict=True)]
        [first] = parser.parse([sentence.without_tree()])
        clicks["once"] += sum(
            arc != own for arc, own in zip(right, zip(first.heads, first.labels, strict=True), strict=True)
        )
        for word in range(len(right)):
            rest = len(right) - word
            known = [*right[:word], *[(-1, "_")] * rest]
            heads, labels = zip(*known, strict=True)
            [parse] = parser.parse([sentence.with_tree(heads, labels)], keep_heads=True)
            clicks["anew"] += (parse.heads[word], parse.labels[word]) != right[word]
    assert experiment_annotation.clicks_anew(parser, gold, parser.label_names, by_doubt=False) == clicks["anew"]
    parser.float().save_pretrained(tmp_path / "model")
    (tmp_path / "gold.conllu").write_text(text_of(gold), encoding="utf-8")
    experiment_annotation.main([str(tmp_path / "model"), "--treebanks", str(tmp_path), "--gold", "gold.conllu"])
    shown = capsys.readouterr().out
    assert f"| once | | {clicks['once']} | |" in shown and f"| from the left | {clicks['anew']} |" in shown
    shares = [float(cell) for cell in shown.splitlines()[-1].split("|")[2:-1]]
    assert shares == sorted(shares) and 0 < shares[0] <= shares[-1] <= 100
    with pytest.raises(SystemExit, match=r"experiment_annotation: there is no file .*nosuch"):
        experiment_annotation.main([str(tmp_path / "model"), "--gold", "nosuch"])
