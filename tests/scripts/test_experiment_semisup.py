"""The experiment with few trees and with none: what is trained on what, once; tables; baselines by hand."""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import experiment_semisup
import pytest

from treeparse.data import load_treebank
from treeparse.sentence import Sentence
from treeparse.shipped import shipped_files
from treeparse.training import load_config

SETTINGS = [experiment_semisup.SUPERVISED, *experiment_semisup.ADDED]
ROUNDS = experiment_semisup.ROUNDS


@pytest.fixture(autouse=True)
def twenty_with_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as there are to train on, and some to spare."""
    monkeypatch.setattr(experiment_semisup, "LABELLED", 20)


class Runs:
    """Stands in for training: the configs that were asked for, scores that name them, and always the same model."""

    def __init__(self, model: Path) -> None:
        self.model = model
        self.configs: dict[str, Any] = {}

    def __call__(self, config: str, options: Mapping[str, object], gold: list[Sentence], directory: Path) -> dict:
        settings = {**options, "output": directory}
        arguments = [f"--{key}={value}" for key, value in settings.items()]
        self.configs[directory.name] = load_config(shipped_files()[config], arguments)
        shutil.copytree(self.model, directory / "model")
        score = 0.5 + 0.01 * len(self.configs)
        return {"uas": score, "las": score - 0.1, "dev_las": score - 0.1, "seconds": 60.0}


class Commands:
    """Stands in for the command: what was typed, and rounds that are always the same run."""

    def __init__(self, run: Path) -> None:
        self.run = run
        self.typed: list[list[str]] = []

    def __call__(self, arguments: list[str]) -> int:
        self.typed.append(arguments)
        [output] = (option.partition("=")[2] for option in arguments if option.startswith("--output="))
        for number in range(len(ROUNDS)):
            shutil.copytree(self.run, Path(output) / f"round-{number}")
        return 0


def test_what_is_trained(
    treebanks: Path, trained_config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = Runs(trained_config.parent / "run" / "model")
    commands = Commands(trained_config.parent / "run")
    monkeypatch.setattr(experiment_semisup, "train_and_score", runs)
    monkeypatch.setattr(experiment_semisup, "main_command", commands)
    output, work = tmp_path / "runs.jsonl", tmp_path / "work"
    arguments = ["--treebanks", str(treebanks), "--output", str(output), "--work", str(work), "--seeds", "2"]
    experiment_semisup.main(arguments)
    names = {setting.replace(" ", "_") for setting in [*SETTINGS, experiment_semisup.NO_TREE]}
    assert set(runs.configs) == {f"{name}-2" for name in names} | {"all_trees-1"}
    labelled_file = work / "data" / "first-20.conllu"
    labelled, rest = (load_treebank(path) for path in (labelled_file, work / "data" / "all-but-20.conllu"))
    every = load_treebank(treebanks / "UD_English-EWT" / "en_ewt-ud-train.conllu")
    assert [s.words for s in [*labelled, *rest]] == [s.words for s in every]
    for setting in SETTINGS:
        config = runs.configs[f"{setting.replace(' ', '_')}-2"]
        assert (config.data.train, config.seed) == (str(labelled_file), 2)
        if setting == experiment_semisup.SUPERVISED:
            assert config.data.unlabelled is None
        else:
            assert config.data.unlabelled == str(work / "data" / "all-but-20.conllu")
            assert [term["data"] for term in config.objective["init_args"]["terms"][1:]] == ["unlabelled"]
    [typed] = commands.typed
    assert typed[:3] == ["self-train", "--rounds", "2"]
    assert {f"--data.train={labelled_file}", "--seed=2"} <= set(typed)
    baselines = 3
    assert len(output.read_text().splitlines()) == len(SETTINGS) + len(ROUNDS) + 1 + baselines
    before = len(runs.configs)
    experiment_semisup.main(arguments)
    assert len(runs.configs) == before and len(commands.typed) == 1
    assert output.with_suffix(".png").stat().st_size > 10000
