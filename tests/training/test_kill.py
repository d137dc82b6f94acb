"""A run killed at any point ends, once resumed, as an unbroken one; files that are cut off are named."""

import re
import shutil
import signal
from pathlib import Path

import pytest
import torch
from helpers.broken_runs import break_off
from helpers.commands import Capture
from helpers.forked import Forks
from helpers.trained_runs import Weights, equal, rows, weights

from treeparse.errors import TreeparseError
from treeparse.training import load_config, train
from treeparse.training.release import export_model
from treeparse.training.run_directory import RunDirectory

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
