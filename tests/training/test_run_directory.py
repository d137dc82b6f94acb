import os
from pathlib import Path

import pytest
import torch

from treeparse.errors import TreeparseError
from treeparse.training.run_directory import EpochRecord, RunDirectory, RunState, save_checkpoint


def records(*scores: float) -> list[EpochRecord]:
    return [EpochRecord(epoch, 1.0, 1e-3, las, las, 1.0, 1.0) for epoch, las in enumerate(scores, 1)]


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    run = RunDirectory(tmp_path / "run")
    run.begin("seed: 1\n")
    return run


def write(run: RunDirectory, *scores: float) -> RunState:
    state = RunState({"settings": {"a": [1, None]}, "digests": {"x": "y"}}, records(*scores), threads=1)
    save_checkpoint(run.state, {**state.to_plain(), "weights": torch.tensor([1.0])})
    return state


def test_state_reads_back(run: RunDirectory) -> None:
    assert run.read_state() is None
    assert write(run, 0.5, 0.6) == run.read_state()


def test_the_history_has_the_epoch_of_the_best_weights(run: RunDirectory) -> None:
    """They are written before the checkpoint, so that a kill may come between."""
    with pytest.raises(TreeparseError, match="is complete yet"):
        run.read_history()
    first, second = records(0.5, 0.7)
    run.write_best(first, {"w": torch.tensor([1.0])})
    assert run.read_history() == [first]
    write(run, 0.5)
    assert run.read_history() == [first]
    run.write_best(second, {"w": torch.tensor([2.0])})
    assert run.read_history() == [first, second]
    write(run, 0.5, 0.7, 0.6)
    assert run.read_history() == records(0.5, 0.7, 0.6)


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
    with pytest.raises(TreeparseError, match=r"best\.ckpt is missing"):
        run.read_history()


def test_another_format(run: RunDirectory) -> None:
    torch.save({"format": 0}, run.state)
    with pytest.raises(TreeparseError, match="another version"):
        run.read_state()
