"""Documents in JSON Lines and Parquet, as input; trees in Parquet, as output; beside text and JSON Lines."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from helpers.commands import Capture

from treeparse.cli.main import main
from treeparse.corpus import CorpusRequest, TreeRequest, list_parts, parse_corpus, parse_documents
from treeparse.corpus.processes import parse_with_jobs
from treeparse.corpus.request import Shard
from treeparse.corpus.writers import ConlluWriter
from treeparse.data.conllu import read_conllu
from treeparse.data.nbest import read_nbest
from treeparse.errors import DataError
from treeparse.model import Parser

pytestmark = pytest.mark.usefixtures("one_thread")
TEXTS = ["w1 w2 .\nw3 w4\r\n\n w5\tw6 ", "", "w7 .", "ä w1 w2 w3 w4"]
DOCUMENTS = [{"text": text, "id": f"d {number}", "n": number} for number, text in enumerate(TEXTS)]


@pytest.fixture
def folder(parser: Parser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    parser.save_pretrained("model")
    lines = "".join(json.dumps(document, ensure_ascii=False) + "\n" for document in DOCUMENTS)
    Path("in.jsonl").write_text(lines.replace("\n", "\n\n", 1), encoding="utf-8")
    return tmp_path


@pytest.fixture
def arrow(folder: Path) -> Any:
    """The library, with the documents in a file of small row groups."""
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = arrow.Table.from_pylist(DOCUMENTS)
    parquet.write_table(table, "in.parquet", row_group_size=2)
    return arrow


def load() -> Parser:
    return Parser.from_pretrained("model", mapped=True)


def words_of(path: str) -> list[tuple[str | None, list[str], tuple[str, ...]]]:
    sentences = read_conllu(path, single_root=False)
    return [(each.sent_id, each.comments("newdoc id"), each.words.forms) for each in sentences]


EXPECTED = [
    ("1-1", ["1"], ("w1", "w2", ".")),
    ("1-2", [], ("w3", "w4")),
    ("1-4", [], ("w5", "w6")),
    ("3-1", ["3"], ("w7", ".")),
    ("4-1", ["4"], ("ä", "w1", "w2", "w3", "w4")),
]


def test_each_line_of_a_document_is_a_sentence(parser: Parser, folder: Path) -> None:
    summary = parse_corpus(parser, CorpusRequest(["in.jsonl"], "out.conllu"))
    assert words_of("out.conllu") == EXPECTED and summary.sentences == 5


def test_parquet_has_the_same_documents(parser: Parser, arrow: Any) -> None:
    for kind in ("jsonl", "parquet"):
        parse_corpus(parser, CorpusRequest([f"in.{kind}"], f"{kind}.conllu", id_column="id"))
    assert Path("jsonl.conllu").read_bytes() == Path("parquet.conllu").read_bytes()
    names = [(name, document) for name, document, _ in words_of("jsonl.conllu")]
    assert names[:2] == [("d_0-1", ["d_0"]), ("d_0-2", [])] and names[-1] == ("d_3-1", ["d_3"])


def test_documents_of_several_files_are_counted_on(parser: Parser, folder: Path) -> None:
    Path("more.jsonl").write_text('{"text": "w9"}\n', encoding="utf-8")
    parse_corpus(parser, CorpusRequest(["in.jsonl", "more.jsonl"], "out.conllu"))
    assert words_of("out.conllu") == [*EXPECTED, ("5-1", ["5"], ("w9",))]


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_shards_of_documents_are_the_whole(parser: Parser, arrow: Any, kind: str) -> None:
    parse_corpus(parser, CorpusRequest([f"in.{kind}"], "out.conllu"))
    shards = [CorpusRequest([f"in.{kind}"], f"{i}.conllu", shard=Shard(i, 3)) for i in (1, 2, 3)]
    assert sum(parse_corpus(parser, shard).sentences for shard in shards) == 5
    assert b"".join(Path(f"{i}.conllu").read_bytes() for i in (1, 2, 3)) == Path("out.conllu").read_bytes()


def test_a_tokenizer_splits_documents(parser: Parser, folder: Path) -> None:
    pytest.importorskip("spacy")
    Path("in.jsonl").write_text(json.dumps({"text": "They came. They saw.\nShe didn't."}) + "\n", encoding="utf-8")
    parse_corpus(parser, CorpusRequest(["in.jsonl"], "out.conllu", tokenizer="spacy:en"))
    assert words_of("out.conllu") == [
        ("1-1-1", ["1"], ("They", "came", ".")),
        ("1-1-2", [], ("They", "saw", ".")),
        ("1-2-1", [], ("She", "did", "n't", ".")),
    ]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("{", "the line must be JSON"),
        ("[1]", "must be a JSON object of one document"),
        ('{"n": 1, "m": 2}', r"no key 'text' with its text: name one by --text-column \('n', 'm'\)"),
        ('{"text": null}', "'text', must be a string, got None"),
        ('{"text": "a \\ud800 b"}', "half of a surrogate pair"),
    ],
)
def test_a_faulty_document_is_named(parser: Parser, folder: Path, line: str, problem: str) -> None:
    Path("in.jsonl").write_text(f'{{"text": "w1"}}\n{line}\n{{"text": "w2"}}\n', encoding="utf-8")
    with pytest.raises(DataError, match=rf"^in\.jsonl:2: .*{problem}"):
        parse_corpus(parser, CorpusRequest(["in.jsonl"], "out.conllu"))
    request = CorpusRequest(["in.jsonl"], "out.conllu", skip_invalid=True, faults="faults.jsonl")
    summary = parse_corpus(parser, request)
    assert (summary.sentences, summary.invalid_sentences) == (2, 1)
    [fault] = map(json.loads, Path("faults.jsonl").read_text(encoding="utf-8").splitlines())
    assert (fault["file"], fault["line"]) == ("in.jsonl", 2) and re.search(problem, fault["problem"])


def test_what_is_not_read_of_a_document_may_be_faulty(parser: Parser, folder: Path) -> None:
    Path("in.jsonl").write_text('{"text": "w1", "title": "a \\ud800 b"}\n', encoding="utf-8")
    assert parse_corpus(parser, CorpusRequest(["in.jsonl"], "out.conllu")).sentences == 1


@pytest.mark.parametrize("value", [None, True, 1.5, " ", ["a"]])
def test_an_id_that_is_none_is_named(parser: Parser, folder: Path, value: Any) -> None:
    Path("in.jsonl").write_text(json.dumps({"text": "w1", "id": value}) + "\n", encoding="utf-8")
    with pytest.raises(DataError, match="the id of a document, 'id', must be a string or an integer"):
        parse_corpus(parser, CorpusRequest(["in.jsonl"], "out.conllu", id_column="id"))


def test_a_faulty_table_is_named(parser: Parser, arrow: Any) -> None:
    with pytest.raises(DataError, match=r"in\.parquet: the file has no column 'body': .*--text-column \(text, id, n\)"):
        parse_corpus(parser, CorpusRequest(["in.parquet"], "out.conllu", text_column="body"))
    data = Path("in.parquet").read_bytes()
    for content in (data[:-20], b"", b"no table"):
        Path("in.parquet").write_bytes(content)
        with pytest.raises(DataError, match=r"in\.parquet: this is no whole Parquet file"):
            parse_corpus(parser, CorpusRequest(["in.parquet"], "out.conllu"))
    with pytest.raises(DataError, match="read from its end"):
        parse_corpus(parser, CorpusRequest(["-"], "out.conllu", format="parquet"))


@pytest.mark.parametrize("trees", [TreeRequest(probabilities=True), TreeRequest("kbest", 3)], ids=["parse", "kbest"])
def test_parquet_has_the_trees_of_json_lines(parser: Parser, arrow: Any, trees: TreeRequest) -> None:
    for kind in ("jsonl", "parquet"):
        parse_corpus(parser, CorpusRequest(["in.jsonl"], f"out.{kind}", trees))
    rows = arrow.parquet.read_table("out.parquet").to_pylist()
    expected = []
    for result in read_nbest("out.jsonl"):
        for rank, parse in enumerate(result.parses, 1):
            row = {"sent_id": result.sent_id, "text": result.sentence.comments("text")[0], "tokens": [*parse.tokens]}
            row |= {"rank": rank} if trees.method == "kbest" else {}
            row |= {"heads": [*parse.heads], "labels": [*parse.labels]}
            row |= {"log_prob": parse.log_prob, "score": parse.score}
            if trees.probabilities:
                row |= {"arc_probs": [*(parse.arc_probs or ())], "label_probs": [*(parse.label_probs or ())]}
                row["entropy"] = parse.entropy
            expected.append(row)
    assert rows == expected and len(rows) >= 5


def test_two_processes_write_the_bytes_of_one(arrow: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Row groups too, which are smaller here than what is packed at once."""
    monkeypatch.setattr("treeparse.corpus.writers.ROWS", 3)
    Path("in.jsonl").write_text('{"text": "w1 w2\\nw3 w4 ."}\n{\n' * 40, encoding="utf-8")
    for jobs in (1, 2):
        options = {"skip_invalid": True, "faults": f"faults-{jobs}.jsonl", "chunk": 11}
        request = CorpusRequest(["in.jsonl"], f"{jobs}.parquet", TreeRequest("kbest", 2), **options)
        if jobs == 1:
            parse_corpus(load(), request)
        else:
            parse_with_jobs(load, request, list_parts(request), jobs)
    assert Path("1.parquet").read_bytes() == Path("2.parquet").read_bytes()
    written = arrow.parquet.ParquetFile("1.parquet")
    assert written.num_row_groups == (written.metadata.num_rows + 2) // 3
    faults = Path("faults-1.jsonl").read_bytes()
    assert faults == Path("faults-2.jsonl").read_bytes() and faults.count(b"\n") == 40


def test_a_list_of_faults_for_each_output(parser: Parser, folder: Path) -> None:
    """Faulty and long sentences, and sentences that no tree fits; an output without faults has an empty list."""
    row = "{}\tw{}\t_\t_\t_\t_\t{}\troot\t_\t{}\n"
    Path("a.conllu").write_text(row.format(1, 1, 0, "_") + "\n", encoding="utf-8")
    long = "# sent_id = long\n" + "".join(row.format(word, word, word - 1, "_") for word in range(1, 7))
    unfit = "# sent_id = unfit\n" + row.format(1, 1, "_", "Heads=2") + row.format(2, 2, "_", "Heads=1")
    text = "\n".join([row.format(1, 1, 0, "_"), "1\tfew columns\n", long, unfit, row.format(1, 2, 0, "_")])
    Path("b.conllu").write_text(text + "\n", encoding="utf-8")
    command = "predict -q model a.conllu b.conllu -o out/ --faults faults/ --max-words 5 --within"
    assert main(command.split()) == 0
    assert sorted(path.name for path in Path("faults").iterdir()) == ["a.faults.jsonl", "b.faults.jsonl"]
    assert Path("faults/a.faults.jsonl").read_bytes() == b""
    faults = [*map(json.loads, Path("faults/b.faults.jsonl").read_text(encoding="utf-8").splitlines())]
    assert {fault["file"] for fault in faults} == {"b.conllu"}
    assert [(fault["line"], fault.get("sent_id")) for fault in faults] == [(3, None), (5, "long"), (13, "unfit")]
    assert "it has 6 words, and at most 5 are parsed" in faults[1]["problem"]
    assert len([*read_conllu("out/b.conllu", single_root=False)]) == 2


def test_a_list_of_faults_replaces_no_input(parser: Parser, folder: Path, capsys: Capture) -> None:
    Path("a.conllu").write_text("1\tfew columns\n\n", encoding="utf-8")
    command = ["predict", "-q", "model", "a.conllu"]
    assert main([*command, "-o", "out.conllu", "--faults", "a.conllu"]) == 2
    assert "would replace the input" in capsys.readouterr().err
    assert main([*command, "-o", "out/", "--faults", "faults.jsonl"]) == 2
    assert "is a folder, but the list of faults" in capsys.readouterr().err
    assert sorted(path.name for path in folder.iterdir()) == ["a.conllu", "in.jsonl", "model"]


def test_documents_in_memory_have_their_sentences(
    parser: Parser, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where a chunk ends within them; the sentences are those of a file."""
    monkeypatch.setattr("treeparse.corpus.corpus_parsing.CHUNK", 2)
    parse_corpus(parser, CorpusRequest(["in.jsonl"], "out.conllu", id_column="id"))
    ids = (str(document["id"]) for document in DOCUMENTS)
    parsed = [*parse_documents(parser, TEXTS, ids=ids)]
    assert [len(sentences) for sentences in parsed] == [3, 0, 1, 1]
    assert "".join(map(ConlluWriter().pack, parsed)) == Path("out.conllu").read_text(encoding="utf-8")
    numbered = parse_documents(parser, iter(["w1 w2", "w3\nw4 w5 w6"]), max_words=2, trees=TreeRequest("kbest", 2))
    assert [[(each.sent_id, len(each.parses)) for each in own] for own in numbered] == [[("1-1", 2)], [("2-1", 1)]]
    with pytest.raises(DataError, match="<documents>:2: a document must be a string, got None"):
        list(parse_documents(parser, ["w1", None]))  # pyright: ignore[reportArgumentType]
    with pytest.raises(DataError, match="surrogate"):
        list(parse_documents(parser, ["\ud800"]))
    assert not [*parse_documents(parser, [])]
