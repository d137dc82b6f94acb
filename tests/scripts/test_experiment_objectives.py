"""The comparison of objectives trains what is missing, appends whole runs only, and averages as statistics do."""

import json
import statistics
from pathlib import Path

import pytest
from scripts.experiments import experiment_objectives
from scripts.support.training import runs as training_runs

from treeparse.data import load_treebank
from treeparse.metrics import attachment_scores
from treeparse.model import Parser

OBJECTIVES = ["HeadSelection", "TreeLikelihood"]


def options(config: Path, output: Path) -> list[str]:
    dev = str(config.parent / "dev.conllu")
    return ["--config", str(config), "--test", dev, "--dev", dev, "--seeds", "1", "--output", str(output), "--on"]


def record(objective: str, seed: int, score: float) -> dict[str, object]:
    scores = dict.fromkeys([*training_runs.SCORES, "dev_las"], score)
    return {"config": "fast", "test": "t", "objective": objective, "seed": seed, "seconds": 60 * seed, **scores}


def test_runs_are_made_once(tiny_config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "runs.jsonl"
    experiment_objectives.main(options(tiny_config, output))
    first = output.read_bytes()
    assert "epoch   3" in capsys.readouterr().out
    records = [json.loads(line) for line in first.splitlines()]
    assert [run["objective"] for run in records] == OBJECTIVES
    for run in records:
        # The test set is the dev set here, and the model that of the best epoch.
        assert run["las"] == pytest.approx(run["dev_las"], abs=2e-6)
        assert run["uas"] >= run["las"] > 0
        assert run["seconds"] > 0

    experiment_objectives.main(options(tiny_config, output))
    assert output.read_bytes() == first
    shown = capsys.readouterr().out
    assert "epoch   1" not in shown
    assert f"| {100 * records[0]['uas']:.2f} |" in shown


def test_parsers_are_trained_on_from_one_start(
    tiny_config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output, work = tmp_path / "runs.jsonl", tmp_path / "work"
    arguments = [*options(tiny_config, output), "exact minimum risk", "minimum risk, 8 different trees drawn"]
    experiment_objectives.main([*arguments, "--work", str(work), "--objectives"])
    start, *others = (json.loads(line) for line in output.read_text().splitlines())
    assert (start["objective"], start["seed"]) == (experiment_objectives.START, 1)
    assert [run["objective"] for run in others] == arguments[-2:]
    shown = capsys.readouterr().out
    assert shown.count(f"starting from {work / 'config-the_start-1'}") == 2
    config = (work / "config-minimum_risk_8_different_trees_drawn-1" / "config.yaml").read_text()
    assert "samples: 8\n    replacement: false" in config
    # The model's trees get wrong on average what the formula says.
    parser = Parser.from_pretrained(work / "config-the_start-1" / "model")
    gold = [s.words for s in load_treebank(tiny_config.parent / "dev.conllu")]
    draws = zip(*parser.sample(gold, 100), strict=True)
    systems = ([s.with_tree(p.heads, p.labels) for s, p in zip(gold, parses, strict=True)] for parses in draws)
    risks = [1 - attachment_scores(gold, system).las for system in systems]
    assert start["dev_risk"] == pytest.approx(statistics.mean(risks), abs=4 * statistics.stdev(risks) / 10)

    # The folder of the start is not needed for runs that are there, and is made again for others.
    experiment_objectives.main([*arguments, "--objectives"])
    assert "epoch" not in capsys.readouterr().out
    experiment_objectives.main([*arguments, "margin", "--objectives"])
    assert capsys.readouterr().out.count("epoch   3") == 1
    assert len(output.read_text().splitlines()) == 4


def test_table_by_hand() -> None:
    values = {("HeadSelection", 1): 0.5, ("HeadSelection", 2): 0.7, ("TreeLikelihood", 1): 0.6}
    values |= {("TreeLikelihood", 2): 0.9, ("TreeLikelihood", 3): 0.3}
    records = [record(objective, seed, score) for (objective, seed), score in values.items()]
    lines = [
        [cell.strip() for cell in line.split("|")[1:-1]] for line in experiment_objectives.table(records, OBJECTIVES)
    ]
    assert len({len(line) for line in lines}) == 1
    rows = {line[0]: line[1:] for line in lines}
    # Standard deviations of two numbers are their distance over the root of 2.
    # A column that no record has, the risk, is left out.
    assert rows["HeadSelection"] == ["2", *["60.00 ± 14.14"] * 6, "1.50 ± 0.71"]
    assert rows["TreeLikelihood"] == ["3", *["60.00 ± 30.00"] * 6, "2.00 ± 1.00"]
    assert rows["TreeLikelihood less HeadSelection"] == ["2", *["+15.00 ± 7.07"] * 6, ""]
