"""Outputs are checked before any work: they can be written, and none is one of the command's own inputs."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest
from helpers.commands import Capture
from helpers.unprivileged import make_read_only, run_as_nobody

from treeparse.cli.main import main
from treeparse.model.folder import FILES as MODEL_FILES

TREES = "# sent_id = s1\n1\ta\t_\tDET\t_\t_\t2\tdet\t_\t_\n2\tb\t_\tNOUN\t_\t_\t0\troot\t_\t_\n\n"
LIST = TREES.replace("s1\n", "s1.1\n# rank = 1\n# log_prob = -0.5\n# score = 1\n")
CLASH = "would replace the input"

# Of each command an input and an output that may be the same file; the model is an empty folder.
CLASHES = {
    "predict": ["predict", "MODEL", "FILE", "-o", "OUT"],
    "predict: the second file": ["predict", "MODEL", "other.conllu", "FILE", "-o", "OUT"],
    "predict: a glob": ["predict", "MODEL", "*.conllu", "-o", "OUT"],
    "predict: rules": ["predict", "MODEL", "other.conllu", "--rules", "FILE", "-o", "OUT"],
    "predict: held out": [
        *["predict", "MODEL", "other.conllu", "--head-sets", "0.05", "--held-out", "FILE"],
        *["-o", "OUT"],
    ],
    "kbest": ["kbest", "MODEL", "FILE", "-k", "2", "-o", "OUT"],
    "sample": ["sample", "MODEL", "FILE", "-k", "2", "-o", "OUT"],
    "rank": ["rank", "MODEL", "FILE", "-o", "OUT"],
    "suspects": ["suspects", "MODEL", "FILE", "-o", "OUT"],
    "suspects: a page": ["suspects", "MODEL", "FILE", "--html", "OUT"],
    "suspects: for an editor": ["suspects", "MODEL", "FILE", "--highlight", "OUT"],
    "rerank": ["rerank", "FILE", "-o", "OUT"],
    "evaluate: gold": ["evaluate", "FILE", "other.conllu", "--output", "OUT"],
    "evaluate: system": ["evaluate", "other.conllu", "FILE", "--html", "OUT"],
    "evaluate: a model's gold": ["evaluate", "--model", "MODEL", "FILE", "--output", "OUT"],
    "render": ["render", "FILE", "-o", "OUT"],
    "render: system": ["render", "other.conllu", "FILE", "-o", "OUT"],
    "render: a model's text": ["render", "--model", "MODEL", "FILE", "-o", "OUT"],
    "constraints extract": ["constraints", "extract", "FILE", "-o", "OUT"],
    "constraints report: constraints": ["constraints", "report", "MODEL", "FILE", "other.conllu", "-o", "OUT"],
    "constraints report: text": ["constraints", "report", "MODEL", "c.yaml", "FILE", "-o", "OUT"],
    "check": ["check", "FILE", "--output", "OUT"],
}
# Of each command that reads a model or a reranker.
MODELS = {name: command for name, command in CLASHES.items() if "MODEL" in command} | {
    "predict: the second model": ["predict", "more", "MODEL", "in.conllu", "-o", "OUT"],
    "rerank": ["rerank", "in.conllu", "--model", "MODEL", "-o", "OUT"],
}
WITHOUT_MODEL = ["rerank", "evaluate: gold", "evaluate: system", "render", "constraints extract", "check"]
PARSING = ["predict", "kbest", "sample", "rank"]  # which write files into a folder, too
FILES = [name for name, command in CLASHES.items() if ":" not in name or name == "evaluate: gold"]

Link = Callable[[Path, Path], object]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with files and a folder in the place of a model."""
    monkeypatch.chdir(tmp_path)
    for name in ("in.conllu", "other.conllu"):
        Path(name).write_text(TREES)
    Path("c.yaml").touch()
    for name in ("MODEL", "more"):
        Path(name).mkdir()
    return tmp_path


def filled(command: Sequence[str], file: str, output: str) -> list[str]:
    return [{"FILE": file, "OUT": output}.get(word, word) for word in command]


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def refused(capsys: Capture, *arguments: str) -> str:
    """The message of a command that changes nothing."""
    before = tree(Path())
    assert main(arguments) == 2
    shown = capsys.readouterr()
    assert tree(Path()) == before and shown.out == "" and shown.err.count("\n") == 1
    return shown.err


@pytest.mark.parametrize("link", [None, Path.symlink_to, Path.hardlink_to], ids=["itself", "symbolic", "hard"])
@pytest.mark.parametrize("command", CLASHES)
def test_no_output_is_an_input(capsys: Capture, command: str, link: Link | None) -> None:
    output = "in.conllu"
    if link is not None:
        output = "link"
        link(Path(output), Path("in.conllu"))
    error = refused(capsys, *filled(CLASHES[command], "in.conllu", output))
    assert f"The output {output} {CLASH} in.conllu" in error and "--overwrite-input" in error


@pytest.mark.parametrize("name", MODEL_FILES)
@pytest.mark.parametrize("place", ["MODEL", "MODEL/model"], ids=["model", "run"])
@pytest.mark.parametrize("command", MODELS)
def test_no_output_is_a_file_of_a_model(capsys: Capture, command: str, place: str, name: str) -> None:
    Path(place).mkdir(exist_ok=True)
    Path(place, name).write_text("{}")
    error = refused(capsys, *filled(MODELS[command], "in.conllu", f"{place}/{name}"))
    assert f"{CLASH} {place}/{name}" in error


@pytest.mark.parametrize("command", PARSING)
def test_no_output_in_a_folder_is_an_input(capsys: Capture, command: str) -> None:
    suffix = ["--output-format", "conllu"] if command == "rank" else []
    options = [*([] if command in ("predict", "rank") else ["-k", "2"]), *suffix]
    inputs = [command, "MODEL", "in.conllu", "other.conllu", *options]
    assert CLASH in refused(capsys, *inputs, "-o", ".")
    Path("out").mkdir()
    Path("out", "other.conllu").hardlink_to("in.conllu")
    assert f"The output out/other.conllu {CLASH} in.conllu" in refused(capsys, *inputs, "-o", "out")
    assert f"The output out/other.conllu {CLASH} in.conllu" in refused(capsys, *inputs, "-o", "out", "--shard", "1/1")


def test_a_card_is_no_test_file(capsys: Capture) -> None:
    Path("RUN", "model").mkdir(parents=True)
    Path("RUN", "model", "README.md").symlink_to(Path("in.conllu").absolute())
    assert f"{CLASH} in.conllu" in refused(capsys, "card", "RUN", "in.conllu")


@pytest.mark.parametrize("command", WITHOUT_MODEL)
def test_an_input_is_replaced_where_that_is_wanted(command: str) -> None:
    text = LIST if command == "rerank" else TREES
    Path("in.conllu").write_text(text)
    arguments = filled(CLASHES[command], "in.conllu", "in.conllu")
    assert main([*arguments, "--overwrite-input"]) == 0
    assert Path("in.conllu").read_text() not in ("", text)


def test_folders_of_inputs_are_written_where_that_is_wanted(model: str) -> None:
    assert main(["predict", model, "in.conllu", "other.conllu", "-o", ".", "--overwrite-input"]) == 0
    assert Path("in.conllu").read_text() != TREES


def test_standard_streams_and_devices_are_no_files(monkeypatch: pytest.MonkeyPatch) -> None:
    assert main(["check", "in.conllu", "--output", "/dev/null"]) == 0
    with open("in.conllu", "rb") as stream:
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=stream))
        assert main(["check", "-", "--output", "report.json"]) == 0


def test_another_file_is_replaced_once_the_new_one_is_whole(capsys: Capture) -> None:
    for command in WITHOUT_MODEL:
        Path("in.conllu").write_text(LIST if command == "rerank" else TREES)
        Path("out").write_text("old")
        assert main(filled(CLASHES[command], "in.conllu", "out")) == 0
        assert Path("out").read_text() not in ("", "old")
        Path("in.conllu").write_text(Path("in.conllu").read_text().replace("\t0\t", "\t7\t"))
        Path("out").write_text("old")
        if command != "check":  # which writes what is wrong
            assert main(filled(CLASHES[command], "in.conllu", "out")) == 2
            assert Path("out").read_text() == "old"
    assert not list(Path().glob(".*"))


def test_two_outputs_are_two_files(capsys: Capture) -> None:
    arguments = ["evaluate", "in.conllu", "other.conllu", "--output", "x", "--html", "./x"]
    assert "are one file" in refused(capsys, *arguments)


# ---------------------------------------------------------------- what cannot be written


@pytest.mark.parametrize("command", FILES)
def test_an_output_that_cannot_be_is_refused_first(capsys: Capture, command: str) -> None:
    arguments = CLASHES[command]
    missing = refused(capsys, *filled(arguments, "in.conllu", "missing/out"))
    assert "the folder" in missing and "missing does not exist; create it first" in missing
    long = refused(capsys, *filled(arguments, "in.conllu", "x" * 256))
    assert "File name too long" in long
    if command not in PARSING:
        assert "is a folder" in refused(capsys, *filled(arguments, "in.conllu", "more"))


@pytest.mark.parametrize("command", PARSING)
def test_a_folder_that_cannot_be_made_is_refused_first(capsys: Capture, command: str) -> None:
    arguments = filled(CLASHES[command], "in.conllu", "other.conllu/below/")
    assert "other.conllu: File exists" in refused(capsys, *arguments)


@pytest.mark.parametrize(
    "command",
    [
        ["train-reranker", "in.conllu", "other.conllu", "-o"],
        ["calibrate", "MODEL", "in.conllu", "-o"],
        ["export", "RUN", "-o"],
    ],
    ids=lambda command: command[0],
)
def test_a_model_takes_the_place_of_no_file(capsys: Capture, command: list[str]) -> None:
    assert "must be a folder, but a file has that name: name another folder" in refused(capsys, *command, "c.yaml")
    assert "missing does not exist; create it first" in refused(capsys, *command, "missing/model")


@pytest.mark.parametrize("command", ["train-reranker", "calibrate"])
def test_a_model_takes_the_place_of_nothing_else(capsys: Capture, command: str) -> None:
    Path("more", "letter.txt").touch()
    arguments = ["in.conllu", "other.conllu"] if command == "train-reranker" else ["MODEL", "in.conllu"]
    assert "letter.txt is one: name a new folder" in refused(capsys, command, *arguments, "-o", "more")


@pytest.mark.parametrize("command", ["train", "crossparse", "self-train"])
@pytest.mark.parametrize("output", ["c.yaml", "c.yaml/run"])
def test_a_run_takes_the_place_of_no_file(capsys: Capture, command: str, output: str) -> None:
    arguments = [command, "--config", "fast", "--data.train", "in.conllu", "--data.dev", "other.conllu", "-q"]
    assert "c.yaml: File exists" in refused(capsys, *arguments, "--output", output)


def test_a_folder_that_may_not_be_written_to_is_refused_first(tmp_path: Path) -> None:
    (tmp_path / "MODEL").rmdir()
    Path("in.conllu").write_text("no CoNLL-U")
    make_read_only(tmp_path)
    commands = [filled(CLASHES[name], "in.conllu", "out") for name in ("check", "rerank", "constraints extract")]
    program = f"from treeparse.cli.main import main; print(*map(main, {commands}))"
    done = run_as_nobody(["-c", program], tmp_path)
    assert done.stdout == "2 2 2\n"
    assert done.stderr.count(f"{tmp_path}: Permission denied; no file can be written there") == 3
