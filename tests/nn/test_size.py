"""The number of weights, by formula and by counting; models that are larger than the machine."""

import os
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from helpers.sentences import learnable_sentences

from treeparse.data.vectors.files import WordVectors
from treeparse.errors import TreeparseError
from treeparse.model import Parser, ParserConfig
from treeparse.model.scorers import kind, scorer_kind
from treeparse.model.scorers.kind import check_memory, machine_memory
from treeparse.nn import BiLSTMConfig

TRAINING = learnable_sentences(20, seed=1)
CONFIGS = [
    BiLSTMConfig(word_size=5, char_size=3, char_filters=4, char_widths=(3, 2), tags=("upos",), hidden_size=6, layers=1),
    BiLSTMConfig(word_size=7, char_filters=0, tags=("xpos", "feats"), tag_size=9, hidden_size=4, layers=3),
    BiLSTMConfig(word_size=2, char_size=8, char_filters=3, hidden_size=5, layers=2, min_count=1),
]


@pytest.mark.parametrize("vectors", [None, WordVectors(("verb1", "noun2"), torch.ones(2, 6))], ids=["none", "vectors"])
@pytest.mark.parametrize("encoder", CONFIGS)
def test_weights_are_those_of_the_module(encoder: BiLSTMConfig, vectors: WordVectors | None) -> None:
    tagged = [replace(s, upos=("X",) * len(s), xpos=("Y",) * len(s), feats=("A=B",) * len(s)) for s in TRAINING]
    parser = Parser.build(ParserConfig(encoder=encoder, arc_size=11, label_size=13), tagged, vectors)
    counted = sum(parameter.numel() for parameter in parser.scorer.parameters())
    assert scorer_kind(parser.config).size(parser.indexer) == counted
    assert scorer_kind(parser.config).size(None) < counted


BIG = 10**9


@pytest.mark.parametrize(
    ("encoder", "others", "named"),
    [
        ({"hidden_size": BIG}, {}, ["encoder.hidden_size (1000000000)"]),
        ({"char_filters": BIG}, {}, ["encoder.char_filters (1000000000)"]),
        ({"word_size": BIG}, {}, ["encoder.word_size (1000000000)"]),
        ({"tag_size": BIG, "tags": ("upos",)}, {}, ["encoder.tag_size (1000000000)"]),
        ({"layers": 1000, "hidden_size": 10_000}, {}, ["encoder.hidden_size (10000)"]),
        ({}, {"arc_size": BIG}, ["arc_size (1000000000)"]),
        ({}, {"label_size": BIG}, ["label_size (1000000000)"]),
        ({"hidden_size": BIG}, {"arc_size": BIG}, ["encoder.hidden_size (1000000000)", "arc_size (1000000000)"]),
    ],
)
def test_a_model_beyond_the_machine_names_its_settings(encoder: dict, others: dict, named: list[str]) -> None:
    config = ParserConfig(encoder=BiLSTMConfig(**encoder), **others)
    with pytest.raises(TreeparseError, match="GB of memory, but this machine has") as caught:
        Parser.build(config, [replace(s, upos=("X",) * len(s)) for s in TRAINING])
    assert str(caught.value).endswith(f"lower {' and '.join(named)}.")


def test_the_memory_of_the_machine_and_of_its_container(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    monkeypatch.setattr(kind, "CONTAINER_LIMITS", (str(tmp_path / "memory.max"), str(tmp_path / "absent")))
    for text, expected in (("max\n", own), ("1048576\n", 2**20)):
        (tmp_path / "memory.max").write_text(text)
        assert machine_memory() == expected
    needed = scorer_kind(ParserConfig())
    with pytest.raises(TreeparseError, match=r"this machine has 0\.0 GB: lower encoder.hidden_size \(256\)"):
        check_memory(needed, None, copies=1)
    monkeypatch.setattr(kind, "machine_memory", lambda: None)
    check_memory(needed, None, copies=1)
