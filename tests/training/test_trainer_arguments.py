"""The arguments of Lightning's Trainer as settings of a run, and what training shows on a terminal."""

import csv
import re
from pathlib import Path
from typing import Any

import pytest
import pytorch_lightning as pl
import torch
from helpers.commands import Capture
from helpers.terminal import terminal
from helpers.trained_runs import rows
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from treeparse.data.batches.steps import ShareOfStep
from treeparse.errors import TreeparseError
from treeparse.training import load_config, train
from treeparse.training import run as training_run
from treeparse.training.parser_module import ParserModule
from treeparse.training.run_directory import RunDirectory

pytestmark = pytest.mark.usefixtures("one_thread")


def run(config: Path, *options: str, resume: bool = False) -> Path:
    """Train with options of the Trainer; return the folder of the run."""
    return train(load_config(config, [f"--trainer.{each}" for each in options]), resume=resume, quiet=True).parent


class Counter(pl.Callback):
    """A callback of one's own: counts steps."""

    steps = 0

    def __init__(self, by: int = 1) -> None:
        self.by = by

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        Counter.steps += self.by


def test_callbacks_of_ones_own(tiny_config: Path) -> None:
    Counter.steps = 0
    path = f"{Counter.__module__}.Counter"
    folder = run(tiny_config, f"callbacks+={path}", "callbacks.by=2", "max_epochs=1")
    assert Counter.steps == 2 * 5  # batches of an epoch
    assert f"class_path: {path}" in (folder / "config.yaml").read_text(encoding="utf-8")
    run(folder / "config.yaml", resume=True)


def test_the_usual_logger(trained_config: Path) -> None:
    folder = trained_config.parent / "run"
    events = EventAccumulator(str(folder / "tensorboard")).Reload()
    assert {"loss", "dev_loss", "uas", "las", "epoch"} <= {*events.Tags()["scalars"]}
    logged = [event.value for event in events.Scalars("las")]
    assert logged == pytest.approx([float(row["dev_las"]) for row in rows(folder)], rel=1e-6)


def test_a_csv_logger(tiny_config: Path, tmp_path: Path) -> None:
    folder = run(tiny_config, "logger=CSVLogger", f"logger.save_dir={tmp_path}", "logger.name=logs", "max_epochs=1")
    assert not (folder / "tensorboard").exists()
    with (tmp_path / "logs" / "version_0" / "metrics.csv").open(encoding="utf-8", newline="") as file:
        logged = [float(row["las"]) for row in csv.DictReader(file) if row["las"]]
    assert logged == pytest.approx([float(row["dev_las"]) for row in rows(folder)], rel=1e-6)


def test_a_profiler(tiny_config: Path, tmp_path: Path) -> None:
    run(
        tiny_config,
        "profiler=SimpleProfiler",
        f"profiler.dirpath={tmp_path}",
        "profiler.filename=times",
        "max_epochs=1",
    )
    [report] = tmp_path.glob("*times*")
    assert "ParserModule.optimizer_step" in report.read_text(encoding="utf-8")


def test_a_dry_run_writes_no_model(tiny_config: Path, capsys: Capture) -> None:
    train(load_config(tiny_config, ["--trainer.fast_dev_run", "true"]))
    assert "there is no model" in capsys.readouterr().out
    assert not (tiny_config.parent / "run" / "model").exists()
    run(tiny_config, "max_epochs=1", resume=True)


def test_max_epochs_wins_and_it_is_said(tiny_config: Path, capsys: Capture) -> None:
    train(load_config(tiny_config, ["--trainer.max_epochs", "1"]))
    assert "trainer.max_epochs" in capsys.readouterr().err
    assert [row["epoch"] for row in rows(tiny_config.parent / "run")] == ["1"]


def test_the_time_ends_a_run_with_a_model(tiny_config: Path) -> None:
    folder = run(tiny_config, "max_time=00:00:00:01", "max_epochs=10000", "check_val_every_n_epoch=2")
    assert 1 <= len(rows(folder)) < 10000 and (folder / "model").exists()


def test_overfitting_sees_the_same_batches_in_every_epoch(tiny_config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[int, ...]] = []
    step = ParserModule.training_step

    def watched(self: ParserModule, share: ShareOfStep, number: int) -> torch.Tensor:
        seen.append(tuple(share.batch.indices.tolist()))
        return step(self, share, number)

    monkeypatch.setattr(ParserModule, "training_step", watched)
    run(tiny_config, "overfit_batches=2")
    assert len(seen) == 6 and seen[:2] == seen[2:4] == seen[4:]


def test_accumulated_batches_are_one_step(tiny_config: Path) -> None:
    """Without dropout, two accumulated batches are the one batch that both fill: here, of all sentences."""
    still = {"model": ("dropout",), "model.encoder": ("dropout", "word_dropout", "embedding_dropout")}
    options = [f"--{section}.{name}=0" for section, names in still.items() for name in names]
    options += ["--trainer.precision=64-true", "--optimization.epochs=2"]
    both = ["--data.batch_words=200", "--data.batch_squared=null", "--trainer.accumulate_grad_batches=2"]
    losses = []
    for name, more in (("two", both), ("one", ["--data.batch_words=10000", "--data.batch_squared=null"])):
        output = str(tiny_config.parent / name)
        folder = train(load_config(tiny_config, [*options, *more, "--output", output]), quiet=True).parent
        losses.append([record.loss for record in RunDirectory(folder).read_history()])
    assert losses[0] == pytest.approx(losses[1], rel=1e-9)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["devices=0"], "not a valid input"),
        (["precision=17"], "precision"),
        (["max_epoch=3"], "trainer.max_epochs"),
        (["enable_checkpointing=false"], "ModelCheckpoint"),
        (["use_distributed_sampler=true"], "use_distributed_sampler"),
    ],
)
def test_what_is_refused(tiny_config: Path, options: list[str], said: str) -> None:
    with pytest.raises(TreeparseError, match=said):
        run(tiny_config, *options)


def test_a_terminal_shows_a_bar_and_the_lines_of_epochs(tiny_config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with terminal(monkeypatch, "stdout") as screen:
        train(load_config(tiny_config, ["--optimization.epochs=2"]))
    assert re.search(r"Epoch 0/1.* \d/5 ", screen.text)
    assert re.search(r"epoch   1   loss +\d", screen.text)


@pytest.mark.parametrize(
    ("step", "said"),
    [("load_treebanks", "reading the treebanks"), ("initial_parser", "building the vocabularies and the parser")],
)
def test_long_work_before_the_bar_is_announced(
    step: str, said: str, tiny_config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = getattr(training_run, step)

    def slowly(*arguments: Any, **options: Any) -> Any:
        screen.wait_for(f"treeparse: {said} ...")
        return work(*arguments, **options)

    monkeypatch.setattr(training_run, step, slowly)
    with terminal(monkeypatch, "stderr", silence=0) as screen:
        train(load_config(tiny_config, ["--optimization.epochs=1", "--trainer.accelerator=cpu"]))
    assert f"treeparse: {said} ..." in screen.lines
