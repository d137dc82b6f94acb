"""Parses and lists in a notebook, and as other libraries hold them."""

import sys
from dataclasses import replace
from pathlib import Path

import networkx
import pytest
from helpers.drawn import read_drawn

from treeparse import Parse
from treeparse.data.conllu import read_conllu
from treeparse.data.parses import NBestList
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
