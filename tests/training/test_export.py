"""The best epoch's model can be had from a run at any time, and a run ends with that of its best epoch all the same."""

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers.broken_runs import break_off
from helpers.tiny_runs import copy_of_run, write_tiny_config
from helpers.trained_runs import Weights, equal, weights

from treeparse import Parser
from treeparse.errors import TreeparseError
from treeparse.training import load_config, train
from treeparse.training.fit import EpochTable, WholeFiles
from treeparse.training.release import export_model
from treeparse.training.run_directory import EpochRecord, RunDirectory


def best(run: Path) -> tuple[int, Weights]:
    """The epoch of the best weights of a run, and these weights."""
    best = torch.load(run / "checkpoints" / "best.ckpt", weights_only=True)
    return best["record"]["epoch"], best["weights"]


@pytest.fixture
def copied(finished_run: Path) -> RunDirectory:
    """A finished run, without its model."""
    shutil.rmtree(finished_run / "model")
    return RunDirectory(finished_run)


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that broke in its second epoch, for tests that resume a copy; its first dev LAS was 0.2."""
    config = write_tiny_config(tmp_path_factory.mktemp("broken"))
    with pytest.MonkeyPatch.context() as patch:
        rising(patch, 0.2)
        break_off(lambda: train(load_config(config), quiet=True), 1, 2, patch)
    return config.parent / "run"


@pytest.fixture
def run(broken: Path, tmp_path: Path) -> Path:
    return copy_of_run(broken, tmp_path / "run")


def resume(run: Path) -> Path:
    return train(load_config(run / "config.yaml"), resume=True, quiet=True)


def snapshot(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*")}


def rising(patch: pytest.MonkeyPatch, *scores: float) -> None:
    """Epochs have these dev LAS."""
    record = EpochTable._record

    def scored(self: EpochTable, *arguments: Any) -> EpochRecord:
        found = record(self, *arguments)
        return replace(found, dev_las=scores[found.epoch - 1])

    patch.setattr(EpochTable, "_record", scored)


def test_a_run_of_another_format_is_refused(copied: RunDirectory) -> None:
    values = json.loads(copied.parser.read_bytes())
    copied.parser.write_text(json.dumps(values | {"format": 99, "treeparse": "9.8.7"}), encoding="utf-8")
    with pytest.raises(TreeparseError, match=r"parser\.json is of format 99.* install treeparse 9\.8\.7"):
        copied.read_parser()


def test_an_export_is_what_training_writes(trained_config: Path, copied: RunDirectory, tmp_path: Path) -> None:
    export_model(copied)
    export_model(copied, tmp_path / "other")
    for name in ("config.json", "vocabulary.json", "model.safetensors"):
        expected = (trained_config.parent / "run" / "model" / name).read_bytes()
        assert (copied.model / name).read_bytes() == (tmp_path / "other" / name).read_bytes() == expected


def test_a_model_that_stands_is_left_alone(copied: RunDirectory) -> None:
    assert export_model(copied).written
    config = copied.model / "config.json"
    config.write_text(config.read_text(encoding="utf-8").replace('"nonprojective"', '"projective"'), encoding="utf-8")
    before = snapshot(copied.path)
    assert not export_model(copied).written
    assert snapshot(copied.path) == before


@pytest.mark.parametrize(("scores", "epoch"), [((0.2, 0.3, 0.4), 3), ((0.2, 0.1, 0.1), 1)])
def test_training_ends_with_its_best_epoch_whatever_was_exported(
    run: Path, broken: Path, monkeypatch: pytest.MonkeyPatch, scores: tuple[float, ...], epoch: int
) -> None:
    before, data = snapshot(run / "checkpoints"), broken.with_name("train.conllu").rename(broken.with_name("away"))
    export = export_model(RunDirectory(run))  # which needs the treebank no more
    data.rename(broken.with_name("train.conllu"))
    assert (export.best.epoch, export.epochs, export.folder, export.written) == (1, 1, run / "model", True)
    assert snapshot(run / "checkpoints") == before and not list(run.rglob("*.tmp"))
    assert equal(weights(run / "model"), best(run)[1])
    early = snapshot(run / "model")
    rising(monkeypatch, *scores)
    resume(run)
    best_epoch, expected = best(run)
    assert best_epoch == epoch and equal(weights(run / "model"), expected)
    # Its temperatures are fitted at the end alone.
    assert snapshot(run / "model") != early and Parser.from_pretrained(run).config.temperature != 1
    ended = snapshot(run / "model")
    resume(run)
    assert snapshot(run / "model") == ended
    logs = {"metrics.csv", "tensorboard"}
    assert {*os.listdir(run)} == {"checkpoints", "config.yaml", "model", "origin.json", "parser.json", *logs}


@pytest.mark.usefixtures("one_thread")
def test_export_beside_training(tiny_config: Path, trained_config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After each epoch, by another process's eyes: the run goes on undisturbed, to the same weights."""
    exported = []
    write = WholeFiles.save_checkpoint

    def write_and_export(self: WholeFiles, checkpoint: dict[str, Any], path: str, **options: Any) -> None:
        write(self, checkpoint, path, **options)
        exported.append(export_model(RunDirectory(Path(path).parents[1])).best.epoch)

    rising(monkeypatch, 0.1, 0.3, 0.2)
    monkeypatch.setattr(WholeFiles, "save_checkpoint", write_and_export)
    train(load_config(tiny_config), quiet=True)
    assert exported == [1, 2, 2]
    paths = (config.parent / "run" / "checkpoints" / "last.ckpt" for config in (tiny_config, trained_config))
    assert equal(*(torch.load(path, weights_only=True)["state_dict"] for path in paths))


def test_best_weights_replaced_while_they_are_read(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the history and the weights, training completes a better epoch."""
    rising(monkeypatch, 0.2, 0.3, 0.4)
    read, read_first = RunDirectory.read_history, []

    def read_then_train(self: RunDirectory) -> object:
        history = read(self)
        if not read_first:
            read_first.append(history)
            resume(run)
        return history

    monkeypatch.setattr(RunDirectory, "read_history", read_then_train)
    export = export_model(RunDirectory(run), tmp_path / "model")
    assert [record.epoch for record in read_first[0]] == [1]
    assert (export.best.epoch, export.epochs) == (3, 3)
    assert equal(weights(tmp_path / "model"), best(run)[1])


def test_training_ends_while_an_older_model_is_exported(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The older model takes the place of the final one, and is at once replaced by that."""
    rising(monkeypatch, 0.2, 0.3, 0.4)
    save, saved = Parser.save_pretrained, []

    def train_then_save(self: Parser, directory: Path) -> None:
        saved.append(directory)
        if len(saved) == 1:
            resume(run)
        save(self, directory)

    monkeypatch.setattr(Parser, "save_pretrained", train_then_save)
    export = export_model(RunDirectory(run))
    assert len(saved) == 3 and export.best.epoch == 3
    assert equal(weights(run / "model"), best(run)[1])


def test_a_failed_export_leaves_nothing_behind(copied: RunDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError("disk full")

    before = snapshot(copied.path)
    monkeypatch.setattr("treeparse.model.folder.save_file", fail)
    with pytest.raises(OSError, match="disk full"):
        export_model(copied)
    assert snapshot(copied.path).keys() == before.keys()


def test_a_folder_of_other_things_is_not_replaced(copied: RunDirectory, tmp_path: Path) -> None:
    folder = tmp_path / "thesis"
    folder.mkdir()
    assert export_model(copied, folder).written  # an empty one is filled
    (folder / "chapter1.tex").touch()
    assert not export_model(copied, folder).written
    (folder / "model.safetensors").unlink()
    with pytest.raises(TreeparseError, match=r"thesis holds other things than a model, chapter1\.tex is one"):
        export_model(copied, folder)
    assert (folder / "chapter1.tex").exists()


def test_what_is_no_run_or_has_no_epoch(copied: RunDirectory, tmp_path: Path) -> None:
    with pytest.raises(TreeparseError, match=r"There is no folder .*nowhere: name the folder of a model"):
        export_model(RunDirectory(tmp_path / "nowhere"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(TreeparseError, match="empty is no run"):
        export_model(RunDirectory(tmp_path / "empty"))
    copied.state.unlink()
    copied.best.unlink()
    with pytest.raises(TreeparseError, match=r"No epoch of the run in .* is complete yet.*--resume"):
        export_model(copied)
    assert not copied.model.exists()
