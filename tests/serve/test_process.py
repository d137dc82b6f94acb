"""What requests are answered: the trees of the parser itself, and what is wrong in a plain sentence."""

import asyncio
import gzip
import json
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import aiohttp
import pytest
from helpers.parsed_files import MULTIWORD, SENTENCES, conllu, lists_of, written
from helpers.parsers import CONFIG, ENCODER, random_parser
from helpers.served import Server, served

from treeparse.data.conllu import read_conllu, write_conllu
from treeparse.data.nbest import write_nbest
from treeparse.data.parses import NBestList
from treeparse.model import Parser
from treeparse.serve import Limits

TEXT = conllu(*SENTENCES) + MULTIWORD


def parsed(parser: Parser, tmp_path: Path, text: str) -> str:
    """The file that the parser's trees make."""
    sentences = list(read_conllu(written(tmp_path / "in.conllu", text)))
    parses = parser.parse([list(sentence.words.forms) for sentence in sentences])
    pairs = zip(sentences, parses, strict=True)
    write_conllu(tmp_path / "out.conllu", (s.with_parse(parse.heads, parse.labels) for s, parse in pairs))
    return (tmp_path / "out.conllu").read_bytes().decode()


def test_sentences_come_back_under_their_trees(server: Server, parser: Parser, tmp_path: Path) -> None:
    answer = server.process(TEXT, tokenizer="none", tagger="", parser="", input="conllu", output="conllu")
    assert answer.headers["Content-Type"] == "application/json; charset=utf-8"
    assert answer.json.keys() == {"model", "acknowledgements", "result"}
    assert answer.json["model"] == "plain-one"
    assert answer.result == parsed(parser, tmp_path, TEXT)
    assert "# text = dámelo ya\n1-3\tdámelo" in answer.result


def test_bytes_that_are_odd_stay(server: Server, parser: Parser, tmp_path: Path) -> None:
    odd = "\ufeff" + conllu(("a&b=c+%41", "\u2028", 'x"\\'), ("b",)).replace("\n", "\r\n").rstrip("\r\n")
    result = server.process(odd).result
    assert result == parsed(parser, tmp_path, odd)
    assert "\r\n1\ta&b=c+%41\t" in result


@pytest.mark.parametrize("copies", [1, 200])
def test_every_way_to_send_has_one_answer(server: Server, copies: int) -> None:
    """Forms are those of aiohttp's client; long ones are read by a thread of their own."""
    text = conllu(*SENTENCES * copies)
    expected = server.process(text, kbest=2, model="tagger")
    assert expected.status == 200
    for path, fields in (
        ("/process", {"data": text, "kbest": "2", "model": "tagger"}),
        ("/process?kbest=2&model=tagger", {"data": text}),
    ):
        body = aiohttp.FormData(fields, default_to_multipart=True)()
        assert isinstance(body, aiohttp.MultipartWriter)
        data = asyncio.run(body.as_bytes())
        assert server.ask("POST", path, data, Content_Type=body.headers["Content-Type"]).body == expected.body
    if copies == 1:
        query = urlencode({"data": text, "kbest": 2, "model": "tagger"})
        assert server.ask("GET", f"/process?{query}").body == expected.body


@pytest.mark.parametrize(
    ("form", "data"),
    [
        ("horizontal", "They saw\ther .\r\n\n  \nIt\u00a0is so"),
        ("horizontal", "\ufeffThey saw her .\nIt\u00a0is   so\n"),
        ("vertical", "\n\nThey\tPRON\nsaw\n\ther\r\n.\n\n\nIt is\nso"),
    ],
)
def test_tokenised_text(server: Server, parser: Parser, form: str, data: str) -> None:
    first, second = server.process(data, input=form).result.split("\n\n", 1)
    words = [line.split("\t") for line in first.split("\n")]
    [parse, other] = parser.parse([["They", "saw", "her", "."], ["It is", "so"]])
    assert words[:2] == [["# sent_id = 1"], ["# text = They saw her ."]]
    assert [row[1] for row in words[2:]] == list(parse.tokens)
    assert [int(row[6]) for row in words[2:]] == list(parse.heads)
    assert [row[7] for row in words[2:]] == list(parse.labels)
    assert second.startswith(f"# sent_id = 2\n# text = It is so\n1\tIt is\t_\t_\t_\t_\t{other.heads[0]}\t")


@pytest.mark.parametrize(
    "asked", [{"kbest": 4}, {"kbest": 4, "probabilities": 1}, {"sample": 4, "seed": 7}, {"sample": 4}]
)
@pytest.mark.parametrize("output", ["conllu", "jsonl"])
def test_lists_are_those_of_the_parser(
    server: Server, parser: Parser, asked: dict[str, int], output: str, tmp_path: Path
) -> None:
    sentences = list(read_conllu(written(tmp_path / "in.conllu", TEXT)))
    words = [list(sentence.words.forms) for sentence in sentences]
    if "kbest" in asked:
        expected = parser.kbest(words, 4, probabilities="probabilities" in asked)
    else:
        expected = parser.sample(words, 4, seed=asked.get("seed", 0))
    result = server.process(TEXT, output=output, **asked).result
    lists = [NBestList(s, tuple(trees)) for s, trees in zip(sentences, expected, strict=True)]
    write_nbest(tmp_path / f"expected.{output}", lists)
    assert result == (tmp_path / f"expected.{output}").read_text(encoding="utf-8")
    path = tmp_path / f"found.{output}"
    written(path, result)
    assert [len(trees) for _, trees in lists_of(path)] == [len(trees) for trees in expected]


def test_probabilities(server: Server, parser: Parser) -> None:
    [parse] = parser.parse([["a", "b"]], probabilities=True)
    assert parse.arc_probs is not None
    result = server.process("a b", input="horizontal", probabilities=1).result
    assert f"\tArcProb={parse.arc_probs[0]:.4f}|LabelProb=" in result
    assert "\n# tree_prob = " in result and "\n# entropy = " in result
    assert "Prob" not in server.process("a b", input="horizontal", probabilities="false").result


def test_tags_where_a_model_has_them(server: Server, tagger: Parser) -> None:
    [parse] = tagger.parse([["Noun1", "Verb1"]])
    assert parse.upos is not None
    rows = server.process("Noun1 Verb1", input="horizontal", model="tagger", tagger="").result.split("\n")[2:4]
    assert [row.split("\t")[3] for row in rows] == list(parse.upos)
    for others in ({}, {"tagger": "none"}):
        rows = server.process("Noun1 Verb1", input="horizontal", model="tagger", **others).result.split("\n")[2:4]
        assert [row.split("\t")[3] for row in rows] == ["_", "_"]


def test_models(server: Server) -> None:
    answer = server.ask("GET", "/models")
    assert answer.json == {
        "models": {"plain-one": ["parser"], "tagger": ["tagger", "parser"]},
        "default_model": "plain-one",
    }
    assert server.ask("POST", "/models").body == answer.body
    for name in ("plain", "plain-one", ""):
        assert server.process("a", input="horizontal", model=name).json["model"] == "plain-one"


def test_answers_do_not_depend_on_who_else_asks(server: Server, parser: Parser) -> None:
    """Not even samples, whose places are those in their own request."""
    texts = [conllu(*SENTENCES[at:], *SENTENCES[:at]) for at in range(4)] * 6
    alone = [server.process(text, sample=3, seed=5, output="jsonl").result for text in texts[:4]]
    with ThreadPoolExecutor(len(texts)) as pool:
        together = list(pool.map(lambda text: server.process(text, sample=3, seed=5, output="jsonl").result, texts))
    for one, other in zip(alone * 6, together, strict=True):
        for some, others in zip(one.splitlines(), other.splitlines(), strict=True):
            trees, same = (json.loads(line)["parses"] for line in (some, others))
            assert [tree["heads"] for tree in trees] == [tree["heads"] for tree in same]
            assert [tree["log_prob"] for tree in trees] == pytest.approx([tree["log_prob"] for tree in same])


GOOD: Mapping[str, Any] = {"data": "a b", "input": "horizontal"}
FORM = "application/x-www-form-urlencoded"
PARTS = "multipart/form-data; boundary=b"
NAMED = b"--b\r\nContent-Disposition: form-data; name=data\r\n"


@pytest.mark.parametrize(
    ("parameters", "status", "sentence"),
    [
        ({"model": "taggr"}, 404, "Models: plain-one, tagger; did you mean tagger?"),
        ({"probabilites": 1}, 400, "Unknown parameter 'probabilites'. Parameters: data, model"),
        ({"tokenizer": ""}, 400, "The server has no tokenizer: send tokenised sentences without"),
        ({"parser": "none"}, 400, "The models here parse every sentence: leave out parser=none"),
        ({"parser": "beam=5"}, 400, "The parameter 'parser' must be one of '', 'none', got 'beam=5'."),
        ({"parser": "", "tagger": "model_1"}, 400, "The parameter 'tagger' must be one of '', 'none', got 'model_1'."),
        ({"tagger": "", "kbest": 2}, 400, "The parameter 'tagger' is for parses"),
        ({"input": "plaintext"}, 400, "'input' must be one of 'conllu', 'horizontal', 'vertical', got 'plaintext'."),
        ({"output": "jsonl"}, 400, "The output jsonl is for lists: send kbest=K"),
        ({"kbest": 0}, 400, "The parameter 'kbest' must be a whole number from 1 to 100, got '0'."),
        ({"sample": 1, "seed": 2**63}, 400, "'seed' must be a whole number from 0 to 9223372036854775807, got '92"),
        ({"seed": 1}, 400, "The parameter 'seed' needs the parameter 'sample'"),
        ({"kbest": 2, "sample": 2}, 400, "ask for different lists: send one of them."),
        ({"probabilities": "perhaps"}, 400, "', got 'perhaps'."),
        ({"data": ""}, 400, "data: the file holds no sentence"),
        ({"data": "a\n\nb \xe9\xff".encode("latin-1")}, 400, "must be UTF-8, got the byte 0xe9"),
        ({"input": "conllu"}, 400, "data:1: a line must have 10 columns, got 1: separate them by single tabs; is "),
        ({"input": "conllu", "data": conllu(("a",), ("b",)) + "3\tx\n"}, 400, "data:7: a line must have 10 columns"),
    ],
)
def test_what_is_wrong_is_said(server: Server, parameters: dict[str, Any], status: int, sentence: str) -> None:
    answer = server.process(**{**GOOD, **parameters})
    assert (answer.status, sentence in answer.sentence) == (status, True), answer.sentence


@pytest.mark.parametrize(
    ("body", "content_type", "sentence"),
    [
        (b"input=conllu", FORM, "The parameter 'data' is missing"),
        (b"data=a&data=b", FORM, "The parameter 'data' is given twice"),
        (b"data=a&model=%ff", FORM, "must be UTF-8, got the byte 0xff"),
        (b"data=a", "application/json", "or multipart/form-data, got application/json."),
        (b"nothing", PARTS, "multipart/form-data body cannot be read"),
    ],
)
def test_bodies_that_are_wrong(server: Server, body: bytes, content_type: str, sentence: str) -> None:
    answer = server.ask("POST", "/process", body, Content_Type=content_type)
    assert (answer.status, sentence in answer.sentence) == (400, True), answer.sentence


def test_a_body_may_be_compressed(server: Server) -> None:
    body = gzip.compress(b"input=horizontal&data=a+b")
    answer = server.ask("POST", "/process", body, Content_Type=FORM, Content_Encoding="gzip")
    assert "\n1\ta\t" in answer.result


def test_other_addresses_and_methods(server: Server) -> None:
    missing = server.ask("GET", "/nix")
    assert missing.status == 404
    wrong = server.ask("PUT", "/process", b"")
    assert (wrong.status, wrong.headers["Allow"]) == (405, "GET,POST")


@pytest.fixture(scope="module")
def strict(parser: Parser) -> Iterator[Server]:
    limits = Limits(request_bytes=2000, request_words=12, sentence_words=5, trees=4000)
    with served({"one": parser}, limits) as server:
        yield server


@pytest.mark.parametrize("form", ["horizontal", "vertical"])
def test_limits_of_words(strict: Server, form: str) -> None:
    space, end = (" ", "\n") if form == "horizontal" else ("\n", "\n\n")
    five = space.join("abcde") + end
    assert strict.process(five * 2, input=form).status == 200
    third = 3 if form == "horizontal" else 13
    many = strict.process(five * 3, input=form)
    assert (many.status, many.sentence) == (413, f"data:{third}: the request has more than 12 words: send several.")
    long = strict.process(five + space.join("abcdef") + end, input=form)
    assert long.status == 413 and "a sentence must have at most 5 words, got 6: split it." in long.sentence
    listed = strict.process(five, input=form, kbest=3)
    assert listed.status == 413 and "more than 12 words, 3 trees of each sentence counted" in listed.sentence
    assert strict.process(five, input=form, kbest=2).status == 200


def test_limits_of_bytes(strict: Server) -> None:
    assert strict.process(conllu("abcd").replace("s1", "s" * 1700)).status == 200
    for count in (2000, 100_000):
        long = strict.process("a" * count)
        assert (long.status, "2000" in long.sentence) == (413, True)
    bomb = gzip.compress(b"data=" + b"a" * 10_000_000)
    assert strict.ask("POST", "/process", bomb, Content_Type=FORM, Content_Encoding="gzip").status == 413


def test_tags_that_a_model_reads_must_be_there() -> None:
    with served({"one": random_parser(replace(CONFIG, encoder=replace(ENCODER, tags=("upos",))))}) as server:
        answer = server.process(conllu(("a",)))
        assert answer.status == 400 and answer.sentence.startswith("data:1: sentence s1: ")
        assert "UPOS" in answer.sentence
