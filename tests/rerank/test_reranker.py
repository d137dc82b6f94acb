"""Folders of rerankers: what is saved is loaded, what is damaged is said."""

import json
import random
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers.nbest_lists import LABELS, random_list

from treeparse.errors import TreeparseError
from treeparse.model import Parser, ParserConfig
from treeparse.nn import BiLSTMConfig
from treeparse.rerank import LogLinearConfig, Reranker
from treeparse.rerank.learning import LogLinear
from treeparse.sentence import Sentence

SMALL = BiLSTMConfig(min_count=1, word_size=4, char_size=3, char_filters=3, char_widths=(2,), hidden_size=4, layers=1)
GOLD = Sentence(tuple(f"w{number}" for number in range(6)), heads=(0, *[1] * 5), labels=LABELS)


def random_reranker() -> Reranker:
    """An untrained reranker with random weights."""
    torch.manual_seed(1)
    model = LogLinear.build(LogLinearConfig(bits=8, min_count=1), [GOLD])
    torch.nn.init.normal_(model.weights)
    return Reranker(model, 0.6)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("saved") / "reranker"
    random_reranker().save_pretrained(path)
    return path


@pytest.fixture
def copy(folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(folder, tmp_path / "copy"))


def test_scores_are_the_same_once_loaded(folder: Path) -> None:
    loaded, own = Reranker.from_pretrained(folder), random_reranker()
    assert loaded.base_weight == 0.6
    for seed in range(4):
        nbest = random_list(5, 4, random.Random(seed))
        assert loaded(nbest) == own(nbest)
        assert len(set(own(nbest))) == 4


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"colour": "blue"}, "colour"),
        ({"reranker": "oracle"}, "(?s)reranker.*oracle"),
        ({"base_weight": "high"}, "(?s)base_weight.*high"),
        ({"model": {"bits": 9}}, "do not fit its config"),
        ({"model": {"bits": -1}}, "bits"),
    ],
)
def test_settings_that_cannot_be_are_named(copy: Path, settings: dict[str, Any], problem: str) -> None:
    config = json.loads((copy / "config.json").read_text(encoding="utf-8"))
    model = {"model": config["model"] | settings.get("model", {})}
    (copy / "config.json").write_text(json.dumps(config | settings | model), encoding="utf-8")
    with pytest.raises(TreeparseError, match=problem):
        Reranker.from_pretrained(copy)


def test_folders_of_something_else(tmp_path: Path) -> None:
    with pytest.raises(TreeparseError, match=r"is not the folder of a reranker: it has no config\.json"):
        Reranker.from_pretrained(tmp_path)
    parser = Parser.build(ParserConfig(encoder=SMALL, arc_size=3, label_size=3), [GOLD])
    parser.save_pretrained(tmp_path / "parser")
    with pytest.raises(TreeparseError, match="is the folder of a parser, not of a reranker"):
        Reranker.from_pretrained(tmp_path / "parser")
    random_reranker().save_pretrained(tmp_path / "reranker")
    with pytest.raises(TreeparseError, match="does not have: base_weight, model, reranker"):
        Parser.from_pretrained(tmp_path / "reranker")
