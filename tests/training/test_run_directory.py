"""The folder of a run: its state, its history and the epoch that is best, and what is no file of a run."""

import os
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from treeparse.errors import TreeparseError
from treeparse.training.run_directory import (
    EpochRecord,
    RunDirectory,
    RunState,
    best_record,
    clock,
    is_finished,
    read_csv,
    save_checkpoint,
    write_csv,
)


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    run = RunDirectory(tmp_path / "run")
    run.begin("seed: 1\n")
    return run


def write(run: RunDirectory, *scores: float) -> RunState:
    state = RunState({"settings": {"a": [1, None]}, "digests": {"x": "y"}}, history(*scores), threads=1)
    save_checkpoint(run.state, {**state.to_plain(), "weights": torch.tensor([1.0])})
    return state


def test_state_reads_back(run: RunDirectory) -> None:
    assert run.read_state() is None
    assert write(run, 0.5, 0.6) == run.read_state()


def test_the_history_has_the_epoch_of_the_best_weights(run: RunDirectory) -> None:
    """They are written before the checkpoint, so that a kill may come between."""
    with pytest.raises(TreeparseError, match="is complete yet"):
        run.read_history()
    first, second = history(0.5, 0.7)
    run.write_best(first, {"w": torch.tensor([1.0])})
    assert run.read_history() == [first]
    write(run, 0.5)
    assert run.read_history() == [first]
    run.write_best(second, {"w": torch.tensor([2.0])})
    assert run.read_history() == [first, second]
    write(run, 0.5, 0.7, 0.6)
    assert run.read_history() == history(0.5, 0.7, 0.6)


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


def history(*scores: float) -> list[EpochRecord]:
    return [EpochRecord(epoch, 1.5, 1e-3, las + 0.1, las, 900.0, 2.0) for epoch, las in enumerate(scores, 1)]


def test_best_is_the_first_of_equals() -> None:
    assert best_record(history(0.1, 0.5, 0.3, 0.5)).epoch == 2


@pytest.mark.parametrize(
    ("scores", "epochs", "patience", "finished"),
    [
        ((), 3, None, False),
        ((0.1, 0.2), 3, None, False),
        ((0.1, 0.2, 0.3), 3, None, True),
        ((0.3, 0.2), 9, 2, False),
        ((0.3, 0.2, 0.3), 9, 2, True),
        ((0.3, 0.2, 0.4), 9, 2, False),
    ],
)
def test_end_of_a_run(scores: tuple[float, ...], epochs: int, patience: int | None, finished: bool) -> None:
    assert is_finished(history(*scores), epochs=epochs, patience=patience) is finished


def test_csv_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "metrics.csv"
    records = [
        EpochRecord(1, 1.5, 1e-3, None, None, 900.0, 2.0),
        EpochRecord(3, 0.1 + 0.2, 1e-3, 0.5, 0.25, 900.0, 2.0, 0.75, {"risk": 0.5, "a/b": 1e-9}, {"upos": 0.875}),
    ]
    write_csv(path, records)
    assert read_csv(path) == records


def test_a_file_that_is_no_history(tmp_path: Path) -> None:
    for number, text in enumerate(("epoch,loss\n1,2\n", "a,b\n1,2\n", "epoch,loss\none,2\n")):
        path = tmp_path / f"{number}.csv"
        path.write_text(text, encoding="utf-8")
        with pytest.raises(TreeparseError, match=rf"{number}\.csv is no history of a run: "):
            read_csv(path)


def test_a_clock_counts_the_hours_of_several_days() -> None:
    shown = {0.4: "00:00:00", 59.6: "00:01:00", 3661: "01:01:01", 360_000: "100:00:00"}
    assert {seconds: clock(seconds) for seconds in shown} == shown


def test_a_dev_set_without_labels_chooses_by_heads() -> None:
    records = [replace(record, dev_las=None) for record in history(0.1, 0.5, 0.3, 0.5)]
    assert best_record(records).epoch == 2
    assert is_finished(records, epochs=9, patience=2) and not is_finished(records, epochs=9, patience=3)
    assert "dev UAS 60.00%" in str(records[1]) and "LAS" not in str(records[1])
    assert best_record([replace(record, dev_uas=None) for record in records]).epoch == 4
