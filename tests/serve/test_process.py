"""What requests that are right are answered: the trees of the parser itself, in the texts that commands write."""

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlencode

import aiohttp
import pytest
from helpers.parsed_files import MULTIWORD, SENTENCES, conllu, lists_of, written
from helpers.served import Server

from treeparse.data.conllu import read_conllu, write_conllu
from treeparse.data.nbest import write_nbest
from treeparse.data.parses import NBestList
from treeparse.model import Parser

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
