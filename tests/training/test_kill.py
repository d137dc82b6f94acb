"""A run killed by SIGKILL at any point ends, once resumed, as an unbroken one."""

import signal
from pathlib import Path

import pytest
import torch
from helpers.broken_runs import break_off
from helpers.forked import Forks
from helpers.trained_runs import Weights, equal, rows, weights

from treeparse.training import load_config, train

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
        ("writing the state", 0),
        ("between best weights and state", 1),
        ("between state and logs", 1),
        ("export", EPOCHS),
    ],
)
def test_killed_and_resumed(
    tiny_config: Path,
    trained_config: Path,
    tmp_path: Path,
    point: str,
    completed: int,
    forks: Forks,
    capsys: pytest.CaptureFixture[str],
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
    assert [row["epoch"] for row in rows(run)] == ["1", "2", "3"]
