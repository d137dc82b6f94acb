import os
from pathlib import Path

import pytest
import torch

from treeparse.errors import TreeparseError
from treeparse.training.state.history import EpochRecord
from treeparse.training.state.run_directory import RunDirectory, RunState


def state(*scores: float) -> RunState:
    history = [EpochRecord(epoch, 1.0, 1e-3, las, las, 1.0, 1.0) for epoch, las in enumerate(scores, 1)]
    optimizer = {"state": {0: {"step": torch.tensor(3.0)}}, "param_groups": [{"betas": (0.9, 0.95), "params": [0]}]}
    return RunState(
        identity={"settings": {"a": [1, None]}, "digests": {"x": "y"}},
        threads=1,
        step=3,
        history=history,
        weights={"w": torch.tensor([len(scores), 0.1])},
        optimizer=optimizer,
        average=None,
    )


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    run = RunDirectory(tmp_path / "run")
    run.begin("seed: 1\n")
    return run


def write(run: RunDirectory, *scores: float) -> None:
    run.write_state(state(*scores), {"w": torch.tensor([100.0 + len(scores)])})


def test_state_reads_back(run: RunDirectory) -> None:
    assert run.read_state() is None
    write(run, 0.5, 0.6)
    found, expected = run.read_state(), state(0.5, 0.6)
    assert found is not None
    assert torch.equal(found.weights["w"], expected.weights["w"])
    assert torch.equal(found.optimizer["state"][0]["step"], torch.tensor(3.0))
    assert found.optimizer["param_groups"] == expected.optimizer["param_groups"]
    assert (found.identity, found.history, found.step) == (expected.identity, expected.history, 3)


def test_only_the_best_weights_stay(run: RunDirectory) -> None:
    for count in range(1, 5):
        scores = (0.5, 0.7, 0.6, 0.7)[:count]
        write(run, *scores)
    assert sorted(path.name for path in run.checkpoints.iterdir()) == ["best-0002.ckpt", "last.ckpt"]
    assert run.read_best(state(0.5, 0.7, 0.6, 0.7).history)["w"].item() == 102.0
    assert len(run.metrics.read_text(encoding="utf-8").splitlines()) == 5


class Intruder:
    def __reduce__(self) -> tuple:
        return os.mkdir, ("intruded",)


def test_a_state_runs_no_code(run: RunDirectory, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    torch.save({"format": 1, "history": Intruder()}, run.state)
    with pytest.raises(TreeparseError):
        run.read_state()
    assert not (tmp_path / "intruded").exists()


def test_missing_best_weights(run: RunDirectory) -> None:
    write(run, 0.5)
    (run.checkpoints / "best-0001.ckpt").unlink()
    with pytest.raises(TreeparseError, match=r"best-0001\.ckpt is missing"):
        run.read_best(state(0.5).history)


def test_another_format(run: RunDirectory) -> None:
    torch.save({"format": 0}, run.state)
    with pytest.raises(TreeparseError, match="another version"):
        run.read_state()
