"""Corpora as library calls: the same files as the commands write, parts handed out one by one, a writer in one file."""

import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.parsed_files import SENTENCES, assert_same, conllu, lists_of, written

import treeparse.corpus
from treeparse.cli.main import main
from treeparse.corpus import (
    CorpusObserver,
    CorpusRequest,
    CorpusSummary,
    TreeRequest,
    list_parts,
    parse_corpus,
    parse_parts,
)
from treeparse.corpus.writers import Writer
from treeparse.data.conllu import read_conllu
from treeparse.data.parses import NBestList
from treeparse.errors import TreeparseError
from treeparse.model import Parser

FAULTY = "# sent_id = bad\n1\tno\t_\n\n"

# A writer of a user's own, as one file has it.
WRITER = """
from treeparse.corpus import Writer


class HeadList(Writer):
    suffix = ".heads"

    def texts(self, results):
        for result in results:
            yield " ".join(map(str, result.parses[0].heads)) + "\\n"
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with two files of sentences."""
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "a.conllu", conllu(*SENTENCES))
    written(tmp_path / "b.conllu", conllu(*SENTENCES[::-1]) + FAULTY + conllu(("c", "d", "e")))
    return tmp_path


def files_in(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_corpus_is_parsed_as_its_sentences_are(parser: Parser, folder: Path) -> None:
    summary = parse_corpus(parser, CorpusRequest(["*.conllu"], output="out/", skip_invalid=True, max_words=11))
    assert set(files_in(folder / "out")) == {"a.conllu", "b.conllu"}
    trees = [sentence.words for name in "ab" for sentence in read_conllu(folder / "out" / f"{name}.conllu")]
    short = [words for words in SENTENCES if len(words) <= 11]
    expected = parser.parse([*short, *short[::-1], ("c", "d", "e")])
    assert [(words.heads, words.labels) for words in trees] == [(parse.heads, parse.labels) for parse in expected]
    assert summary.seconds > 0
    summary.seconds = 0.0
    assert summary == CorpusSummary(outputs=2, sentences=7, words=15, invalid_sentences=1, long_sentences=2)


@pytest.mark.parametrize(
    ("trees", "command"),
    [
        (TreeRequest(probabilities=True), ["predict", "--probabilities"]),
        (TreeRequest("kbest", 3), ["kbest", "-k", "3"]),
        (TreeRequest("sample", 3, seed=5, replacement=False), ["sample", "-k3", "--seed=5", "--without-replacement"]),
    ],
    ids=["predict", "kbest", "sample"],
)
@pytest.mark.parametrize("form", ["conllu", "jsonl"])
def test_a_request_writes_what_the_command_writes(
    parser: Parser, folder: Path, trees: TreeRequest, command: list[str], form: str
) -> None:
    parser.save_pretrained(folder / "model")
    loaded = Parser.from_pretrained("model")
    parse_corpus(loaded, CorpusRequest(["a.conllu"], "library", trees, output_format=form))
    name, *options = command
    assert main([name, "model", "a.conllu", "-o", "command", "--output-format", form, "-q", *options]) == 0
    assert (folder / "library").read_bytes() == (folder / "command").read_bytes()


def test_parts_can_be_handed_out_one_by_one(parser: Parser, folder: Path) -> None:
    """As an engine of many processes does: any process can do any part, in any order."""
    trees = TreeRequest("sample", 3, seed=1)
    whole = CorpusRequest(["*.conllu"], "whole/", trees, skip_invalid=True)
    parse_corpus(parser, whole)
    request = CorpusRequest(["*.conllu"], "parts/", trees, skip_invalid=True)
    summaries = [parse_parts(parser, request, [part]) for part in reversed(list_parts(request))]
    for name in ("a.conllu", "b.conllu"):  # other batches can change the last digit of a score
        parts, whole_file = (lists_of(folder / each / name) for each in ("parts", "whole"))
        assert [sent_id for sent_id, _ in parts] == [sent_id for sent_id, _ in whole_file]
        assert_same([parses for _, parses in parts], [parses for _, parses in whole_file])
    assert [summary.outputs for summary in summaries] == [1, 1]


def test_a_faulty_input_leaves_complete_outputs_alone(parser: Parser, folder: Path) -> None:
    class Observer(CorpusObserver):
        def __init__(self) -> None:
            self.said, self.parsed = list[object](), np.zeros(3, int)

        def start(self, size: int | None) -> None:
            self.said.append(("size", size))

        def start_output(self, number: int, count: int) -> None:
            self.said.append((number, count))

        def advance(self, sentences: int, words: int, size: int) -> None:
            self.parsed += np.array([sentences, words, size])

        def fail(self, done: int, count: int) -> None:
            self.said.append(("done", done, count))

    observer = Observer()
    with pytest.raises(TreeparseError, match=r"b\.conllu:28: sentence bad: a line must have 10 columns, got 3"):
        parse_corpus(parser, CorpusRequest(["*.conllu"], output="out/"), observer=observer)
    assert set(files_in(folder / "out")) == {"a.conllu"}
    size = sum((folder / name).stat().st_size for name in ("a.conllu", "b.conllu"))
    assert observer.parsed.tolist() == [2 * len(SENTENCES), 2 * sum(map(len, SENTENCES)), size]
    assert observer.said == [("size", size), (1, 2), (2, 2), ("done", 1, 2)]
    again = CorpusRequest(["*.conllu"], output="out/", skip_existing=True, skip_invalid=True)
    assert parse_corpus(parser, again).existing_outputs == 1


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"tokenizer": "spacy:en"}, "A tokenizer splits raw text, but the format is conllu"),
        ({"trees": TreeRequest(within=True), "format": "text"}, "read heads of CoNLL-U, but --format is text"),
        ({"trees": TreeRequest(keep_heads=True), "format": "jsonl"}, "--format is jsonl"),
        ({"output_format": "jsonl", "tags": True}, "The output format jsonl has no tags, sets of heads or open words"),
        ({"output_format": "json"}, r"Unknown output format 'json', .*: choose one of .*; did you mean jsonl"),
        ({"output_format": "json.loads"}, r"json\.loads must be a subclass of treeparse\.corpus\.writers\.FileWriter"),
    ],
)
def test_requests_that_contradict_themselves_are_refused(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(TreeparseError, match=problem):
        CorpusRequest(["a.conllu"], **options).writer()


def test_a_reader_of_a_user_is_one_file(parser: Parser, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(folder)
    (folder / "mine.py").write_text(
        "from treeparse.corpus.readers import TextReader\n\n\n"
        "class Slashed(TextReader):\n"
        "    def sentences(self, item, check):\n"
        "        return super().sentences(item._replace(text=item.text.replace(b'/', b' ')), check)\n"
    )
    (folder / "slashed.txt").write_text("a/b/c\nd\n")
    try:
        request = CorpusRequest(["slashed.txt"], "out.conllu", format="mine.Slashed")
        assert parse_corpus(parser, request).words == 4
    finally:
        sys.modules.pop("mine", None)
    [first, _] = read_conllu("out.conllu")
    assert first.words.forms == ("a", "b", "c")
    with pytest.raises(TreeparseError, match=r"Unknown input format 'conlu', .* did you mean conllu"):
        CorpusRequest(["slashed.txt"], format="conlu")


def test_a_writer_of_a_user_is_one_file(parser: Parser, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "headlist.py").write_text(WRITER, encoding="utf-8")
    expected = "".join(" ".join(map(str, parse.heads)) + "\n" for parse in parser.parse(SENTENCES))
    parser.save_pretrained(folder / "model")
    assert main(["predict", "model", "a.conllu", "-o", "command", "--output-format", "headlist.HeadList", "-q"]) == 0
    assert (folder / "command").read_text() == expected
    assert main(["predict", "model", "a.conllu", "-o", "out/", "--output-format", "headlist.HeadList", "-q"]) == 0
    monkeypatch.syspath_prepend(folder)
    parse_corpus(parser, CorpusRequest(["a.conllu"], "library", output_format="headlist.HeadList"))
    assert (folder / "library").read_text() == (folder / "out" / "a.heads").read_text() == expected


def test_the_example_of_the_package_runs(parser: Parser, folder: Path) -> None:
    for name in ("runs", "corpus"):
        (folder / name).mkdir()
    parser.save_pretrained(folder / "runs" / "english")
    written(folder / "corpus" / "a.conllu", conllu(*SENTENCES))
    example = "\n".join(
        line[4:] for line in (treeparse.corpus.__doc__ or "").splitlines() if line.startswith("    ")
    ).replace(".gz", "")
    done = subprocess.run([sys.executable, "-c", example], capture_output=True, text=True, check=False)
    assert done.stdout == "4 18\n", done.stderr
    assert len(list(read_conllu(folder / "parsed" / "a.conllu"))) == 4


class Silent(Writer):
    def texts(self, results: Iterable[NBestList]) -> Iterator[str]:
        yield len([*results])  # pyright: ignore[reportReturnType]


@pytest.mark.parametrize(
    ("output", "problem"),
    [
        (
            "out/",
            r"The writer Silent has no suffix.* folder out/ end: give its class one, suffix = '\.name', or name an",
        ),
        ("out.x", r"The texts of Silent must be strings, got 4\."),
    ],
)
def test_faults_of_a_writer_are_sentences(parser: Parser, folder: Path, output: str, problem: str) -> None:
    before = files_in(folder)
    with pytest.raises(TreeparseError, match=problem):
        parse_corpus(parser, CorpusRequest(["a.conllu"], output, output_format=Silent()))
    assert files_in(folder) == before
