"""``treeparse self-train``: rounds, their table, the best model, selection, and what is refused."""

import csv
import json
import os
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest
import yaml
from helpers.commands import Capture, error_of
from helpers.tiny_runs import write_tiny_config
from helpers.trained_runs import equal, weights

from treeparse import Parser
from treeparse.cli.main import main
from treeparse.data import load_treebank
from treeparse.training.parser_module import ParserModule


def run(*arguments: str | Path | float) -> int:
    return main([*map(str, arguments)])


def command_of(config: Path) -> list[Any]:
    """The command on 40 sentences with trees and 12 without, two epochs a round."""
    text = config.with_name("text.txt")
    sentences = load_treebank([config.with_name("dev.conllu")])
    text.write_text("".join(" ".join(s.words.forms) + "\n" for s in sentences), encoding="utf-8")
    options = ["--data.unlabelled", text, "--optimization.epochs", 2, "--output", config.parent / "out"]
    return ["self-train", "--config", config, *options]


@pytest.fixture
def command(tiny_config: Path) -> list[Any]:
    return command_of(tiny_config)


@pytest.fixture(scope="module")
def one_round(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the command leaves after one round, for tests that copy it."""
    folder = tmp_path_factory.mktemp("self-training")
    assert run(*command_of(write_tiny_config(folder)), "--rounds", 1, "-q") == 0
    return folder / "out"


@pytest.fixture
def out(tiny_config: Path) -> Path:
    return tiny_config.parent / "out"


def measured(folder: Path) -> tuple[float, float]:
    """UAS and LAS of a round's best epoch, in percent, by its log."""
    with (folder / "metrics.csv").open(encoding="utf-8", newline="") as file:
        rows = [(100 * float(row["dev_uas"]), 100 * float(row["dev_las"])) for row in csv.DictReader(file)]
    return max(rows, key=lambda row: row[1])


def table(text: str) -> list[list[str]]:
    """The rows of the table at the end, without its head."""
    lines = text.splitlines()
    start = next(place for place, line in enumerate(lines) if line.startswith("round  dev UAS  dev LAS"))
    return [line.split() for line in lines[start + 1 : -1]]


def test_a_table_of_rounds_and_the_best_model(command: list[Any], out: Path, tmp_path: Path, capsys: Capture) -> None:
    assert run(*command) == 0
    shown = capsys.readouterr().out
    rows, scores = table(shown), [measured(out / f"round-{number}") for number in range(3)]
    best = max(range(3), key=lambda number: scores[number][1])
    for number, (row, (uas, las)) in enumerate(zip(rows, scores, strict=True)):
        silver = "12" if number else "0"
        mark = ["best"] if number == best else []
        assert row == [str(number), f"{uas:.2f}", f"{las:.2f}", silver, "12", *mark]
    assert shown.endswith(f"model: {out / 'model'}\n")
    assert equal(weights(out / "model"), weights(out / f"round-{best}" / "model"))
    for model in (out, out / f"round-{best}"):
        assert run("predict", model, tmp_path / "dev.conllu", "-o", tmp_path / f"{model.name}.conllu", "-q") == 0
    assert (tmp_path / "out.conllu").read_text() == (tmp_path / f"round-{best}.conllu").read_text()


def test_a_finished_round_is_not_repeated_and_more_rounds_are_added(
    command: list[Any], out: Path, one_round: Path, capsys: Capture
) -> None:
    shutil.copytree(one_round, out)
    assert run(*command, "--rounds", 1) == 0
    first = table(capsys.readouterr().out)
    before = {number: (out / f"round-{number}" / "metrics.csv").stat().st_mtime_ns for number in (0, 1)}
    assert run(*command, "--rounds", 1) == 0
    again = capsys.readouterr().out
    assert "epoch" not in again and table(again) == first and len(first) == 2
    moved = out.rename(out.with_name("moved"))
    assert run(*command, "--rounds", 2, "--output", moved) == 0
    more = table(capsys.readouterr().out)
    assert [row[:5] for row in more[:2]] == [row[:5] for row in first] and len(more) == 3
    assert {number: (moved / f"round-{number}" / "metrics.csv").stat().st_mtime_ns for number in (0, 1)} == before


def test_round_0_has_the_weights_of_train(one_round: Path, tiny_config: Path) -> None:
    assert run("train", "--config", tiny_config, "--optimization.epochs", 2, "-q") == 0
    assert equal(weights(one_round / "round-0" / "model"), weights(tiny_config.parent / "run" / "model"))


def test_sentences_are_left_out_by_the_log_probability_a_word_of_their_trees(
    command: list[Any], one_round: Path, tmp_path: Path, capsys: Capture
) -> None:
    text = [line.split() for line in (tmp_path / "text.txt").read_text(encoding="utf-8").splitlines()]
    parses = Parser.from_pretrained(one_round / "round-0").parse(text)
    means = [parse.log_prob / len(parse.tokens) for parse in parses]
    least = sorted(means)[len(means) // 2] - 1e-6
    sure = [parse for parse, mean in zip(parses, means, strict=True) if mean >= least]
    capsys.readouterr()
    assert run(*command, "--rounds", 1, "--output", tmp_path / "some", "--least-log-prob", least) == 0
    assert table(capsys.readouterr().out)[1][3:5] == [str(len(sure)), "12"]
    silver = load_treebank([tmp_path / "some" / "silver-1.conllu"])
    assert [(s.words.forms, s.words.heads, s.words.labels) for s in silver] == [
        (parse.tokens, parse.heads, parse.labels) for parse in sure
    ]
    settings = yaml.safe_load((tmp_path / "some" / "round-1" / "config.yaml").read_text(encoding="utf-8"))
    assert settings["data"]["unlabelled"] == str(tmp_path / "some" / "silver-1.conllu")


def test_a_threshold_that_no_sentence_reaches_may_be_lowered(command: list[Any], out: Path, capsys: Capture) -> None:
    one = [*command, "--rounds", 1, "-q", "--least-log-prob"]
    problem = "No sentence of the text has a tree of log probability 0.0 a word or more; the surest has -"
    assert problem in error_of(capsys, *one, 0)
    assert run(*one, -100) == 0
    assert len(load_treebank([out / "silver-1.conllu"])) == 12
    assert "least_log_prob differ" in error_of(capsys, *one, -1)


def test_without_a_dev_set_the_last_round_is_the_model(command: list[Any], out: Path, capsys: Capture) -> None:
    assert run(*command, "--rounds", 1, "--data.dev", "null") == 0
    assert table(capsys.readouterr().out) == [["0", "-", "-", "0", "12"], ["1", "-", "-", "12", "12", "best"]]
    assert equal(weights(out / "model"), weights(out / "round-1" / "model"))


@pytest.mark.parametrize(
    ("number", "code", "word"), [(signal.SIGTERM, 143, "terminated"), (signal.SIGINT, 130, "interrupted")]
)
def test_a_stopped_command_says_how_to_go_on(
    command: list[Any], capsys: Capture, monkeypatch: pytest.MonkeyPatch, number: signal.Signals, code: int, word: str
) -> None:
    def step(*_: object) -> None:
        os.kill(os.getpid(), number)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    monkeypatch.setattr(ParserModule, "training_step", step)
    assert run(*command, "-q") == code
    assert capsys.readouterr().err == f"{word}; the same command resumes\n"
    signal.signal(signal.SIGINT, before)


def test_other_settings_or_data_are_refused(command: list[Any], out: Path, tmp_path: Path, capsys: Capture) -> None:
    assert run(*command, "--rounds", 1, "-q") == 0
    before = (out / "rounds.json").read_bytes()
    refused = [
        ([*command, "--seed", 2], "seed differ"),
        ([*command, "--optimization.learning_rate", 0.1], "optimization.learning_rate differ"),
        (["train", "--config", tmp_path / "config.yaml", "--output", out / "round-0"], "already holds a run"),
    ]
    for arguments, problem in refused:
        assert problem in error_of(capsys, *arguments, "-q")
    text = tmp_path / "text.txt"
    text.write_text("another line\n" + text.read_text(encoding="utf-8"), encoding="utf-8")
    assert "files of data.unlabelled differ: name another folder" in error_of(capsys, *command, "-q")
    assert (out / "rounds.json").read_bytes() == before
    text.write_text(text.read_text(encoding="utf-8").removeprefix("another line\n"), encoding="utf-8")
    (out / "rounds.json").unlink()
    assert run(*command, "--rounds", 1, "-q") == 0
    assert json.loads((out / "rounds.json").read_bytes()) == json.loads(before)


def test_faults_are_sentences_and_come_before_training(
    command: list[Any], out: Path, tmp_path: Path, capsys: Capture
) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter.txt").write_text("dear", encoding="utf-8")
    (tmp_path / "empty.txt").write_text("\n", encoding="utf-8")
    heads = (tmp_path / "dev.conllu").read_text(encoding="utf-8").split("\n")
    untreed = ["\t".join([*line.split("\t")[:6], *"____"]) if "\t" in line else line for line in heads]
    (tmp_path / "untreed.conllu").write_text("\n".join(untreed), encoding="utf-8")
    faults = [
        (["--data.unlabelled", "null"], "needs sentences without trees: name files as data.unlabelled"),
        (["--data.unlabelled", tmp_path / "empty.txt"], "the file holds no sentence"),
        (["--data.train", tmp_path / "untreed.conllu"], "HEAD"),
        (["--data.train", tmp_path / "untreed.conllu", "--data.partial", "true"], "data.train has none"),
        (["--model.encoder.tags", "[upos]"], "text.txt:1: The model reads UPOS"),
        (["--objective", "Entropy"], "The objective Entropy is not for trees alone"),
        (["--output", tmp_path / "full"], "holds other things than self-training's"),
    ]
    for options, problem in faults:
        assert problem in error_of(capsys, *command, *options, "-q")
        assert not any(out.glob("round-*"))
    assert os.listdir(tmp_path / "full") == ["letter.txt"]
    assert run(*command, "--rounds", 1, "-q") == 0  # what was refused is mended in the same folder


def test_train_points_to_this_command(tmp_path: Path, command: list[Any], capsys: Capture) -> None:
    files = [f"--data.{name}={tmp_path / name}.conllu" for name in ("train", "dev")]
    text = ["--data.unlabelled", tmp_path / "text.txt"]
    train = ["train", "--config", "semisup", *files, *text, "--output", tmp_path / "run", "-q"]
    assert "train with treeparse self-train" in error_of(capsys, *train)
    assert command
