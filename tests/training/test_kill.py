"""Runs and rounds killed at any point end, once resumed, as unbroken ones; files that are cut off are named."""

import os
import re
import shutil
import signal
from pathlib import Path

import pytest
import torch
import yaml
from helpers.broken_runs import break_off
from helpers.commands import Capture
from helpers.forked import Forks
from helpers.trained_runs import Weights, equal, rows, weights

from treeparse.errors import DataError, TreeparseError
from treeparse.shipped import shipped_file
from treeparse.training import load_config, train
from treeparse.training.release import export_model
from treeparse.training.run_directory import RunDirectory, best_record
from treeparse.training.self_training import Round, round_config, self_train
from treeparse.training.train_config import TrainConfig

pytestmark = pytest.mark.usefixtures("one_thread")

EPOCHS = 3


def last_weights(run: Path) -> Weights:
    """The weights after the last epoch."""
    return torch.load(run / "checkpoints" / "last.ckpt", weights_only=True)["state_dict"]


def test_a_moved_run_resumes(
    tiny_config: Path, trained_config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    break_off(lambda: train(load_config(tiny_config), quiet=True), 1, 2, monkeypatch)
    moved = (tmp_path / "run").rename(tmp_path / "moved")
    train(load_config(moved / "config.yaml", ["--output", str(moved)]), resume=True, quiet=True)
    assert not (tmp_path / "run").exists()
    assert equal(weights(moved / "model"), weights(trained_config.parent / "run" / "model"))


@pytest.mark.parametrize(
    ("point", "completed"),
    [
        ("beginning", 0),
        ("first epoch", 0),
        ("second epoch", 1),
        ("third epoch", 2),
        ("writing the state", 0),
        ("between best weights and state", 1),
        ("between state and logs", 1),
        ("export", EPOCHS),
    ],
)
def test_killed_and_resumed(
    tiny_config: Path, trained_config: Path, tmp_path: Path, point: str, completed: int, forks: Forks, capsys: Capture
) -> None:
    assert forks.run(Path(__file__).with_name("killed_run.py"), tiny_config, point).returncode == -signal.SIGKILL
    assert not (tmp_path / "run" / "model").exists()

    train(load_config(tiny_config), resume=True)
    shown = capsys.readouterr().out
    assert [f"epoch {epoch:3d}" in shown for epoch in range(1, EPOCHS + 1)] == [
        epoch > completed for epoch in range(1, EPOCHS + 1)
    ]

    run, unbroken = tmp_path / "run", trained_config.parent / "run"
    assert equal(weights(run / "model"), weights(unbroken / "model"))
    assert equal(last_weights(run), last_weights(unbroken))
    names = "epoch", "loss", "dev_las", "learning_rate"
    found, expected = ([[row[name] for name in names] for row in rows(path)] for path in (run, unbroken))
    assert found == expected


@pytest.mark.parametrize("name", ["last.ckpt", "best.ckpt"])
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_a_checkpoint_that_is_cut_off(finished_run: Path, name: str, share: float) -> None:
    shutil.rmtree(finished_run / "model")
    path = finished_run / "checkpoints" / name
    data = path.read_bytes()
    path.write_bytes(data[: int(share * (len(data) - 1))])
    with pytest.raises(TreeparseError, match=f"{path} is no checkpoint of a run, or is damaged: train anew") as caught:
        train(load_config(finished_run / "config.yaml"), resume=True, quiet=True)
    assert "\n" not in str(caught.value)
    assert not (finished_run / "model").exists()


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_a_parser_that_is_cut_off(finished_run: Path, share: float) -> None:
    shutil.rmtree(finished_run / "model")
    run = RunDirectory(finished_run)
    data = run.parser.read_bytes()
    run.parser.write_bytes(data[: int(share * (len(data) - 1))])
    with pytest.raises(TreeparseError, match=re.escape(str(run.parser))):
        export_model(run)
    run.parser.unlink()
    with pytest.raises(TreeparseError, match=r"is missing.*--resume"):
        export_model(run)
    assert not run.model.exists()


@pytest.fixture
def config(tiny_config: Path) -> Path:
    """A config of two short epochs, with text."""
    settings = yaml.safe_load(tiny_config.read_text(encoding="utf-8"))
    settings["data"]["unlabelled"] = str(tiny_config.parent / "dev.conllu")
    settings["optimization"] |= {"epochs": 2}
    tiny_config.write_text(yaml.safe_dump(settings), encoding="utf-8")
    return tiny_config


def semisup(*options: str) -> TrainConfig:
    files = ["--data.train=few.conllu", "--data.dev=dev.conllu", "--data.unlabelled=text.txt", "--output=runs/few"]
    return load_config(shipped_file("semisup"), [*files, *options])


def test_round_0_is_the_default_config_on_the_trees_alone() -> None:
    options = ["--data.train=few.conllu", "--data.dev=dev.conllu", "--output=runs/few/round-0"]
    options += ["--model.tags.upos=0", "--model.tags.feats=0", "--model.encoder.recurrent_dropout=0"]
    assert round_config(semisup(), 0) == load_config(shipped_file("default"), options)


def test_a_round_learns_the_best_trees_of_the_round_before() -> None:
    config = round_config(semisup("--seed=3"), 2)
    assert (config.seed, config.output, config.data.unlabelled) == (3, "runs/few/round-2", "text.txt")
    assert config.data.unlabelled_ratio == 4.0
    assert (config.optimization.steps, config.optimization.patience) == (1600, None)
    trees, silver = config.objective["init_args"]["terms"]
    assert trees["objective"]["class_path"] == "treeparse.objectives.TreeLikelihood"
    assert silver["objective"]["class_path"] == "treeparse.objectives.SilverTrees"
    assert silver["objective"]["init_args"]["reference"]["init_args"] == {"models": ["runs/few/round-1/model"]}


@pytest.mark.parametrize("options", [["--optimization.steps=20"], ["--optimization.epochs=3"]])
def test_what_the_config_sets_holds_for_all_rounds(options: list[str]) -> None:
    given = semisup(*options, "--optimization.patience=2")
    for number in (0, 1):
        assert round_config(given, number).optimization == given.optimization


def test_the_best_round_by_hand() -> None:
    rounds = [Round(number, 0.5, las, 0, 0) for number, las in enumerate([0.3, 0.5, 0.5, 0.4])]
    assert best_record(rounds).number == 1
    assert best_record([Round(number, None, None, 0, 0) for number in range(3)]).number == 2


def test_a_pipe_is_refused_before_it_is_read(config: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DataError, match="pipe: a pipe cannot be read more than once, but self-training"):
        self_train(load_config(config, [f"--data.train={tmp_path / 'pipe'}"]), 1, quiet=True)
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
@pytest.mark.usefixtures("one_thread")
def test_killed_rounds_are_resumed(config: Path, forks: Forks, tmp_path: Path) -> None:
    """At three points in turn: each process resumes what the one before left."""
    unbroken = tmp_path / "unbroken"
    self_train(load_config(config, [f"--output={unbroken}"]), 1, least_log_prob=-1.2, quiet=True)
    for point in ("selection", "round 1", "table"):
        killed = forks.run(Path(__file__).with_name("killed_run.py"), config, point)
        assert killed.returncode == -signal.SIGKILL, (point, killed.stderr)
    broken = tmp_path / "run"
    self_train(load_config(config), 1, least_log_prob=-1.2, quiet=True)
    for name in ("silver-1.conllu", "rounds.json"):
        assert (broken / name).read_bytes() == (unbroken / name).read_bytes()
    for folder in ("round-0/model", "round-1/model", "model"):
        assert equal(weights(broken / folder), weights(unbroken / folder))
    before = (broken / "round-1/model/model.safetensors").read_bytes()
    rounds = self_train(load_config(config), 2, least_log_prob=-1.2, quiet=True)  # more rounds add rounds
    assert [each.number for each in rounds] == [0, 1, 2]
    assert (broken / "round-1/model/model.safetensors").read_bytes() == before


def test_a_dev_set_without_labels_chooses_the_round_by_heads() -> None:
    rounds = [Round(number, uas, None, 0, 0) for number, uas in enumerate([0.3, 0.5, 0.5, 0.4])]
    assert best_record(rounds).number == 1
