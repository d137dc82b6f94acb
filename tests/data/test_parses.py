"""Parses and lists as notebooks show and other libraries hold them; what is added to sentences."""

import math
import sys
from dataclasses import replace
from pathlib import Path

import networkx
import pytest
from helpers.drawn import read_drawn
from helpers.parsed_files import MULTIWORD, written

from treeparse.data.annotations import with_comments, with_misc, with_probabilities
from treeparse.data.conllu import ConlluSentence, read_conllu
from treeparse.data.parses import NBestList, Parse
from treeparse.errors import MissingPackageError

PARSE = Parse(("She", "saw", "<it>"), (2, 0, 2), ("nsubj", "root", "obj"), -0.5, 3.0, upos=("PRON", "VERB", "X"))


def test_a_notebook_shows_a_parse_as_a_picture() -> None:
    svg = PARSE._repr_svg_()
    drawn = read_drawn(svg)
    assert svg.startswith("<svg ") and [text for _, text in drawn.words] == list(PARSE.tokens)
    assert {arc for arc, _ in drawn.arcs} == {(2, 1), (0, 2), (2, 3)} and drawn.tags == ["PRON", "VERB", "X"]


def test_a_long_parse_fits_between_the_cells() -> None:
    parse = Parse(("international",) * 40, (0, *range(1, 40)), ("root", *["conj"] * 39), -1.0, 0.0)
    assert read_drawn(parse._repr_svg_()).size[0] <= 900


def test_a_notebook_shows_a_list_as_a_picture_of_its_first_trees(tmp_path: Path) -> None:
    (tmp_path / "x.conllu").write_text(PARSE.to_conllu(), encoding="utf-8")
    [sentence] = read_conllu(tmp_path / "x.conllu")
    svg = NBestList(sentence, (PARSE,) * 12)._repr_svg_()
    assert svg.startswith("<svg ") and svg.count("&lt;it&gt;</text>") == 10
    assert "1: log probability -0.50" in svg and "10: log probability" in svg and "11: log" not in svg


def test_a_parse_as_conllu_is_read_back(tmp_path: Path) -> None:
    (tmp_path / "x.conllu").write_text(PARSE.to_conllu() * 2, encoding="utf-8")
    for sentence in read_conllu(tmp_path / "x.conllu"):
        words = sentence.words
        assert (words.forms, words.heads, words.labels) == (PARSE.tokens, PARSE.heads, PARSE.labels)
        assert words.upos == PARSE.upos


def test_a_parse_as_a_graph_is_its_tree() -> None:
    graph = PARSE.to_networkx()
    assert networkx.is_arborescence(graph) and graph.nodes[3] == {"form": "<it>"}
    assert dict(graph.edges) == {(0, 2): {"label": "root"}, (2, 1): {"label": "nsubj"}, (2, 3): {"label": "obj"}}


def test_a_parse_as_a_frame_has_a_row_a_word() -> None:
    frame = replace(PARSE, arc_probs=(0.9, 1.0, 0.5)).to_frame()
    assert list(frame.columns) == ["form", "upos", "head", "label", "arc_prob"] and list(frame.index) == [1, 2, 3]
    assert frame.loc[3].tolist() == ["<it>", "X", 2, "obj", 0.5]


def test_without_pandas_a_frame_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingPackageError, match=r"Parse.to_frame needs the package pandas"):
        PARSE.to_frame()


ENTRIES = [{"A": "1"}, {"A": "2"}, {"A": "3"}, {"A": "4"}]


def read(tmp_path: Path, text: str) -> ConlluSentence:
    [sentence] = read_conllu(written(tmp_path / "in.conllu", text))
    return sentence


def endings(text: str) -> dict[str, str]:
    return {"lines": text, "crlf": text.replace("\n", "\r\n"), "byte order mark": "\ufeff" + text, "open": text[:-2]}


@pytest.mark.parametrize("name", endings(""))
def test_comments_stand_behind_the_others_once(tmp_path: Path, name: str) -> None:
    text = MULTIWORD.replace("# sent_id", "# entropy=7\n#  entropy = 8\n# sent_id")
    found = with_comments(read(tmp_path, endings(text)[name]), {"entropy": "1.5", "none": None, "b": "c = d"})
    expected = MULTIWORD.replace("# text = dámelo ya\n", "# text = dámelo ya\n# entropy = 1.5\n# b = c = d\n")
    assert found.text == endings(expected)[name]


def test_a_sentence_without_comments_gets_some(tmp_path: Path) -> None:
    found = with_comments(read(tmp_path, "\ufeff\n1\ta" + "\t_" * 8 + "\n\n"), {"b": "c"})
    assert found.text == "\ufeff\n# b = c\n1\ta" + "\t_" * 8 + "\n\n"


@pytest.mark.parametrize("name", endings(""))
@pytest.mark.parametrize(
    ("before", "after"), [("_", "A=2"), ("x", "x|A=2"), ("A=9|b=c=d|A=7|AA=1", "b=c=d|AA=1|A=2"), ("A", "A=2")]
)
def test_misc_keeps_all_but_these_keys(tmp_path: Path, name: str, before: str, after: str) -> None:
    rows = MULTIWORD.split("\n")
    old = [row.removesuffix("\t_") + f"\t{before}" if row.startswith("2\t") else row for row in rows]
    found = with_misc(read(tmp_path, endings("\n".join(old))[name]), ENTRIES)
    new = {"1": "A=1", "2": after, "3": "A=3", "4": "A=4"}
    expected = [
        row.removesuffix("\t_") + f"\t{new[row.split(chr(9))[0]]}" if row.split("\t")[0] in new else row for row in rows
    ]
    assert found.text == endings("\n".join(expected))[name]


def test_probabilities_of_a_parse(tmp_path: Path) -> None:
    sentence = read(tmp_path, "1\ta" + "\t_" * 7 + "\tSpaceAfter=No|ArcProb=1\n2\tb" + "\t_" * 8 + "\n\n")
    parse = Parse(("a", "b"), (2, 0), ("x", "root"), -50.0, 1.0, None, None, None, (0.97306, 1.0), (1e-9, 0.5), 2 / 3)
    assert with_probabilities(sentence, parse).text.split("\n") == [
        f"# tree_prob = {math.exp(-50):.6g}",
        "# entropy = 0.666667",
        "1\ta" + "\t_" * 7 + "\tSpaceAfter=No|ArcProb=0.9731|LabelProb=0.0000",
        "2\tb" + "\t_" * 7 + "\tArcProb=1.0000|LabelProb=0.5000",
        *("", ""),
    ]
    with pytest.raises(ValueError, match="no probabilities"):
        with_probabilities(sentence, Parse(("a", "b"), (2, 0), ("x", "root"), -50.0, 1.0))
