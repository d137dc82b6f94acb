"""``treeparse kbest``: the parser's lists in both formats, all else of a sentence kept, a sentence for every fault."""

import io
import itertools
import json
import os
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from helpers.commands import Capture, run
from helpers.parsed_files import MULTIWORD, SENTENCES, assert_same, incidents, lists_of, saved_with, written

from treeparse.data.conllu import read_conllu, write_conllu
from treeparse.data.nbest import read_nbest
from treeparse.model import Parser
from treeparse.names import Decoder
from treeparse.sentence import Sentence

kbest = partial(run, "kbest")


FORMATS = ("out.conllu", "out.conllu.gz", "out.jsonl", "out.jsonl.gz")


@pytest.mark.parametrize(
    ("decoder", "name"), [*(("nonprojective", name) for name in FORMATS), ("projective", "out.jsonl")]
)
def test_lists_are_the_parsers(
    model: str, parser: Parser, source: str, tmp_path: Path, name: str, decoder: Decoder
) -> None:
    assert kbest(model, source, "-k", 7, "-o", tmp_path / name, "--decoder", decoder) == 0
    found = lists_of(tmp_path / name)
    assert [sent_id for sent_id, _ in found] == ["s1", "s2", "s3", "s4"]
    assert [len(parses) for _, parses in found] == [7, 1, 7, 4]
    expected = parser.kbest(SENTENCES, 7, decoder=decoder)
    assert_same([parses for _, parses in found], expected)


def test_several_files_of_both_formats(model: str, source: str, tmp_path: Path) -> None:
    text = written(tmp_path / "in.txt", "Noun1 Verb1\n\nVerb1\n")
    assert kbest(model, source, source, "-k", 2, "-o", tmp_path / "out.jsonl") == 0
    assert [sent_id for sent_id, _ in lists_of(tmp_path / "out.jsonl")][3:6] == ["s4", "s1+2", "s2+2"]
    assert kbest(model, text, text, "-k", 2, "-o", tmp_path / "out.conllu", "--format", "text") == 0
    found = lists_of(tmp_path / "out.conllu")
    assert [sent_id for sent_id, _ in found] == ["1", "2", "3", "4"]
    assert [len(parses) for _, parses in found] == [2, 1, 2, 1]
    assert kbest(model, source, "-k", 2, "-o", tmp_path / "odd", "--output-format", "jsonl") == 0
    assert json.loads((tmp_path / "odd").read_bytes().splitlines()[0])["sent_id"] == "s1"


def test_official_validator_accepts_the_blocks(model: str, tmp_path: Path) -> None:
    source, target = written(tmp_path / "in.conllu", MULTIWORD * 2), tmp_path / "out.conllu"
    assert kbest(model, source, "-k", 20, "-o", target, "--drop-empty") == 0
    assert incidents(target) == []
    text = target.read_text(encoding="utf-8")
    assert text.count("# rank = ") == text.count("1-3\tdámelo") == 40
    assert text.count("# newdoc") == 2 and "3.1" not in text
    assert kbest(model, source, "-k", 20, "-o", target) == 0
    assert target.read_text(encoding="utf-8").count("3.1\tda") == 40


def test_standard_streams(model: str, parser: Parser, monkeypatch: pytest.MonkeyPatch) -> None:
    for form, count in (("conllu", 5), ("jsonl", 2)):
        output, stdin = io.BytesIO(), io.BytesIO(b"Noun1 Adj1 Verb1\nVerb1\n")
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdin", SimpleNamespace(buffer=stdin, isatty=lambda: False))
            patch.setattr(sys, "stdout", SimpleNamespace(buffer=output, flush=lambda: None, isatty=lambda: False))
            assert kbest(model, "-", "-k", 4, "-q", "--format", "text", "--output-format", form) == 0
        assert output.getvalue().count(b"\n\n" if form == "conllu" else b"\n") == count
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(output.getvalue())))
            found = [list(nbest.parses) for nbest in read_nbest("-", format="jsonl" if form == "jsonl" else "conllu")]
        assert_same(found, parser.kbest([("Noun1", "Adj1", "Verb1"), ("Verb1",)], 4))


def test_long_lists_make_smaller_chunks(model: str, parser: Parser, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    original = Parser.find_trees

    def counted(self: Parser, sentences: list[Sentence], *arguments: Any, **options: Any) -> object:
        seen.append(len(sentences))
        return original(self, sentences, *arguments, **options)

    monkeypatch.setattr(Parser, "find_trees", counted)
    monkeypatch.setattr("treeparse.corpus.corpus_parsing.CHUNK_TREE_WORDS", 8)
    lines = io.BytesIO(b"a b\nc d\ne\nf g h i j\nk\n")
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=lines, isatty=lambda: False))
    output = SimpleNamespace(buffer=io.BytesIO(), flush=lambda: None, isatty=lambda: False)
    monkeypatch.setattr(sys, "stdout", output)
    assert kbest(model, "-", "-k", 2, "-q", "--format", "text") == 0
    assert seen == [2, 2, 1]


def test_long_lists_and_short_sentences(model: str, source: str, tmp_path: Path) -> None:
    assert kbest(model, source, "-k", 1000, "-o", tmp_path / "out.jsonl") == 0
    assert [len(parses) for _, parses in lists_of(tmp_path / "out.jsonl")] == [36, 1, 1000, 4]
    short = written(tmp_path / "short.txt", "Verb1\n")
    assert kbest(model, short, "-k", 10**12, "-o", tmp_path / "out.jsonl", "--format", "text") == 0
    assert [len(parses) for _, parses in lists_of(tmp_path / "out.jsonl")] == [1]


def test_closing_line_and_faulty_sentences(model: str, source: str, tmp_path: Path, capsys: Capture) -> None:
    bad = written(tmp_path / "bad.conllu", Path(source).read_text() + "# sent_id = bad\n1\tno\t_\n\n")
    target = tmp_path / "out.conllu"
    target.write_text("old")
    assert kbest(model, bad, "-k", 2, "-o", target) == 2
    error = capsys.readouterr().err
    assert "bad.conllu:28: sentence bad: a line must have 10 columns, got 3" in error and error.count("\n") == 1
    assert target.read_text() == "old"
    assert kbest(model, bad, "-k", 2, "-o", target, "--skip-invalid") == 0
    shown = capsys.readouterr()
    assert shown.out == "" and shown.err.startswith("treeparse: 4 sentences, 18 words, ")
    assert shown.err.endswith(" words/s; 1 sentence has fewer than 2 trees; 1 sentence left out\n")
    assert sorted(os.listdir(tmp_path)) == ["bad.conllu", "in.conllu", "out.conllu"]


def test_a_model_whose_decoder_has_no_lists(parser: Parser, source: str, tmp_path: Path, capsys: Capture) -> None:
    model = saved_with(parser, tmp_path / "model", decoder="minimum_risk")
    assert kbest(model, source, "-k", 2) == 2
    shown = capsys.readouterr()
    assert shown.out == "" and "minimum_risk chooses one tree, it has no list of the best: choose best" in shown.err
    assert kbest(model, source, "-k", 2, "--decoder", "nonprojective", "-o", tmp_path / "out.jsonl") == 0


@pytest.mark.treebank
@pytest.mark.parametrize("name", ["UD_English-EWT/en_ewt", "UD_Latin-Perseus/la_perseus", "UD_Turkish-IMST/tr_imst"])
def test_treebanks_stay_as_valid_as_they_are(model: str, tmp_path: Path, name: str) -> None:
    root = os.environ.get("TREEPARSE_TREEBANKS")
    if not root:
        pytest.skip("TREEPARSE_TREEBANKS is not set")
    source, target = tmp_path / "in.conllu", tmp_path / "out.conllu"
    write_conllu(source, itertools.islice(read_conllu(Path(root, f"{name}-ud-test.conllu")), 150))
    assert kbest(model, source, "-k", 3, "-o", target, "--drop-empty", "-q") == 0
    found, expected = ({incident.testid for incident in incidents(path)} for path in (target, source))
    assert found <= expected
    assert [nbest.sent_id for nbest in read_nbest(target)] == [sentence.sent_id for sentence in read_conllu(source)]
