"""``treeparse kbest`` and ``sample``: the parser's lists in both formats, whatever the chunks; all else is kept."""

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
from helpers.commands import Capture, error_of, run
from helpers.parsed_files import MULTIWORD, SENTENCES, assert_same, incidents, lists_of, saved_with, written

from treeparse.data.conllu import read_conllu, write_conllu
from treeparse.data.nbest import read_nbest
from treeparse.model import Parse, Parser
from treeparse.sentence import Sentence

kbest = partial(run, "kbest")


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
    assert kbest(model, bad, "-k", 2, "-o", tmp_path / "out.conllu", "--skip-invalid") == 0
    shown = capsys.readouterr()
    assert shown.out == "" and shown.err.startswith("treeparse: 4 sentences, 18 words, ")
    assert shown.err.endswith(" words/s; 1 sentence has fewer than 2 trees; 1 sentence left out\n")


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


sample = partial(run, "sample")
# The command, its options, and those of the parser.
LISTS: dict[str, tuple[str, list[str], dict[str, Any]]] = {
    "kbest": ("kbest", [], {}),
    "kbest, projective": ("kbest", ["--decoder", "projective"], {"decoder": "projective"}),
    "sample": ("sample", [], {}),
    "sample, seed": ("sample", ["--seed", "7"], {"seed": 7}),
    "sample, temperature": ("sample", ["--temperature", "2.5"], {"temperature": 2.5}),
    "sample, projective": ("sample", ["--decoder", "projective"], {"decoder": "projective"}),
    "sample, different": ("sample", ["--without-replacement", "--seed", "3"], {"replacement": False, "seed": 3}),
}
FORMATS = [(kind, f"out.{form}") for kind in ("kbest", "sample") for form in ("conllu", "conllu.gz", "jsonl.gz")]


@pytest.mark.parametrize(("kind", "name"), [*FORMATS, *((kind, "out.jsonl") for kind in LISTS)])
def test_lists_are_the_parsers(model: str, parser: Parser, source: str, tmp_path: Path, kind: str, name: str) -> None:
    command, options, settings = LISTS[kind]
    assert run(command, model, source, "-k", 7, "-o", tmp_path / name, *options) == 0
    assert [sent_id for sent_id, _ in lists_of(tmp_path / name)] == ["s1", "s2", "s3", "s4"]
    expected = getattr(parser, command)(SENTENCES, 7, **settings)
    assert_same(found_in(tmp_path / name), expected)
    different = command == "kbest" or not settings.get("replacement", True)
    assert [*map(len, expected)] == ([7, 1, 7, 4] if different else [7] * 4)


def found_in(path: Path) -> list[list[Parse]]:
    return [parses for _, parses in lists_of(path)]


@pytest.mark.parametrize("options", [["--chunk", "1"], ["--chunk", "3"], ["--batch-words", "5"], ["-k", "9"]])
@pytest.mark.parametrize("replacement", [[], ["--without-replacement"]])
def test_a_sentences_trees_depend_on_its_place_alone(
    model: str, source: str, tmp_path: Path, options: list[str], replacement: list[str]
) -> None:
    for name, more in (("one.jsonl", []), ("other.jsonl", options)):
        assert sample(model, source, source, "-k", 5, "-o", tmp_path / name, *replacement, *more) == 0
    one, other = found_in(tmp_path / "one.jsonl"), found_in(tmp_path / "other.jsonl")
    assert_same([parses[:5] for parses in other], one)
    assert {(parse.heads, parse.labels) for parse in one[2]} != {(parse.heads, parse.labels) for parse in one[6]}


def test_closing_line(model: str, source: str, tmp_path: Path, capsys: Capture) -> None:
    def shown(*options: str | int) -> str:
        assert sample(model, source, "-o", tmp_path / "out.jsonl", *options) == 0
        line = capsys.readouterr().err
        assert line.startswith("treeparse: 4 sentences, 18 words, ") and line.count("\n") == 1
        return line.partition(" words/s")[2]

    assert shown("-k", 5) == "\n"
    assert shown("-k", 1, "--without-replacement") == "\n"
    assert shown("-k", 2, "--without-replacement") == "; 1 sentence has fewer than 2 trees\n"
    assert shown("-k", 1000, "--without-replacement", "--chunk", 1) == "; 3 sentences have fewer than 1,000 trees\n"


def test_a_fault_leaves_the_old_file(model: str, source: str, tmp_path: Path, capsys: Capture) -> None:
    bad = written(tmp_path / "bad.conllu", Path(source).read_text() + "# sent_id = bad\n1\tno\t_\n\n")
    target = tmp_path / "out.conllu"
    target.write_text("old")
    for arguments, problem in (
        ([bad, "-k", 2, "--chunk", 1], "bad.conllu:28: sentence bad: a line must have 10 columns, got 3"),
        ([source, "-k", 10**9], "1000000000 trees of 3 words are too many: ask for 44739242 or fewer"),
        ([source, "-k", 2, "--temperature", "1e-9"], "The temperature must be finite and at least 1e-06, got 1e-09"),
    ):
        assert problem in error_of(capsys, "sample", model, *arguments, "-o", target)
    assert target.read_text() == "old"
    assert sorted(os.listdir(tmp_path)) == ["bad.conllu", "in.conllu", "out.conllu"]


def test_a_sentence_that_is_left_out_keeps_its_place(model: str, source: str, tmp_path: Path) -> None:
    text = Path(source).read_text()
    assert text.startswith("# sent_id = s1\n1\t")
    bad = written(tmp_path / "bad.conllu", text.replace("\t_\n", "\n", 1))
    for path, name in ((source, "one.jsonl"), (bad, "other.jsonl")):
        assert sample(model, path, "-k", 9, "-o", tmp_path / name, "--skip-invalid") == 0
    assert_same(found_in(tmp_path / "one.jsonl")[1:], found_in(tmp_path / "other.jsonl"))
