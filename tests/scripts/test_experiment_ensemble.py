"""The comparison of ensembles trains what is missing, combines it in every way, and distils it once."""

import json
from pathlib import Path

import pytest
import yaml
from scripts.experiments import experiment_ensemble

from treeparse.data import load_treebank
from treeparse.metrics import attachment_scores
from treeparse.model import Ensemble, Parser


def test_results_are_made_once(
    treebanks: Path,
    tiny_config: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
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
    assert likelihood["objective"] == {"class_path": "treeparse.objectives.TreeLikelihood"}
    with_text = yaml.safe_load((models / "config-text" / "config.yaml").read_text(encoding="utf-8"))
    assert [with_text[key] for key in ("objective", "init_from")] == [settings["objective"], str(folders[0])]
    assert with_text["data"]["unlabelled"] == str(text)
    assert Parser.from_pretrained(models / "config-distilled").config == Parser.from_pretrained(folders[0]).config

    experiment_ensemble.main([*arguments, *experiment_ensemble.SETTINGS])
    again = capsys.readouterr().out
    assert "seeds 1" not in again
    assert again.strip() == shown[shown.index("| parser") :].strip()
