import math
import os
import re
import shutil
import signal
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers.commands import Capture
from helpers.trained_runs import equal, rows, weights

from treeparse import Parser
from treeparse.batch import Batch
from treeparse.data.batches.steps import batch_seed
from treeparse.data.conllu import load_treebank
from treeparse.data.parses import with_parses
from treeparse.errors import TreeparseError
from treeparse.metrics import attachment_scores
from treeparse.nn import BiLSTMConfig
from treeparse.objectives import Objective, Term, TreeLikelihood
from treeparse.training import TrainConfig, load_config, train, treebanks
from treeparse.training.fit import EpochTable
from treeparse.training.run_directory import EpochRecord


def _of_parser(state: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The weights of the parser in the state of a module."""
    return {name.removeprefix("parser."): weight for name, weight in state.items() if name.startswith("parser.")}


def config(path: Path, **options: object) -> TrainConfig:
    return load_config(path, [f"--{key.replace('__', '.')}={value}" for key, value in options.items()])


def as_trained(directory: Path) -> Parser:
    """The model before its temperatures were fitted."""
    parser = Parser.from_pretrained(directory)
    parser.config = replace(parser.config, temperature=1.0, label_temperature=1.0)
    return parser


def test_a_run_ends_with_the_model_of_its_best_epoch(tiny_config: Path, capsys: Capture) -> None:
    directory = train(config(tiny_config))
    history = rows(directory.parent)
    assert float(history[-1]["loss"]) < float(history[0]["loss"])
    assert float(history[-1]["learning_rate"]) < float(history[1]["learning_rate"])

    gold = [sentence.words for sentence in load_treebank([directory.parents[1] / "dev.conllu"])]
    parses = Parser.from_pretrained(directory).parse(gold)
    system = [sentence.with_tree(parse.heads, parse.labels) for sentence, parse in zip(gold, parses, strict=True)]
    best = max(float(row["dev_las"]) for row in history)
    shown = capsys.readouterr().out
    assert shown.count("epoch") >= 3
    scores = attachment_scores(gold, system)
    assert f"; with them UAS {scores.uas:.2%}, LAS {scores.las:.2%}\n" in shown
    with_trained_scores = attachment_scores(gold, with_parses(gold, as_trained(directory).parse(gold)))
    assert with_trained_scores.las == pytest.approx(best, abs=1e-6)
    assert f"LAS {best:.2%}" in shown and str(directory) in shown


def test_a_run_from_a_pipe_says_that_it_cannot_be_resumed(tiny_config: Path, capsys: Capture) -> None:
    treebank = (tiny_config.parent / "train.conllu").read_bytes()
    read, write = os.pipe()
    with open(write, "wb") as pipe:
        assert len(treebank) < 2**16  # so much, pipes take
        pipe.write(treebank)
    train(config(tiny_config, data__train=f"/dev/fd/{read}", optimization__epochs=1))
    os.close(read)
    assert f"/dev/fd/{read} is a pipe, so this run cannot be resumed: " in capsys.readouterr().out


def test_the_seed_fixes_the_run(tiny_config: Path, tmp_path: Path) -> None:
    one = {"optimization__epochs": 1}
    first = weights(train(config(tiny_config, **one), quiet=True))
    torch.rand(3)
    again = weights(train(config(tiny_config, output=tmp_path / "again", **one), quiet=True))
    other = weights(train(config(tiny_config, output=tmp_path / "other", seed=2, **one), quiet=True))
    assert equal(first, again)
    assert not equal(first, other)


@pytest.mark.usefixtures("one_thread")
@pytest.mark.filterwarnings("ignore:This DataLoader will create:UserWarning:torch.utils.data")  # on one core
def test_workers_change_nothing(tiny_config: Path, trained_config: Path) -> None:
    helped = train(config(tiny_config, data__workers=2, data__start_method="fork"), quiet=True)
    assert equal(weights(trained_config.parent / "run" / "model"), weights(helped))


def test_a_quiet_run_says_nothing_and_leaves_flags_and_signal_handlers(tiny_config: Path, capfd: Capture) -> None:
    before = signal.getsignal(signal.SIGINT), torch.are_deterministic_algorithms_enabled()
    train(config(tiny_config, optimization__epochs=1), quiet=True)
    assert (signal.getsignal(signal.SIGINT), torch.are_deterministic_algorithms_enabled()) == before
    assert capfd.readouterr() == ("", "")


def test_a_folder_with_a_run_is_not_touched(finished_run: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in finished_run.rglob("*")}
    with pytest.raises(TreeparseError, match="--resume"):
        train(config(finished_run / "config.yaml"), quiet=True)
    assert {path: path.stat().st_mtime_ns for path in finished_run.rglob("*")} == before


def test_a_finished_run_says_so_and_mends_its_model(finished_run: Path, capsys: Capture) -> None:
    before = weights(finished_run / "model")
    shutil.rmtree(finished_run / "model")
    (finished_run / "metrics.csv").unlink()
    assert train(config(finished_run / "config.yaml"), resume=True) == finished_run / "model"
    assert "finished" in capsys.readouterr().out
    assert equal(weights(finished_run / "model"), before)
    assert [row["epoch"] for row in rows(finished_run)] == ["1", "2", "3"]


def test_resuming_with_other_settings_or_data(finished_run: Path, trained_config: Path, tmp_path: Path) -> None:
    own = finished_run / "config.yaml"
    with pytest.raises(TreeparseError, match=r"optimization\.epochs was 3 and is 2; seed was 1 and is 5\."):
        train(config(own, optimization__epochs=2, seed=5), resume=True, quiet=True)
    copy = Path(shutil.copy(trained_config.with_name("dev.conllu"), tmp_path / "copy.conllu"))
    train(config(own, data__dev=copy), resume=True, quiet=True)
    copy.write_text(copy.read_text(encoding="utf-8").partition("\n\n")[2], encoding="utf-8")
    with pytest.raises(TreeparseError, match=r"the sentences of data\.dev changed"):
        train(config(own, data__dev=copy), resume=True, quiet=True)


def test_a_constant_rate_lets_the_budget_be_raised(tiny_config: Path, tmp_path: Path) -> None:
    constant = {"optimization__schedule": "constant"}
    train(config(tiny_config, optimization__epochs=1, **constant), quiet=True)
    model = train(config(tmp_path / "run/config.yaml", optimization__steps=8), resume=True, quiet=True)
    assert [row["epoch"] for row in rows(tmp_path / "run")] == ["1", "2"], "5 steps an epoch"
    whole = train(config(tiny_config, output=tmp_path / "whole", optimization__epochs=2, **constant), quiet=True)
    assert equal(weights(model), weights(whole))
    again = config(tmp_path / "run/config.yaml")
    assert again.optimization.epochs == 2, "the run's own config has its new budget"


def test_patience_may_be_raised_under_any_schedule(tiny_config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record = EpochTable._record

    def falling(self: EpochTable, epoch: int, *more: Any) -> EpochRecord:
        return replace(record(self, epoch, *more), dev_las=1 - epoch / 100)

    monkeypatch.setattr(EpochTable, "_record", falling)
    directory = train(config(tiny_config, optimization__patience=1), quiet=True)
    assert len(rows(directory.parent)) == 2
    train(config(directory.parent / "config.yaml", optimization__patience="null"), resume=True, quiet=True)
    assert len(rows(directory.parent)) == 3


def test_without_a_dev_set_the_last_epoch_makes_the_model(tiny_config: Path, tmp_path: Path, capsys: Capture) -> None:
    options = {"data__dev": "null", "optimization__average_decay": "null", "optimization__epochs": 2}
    directory = train(config(tiny_config, **options))
    shown = capsys.readouterr().out
    assert "nothing is measured" in shown and "the model is that of epoch 2 of 2" in shown
    assert all(row["dev_las"] == row["dev_uas"] == row["dev_loss"] == "" for row in rows(directory.parent))
    state = torch.load(tmp_path / "run/checkpoints/last.ckpt", weights_only=True)
    assert equal(weights(directory), _of_parser(state["state_dict"]))


def test_a_held_out_share_is_the_dev_set(tiny_config: Path, tmp_path: Path, capsys: Capture) -> None:
    directory = train(config(tiny_config, data__dev="null", data__dev_share=0.25, optimization__epochs=2))
    assert "10 of 40 training sentences are held out" in capsys.readouterr().out
    gold = [sentence.words for sentence in load_treebank([tmp_path / "train.conllu"])][3::4]
    parses = Parser.from_pretrained(directory).parse(gold)
    system = [sentence.with_tree(parse.heads, parse.labels) for sentence, parse in zip(gold, parses, strict=True)]
    best = max(float(row["dev_las"]) for row in rows(directory.parent))
    assert attachment_scores(gold, system).las == pytest.approx(best, abs=1e-6)


def test_the_dev_set_is_measured_every_few_epochs(tiny_config: Path, tmp_path: Path) -> None:
    often = train(config(tiny_config, optimization__epochs=4), quiet=True).parent
    options = {"optimization__epochs": 3, "optimization__dev_every": 2}
    seldom = train(config(tiny_config, output=tmp_path / "b", **options), quiet=True).parent
    assert [row["epoch"] for row in rows(seldom)] == ["2", "4"]
    names = ("learning_rate", "dev_uas", "dev_las", "dev_loss")
    for row, same in zip(rows(seldom), rows(often)[1::2], strict=True):
        assert [row[name] for name in names] == [same[name] for name in names]
    losses = [float(row["loss"]) for row in rows(often)]
    assert [float(row["loss"]) for row in rows(seldom)] == pytest.approx([sum(losses[:2]) / 2, sum(losses[2:]) / 2])


def test_dev_loss_is_the_training_loss_of_the_dev_set(trained_config: Path) -> None:
    run = trained_config.parent / "run"
    parser = as_trained(run)
    gold = [sentence.words for sentence in load_treebank([trained_config.with_name("dev.conllu")])]
    with torch.no_grad():
        loss = parser.loss(parser.collate(gold), TreeLikelihood())
    best = max(rows(run), key=lambda row: float(row["dev_las"]))
    assert float(best["dev_loss"]) == pytest.approx(float(loss), rel=1e-5)


def test_what_a_run_will_do_is_said(tiny_config: Path, capsys: Capture) -> None:
    train(config(tiny_config, optimization__steps=12))
    shown = capsys.readouterr().out
    assert re.search(r"40 sentences, 221 words: 15 steps, 3 epochs, about \d+ seconds", shown), shown


def test_init_from(tiny_config: Path, trained_config: Path, tmp_path: Path) -> None:
    source = trained_config.parent / "run" / "model"
    options = {"init_from": source, "optimization__epochs": 1, "optimization__learning_rate": 0}
    assert equal(weights(source), weights(train(config(tiny_config, **options), quiet=True)))
    with pytest.raises(TreeparseError, match="do not fit the model"):
        train(config(tiny_config, output=tmp_path / "wide", model__arc_size=9, **options), quiet=True)
    assert not (tmp_path / "wide").exists()


def test_pretrained_vectors_reach_the_model(tiny_config: Path, tmp_path: Path) -> None:
    (tmp_path / "vectors.txt").write_text("noun1 1 0 0\nnoun2 0 1 0\nverb1 0 0 1\nverb2 1 1 1\n", encoding="utf-8")
    options = {"data__vectors": tmp_path / "vectors.txt", "optimization__epochs": 1}
    (tmp_path / "vectors.bak").write_text("noun1 1 0 0\n", encoding="utf-8")
    with pytest.raises(TreeparseError, match=r"data\.vectors matches 2 files"):
        train(config(tiny_config, data__vectors=tmp_path / "vectors.*"), quiet=True)
    directory = train(config(tiny_config, data__max_vectors=3, **options), quiet=True)
    encoder = Parser.from_pretrained(directory).config.encoder
    assert isinstance(encoder, BiLSTMConfig) and encoder.vector_size == 3
    again = {"output": tmp_path / "again", "init_from": directory}
    with pytest.raises(TreeparseError, match=r"leave out data\.vectors"):
        train(config(tiny_config, **options, **again), quiet=True)
    train(config(tiny_config, optimization__epochs=1, **again), quiet=True)


def test_a_loss_that_is_no_number(tiny_config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loss_and_terms = Parser.loss_and_terms

    def broken(self: Parser, batch: Batch, objective: Objective) -> tuple[torch.Tensor, Sequence[Term]]:
        completed = (tmp_path / "run" / "checkpoints" / "last.ckpt").exists()
        loss, terms = loss_and_terms(self, batch, objective)
        return loss * (math.nan if completed else 1), terms

    monkeypatch.setattr(Parser, "loss_and_terms", broken)
    with pytest.raises(TreeparseError, match=r"epoch 2, batch 1 \(sentences 1-\d+.*the loss is nan.*learning_rate"):
        train(config(tiny_config), quiet=True)
    assert len(rows(tmp_path / "run")) == 1


def test_a_gradient_that_is_no_number(tiny_config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loss_and_terms = Parser.loss_and_terms

    def steep(self: Parser, batch: Batch, objective: Objective) -> tuple[torch.Tensor, Sequence[Term]]:
        loss, terms = loss_and_terms(self, batch, objective)
        zero = next(self.parameters()).sum() * 0
        return loss + zero.sqrt(), terms  # a derivative of 0 * inf

    monkeypatch.setattr(Parser, "loss_and_terms", steep)
    with pytest.raises(TreeparseError, match="norm of the gradient is nan"):
        train(config(tiny_config), quiet=True)


def test_a_learning_rate_beyond_reason(tiny_config: Path) -> None:
    with pytest.raises(TreeparseError, match="Training failed in epoch 1"):
        train(config(tiny_config, optimization__learning_rate=1e30, optimization__warmup_steps=0), quiet=True)


def test_skipped_sentences_are_counted(tiny_config: Path, tmp_path: Path, capsys: Capture) -> None:
    with (tmp_path / "train.conllu").open("a", encoding="utf-8") as file:
        file.write("# sent_id = bad\n1\ta\t_\t_\t_\t_\t7\tdep\t_\t_\n\n")
    with pytest.raises(TreeparseError, match="bad"):
        train(config(tiny_config), quiet=True)
    train(config(tiny_config, data__skip_invalid="true", optimization__epochs=1))
    assert "left out 1 " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"data__train": "$NO_SUCH_VARIABLE/x.conllu"}, "NO_SUCH_VARIABLE"),
        ({"data__dev": "none.conllu"}, r"none\.conllu"),
        ({"trainer__accelerator": "abacus"}, "no device"),
        ({"trainer__accelerator": "cuda", "trainer__devices": "[99]"}, "There is no device 'cuda:99'"),
        ({"init_from": "nowhere"}, "nowhere"),
    ],
)
def test_faults_leave_no_run_behind(tiny_config: Path, tmp_path: Path, options: dict, message: str) -> None:
    with pytest.raises(TreeparseError, match=message):
        train(config(tiny_config, **options), quiet=True)
    assert not (tmp_path / "run").exists()


def test_seeds_of_batches_differ() -> None:
    assert len({batch_seed(*place) for place in product(range(9), repeat=4)}) == 9**4


def test_many_labels_are_doubted(tiny_config: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not so many as here, of which tests of the command know all that is said."""
    monkeypatch.setattr(treebanks, "MANY_LABELS", 1)
    train(config(tiny_config, optimization__epochs=1))
    assert "different labels, where treebanks have 30 to 400" in " ".join(capsys.readouterr().out.split())
