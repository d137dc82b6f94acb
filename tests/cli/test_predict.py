"""``treeparse predict``: only HEAD, DEPREL and DEPS change, faults get their sentence."""

import gzip
import io
import os
import sys
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest
from helpers.commands import Capture, error_of, run
from helpers.parsed_files import conllu, written
from helpers.sentences import learnable_sentences

from treeparse.data.conllu import ConlluSentence
from treeparse.model import Parser, ParserConfig
from treeparse.nn import BiLSTMConfig

HEAD, DEPREL, DEPS = 6, 7, 8

TRICKY = (
    "# sent_id = tricky = 1\n"
    "# text = dámelo #\n"
    "#\tnot = a word\n"
    "0.1\tEllos\t_\tPRON\t_\t_\t_\t_\t1:nsubj\t_\n"
    "1-3\tdámelo\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No\n"
    "1\tda\tdar\tVERB\tV\tMood=Imp\t_\t_\t0:root\ta=b=c\n"
    "2\tme\tyo\tPRON\t_\t_\t7\tiobj\t1:iobj|5:nsubj\t_\n"
    "3\tlo\tél\tPRON\t_\t_\tx\tobj\t1:obj\t_\n"
    "4\t#\t#\tSYM\t_\t_\t3\tpunct\t1:punct\t_\n"
    "5\t10  000\t10\u00a0000\tNUM\t_\t_\t4\tnummod:x\t1:nummod\t\u2028\x85\x0b\n"
    "5.1\tda\tdar\tVERB\t_\t_\t_\t_\t1:conj\t_\n"
    "\n"
)
BAD = "# sent_id = bad\n1\tno\t_\t_\t_\t_\t_\t_\t_\n\n"  # nine columns


predict = partial(run, "predict")


def trees_of(data: bytes) -> Iterator[list[int]]:
    """The heads of each sentence, read by nothing of ours."""
    for block in data.replace(b"\r\n", b"\n").split(b"\n\n"):
        rows = [line.split(b"\t") for line in block.split(b"\n") if b"\t" in line and not line.startswith(b"#")]
        if rows:
            yield [int(row[HEAD]) for row in rows if row[0].isdigit()]


def assert_only_parses_differ(before: bytes, after: bytes) -> None:
    old, new = before.split(b"\n"), after.split(b"\n")
    assert len(old) == len(new)
    for old_line, new_line in zip(old, new, strict=True):
        if old_line.split(b"\t")[0].isdigit():
            old_columns, new_columns = old_line.split(b"\t"), new_line.split(b"\t")
            assert new_columns[HEAD].isdigit() and new_columns[DEPREL] != b"_" and new_columns[DEPS] == b"_"
            old_columns[HEAD : DEPS + 1] = new_columns[HEAD : DEPS + 1]
            assert old_columns == new_columns
        else:
            assert old_line == new_line


def test_nothing_but_the_parse_changes(model: str, tmp_path: Path) -> None:
    """Neither marks, line ends and blank lines, which differ here, nor other columns and lines."""
    text = TRICKY + conllu(["a", "b"], ["c"]) + TRICKY
    data = ("\ufeff\n\r\n" + text + "\n\n" + text.replace("\n", "\r\n") + text.rstrip("\n")).encode()
    source, target = written(tmp_path / "in.conllu", data), tmp_path / "out.conllu"
    assert predict(model, source, "-o", target) == 0
    assert_only_parses_differ(data, target.read_bytes())


def test_drop_empty_leaves_out_empty_nodes_and_nothing_else(model: str, tmp_path: Path) -> None:
    source, target = written(tmp_path / "in.conllu", TRICKY), tmp_path / "out.conllu"
    assert predict(model, source, "-o", target, "--drop-empty") == 0
    kept = [line for line in TRICKY.split("\n") if not line.startswith(("0.1\t", "5.1\t"))]
    assert_only_parses_differ("\n".join(kept).encode(), target.read_bytes())


@pytest.mark.parametrize("options", [[], ["--batch-words", "7"], ["--chunk", "1"], ["--chunk", "4"]])
def test_parses_are_those_of_the_parser_in_the_order_of_the_input(
    model: str, parser: Parser, tmp_path: Path, options: list[str]
) -> None:
    sentences = [sentence.forms for sentence in learnable_sentences(23, seed=2, longest=9)]
    source, target = written(tmp_path / "in.conllu", conllu(*sentences)), tmp_path / "out.conllu"
    assert predict(model, source, "-o", target, *options) == 0
    assert list(trees_of(target.read_bytes())) == [list(parser.parse([forms])[0].heads) for forms in sentences]


@pytest.mark.parametrize("decoder", ["nonprojective", "projective", "minimum_risk", "minimum-risk"])
def test_decoders_are_the_parsers(model: str, parser: Parser, tmp_path: Path, decoder: str) -> None:
    sentences = [tuple(f"w{word}" for word in range(9 + number)) for number in range(5)]
    source, target = written(tmp_path / "in.conllu", conllu(*sentences)), tmp_path / "out.conllu"
    assert predict(model, source, "-o", target, "--decoder", decoder) == 0
    name: Any = decoder.replace("-", "_")
    parses = parser.parse(sentences, decoder=name)
    assert list(trees_of(target.read_bytes())) == [list(parse.heads) for parse in parses]


def test_trees_in_the_input_have_no_say(model: str, tmp_path: Path) -> None:
    blank = conllu(["Noun1", "Adj2", "Verb1"])
    filled = blank.replace("\t_" * 4 + "\n", "\t0\troot\t_\t_\n")
    for name, text in (("blank", blank), ("filled", filled)):
        assert predict(model, written(tmp_path / name, text), "-o", tmp_path / f"{name}.out") == 0
    assert (tmp_path / "blank.out").read_bytes() == (tmp_path / "filled.out").read_bytes()


def test_text_becomes_conllu_with_comments(model: str, tmp_path: Path, capsys: Capture) -> None:
    first = written(tmp_path / "1.txt", "They  saw\ther .\r\n\n10\u00a0000 # x\n")
    second = written(tmp_path / "2.txt", "Yes")
    assert predict(model, first, second, "--format", "text", "-q") == 0
    output = capsys.readouterr().out
    comments = [line for line in output.splitlines() if line.startswith("# ")]
    assert comments == [
        *("# sent_id = 1", "# text = They saw her ."),
        *("# sent_id = 2", "# text = 10\u00a0000 # x"),
        *("# sent_id = 3", "# text = Yes"),
    ]
    rows = [line.split("\t") for line in output.splitlines() if "\t" in line]
    assert [row[1] for row in rows] == ["They", "saw", "her", ".", "10\u00a0000", "#", "x", "Yes"]
    assert all(row[2:6] == ["_"] * 4 and row[8:] == ["_"] * 2 for row in rows)


def test_several_files_become_one_with_whole_borders(model: str, tmp_path: Path) -> None:
    written(tmp_path / "a.conllu", conllu(["a"]).rstrip("\n"))
    (tmp_path / "b.conllu.gz").write_bytes(gzip.compress(("\ufeff" + conllu(["b", "c"])).encode()))
    target = tmp_path / "out.conllu.gz"
    assert predict(model, tmp_path / "[ab].conllu*", "-o", target) == 0
    expected = conllu(["a"]) + conllu(["b", "c"])
    assert_only_parses_differ(expected.encode(), gzip.decompress(target.read_bytes()))


def test_a_file_can_be_parsed_in_place(model: str, tmp_path: Path) -> None:
    path = written(tmp_path / "in.conllu", TRICKY)
    assert predict(model, path, "-o", path, "--overwrite-input") == 0
    assert_only_parses_differ(TRICKY.encode(), Path(path).read_bytes())


class Waiting:
    """Standard input from a program that notes how much output it has got whenever it is asked for its next line."""

    def __init__(self, lines: Iterable[bytes], output: io.BytesIO, *, terminal: bool) -> None:
        self.lines, self.output, self.terminal = iter(lines), output, terminal
        self.seen: list[int] = []
        self.buffer = SimpleNamespace(readline=self.readline)

    def readline(self, limit: int) -> bytes:
        line = next(self.lines, b"")
        if line:
            self.seen.append(sum(1 for _ in trees_of(self.output.getvalue())))
        return line

    def isatty(self) -> bool:
        return self.terminal


def seen_by_the_sender(
    monkeypatch: pytest.MonkeyPatch, model: str, text: str, *options: str, terminal: bool = False
) -> list[int]:
    """How many parses were out when each line was asked for."""
    output = io.BytesIO()
    stdin = Waiting(text.encode().splitlines(keepends=True), output, terminal=terminal)
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdin", stdin)
        patch.setattr(sys, "stdout", SimpleNamespace(buffer=output, flush=lambda: None, isatty=lambda: False))
        assert predict(model, "-", "-q", *options) == 0
    return stdin.seen


def test_sentences_are_read_and_written_by_chunks(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = "".join(f"word{number}\n" for number in range(7))
    assert seen_by_the_sender(monkeypatch, model, lines, "--format", "text", "--chunk", "3") == [0, 0, 0, 3, 3, 3, 6]
    assert seen_by_the_sender(monkeypatch, model, lines, "--format", "text") == [0] * 7


def test_long_sentences_make_smaller_chunks(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("treeparse.corpus.corpus_parsing.CHUNK_WORDS", 4)
    seen = seen_by_the_sender(monkeypatch, model, "a b\nc d\ne\nf g h i j\nk\n", "--format", "text")
    assert seen == [0, 0, 2, 2, 4]


@pytest.mark.parametrize(("options", "terminal"), [(["--chunk", "1"], False), ([], True)])
def test_who_waits_for_each_parse_gets_it(
    model: str, monkeypatch: pytest.MonkeyPatch, options: list[str], terminal: bool
) -> None:
    text = conllu(["a", "b"], ["c"]) + conllu(["d"])
    seen = seen_by_the_sender(monkeypatch, model, text, *options, terminal=terminal)
    assert seen == [0, 0, 0, 0, 1, 1, 1, 2, 2, 2]
    lines = "a b\nc\nd\n"
    assert seen_by_the_sender(monkeypatch, model, lines, "--format", "text", *options, terminal=terminal) == [0, 1, 2]


def test_a_file_is_written_while_the_next_sentences_are_parsed(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    both, parsed, on_time = Event(), list[str](), list[bool]()
    find_trees, text_with_parse = Parser.find_trees, ConlluSentence.text_with_parse

    def seen_parse(self: Parser, sentences: Iterable[ConlluSentence], *arguments: Any, **options: Any) -> Any:
        parsed.extend(form for sentence in sentences for form in sentence.words.forms)
        if len(parsed) == 2:
            both.set()
        return find_trees(self, sentences, *arguments, **options)

    def waiting(self: ConlluSentence, *arguments: Any, **options: Any) -> str:
        on_time.append(both.wait(30))
        return text_with_parse(self, *arguments, **options)

    monkeypatch.setattr(Parser, "find_trees", seen_parse)
    monkeypatch.setattr(ConlluSentence, "text_with_parse", waiting)
    source = written(tmp_path / "in.conllu", conllu(["a"], ["b"]))
    assert predict(model, source, "-o", tmp_path / "out", "--chunk", "1") == 0
    assert parsed == ["a", "b"] and on_time == [True, True]


def test_closing_line_counts_and_quiet_is_silent(model: str, tmp_path: Path, capsys: Capture) -> None:
    source = written(tmp_path / "in.conllu", conllu(["a", "b"], ["c"]))
    assert predict(model, source, "-o", tmp_path / "out") == 0
    shown = capsys.readouterr()
    assert shown.out == "" and shown.err.startswith("treeparse: 2 sentences, 3 words, ")
    assert shown.err.endswith(" words/s\n") and shown.err.count("\n") == 1
    assert predict(model, source, "-o", tmp_path / "out", "-q") == 0
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("data", "problem"),
    [(BAD.encode(), ":5: sentence bad: a line must have 10 columns, got 9"), (b"1\t\xff", ":4: byte 3 of the line")],
)
def test_faulty_structure_is_named_and_writes_nothing(
    model: str, tmp_path: Path, capsys: Capture, data: bytes, problem: str
) -> None:
    source, target = written(tmp_path / "in.conllu", conllu(["good"]).encode() + data), tmp_path / "out.conllu"
    target.write_text("old")
    assert f"in.conllu{problem}" in error_of(capsys, "predict", model, source, "-o", target)
    assert target.read_text() == "old"
    assert sorted(os.listdir(tmp_path)) == ["in.conllu", "out.conllu"]


def test_standard_output_keeps_what_was_parsed_before_a_fault(model: str, tmp_path: Path, capsys: Capture) -> None:
    source = written(tmp_path / "in.conllu", conllu(["good"]) + BAD)
    assert predict(model, source, "--chunk", "1") == 2
    shown = capsys.readouterr()
    assert len(list(trees_of(shown.out.encode()))) == 1
    assert "sentence bad: a line must have 10 columns, got 9" in shown.err


def test_faulty_sentences_can_be_left_out(model: str, tmp_path: Path, capsys: Capture) -> None:
    good = conllu(["a"], ["b", "c"])
    source, target = written(tmp_path / "in.conllu", good + BAD + TRICKY + BAD), tmp_path / "out.conllu"
    assert predict(model, source, "-o", target, "--skip-invalid") == 0
    assert_only_parses_differ((good + TRICKY).encode(), target.read_bytes())
    assert capsys.readouterr().err.endswith("; 2 sentences left out\n")


@pytest.mark.parametrize(("data", "problem"), [(BAD, "no valid sentence is left in"), ("", "holds no sentence")])
def test_there_must_be_a_sentence(model: str, tmp_path: Path, capsys: Capture, data: str, problem: str) -> None:
    source, target = written(tmp_path / "in.conllu", data), tmp_path / "out.conllu"
    assert problem in error_of(capsys, "predict", model, source, "-o", target, "--skip-invalid")
    assert not target.exists()
    empty = written(tmp_path / "empty.txt", "\n\n")
    assert "empty.txt: the file holds no sentence" in error_of(capsys, "predict", model, empty, "--format", "text")


def test_model_that_reads_tags_names_the_sentence_without_them(tmp_path: Path, capsys: Capture) -> None:
    encoder = BiLSTMConfig(min_count=1, word_size=4, char_filters=0, tags=("upos", "feats"), hidden_size=4, layers=1)
    train = learnable_sentences(20, seed=1)
    Parser.build(ParserConfig(encoder=encoder, arc_size=4, label_size=4), train).save_pretrained(tmp_path / "model")
    tagged = TRICKY
    source = written(tmp_path / "in.conllu", tagged + conllu(["Noun1", "Verb1"]))
    error = error_of(capsys, "predict", tmp_path / "model", source, "-o", tmp_path / "out")
    line = tagged.count("\n") + 1
    assert f"in.conllu:{line}: sentence s1: The model reads UPOS, but the sentence that starts with 'Noun1 Ve" in error
    assert not (tmp_path / "out").exists()
    assert predict(tmp_path / "model", written(tmp_path / "in.conllu", tagged), "-o", tmp_path / "out") == 0


@pytest.mark.parametrize(
    "text",
    ["# sent_id = 1\n# text = a b\n", "# made by hand\n\n# newdoc\n", "\ufeff1\ta" + "\t_" * 8 + "\n"],
    ids=["comment", "second comment", "columns"],
)
def test_conllu_given_as_text_is_refused(model: str, tmp_path: Path, capsys: Capture, text: str) -> None:
    source = written(tmp_path / "in.conllu", text + "a b\n")
    error = error_of(capsys, "predict", model, source, "--format", "text", "-o", tmp_path / "out.conllu")
    assert error.startswith(f"treeparse: error: {source}: text must have one sentence a line, but line ")
    assert error.endswith(" is CoNLL-U: leave out --format text, or name the file .conllu")
    assert not (tmp_path / "out.conllu").exists()


def test_text_that_begins_with_a_number_sign_or_a_table_is_text(model: str, tmp_path: Path) -> None:
    source = written(tmp_path / "in.txt", "# 1 is best\n# texts are nice\n1\ta\tb\n")
    assert predict(model, source, "--format", "text", "-o", tmp_path / "out.conllu") == 0
