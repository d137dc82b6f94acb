"""The command's frame: help, versions, exit codes, and the config command."""

import argparse
import logging
import os
import re
import subprocess
import sys
import tomllib
import warnings
from collections.abc import Callable
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from types import ModuleType

import pytest
from helpers.commands import Capture, error_of

import treeparse
from treeparse.cli import commands
from treeparse.cli import main as cli
from treeparse.errors import DataError
from treeparse.shipped import shipped_files

ROOT = Path(__file__).parents[2]
Install = Callable[..., None]


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Install:
    """Makes ``probe`` the only command."""

    def install(run: Callable[[argparse.Namespace], int], *, takes_overrides: bool = False) -> None:
        command = ModuleType("probe")
        vars(command).update(add_arguments=lambda parser: None, run=run, TAKES_OVERRIDES=takes_overrides)
        monkeypatch.setattr(cli, "COMMANDS", {"probe": "try"})
        monkeypatch.setitem(sys.modules, "treeparse.cli.commands.probe", command)

    return install


def raising(error: BaseException) -> Callable[[argparse.Namespace], int]:
    def run(args: argparse.Namespace) -> int:
        raise error

    return run


@pytest.mark.parametrize(
    ("error", "code", "sentence"),
    [
        (DataError("the file is empty.", source="a.conllu"), 2, "a.conllu: the file is empty."),
        (FileNotFoundError(2, "No such file or directory", "b.conllu"), 2, "b.conllu: No such file or directory."),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)
def test_errors_become_sentences(
    install: Install, capsys: Capture, error: BaseException, code: int, sentence: str
) -> None:
    install(raising(error))
    assert cli.main(["probe"]) == code
    assert capsys.readouterr() == ("", f"treeparse: error: {sentence}\n")


@pytest.mark.parametrize("kind", [ValueError, RuntimeError])
def test_a_bug_keeps_its_traceback(install: Install, kind: type[Exception]) -> None:
    install(raising(kind("a bug")))
    with pytest.raises(kind, match="a bug"):
        cli.main(["probe"])


def test_overrides_reach_the_command_in_order(install: Install) -> None:
    seen: list[list[str]] = []
    install(lambda args: seen.append(args.overrides) or 0, takes_overrides=True)
    overrides = ["--data.train", "a", "b", "--optimization.epochs=3", "--optimization.learning_rate", "-1"]
    cli.main(["probe", *overrides[:3], "--quiet", "--threads", "1", *overrides[3:]])
    assert seen == [overrides]


def test_unknown_arguments_are_usage_errors(install: Install, capsys: Capture) -> None:
    install(lambda args: 0)
    assert "unrecognized arguments: --epochs 3" in error_of(capsys, "probe", "--epochs", "3")
    assert "required: COMMAND" in error_of(capsys)


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["pred"], "Unknown command 'pred'. Commands: train, "),
        (["check", "file", "--quite"], "; did you mean --quiet?"),
        (["check", "file", "--threads", "0"], "must be a whole number from 1 to 1024, got '0'"),
        (["evaluate", "a", "b", "--resamples", "0"], "must be a whole number from 1 to 10000000, got '0'"),
        (["predict", "model", "in", "--decoder", "minimum_rsk"], "did you mean minimum_risk?"),
        (["predict", "model", "in", "-o", " "], "-o/--output: must name a file, got ' '"),
        (["sample", "model", "in", "-k2", "--seed", str(2**63)], "from 0 to 9223372036854775807, got '92"),
        (["sample", "model", "in", "-k2", "--seed", "1.5"], "--seed: must be a whole number from 0 to 9223372036854"),
        (["sample", "model", "in", "-k2", "--temperature", "0"], "--temperature: must be a finite number above 0, got"),
        (["kbest", "model", "in"], "required: -k"),
        (["kbest", "model", "in", "-k", "0"], "-k: must be a whole number of 1 or more, got '0'"),
        (["kbest", "model", "in", "-k", "2", "--decoder", "minimum-risk"], "minimum_risk chooses one tree"),
        (["kbest", "model", "in", "-k", "2", "--decoder", "finest"], "Unknown decoder 'finest'"),
        (["predict", "model", "in", "--batch-words", "0"], "must be a whole number of 1 or more, got '0'"),
        (["predict", "model", "in", "--chunk", "0"], "must be a whole number of 1 or more, got '0'"),
        (["self-train", "--rounds", "0"], "a whole number of 1 or more"),
        (["self-train", "--least-log-prob", "0.5"], "a number of at most 0"),
        (["serve", "model", "--port", "65536"], "must be a whole number from 0 to 65535, got '65536'"),
        (["serve", "model", "--seconds", "0"], "must be a number of seconds above 0 and up to 86400, got '0'"),
        (["serve", "model", "--max-words", "none"], "must be a whole number of 1 or more, got 'none'"),
    ],
)
def test_what_is_mistyped(argv: list[str], words: str, capsys: Capture) -> None:
    assert words in error_of(capsys, *argv)


@pytest.mark.parametrize(
    "fault",
    [
        MemoryError("Unable to allocate 7.11 PiB"),
        RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 4 bytes."),
        RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB."),
    ],
)
def test_memory_that_runs_out(install: Install, capsys: Capture, fault: Exception) -> None:
    install(raising(fault))
    assert cli.main(["probe"]) == 2
    assert capsys.readouterr().err.startswith("treeparse: error: memory ran out: take smaller batches")


def test_version_is_the_projects(capsys: Capture) -> None:
    with pytest.raises(SystemExit) as stopped:
        cli.main(["--version"])
    assert stopped.value.code == 0
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert capsys.readouterr().out == f"treeparse {project['version']}\n"
    assert treeparse.__version__ == project["version"]


def test_a_copy_that_is_not_installed_has_a_version(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", missing)
    assert treeparse.__version__ == "0+unknown"


@pytest.mark.parametrize("command", [*cli.COMMANDS, "train --help-config"])
def test_every_command_has_help_with_examples_and_without_control_characters(command: str, capsys: Capture) -> None:
    name, *config = command.split()
    with suppress(SystemExit):
        assert cli.main([name, *(config or ["--help"])]) == 0
    text = capsys.readouterr().out
    assert text and not re.findall(r"[^\n\x20-\x7e\xa0-\U0010ffff]|\\x[0-9a-f]{2}", text)
    if config:
        assert "--optimization.learning_rate" in text
    else:
        assert f"treeparse {name} " in text.partition("examples:")[2] and "--threads" in text and "--quiet" in text


def test_a_reader_that_leaves_is_no_error() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "treeparse", "config", "fast"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    with process.stderr as stderr:
        assert stderr.read() == b""
    assert process.wait() == 141


def test_config_lists_every_file_with_its_first_comment(capsys: Capture) -> None:
    assert cli.main(["config"]) == 0
    lines = capsys.readouterr().out.splitlines()
    files = [path.relative_to(ROOT / "configs").with_suffix("") for path in (ROOT / "configs").rglob("*.yaml")]
    assert sorted(line.split()[0] for line in lines) == sorted(map(str, files))
    assert [line.split()[0] for line in lines[: len(shipped_files())]] == list(shipped_files())
    for line in lines:
        text = (ROOT / "configs" / f"{line.split()[0]}.yaml").read_text(encoding="utf-8")
        description = line.split(maxsplit=1)[1]
        assert description.endswith(".")
        assert "".join(text.split()).replace("#", "").startswith("".join(description.split()))


@pytest.mark.parametrize("name", ["demo", "demo.yaml", "rules/ud", "constraints/ud", "rules/ud.yaml"])
def test_config_prints_a_file_as_it_is(name: str, capsys: Capture) -> None:
    assert cli.main(["config", name]) == 0
    expected = ROOT / "configs" / f"{name.removesuffix('.yaml')}.yaml"
    assert capsys.readouterr().out == expected.read_text(encoding="utf-8")


@pytest.mark.parametrize(("name", "told"), [("rule/ud", "'rule/ud': choose one of "), ("dmo", "; did you mean demo?")])
def test_config_says_what_there_is(name: str, told: str, capsys: Capture) -> None:
    assert told in error_of(capsys, "config", name)


COMMAND = """
import sys

def add_arguments(parser):
    parser.add_argument("file")


def run(args):
    with open(args.file) as stream:
        print(len(stream.readlines()), file=sys.stdout)
    return 0
"""


def test_a_new_command_is_one_file_and_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    (tmp_path / "count_lines.py").write_text(COMMAND, encoding="utf-8")
    monkeypatch.setattr(commands, "__path__", [*commands.__path__, str(tmp_path)])
    monkeypatch.setattr(cli, "COMMANDS", cli.COMMANDS | {"count-lines": "count the lines of a file"})
    assert cli.main(["count-lines", str(tmp_path / "count_lines.py")]) == 0
    assert capsys.readouterr().out == f"{len(COMMAND.splitlines())}\n"
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    assert "count-lines" in capsys.readouterr().out


def test_a_command_leaves_its_process_as_it_was(install: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    def state() -> list[object]:
        log = logging.getLogger("treeparse.test").level
        return [
            dict(os.environ),
            [*warnings.filters],
            log,
            torch.get_num_threads(),
            torch.initial_seed(),
            torch.rand(3),
        ]

    def run(args: argparse.Namespace) -> int:
        assert torch.get_num_threads() == 3
        os.environ["TREEPARSE_TEST"] = "changed"
        os.environ["TREEPARSE_OTHER"] = "new"
        warnings.filterwarnings("ignore", "a warning")
        logging.getLogger("treeparse.test").setLevel(logging.ERROR)
        torch.manual_seed(1)
        return 0

    install(run)
    monkeypatch.setenv("TREEPARSE_TEST", "old")
    generator = torch.random.get_rng_state()
    *before, drawn = state()
    torch.random.set_rng_state(generator)
    assert cli.main(["probe", "--threads", "3"]) == 0
    *after, drawn_after = state()
    assert after == before and torch.equal(torch.as_tensor(drawn), torch.as_tensor(drawn_after))


TREES = "1\ta\t_\tDET\t_\t_\t2\tdet\t_\t_\n2\tb\t_\tNOUN\t_\t_\t0\troot\t_\t_\n\n"
TRAIN = ["train", "--config", "tiny", "--data.train", "in.conllu", "--output", "run"]

# By the kind of wrong argument: the command, and what its sentence says.
REFUSALS = {
    "input": (["kbest", "model", "nosuch.conllu", "-k", "2"], "there is no file 'nosuch.conllu'"),
    "output": (["sample", "model", "in.conllu", "-k", "2", "-o", "nosuch/out"], "the folder"),
    "option": (["evaluate", "in.conllu", "in.conllu", "--ouput", "x"], "did you mean --output?"),
    "command": (["trian", "--config", "tiny"], "did you mean train?"),
    "config": (["train", "--config", "tniy", "--output", "run"], "did you mean tiny?"),
    "key": (["train", "--config", "tiny", "--data.trian", "x"], "Did you mean --data.train?"),
    "key in a file": ([*TRAIN[:1], "--config", "wrong.yaml", *TRAIN[3:]], "Did you mean data.train?"),
    "class of an objective": ([*TRAIN, "--objective", "nosuch.MyLoss"], "No module named 'nosuch'"),
    "class of an encoder": ([*TRAIN, "--model.encoder", "nosuch.Mine"], "No module named 'nosuch'"),
    "class of a scorer": (["rerank", "in.conllu", "--scorer", "nosuch.flat"], "No module named 'nosuch'"),
    "device": (["suspects", "model", "in.conllu", "--device", "cdua"], "did you mean cuda?"),
    "device of a run": ([*TRAIN, "--trainer.accelerator", "nosuch"], "There is no device 'nosuch'"),
    "extra for serving": (["serve", "model", "--port", "0"], "pip install 'treeparse[serve]'"),
    "extra for raw text": (
        ["predict", "model", "in.conllu", "--format", "text", "--tokenizer", "spacy:xx"],
        "pip install treeparse[spacy]",
    ),
    "extra for adapters": (
        ["train", "--config", "transformer", *TRAIN[3:], "--model.encoder.lora_rank", "8"],
        "pip install treeparse[lora]",
    ),
    "treebank": ([*TRAIN[:3], "--data.train", "nosuch.conllu", "--output", "run"], "there is no file 'nosuch.conllu'"),
}
MODELS = """predict nosuch in.conllu, kbest nosuch in.conllu -k 3, sample nosuch in.conllu -k 3, rank nosuch in.conllu,
suspects nosuch in.conllu, evaluate --model nosuch in.conllu, render --model nosuch in.conllu, export nosuch,
calibrate nosuch in.conllu -o new, rerank in.conllu --model nosuch, serve nosuch, card nosuch, push nosuch org/name"""
NO_FOLDER = "There is no folder nosuch: name the folder of a model, or of its run."
REFUSALS |= {f"model: {command.split()[0]}": (command.split(), NO_FOLDER) for command in MODELS.split(",")}
MISSING = ("aiohttp", "spacy", "peft")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "in.conllu").write_text(TREES, encoding="utf-8")
    (tmp_path / "wrong.yaml").write_text("data: {trian: in.conllu}\n", encoding="utf-8")
    (tmp_path / "model").mkdir()
    for name in ("config.json", "vocabulary.json", "model.safetensors"):
        (tmp_path / "model" / name).touch()
    return tmp_path


@pytest.mark.parametrize("kind", REFUSALS)
def test_a_wrong_argument_is_refused(kind: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    arguments, sentence = REFUSALS[kind]
    monkeypatch.chdir(folder)
    if kind.startswith("extra"):
        for name in MISSING:  # as libraries that are not installed
            monkeypatch.setitem(sys.modules, name, None)
        for name in ("treeparse.serve", "treeparse.serve.process_request", "treeparse.cli.commands.serve"):
            monkeypatch.delitem(sys.modules, name, raising=False)
    assert sentence in error_of(capsys, *arguments)
    assert not (folder / "run").exists()
