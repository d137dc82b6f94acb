"""Requests that are wrong get a plain sentence that says what is wrong, and where."""

import gzip
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest
from helpers.parsed_files import conllu
from helpers.parsers import CONFIG, ENCODER, random_parser
from helpers.served import Server, served

from treeparse.model import Parser
from treeparse.serve import Limits

GOOD: Mapping[str, Any] = {"data": "a b", "input": "horizontal"}
FORM = "application/x-www-form-urlencoded"
PARTS = "multipart/form-data; boundary=b"
NAMED = b"--b\r\nContent-Disposition: form-data; name=data\r\n"


@pytest.mark.parametrize(
    ("parameters", "status", "sentence"),
    [
        ({"model": "taggr"}, 404, "Models: plain-one, tagger; did you mean tagger?"),
        ({"probabilites": 1}, 400, "Unknown parameter 'probabilites'. Parameters: data, model"),
        ({"tokenizer": ""}, 400, "The models here have no tokenizer: send tokenised sentences without"),
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
