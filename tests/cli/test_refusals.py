"""What cannot be is refused at once: within a second of CPU time from Enter, before torch is loaded."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SECONDS = 1.0  # user and system time of the whole process
TREES = "1\ta\t_\tDET\t_\t_\t2\tdet\t_\t_\n2\tb\t_\tNOUN\t_\t_\t0\troot\t_\t_\n\n"
TRAIN = ["train", "--config", "tiny", "--data.train", "in.conllu", "--output", "run"]

# By the kind of wrong argument: the command, and what its sentence says.
REFUSALS = {
    "model": (["predict", "nosuch", "in.conllu"], "There is no folder nosuch"),
    "input": (["kbest", "model", "nosuch.conllu", "-k", "2"], "there is no file 'nosuch.conllu'"),
    "output": (["sample", "model", "in.conllu", "-k", "2", "-o", "nosuch/out"], "the folder"),
    "option": (["evaluate", "in.conllu", "in.conllu", "--ouput", "x"], "did you mean --output?"),
    "command": (["trian", "--config", "tiny"], "did you mean train?"),
    "config": (["train", "--config", "tniy", "--output", "run"], "did you mean tiny?"),
    "key": (["train", "--config", "tiny", "--data.trian", "x"], "did you mean --data.train?"),
    "key in a file": ([*TRAIN[:1], "--config", "wrong.yaml", *TRAIN[3:]], "Unknown setting data.trian"),
    "class of an objective": ([*TRAIN, "--objective", "nosuch.MyLoss"], "No module named 'nosuch'"),
    "class of an encoder": ([*TRAIN, "--model.encoder.class_path", "nosuch.Mine"], "No module named 'nosuch'"),
    "class of a scorer": (["rerank", "in.conllu", "--scorer", "nosuch.flat"], "No module named 'nosuch'"),
    "device": (["suspects", "model", "in.conllu", "--device", "cdua"], "did you mean cuda?"),
    "device of a run": ([*TRAIN, "--trainer.device", "nosuch"], "There is no device 'nosuch'"),
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
    "run": (["export", "nosuch"], "There is no folder nosuch"),
    "run to score": (["card", "nosuch"], "There is no folder nosuch"),
    "model to score": (["evaluate", "in.conllu", "--model", "nosuch"], "There is no folder nosuch"),
    "model to draw": (["render", "in.conllu", "--model", "nosuch", "-o", "x.html"], "There is no folder nosuch"),
    "model to calibrate": (["calibrate", "nosuch", "in.conllu", "-o", "new"], "There is no folder nosuch"),
    "model to serve": (["serve", "nosuch"], "There is no folder nosuch"),
    "reranker": (["rerank", "in.conllu", "--model", "nosuch"], "There is no folder nosuch"),
}
MISSING = ("aiohttp", "spacy", "peft")
PROGRAM = """
import sys
sys.modules.update(dict.fromkeys({missing}))  # as libraries that are not installed
from treeparse.cli.main import main
try:
    code = main({arguments})
except SystemExit as error:
    code = error.code
assert "torch" not in sys.modules, "torch was loaded"
sys.exit(code)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "in.conllu").write_text(TREES, encoding="utf-8")
    (tmp_path / "wrong.yaml").write_text("data: {trian: in.conllu}\n", encoding="utf-8")
    (tmp_path / "model").mkdir()
    for name in ("config.json", "vocabulary.json", "model.safetensors"):
        (tmp_path / "model" / name).touch()
    return tmp_path


@pytest.mark.parametrize("kind", REFUSALS)
def test_a_wrong_argument_is_refused_within_a_second(kind: str, folder: Path) -> None:
    arguments, sentence = REFUSALS[kind]
    program = PROGRAM.format(missing=MISSING if kind.startswith("extra") else (), arguments=arguments)
    with (folder / "said").open("w+b") as said:
        process = subprocess.Popen([sys.executable, "-c", program], cwd=folder, stdout=said, stderr=said)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    text = (folder / "said").read_text(encoding="utf-8")
    assert process.returncode == 2, text
    assert sentence in text
    assert usage.ru_utime + usage.ru_stime < SECONDS, text
    assert not (folder / "run").exists()
