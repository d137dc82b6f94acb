"""Long sentences and many labels in bounded memory: label scores of all arcs at once would take 0.5 GB and more."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from helpers.commands import Capture
from helpers.forked import Forks
from helpers.parsers import CONFIG, random_parser

from treeparse.cli.main import main
from treeparse.data.conllu import read_conllu
from treeparse.errors import TreeparseError
from treeparse.model.inference import parsing

JOBS = ("parse", "minimum_risk", "kbest", "sample")

# 3e7 label scores: 120 MB in single precision, 240 MB in double. Every job has a process of its own, forked from one
# that has imported what it takes, and does a short sentence first: only then are code and kernels in its memory.
PROGRAM = """
import json, os, resource
import torch
from treeparse import Parser, Sentence
from treeparse.model import ParserConfig
from treeparse.nn import BiLSTMConfig

torch.manual_seed(1)
torch.set_num_threads(1)
words, labels = 320, 300
names = ("root", *(f"label{place}" for place in range(1, labels)))
train = Sentence(tuple(f"w{place}" for place in range(labels)), heads=(0, *[1] * (labels - 1)), labels=names)
encoder = BiLSTMConfig(word_size=8, char_filters=0, hidden_size=8, layers=1, min_count=1)
parser = Parser.build(ParserConfig(encoder=encoder, arc_size=8, label_size=8), [train]).eval()
for name, parameter in parser.scorer.named_parameters():
    if name.startswith(("arcs", "labels")):
        torch.nn.init.normal_(parameter, std=0.3)
sentences = [[f"w{place % labels}" for place in range(words)]]
jobs = {
    "parse": lambda sentences: parser.parse(sentences),
    "minimum_risk": lambda sentences: parser.parse(sentences, decoder="minimum_risk"),
    "kbest": lambda sentences: parser.kbest(sentences, 5),
    "sample": lambda sentences: parser.sample(sentences, 5),
}

def most_memory():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

for name, job in jobs.items():
    if os.fork() == 0:
        job([["w1", "w2"]])
        before = most_memory()
        job(sentences)
        print(json.dumps((name, most_memory() - before)), flush=True)
        os._exit(0)
    os.wait()
"""


@pytest.fixture(scope="module")
def megabytes(forks: Forks) -> dict[str, float]:
    """What a long sentence takes, by job."""
    done = forks.run(PROGRAM)
    assert done.returncode == 0, done.stderr
    return dict(map(json.loads, done.stdout.splitlines()))


@pytest.mark.slow
@pytest.mark.parametrize("job", JOBS)
def test_a_long_sentence_takes_little_memory(job: str, megabytes: dict[str, float]) -> None:
    assert megabytes[job] < 80


def test_a_sentence_too_long_for_the_memory_is_refused_at_once(tmp_path: Path, capsys: Capture) -> None:
    parser = random_parser()
    with pytest.raises(TreeparseError, match=r"Sentence 1 \(counted from 0\): it has 400,000 words.* 9,600 GB"):
        parser.parse([["a"], ["a"] * 400_000])
    siblings = random_parser(replace(CONFIG, trees="siblings", part_size=2))
    with pytest.raises(TreeparseError, match="it has 20,000 words"):
        siblings.kbest([["a"] * 20_000], 2)
    parser.float().save_pretrained(tmp_path / "model")
    text = tmp_path / "in.txt"
    text.write_text("a b\n" + "a " * 400_000 + "\na c\n", encoding="utf-8")
    options = [str(tmp_path / "model"), str(text), "--format", "text", "--device", "cpu", "-q"]
    output = tmp_path / "out.conllu"
    assert main(["predict", *options, "-o", str(output)]) == 2
    error = capsys.readouterr().err
    assert "in.txt:2: sentence 2: it has 400,000 words" in error and "--max-words" in error and not output.exists()
    for more in (["--max-words", "1000"], ["--skip-invalid"]):
        assert main(["predict", *options, "-o", str(output), *more]) == 0
        assert len([*read_conllu(output)]) == 2
        output.unlink()


def test_the_memory_is_that_of_the_container(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parser = random_parser()
    monkeypatch.setattr(parsing, "CONTAINER_LIMITS", (str(tmp_path / "memory.max"), str(tmp_path / "absent")))
    (tmp_path / "memory.max").write_text("max\n")
    assert parser.parse([["a"] * 200])
    (tmp_path / "memory.max").write_text("1048576\n")
    with pytest.raises(TreeparseError, match="it has 200 words"):
        parser.parse([["a"] * 200])
