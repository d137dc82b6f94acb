"""Requests under conditions, with more of the distribution in the answer, of raw text, and from other sites."""

from collections.abc import Iterator

import pytest
import torch
from helpers.parsed_files import SENTENCES, conllu
from helpers.parsers import random_parser
from helpers.sentences import learnable_sentences
from helpers.served import Server, served

from treeparse.data.conllu import read_conllu
from treeparse.data.files import InMemory
from treeparse.data.raw_text import Token
from treeparse.model import Parser
from treeparse.model.promises import fit_promises, kept_threshold
from treeparse.rules import parse_rules
from treeparse.sentence import Sentence
from treeparse.serve.process_request import PARAMETERS

PARTLY = (
    "# sent_id = one\n"
    "1\tNoun1\t_\t_\t_\t_\t3\t_\t_\t_\n"
    "2\tNoun2\t_\t_\t_\t_\t_\tamod\t_\tHeads=1,3\n"
    "3\tVerb1\t_\t_\t_\t_\t_\t_\t_\tHeads=0,4\n"
    "4\tVerb2\t_\t_\t_\t_\t_\t_\t_\t_\n\n"
    "# sent_id = two\n"
    "1\tVerb1\t_\t_\t_\t_\t0\troot\t_\t_\n"
    "2\tNoun1\t_\t_\t_\t_\t1\tnsubj\t_\t_\n\n"
)
ORIGIN = "https://example.org"


def words_of(text: str, *, partial: bool = False) -> list[Sentence]:
    sentences = read_conllu(InMemory("text", text.encode()), require_trees=True, partial=partial)
    return [sentence.words for sentence in sentences]


def split(text: str) -> Iterator[list[Token]]:
    """A tokenizer: a sentence ends after a full stop, which is a word of its own."""
    start, tokens = 0, list[Token]()
    for end, character in enumerate(f"{text} "):
        if character in " .":
            tokens += [Token((text[start:end],), start, end)] if end > start else []
            start = end + 1
        if character == ".":
            yield [*tokens, Token((".",), end, end + 1)]
            tokens = []
    if tokens:
        yield tokens


@pytest.fixture(scope="module")
def calibrated() -> Parser:
    parser = random_parser()
    fit_promises(parser, learnable_sentences(60, seed=5))
    return parser


@pytest.fixture(scope="module")
def able(calibrated: Parser) -> Iterator[Server]:
    with served({"one": calibrated}, tokenizer=split, origins=[ORIGIN]) as server:
        yield server


@pytest.mark.parametrize("asked", [{"keep": "heads"}, {"within": "1"}, {"keep": "heads", "within": "true"}])
def test_trees_agree_with_what_is_known(server: Server, parser: Parser, asked: dict[str, str]) -> None:
    known = words_of(PARTLY, partial=True)
    parses = parser.parse(known, keep_heads="keep" in asked, within="within" in asked)
    found = words_of(server.process(PARTLY, **asked).result)
    assert [(words.heads, words.labels) for words in found] == [(parse.heads, parse.labels) for parse in parses]
    assert found != words_of(server.process(PARTLY).result)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (PARTLY.replace("\t0\troot", "\t2\t_"), "data:8: sentence two: "),  # a cycle
        (
            PARTLY.replace("\tamod\t", "\tunheard-of\t"),
            "data:1: word 2 has the label 'unheard-of', which the model does",
        ),
        (PARTLY.replace("\t_\tamod\t_\tHeads=1,3", "\t1\tamod\t_\tHeads=4"), "data:"),
        (PARTLY.replace("1\tNoun1\t_\t_\t_\t_\t3", "1\tNoun1\t_\t_\t_\t_\tx"), "data:2: sentence one: "),
    ],
)
def test_what_no_tree_has_is_said(server: Server, text: str, sentence: str) -> None:
    """Another request in the same batch is answered."""
    answer = server.process(text, keep="heads", within="1")
    assert (answer.status, answer.sentence[: len(sentence)]) == (400, sentence)


def test_rules_by_name_and_as_text(server: Server, parser: Parser) -> None:
    text, rules = conllu(*SENTENCES), "at_most_one:\n  - nsubj\n  - amod\n"
    words = [list(words) for words in SENTENCES]
    expected = [parse.heads for parse in parser.parse(words, rules=parse_rules(rules))]
    assert [s.heads for s in words_of(server.process(text, rules=rules).result)] == expected
    assert expected != [parse.heads for parse in parser.parse(words)]
    assert server.process(text, rules="ud").status == 200
    refused = server.process(text, rules="at_most:\n  - x\n")
    assert refused.status == 400 and refused.sentence.startswith("rules:1: ")


def test_promised_heads_and_sets_of_heads(able: Server, calibrated: Parser) -> None:
    text = conllu(*SENTENCES)
    least = kept_threshold(calibrated, "sentences", 0.2)
    found = words_of(able.process(text, certain="0.2").result, partial=True)
    parses = calibrated.parse([list(words) for words in SENTENCES], certain=least)
    assert [(s.heads, s.labels) for s in found] == [parse.certain_tree(least) for parse in parses]
    assert "\tHeads=" in able.process(text, head_sets="0.1").result


def test_every_arc_has_its_probability_in_json(server: Server, tagger: Parser) -> None:
    answer = server.process(conllu(*SENTENCES), output="json", tagger="", model="tagger")
    assert answer.status == 200
    parses = tagger.parse([list(words) for words in SENTENCES], probabilities=True, arc_marginals=True)
    for number, (found, parse) in enumerate(zip(answer.json["result"], parses, strict=True), 1):
        assert found.pop("sent_id") == f"s{number}"
        for name in ("tokens", "heads", "labels", "upos"):
            assert tuple(found.pop(name)) == getattr(parse, name)
        for name, value in found.items():
            torch.testing.assert_close(torch.tensor(value), torch.tensor(getattr(parse, name)), atol=1e-6, rtol=0)
        for head, own, row in zip(parse.heads, found["arc_probs"], found["arc_marginals"], strict=True):
            assert row[head] == pytest.approx(own, abs=1e-9) and sum(row) == pytest.approx(1)


def test_raw_text(able: Server, calibrated: Parser) -> None:
    """As UDPipe's documentation calls its service; lines are paragraphs, or sentences."""
    text = "Noun1 Verb1. Noun2 Verb3.\n\nAdj1 Noun1."
    for options, ends in (("", [3, 6, 9]), ("presegmented", [6, 9]), ("normalized_spaces;presegmented", [6, 9])):
        found = words_of(able.process(text, tokenizer=options, tagger="", parser="").result)
        words = ["Noun1", "Verb1", ".", "Noun2", "Verb3", ".", "Adj1", "Noun1", "."]
        expected = [words[start:end] for start, end in zip([0, *ends], ends, strict=False)]
        assert [list(sentence.forms) for sentence in found] == expected
        assert [sentence.heads for sentence in found] == [parse.heads for parse in calibrated.parse(expected)]
    assert able.ask("GET", "/models").json["models"] == {"one": ["tokenizer", "parser"]}
    refused = able.process(text, tokenizer="ranges")
    assert refused.sentence == (
        "The parameter 'tokenizer' must be one of 'normalized_spaces', 'presegmented', got 'ranges'."
    )
    assert able.process(f"{'a ' * 1001}\n", tokenizer="").status == 413


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"keep": "labels"}, "The parameter 'keep' must be one of '', 'heads', got 'labels'."),
        (
            {"keep": "heads", "input": "horizontal"},
            "The parameters 'keep' and 'within' read CoNLL-U: send input=conllu",
        ),
        ({"within": "1", "tokenizer": ""}, "The parameters 'keep' and 'within' read CoNLL-U"),
        ({"certain": "5%"}, "The parameter 'certain' must be a share above 0 and below 1, got '5%'."),
        ({"certain": "0.001"}, "There is no threshold for a share of 0.001 with the model, which has those of 0.02,"),
        ({"head_sets": "0.1", "kbest": "2"}, "head_threshold is an option of parse, not of kbest."),
        ({"head_sets": "0.1", "output": "json"}, "The parameters 'head_sets' and 'certain' are for output=conllu"),
        ({"output": "json", "kbest": "2"}, "The output json is for parses: send output=jsonl for lists."),
        ({"treebank": "x"}, "Unknown treebank 'x': the model knows none by name."),
    ],
)
def test_what_does_not_fit_is_said(able: Server, asked: dict[str, str], sentence: str) -> None:
    answer = able.process(PARTLY, **asked)
    assert answer.status == 400 and answer.sentence.startswith(sentence)


def test_pages_of_a_site_may_use_it(able: Server, server: Server) -> None:
    allowed = "Access-Control-Allow-Origin"
    assert able.ask("GET", "/models", Origin=ORIGIN).headers[allowed] == ORIGIN
    assert able.ask("GET", "/process", Origin=ORIGIN).headers[allowed] == ORIGIN  # a fault, too
    for other in (able.ask("GET", "/models", Origin="https://evil.org"), server.ask("GET", "/models", Origin=ORIGIN)):
        assert other.status == 200 and allowed not in other.headers


def test_the_description_is_true(able: Server) -> None:
    """Each path exists, each parameter with its example is answered, and others are refused."""
    description = able.ask("GET", "/openapi.json").json
    for path, methods in description["paths"].items():
        for method in methods:
            assert able.ask(method.upper(), path).status == (400 if path == "/process" else 200)
    process = description["paths"]["/process"]
    schemas = {each["name"]: each["schema"] for each in process["get"]["parameters"]}
    for content in process["post"]["requestBody"]["content"].values():
        assert content["schema"]["properties"] == schemas
    assert [*schemas] == [*PARAMETERS]
    for name, schema in schemas.items():
        others = {"input": "horizontal"} if name not in ("input", "keep", "within") else {}
        others |= {"sample": "1"} if name == "seed" else {}
        [example] = schema["examples"]
        for value in (example, *schema.get("enum", ())):
            asked = {"data": "a b" if "horizontal" in (value, *others.values()) else PARTLY, **others, name: value}
            asked |= {"kbest": "2"} if value == "jsonl" else {}
            expected = 400 if name == "treebank" else 200  # of which this model knows none
            answer = able.process(**asked)
            assert answer.status == expected, (asked, answer.body)
