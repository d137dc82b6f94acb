"""Folders of rerankers: what is saved is loaded, what is damaged is said."""

import json
import random
import shutil
from pathlib import Path

import pytest
import torch
from helpers.nbest_lists import LABELS, random_list

from treeparse.errors import TreeparseError
from treeparse.model import Parser, ParserConfig
from treeparse.nn import BiLSTMConfig
from treeparse.rerank import LogLinearConfig, Reranker
from treeparse.rerank.loglinear import LogLinear
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


def test_nothing_is_pickled(folder: Path) -> None:
    assert sorted(path.name for path in folder.iterdir()) == ["config.json", "model.safetensors", "vocabulary.json"]


def changed(folder: Path, **values: object) -> None:
    path = folder / "config.json"
    config = {**json.loads(path.read_text(encoding="utf-8")), **values}
    path.write_text(json.dumps({name: value for name, value in config.items() if value is not ...}), encoding="utf-8")


def test_settings_that_are_not_known(copy: Path) -> None:
    changed(copy, colour="blue")
    with pytest.raises(TreeparseError, match="missing or unknown: colour"):
        Reranker.from_pretrained(copy)
    changed(copy, colour=..., reranker="oracle")
    with pytest.raises(TreeparseError, match='reranker must be "global", got "oracle"'):
        Reranker.from_pretrained(copy)


def test_settings_out_of_range_and_of_other_weights(copy: Path, folder: Path) -> None:
    changed(copy, base_weight="high")
    with pytest.raises(TreeparseError, match='base_weight must be a finite number, got "high"'):
        Reranker.from_pretrained(copy)
    model = json.loads((folder / "config.json").read_text(encoding="utf-8"))["model"]
    changed(copy, base_weight=1.0, model=model | {"bits": 9})
    with pytest.raises(TreeparseError, match="do not fit its config"):
        Reranker.from_pretrained(copy)
    changed(copy, model=model | {"bits": -1})
    with pytest.raises(TreeparseError, match="bits"):
        Reranker.from_pretrained(copy)


@pytest.mark.parametrize("name", ["vocabulary.json", "model.safetensors"])
def test_damaged_files(copy: Path, name: str) -> None:
    data = (copy / name).read_bytes()
    (copy / name).write_bytes(data[:-3])
    with pytest.raises(TreeparseError, match=f"{name} is damaged"):
        Reranker.from_pretrained(copy)
    (copy / name).unlink()
    with pytest.raises(TreeparseError, match=f"has no {name}"):
        Reranker.from_pretrained(copy)


def test_vocabularies_that_are_none(copy: Path) -> None:
    (copy / "vocabulary.json").write_text('{"words": 3}', encoding="utf-8")
    changed(copy, digests=...)
    with pytest.raises(TreeparseError, match="make no reranker"):
        Reranker.from_pretrained(copy)


def test_folders_of_something_else(tmp_path: Path) -> None:
    with pytest.raises(TreeparseError, match=r"is not the folder of a reranker: it has no config\.json"):
        Reranker.from_pretrained(tmp_path)
    parser = Parser.build(ParserConfig(encoder=SMALL, arc_size=3, label_size=3), [GOLD])
    parser.save_pretrained(tmp_path / "parser")
    with pytest.raises(TreeparseError, match="is the folder of a parser, not of a reranker"):
        Reranker.from_pretrained(tmp_path / "parser")
    random_reranker().save_pretrained(tmp_path / "reranker")
    with pytest.raises(TreeparseError, match="missing or unknown"):
        Parser.from_pretrained(tmp_path / "reranker")
