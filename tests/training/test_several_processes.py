"""Two processes on CPUs (gloo) against one with the same batches a step."""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from helpers.commands import Capture
from helpers.trained_runs import equal, weights
from training.several_processes import losses_file, record_losses

from treeparse.cli.main import main
from treeparse.training import load_config, train
from treeparse.training.parser_module import ParserModule
from treeparse.training.run_directory import RunDirectory

pytestmark = [pytest.mark.usefixtures("one_thread"), pytest.mark.slow]

SCRIPT = Path(__file__).with_name("several_processes.py")
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
SECONDS = 300
OBJECTIVES = "treeparse.objectives."
LIKELIHOOD = {"objective": {"class_path": f"{OBJECTIVES}TreeLikelihood"}}
ENTROPY = {"objective": {"class_path": f"{OBJECTIVES}Entropy"}, "weight": 0.3, "data": "unlabelled"}
# Settings of runs in float64, whose steps are those of one process.
SAME: Mapping[str, Mapping[str, Any]] = {
    "unequal numbers of sentences": {},  # 40 sentences make an odd number of batches
    "one batch an epoch": {"data": {"batch_words": 10_000}},
    "labelled and unlabelled batches": {
        "data": {"unlabelled": "text.txt", "mixing": "turns"},
        "objective": {"class_path": f"{OBJECTIVES}WeightedSum", "init_args": {"terms": [LIKELIHOOD, ENTROPY]}},
    },
    "both kinds in a batch": {
        "data": {"unlabelled": "text.txt", "unlabelled_ratio": 0.5},
        "objective": {"class_path": f"{OBJECTIVES}WeightedSum", "init_args": {"terms": [LIKELIHOOD, ENTROPY]}},
    },
    "samples": {"objective": {"class_path": f"{OBJECTIVES}SampledRisk", "init_args": {"samples": 4}}},
    "tags": {"model": {"tags": {"upos": 0.5}}},
}


class Configs:
    """The configs of a test: a tiny one with some settings replaced."""

    def __init__(self, tiny: Path) -> None:
        self.folder, self.tiny = tiny.parent, tiny
        lines = [line.split("\t")[1:] for line in (self.folder / "train.conllu").read_text("utf-8").splitlines()]
        words = [" ".join(each[0] for each in lines[start : start + 7] if each) for start in range(0, len(lines), 9)]
        (self.folder / "text.txt").write_text("\n".join(filter(None, words)), encoding="utf-8")

    def write(self, name: str, settings: Mapping[str, Any], **trainer: object) -> Path:
        """Write a config whose run goes to the folder of its name."""
        config = yaml.safe_load(self.tiny.read_text("utf-8"))
        for section, values in settings.items():
            merged = section != "objective" and isinstance(values, Mapping)
            config[section] = {**config.get(section, {}), **values} if merged else values
        if config["data"].get("unlabelled"):
            config["data"]["unlabelled"] = str(self.folder / "text.txt")
        config["trainer"] = {**config["trainer"], **trainer}
        config["output"] = str(self.folder / name)
        path = self.folder / f"{name}.yaml"
        path.write_text(yaml.safe_dump(config), encoding="utf-8")
        return path


@pytest.fixture
def configs(tiny_config: Path) -> Configs:
    return Configs(tiny_config)


def run_two(paths: Sequence[Path], point: str = "-") -> int:
    """Train by all configs in two processes that torchrun starts; return the exit code."""
    command = [*TORCHRUN, str(SCRIPT), point, *map(str, paths)]
    return subprocess.run(command, timeout=SECONDS, check=False, capture_output=True).returncode


def losses_of(output: Path) -> list[float]:
    """Return the losses of the steps of two processes."""
    shares = [json.loads(losses_file(output, rank).read_text("utf-8")) for rank in range(2)]
    return [sum(step) for step in zip(*shares, strict=True)]


def losses_alone(path: Path, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Train in this process; return the losses of the steps."""
    losses: list[float] = []
    with monkeypatch.context() as patch:
        patch.setattr(ParserModule, "training_step", ParserModule.training_step)  # so that it is restored
        record_losses(losses)
        train(load_config(path), quiet=True)
    return losses


def test_two_processes_take_the_steps_of_one(configs: Configs, monkeypatch: pytest.MonkeyPatch) -> None:
    """With dropout and samples: their seeds are those of batches."""
    trainer = {"precision": "64-true", "accelerator": "cpu"}
    two = {name: configs.write(f"two {name}", each, **trainer, devices=2) for name, each in SAME.items()}
    assert run_two([*two.values()]) == 0
    for name, settings in SAME.items():
        alone = configs.write(f"alone {name}", settings, **trainer, accumulate_grad_batches=2)
        expected, found = losses_alone(alone, monkeypatch), losses_of(configs.folder / f"two {name}")
        assert len(found) == len(expected) >= 3
        assert found == pytest.approx(expected, rel=1e-9), name
        first, second = (RunDirectory(configs.folder / f"{kind} {name}").read_history() for kind in ("two", "alone"))
        for record, other in zip(first, second, strict=True):
            assert record.loss == pytest.approx(other.loss, rel=1e-9)
            assert record.terms == pytest.approx(other.terms, rel=1e-9)
            assert record.dev_loss == pytest.approx(other.dev_loss, rel=1e-9)
            assert (record.dev_uas, record.dev_las, record.dev_tags) == (other.dev_uas, other.dev_las, other.dev_tags)
        found, expected = (weights(configs.folder / f"{kind} {name}" / "model") for kind in ("two", "alone"))
        assert found.keys() == expected.keys()
        for key, values in found.items():
            torch.testing.assert_close(values, expected[key], rtol=1e-5, atol=1e-7)


def test_float32_begins_alike_and_learns_as_well(configs: Configs, monkeypatch: pytest.MonkeyPatch) -> None:
    longer = {"optimization": {"epochs": 12}}
    two = configs.write("two", longer, devices=2, strategy="ddp")
    alone = configs.write("alone", longer, accumulate_grad_batches=2)
    assert run_two([two]) == 0
    expected, found = losses_alone(alone, monkeypatch), losses_of(configs.folder / "two")
    assert found[0] == pytest.approx(expected[0], rel=1e-6)
    first, second = (RunDirectory(configs.folder / name).read_history()[-1].dev_las for name in ("two", "alone"))
    assert first is not None and second is not None and first > 0.7 and abs(first - second) < 0.1


def test_a_killed_process_ends_both_and_the_run_resumes_with_the_same_bits(configs: Configs) -> None:
    unbroken, broken = configs.write("unbroken", {}, devices=2), configs.write("broken", {}, devices=2)
    assert run_two([unbroken]) == 0
    assert run_two([broken], point="1.2") != 0
    assert len(RunDirectory(configs.folder / "broken").read_history()) == 1
    assert run_two([broken]) == 0
    assert equal(*(weights(configs.folder / name / "model") for name in ("broken", "unbroken")))


def test_rounds_of_self_training(configs: Configs, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {"data": {"unlabelled": "text.txt"}, "optimization": {"epochs": 2}}
    path = configs.write("self-training", settings, devices=2)
    assert run_two([path]) == 0
    rounds = json.loads((configs.folder / "self-training" / "rounds.json").read_text("utf-8"))
    assert [each["number"] for each in rounds] == [0, 1] and rounds[1]["silver"] > 0
    assert (configs.folder / "self-training" / "model" / "model.safetensors").is_file()


def test_the_command_starts_its_processes_and_says_everything_once(configs: Configs, capsys: Capture) -> None:
    path = configs.write("run", {}, devices=2)
    command = [sys.executable, "-m", "treeparse", "train", "--config", str(path)]
    done = subprocess.run(command, timeout=SECONDS, check=False, capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    assert [line.split()[1] for line in done.stdout.splitlines() if line.startswith("epoch")] == ["1", "2", "3"]
    assert done.stdout.count("model: ") == 1
    # Another number of processes with as many batches a step may resume, and says that the bits may differ.
    resume = ["train", "--resume", str(configs.folder / "run")]
    assert main([*resume, "--trainer.devices", "1", "--trainer.accumulate_grad_batches", "2"]) == 0
    assert "is finished" in capsys.readouterr().out
    assert main([*resume, "--trainer.devices", "1", "--trainer.accumulate_grad_batches", "1"]) == 2
    assert "trainer.batches_per_step was 2 and is 1" in capsys.readouterr().err
