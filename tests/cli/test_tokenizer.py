"""``--tokenizer``: raw text in, valid CoNLL-U and lists out; shards join to the whole."""

import io
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from helpers.commands import Capture
from helpers.parsed_files import incidents, lists_of, written
from helpers.parsers import CONFIG, TRAINING

from treeparse.cli.main import main
from treeparse.data.conllu import read_conllu
from treeparse.model import Parser
from treeparse.model.tagging import TagWeights

TEXT = (
    "They saw her duck. She didn't  run!\n\nWho's there?\t(me)\n"
    " \u00a0 \n"  # white space alone, the third line with something on it
    "New\u2009York e\u0301te\u0301. 10\u00a0000 #x\n"
)
IDS = ["1-1", "1-2", "2-1", "2-2", "4-1", "4-2"]


def run(command: str, *arguments: str | Path) -> int:
    raw = ["--format", "text", "--tokenizer", "spacy:en"]
    return main([command, *map(str, arguments), *raw, "--device", "cpu", "-q"])


@pytest.fixture
def raw(tmp_path: Path) -> str:
    pytest.importorskip("spacy")
    return written(tmp_path / "raw.txt", TEXT)


@pytest.mark.parametrize("command", [["predict", "--probabilities"], ["kbest", "-k", "4"], ["sample", "-k", "4"]])
def test_raw_text_becomes_valid_conllu(
    model: str, parser: Parser, raw: str, tmp_path: Path, command: list[str]
) -> None:
    """But for UPOS, which this model does not predict."""
    target = tmp_path / "out.conllu"
    assert run(command[0], model, raw, "-o", target, *command[1:]) == 0
    assert {incident.testid for incident in incidents(target)} <= {"unknown-upos"}
    found = list(read_conllu(target))
    if command[0] == "predict":
        assert [s.sent_id for s in found] == IDS
        assert [s.words.heads for s in found] == [p.heads for p in parser.parse([s.words.forms for s in found])]
        assert found[4].words.forms == ("New", "York", "\u00e9t\u00e9", ".")
    else:
        assert [name for name, _ in lists_of(target)] == IDS


def test_with_tags_the_official_validator_accepts_all(raw: str, tmp_path: Path) -> None:
    tagged = [replace(each, upos=tuple("VERB" for _ in each.forms)) for each in TRAINING]
    Parser.build(replace(CONFIG, tags=TagWeights(upos=1.0)), tagged).save_pretrained(tmp_path / "model")
    target = tmp_path / "out.conllu"
    assert run("predict", tmp_path / "model", raw, "-o", target, "--tags", "--probabilities") == 0
    assert [str(incident) for incident in incidents(target)] == []


@pytest.mark.parametrize("command", [["predict"], ["sample", "-k", "3"]])
def test_shards_are_the_whole(model: str, raw: str, tmp_path: Path, command: list[str]) -> None:
    """With the ids and, of samples, the trees."""
    parts = [tmp_path / f"{shard}.conllu" for shard in range(1, 4)]
    for shard, part in enumerate(parts, 1):
        assert run(command[0], model, raw, "-o", part, "--shard", f"{shard}/3", *command[1:], "--chunk", "1") == 0
    whole = tmp_path / "whole.conllu"
    assert run(command[0], model, raw, "-o", whole, *command[1:], "--chunk", "1") == 0
    assert b"".join(part.read_bytes() for part in parts) == whole.read_bytes()


def test_sentences_of_a_line_are_drawn_independently(model: str, tmp_path: Path) -> None:
    pytest.importorskip("spacy")
    raw = written(tmp_path / "raw.txt", "They saw her duck. They saw her duck. \n")
    target = tmp_path / "out.jsonl"
    assert run("sample", model, raw, "-k", "30", "--temperature", "30", "-o", target) == 0
    [first, second] = [[parse.heads for parse in parses] for _, parses in lists_of(target)]
    assert first != second


def test_a_line_is_parsed_as_it_comes(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("spacy")
    output, seen = io.BytesIO(), []
    lines = iter([b"One. Two.\n", b"Three.\n"])

    def readline(limit: int) -> bytes:
        seen.append(output.getvalue().count(b"# text"))
        return next(lines, b"")

    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=SimpleNamespace(readline=readline), isatty=lambda: False))
    monkeypatch.setattr(sys, "stdout", SimpleNamespace(buffer=output, flush=lambda: None, isatty=lambda: False))
    assert run("predict", model, "-", "--chunk", "1") == 0
    assert seen == [0, 2, 3]


GERMAN = (
    "1-2\tZum\t_\t_\t_\t_\t_\t_\t_\t_\n"
    "1\tZu\t_\t_\t_\t_\t3\tcase\t_\t_\n"
    "2\tdem\t_\t_\t_\t_\t3\tdet\t_\t_\n"
    "3\tHaus\t_\t_\t_\t_\t0\troot\t_\t_\n\n"
)
UNSPLIT = (
    "multiword tokens are not split: the first sentence has 1 token that is several words in the training data, such "
    "as 'zum', which is 'zu' 'dem' there"
)


def test_text_whose_multiword_tokens_are_whole_is_warned_of(tiny_config: Path, tmp_path: Path, capsys: Capture) -> None:
    """By a tokeniser that splits none, or none at all; not where they are split."""
    pytest.importorskip("spacy")
    train, german = written(tmp_path / "german.conllu", GERMAN * 10), str(tmp_path / "german")
    options = ["--output", german, "--data.train", train, "--optimization.epochs", "1", "-q", "--device", "cpu"]
    assert main(["train", "--config", str(tiny_config), *options]) == 0
    whole, split = (
        written(tmp_path / f"{n}.txt", f"ich gehe {text} Haus\n") for n, text in enumerate(("zum", "zu dem"))
    )
    output = tmp_path / "out.conllu"
    for options in (["--tokenizer", "spacy:de"], []):
        for text, expected in ((whole, True), (split, False)):
            arguments = [german, text, "-o", str(output), "--format", "text", *options, "--device", "cpu"]
            assert main(["predict", *arguments]) == 0
            assert (UNSPLIT in capsys.readouterr().err) == expected
    with pytest.warns(UserWarning, match=UNSPLIT.capitalize()):
        Parser.from_pretrained(german).parse([["ich", "gehe", "zum", "Haus"]])
