"""``treeparse sample``: the parser's draws in kbest's formats, whatever the chunks; a sentence for every fault."""

import os
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from helpers.commands import Capture, error_of, run
from helpers.parsed_files import SENTENCES, assert_same, lists_of, written

from treeparse.model import Parse, Parser

OPTIONS: dict[str, tuple[list[str], dict[str, Any]]] = {
    "as it is": ([], {}),
    "seed": (["--seed", "7"], {"seed": 7}),
    "temperature": (["--temperature", "2.5"], {"temperature": 2.5}),
    "projective": (["--decoder", "projective"], {"decoder": "projective"}),
    "different": (["--without-replacement", "--seed", "3"], {"replacement": False, "seed": 3}),
}


sample = partial(run, "sample")


def found_in(path: Path) -> list[list[Parse]]:
    return [parses for _, parses in lists_of(path)]


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        *(("as it is", f"out.{form}") for form in ("conllu", "conllu.gz", "jsonl.gz")),
        *((k, "out.jsonl") for k in OPTIONS),
    ],
)
def test_lists_are_the_parsers(model: str, parser: Parser, source: str, tmp_path: Path, kind: str, name: str) -> None:
    options, settings = OPTIONS[kind]
    assert sample(model, source, "-k", 7, "-o", tmp_path / name, *options) == 0
    assert [sent_id for sent_id, _ in lists_of(tmp_path / name)] == ["s1", "s2", "s3", "s4"]
    expected = parser.sample(SENTENCES, 7, **settings)
    assert_same(found_in(tmp_path / name), expected)
    assert list(map(len, expected)) == ([7] * 4 if settings.get("replacement", True) else [7, 1, 7, 4])


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
