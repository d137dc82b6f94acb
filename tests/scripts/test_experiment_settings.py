"""What comparisons of configs, methods, objectives and kinds of trees train, and what their tables show."""

import json
import statistics
from collections.abc import Mapping
from pathlib import Path

import pytest
from helpers.commands import Capture
from scripts.experiments import (
    experiment_default,
    experiment_linear,
    experiment_objectives,
    experiment_recipes,
    experiment_second_order,
)
from scripts.experiments.experiment_default import TREEBANKS, Parts, files_of
from scripts.support.training import runs as training_runs

from treeparse.data import load_treebank
from treeparse.data.batches.mixing import BucketBatchSampler
from treeparse.metrics import attachment_scores
from treeparse.model import Parser
from treeparse.shipped import shipped_files
from treeparse.training import TrainConfig, load_config
from treeparse.training.reading import build_objective
from treeparse.training.resolve import resolve_data, resolve_settings


def config_of(name: str, options: Mapping[str, object]) -> TrainConfig:
    settings = {"data.train": "a", **options}
    return load_config(shipped_files()[name], [f"--{key}={value}" for key, value in settings.items()])


@pytest.mark.parametrize("method", experiment_linear.METHODS)
def test_a_method_of_linear_models_has_its_templates(method: str) -> None:
    scorer = config_of(*experiment_linear.METHODS[method]).model.scorer
    assert len(scorer.arcs) == (52 if "rich" in method else 26)  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize("method", experiment_second_order.METHODS)
def test_a_kind_of_trees_has_its_objective_and_epochs(method: str) -> None:
    config = config_of("second_order", experiment_second_order.METHODS[method])
    resumes = method in experiment_second_order.STARTS
    objective = "MaxMargin" if resumes else "MeanField" if method == "mean_field" else "TreeLikelihood"
    assert type(build_objective(config.objective)).__name__ == objective
    assert config.optimization.epochs == (3 if resumes else 15)


@pytest.mark.parametrize(
    ("config", "setting", "epochs"),
    [("tiny", "before", 28), ("transformer", "before", 10), ("fast", "40", 40), ("fast", "now", 36)],
)
def test_a_config_has_the_epochs_of_its_setting(config: str, setting: str, epochs: int) -> None:
    options = experiment_recipes.settings_of(config, setting)
    settings = config_of(config, options)
    data = resolve_data(settings, [20] * 1000)
    steps = len(BucketBatchSampler([20] * 1000, max_words=data.batch_words, max_squared=data.batch_squared))
    assert resolve_settings(settings, data, steps).optimization.epochs == epochs


def test_the_epochs_by_hand_are_chosen_by_the_dev_set(tmp_path: Path, capsys: Capture) -> None:
    runs = [("before", 1, 70, 71), ("now", 1, 75, 74), ("now", 2, 75, 76), ("60", 1, 74, 72), ("120", 1, 72, 73)]
    records = [
        {"config": "tiny", "treebank": "EWT", "setting": setting, "seed": seed, "dev_las": dev / 100, "las": las / 100}
        for setting, seed, dev, las in runs
    ]
    output = tmp_path / "runs.jsonl"
    output.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    experiment_recipes.main(["EWT", "--configs", "tiny", "--settings", "before", "60", "--output", str(output)])
    assert "| 71.00 | 75.00 ± 1.41 | 72.00 | **60**, 120 |" in capsys.readouterr().out


@pytest.fixture
def treebanks(tiny_config: Path, tmp_path: Path) -> Path:
    """A folder of treebanks in which the tiny one is all of them."""
    for treebank in {treebank.files for treebank in TREEBANKS.values()}:
        (tmp_path / "all" / treebank).parent.mkdir(parents=True, exist_ok=True)
        for part, source in (("train", "train"), ("dev", "dev"), ("test", "dev")):
            text = (tmp_path / f"{source}.conllu").read_text(encoding="utf-8")
            (tmp_path / "all" / f"{treebank}{part}.conllu").write_text(text, encoding="utf-8")
    return tmp_path / "all"


def test_parts_of_treebanks(treebanks: Path, tmp_path: Path) -> None:
    def sent_ids(path: object) -> list[str | None]:
        return [sentence.sent_id for sentence in load_treebank([str(path)])]

    treebank = Parts(TREEBANKS["Latin"].files, slice(-4), slice(-4, None), "train")
    files = files_of(treebank, treebanks, tmp_path / "parts")
    assert sent_ids(files["data.train"]) == [f"1-{number}" for number in range(36)]
    assert sent_ids(files["data.dev"]) == [f"1-{number}" for number in range(36, 40)]
    every_fifth = files_of(TREEBANKS["EWT-100"], treebanks, tmp_path / "parts")["data.dev"]
    assert sent_ids(every_fifth) == ["2-0", "2-5", "2-10"]
    assert files_of(TREEBANKS["Latin, no dev set"], treebanks, tmp_path)["data.dev"] == "null"


@pytest.mark.parametrize("treebank", ["Turkish", "Latin, no dev set"])
def test_settings_by_hand_are_compared_once(
    treebank: str, treebanks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    short = {"optimization.epochs": 1, "model.encoder.hidden_size": 8, "model.encoder.layers": 1, "model.arc_size": 8}
    monkeypatch.setattr(
        experiment_default, "settings_of", lambda name: {"default": ("default", short), "by hand": ("fast", short)}
    )
    output = tmp_path / "runs.jsonl"
    arguments = [treebank, "--treebanks", str(treebanks), "--output", str(output), "--work", str(tmp_path / "work")]
    experiment_default.main(arguments)
    first = output.read_bytes()
    records = [json.loads(line) for line in first.splitlines()]
    assert [(record["treebank"], record["setting"]) for record in records] == [
        (treebank, "default"),
        (treebank, "by hand"),
    ]
    assert all((record["dev_las"] is None) == ("no dev set" in treebank) for record in records)
    shown = capsys.readouterr().out
    experiment_default.main(arguments)
    assert output.read_bytes() == first
    again = capsys.readouterr().out
    assert "epoch" in shown and "epoch" not in again
    for record in records:
        assert f"| {treebank} | {record['setting']} | {100 * record['uas']:.2f} | {100 * record['las']:.2f} |" in again


OBJECTIVES = ["HeadSelection", "TreeLikelihood"]


def options_of(config: Path, output: Path) -> list[str]:
    dev = str(config.parent / "dev.conllu")
    return ["--config", str(config), "--test", dev, "--dev", dev, "--seeds", "1", "--output", str(output), "--on"]


def record(objective: str, seed: int, score: float) -> dict[str, object]:
    scores = dict.fromkeys([*training_runs.SCORES, "dev_las"], score)
    return {"config": "fast", "test": "t", "objective": objective, "seed": seed, "seconds": 60 * seed, **scores}


def test_objectives_are_compared_once(tiny_config: Path, tmp_path: Path, capsys: Capture) -> None:
    output = tmp_path / "runs.jsonl"
    # Whose trees do not depend on temperatures.
    text = tiny_config.read_text(encoding="utf-8").replace("  arc_size:", "  decoder: arcs_first\n  arc_size:")
    tiny_config.write_text(text, encoding="utf-8")
    experiment_objectives.main(options_of(tiny_config, output))
    first = output.read_bytes()
    assert "epoch   3" in capsys.readouterr().out
    records = [json.loads(line) for line in first.splitlines()]
    assert [run["objective"] for run in records] == OBJECTIVES
    for run in records:
        # The test set is the dev set here, and the model that of the best epoch.
        assert run["las"] == pytest.approx(run["dev_las"], abs=2e-6)
        assert run["uas"] >= run["las"] > 0
        assert run["seconds"] > 0

    experiment_objectives.main(options_of(tiny_config, output))
    assert output.read_bytes() == first
    shown = capsys.readouterr().out
    assert "epoch   1" not in shown
    assert f"| {100 * records[0]['uas']:.2f} |" in shown


def test_parsers_are_trained_on_from_one_start(tiny_config: Path, tmp_path: Path, capsys: Capture) -> None:
    output, work = tmp_path / "runs.jsonl", tmp_path / "work"
    arguments = [*options_of(tiny_config, output), "exact minimum risk", "minimum risk, 8 different trees drawn"]
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
