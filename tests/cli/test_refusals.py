"""What cannot be is refused in a sentence before work begins."""

import sys
from pathlib import Path

import pytest
from helpers.commands import Capture, error_of

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
