"""The experiment on pretrained transformers trains what is missing, once, and scores it on the test set."""

import json
from pathlib import Path

import pytest
from helpers.pretrained import bert_folder
from scripts.experiments import experiment_pretrained

from treeparse.data import load_treebank
from treeparse.metrics import attachment_scores
from treeparse.model import Parser

SMALL = {"optimization.epochs": 1, "data.batch_words": 60, "model.arc_size": 8, "model.label_size": 4}
SMALL |= {"model.encoder.mixed_layers": 2, "trainer.accelerator": "cpu"}


def test_runs_are_made_once(
    treebanks: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
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
