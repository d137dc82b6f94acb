"""Folds are disjoint and complete, and what was broken off goes on."""

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

import pytest
import yaml
from helpers.parsers import random_parser

from treeparse.data import ConlluSentence, load_treebank, read_nbest
from treeparse.errors import DataError, TreeparseError
from treeparse.model import Parser
from treeparse.rerank import crossparsing
from treeparse.rerank.crossparsing import Listing, crossparse, fold_indices
from treeparse.training import TrainConfig, load_config


@pytest.mark.parametrize(("sentences", "folds"), [(10, 2), (11, 4), (5, 5)])
def test_folds_are_disjoint_and_complete(sentences: int, folds: int) -> None:
    places = [place for fold in range(folds) for place in fold_indices(sentences, folds, fold)]
    assert sorted(places) == list(range(sentences))
    assert all(place % folds == fold for fold in range(folds) for place in fold_indices(sentences, folds, fold))


@pytest.mark.parametrize(("sentences", "folds"), [(10, 1), (3, 4), (1, 2)])
def test_numbers_of_folds(sentences: int, folds: int) -> None:
    with pytest.raises(TreeparseError, match="sentences make from 2 to"):
        fold_indices(sentences, folds, 0)


@pytest.fixture
def config(tiny_config: Path) -> TrainConfig:
    """Two short epochs on 40 sentences."""
    settings = yaml.safe_load(tiny_config.read_text(encoding="utf-8"))
    settings["optimization"] |= {"epochs": 1}
    tiny_config.write_text(yaml.safe_dump(settings), encoding="utf-8")
    return load_config(tiny_config, [f"--output={tiny_config.parent / 'folds'}"])


def test_each_sentence_is_listed_by_a_parser_that_never_saw_it(config: TrainConfig, tmp_path: Path) -> None:
    gold = load_treebank(tmp_path / "train.conllu")
    path = crossparse(config, 3, Listing(4), quiet=True)
    lists = list(read_nbest(path))
    assert [nbest.sent_id for nbest in lists] == [sentence.sent_id for sentence in gold]
    assert [nbest.tokens for nbest in lists] == [sentence.words.forms for sentence in gold]
    ids = [sentence.sent_id for sentence in gold]
    for fold in range(3):
        kept = [sentence.sent_id for sentence in load_treebank(tmp_path / "folds" / f"fold{fold}" / "train.conllu")]
        held = [nbest.sent_id for nbest in read_nbest(tmp_path / "folds" / f"fold{fold}" / "best-4.jsonl")]
        assert held == ids[fold::3] and kept == [each for each in ids if each not in held]
        parser = Parser.from_pretrained(tmp_path / "folds" / f"fold{fold}" / "run")
        [expected] = parser.kbest([list(gold[fold].words.forms)], 4)
        assert [(p.heads, p.labels) for p in lists[fold].parses] == [(p.heads, p.labels) for p in expected]


def test_a_pipe_is_refused_before_it_is_read(config: TrainConfig, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    data = replace(config.data, dev=str(tmp_path / "pipe"))
    with pytest.raises(DataError, match="pipe: a pipe cannot be read more than once, but cross-parsing"):
        crossparse(replace(config, data=data), 3, Listing(4), quiet=True)
    assert not (tmp_path / "folds").exists()


def test_listing_reports_every_sentence_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crossparsing, "CHUNK", 4)
    sentences = [ConlluSentence.from_forms(["Noun1"] * length) for length in range(1, 12)]
    reported: list[Sequence[int]] = []
    lists = list(crossparsing.listed(random_parser(), sentences, range(1, 11), Listing(2), reported.append))
    assert len(lists) == 10 and sorted(chain.from_iterable(reported)) == list(range(10))


def test_it_goes_on_where_it_was_broken_off(
    config: TrainConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained: list[str] = []
    train = crossparsing.train

    def breaking(config: TrainConfig, **options: object) -> Path:
        trained.append(Path(config.output).parent.name)
        if len(trained) == 2:
            raise KeyboardInterrupt
        return train(config, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(crossparsing, "train", breaking)
    with pytest.raises(KeyboardInterrupt):
        crossparse(config, 2, Listing(3), quiet=True)
    folder = tmp_path / "folds"
    settings = json.loads((folder / "crossparsing.json").read_text(encoding="utf-8"))
    assert settings["folds"] == 2 and settings["training"]["optimization"]["epochs"] == 1
    assert (folder / "fold0" / "best-3.jsonl").is_file() and not (folder / "best-3.jsonl").exists()
    crossparse(config, 2, Listing(3), quiet=True)
    assert trained == ["fold0", "fold1", "fold1"]
    before = (folder / "best-3.jsonl").read_bytes()
    crossparse(config, 2, Listing(3), quiet=True)
    assert trained == ["fold0", "fold1", "fold1"] and (folder / "best-3.jsonl").read_bytes() == before
    drawn = crossparse(config, 2, Listing(3, "different_samples"), quiet=True)
    assert drawn.name == "different_samples-3.jsonl" and len(list(read_nbest(drawn))) == 40
    with pytest.raises(TreeparseError, match="folds differ: name another folder"):
        crossparse(config, 3, Listing(3), quiet=True)
    train_file = tmp_path / "train.conllu"
    train_file.write_text(train_file.read_text(encoding="utf-8").replace("verb0", "verb9"), encoding="utf-8")
    with pytest.raises(TreeparseError, match="sentences differ"):
        crossparse(config, 2, Listing(3), quiet=True)


def test_ways_to_list() -> None:
    with pytest.raises(TreeparseError, match="Unknown method 'bst' of listing parses: choose one of best"):
        Listing(method="bst")  # type: ignore[arg-type]
    with pytest.raises(TreeparseError, match="k must be 1 or more"):
        Listing(k=0)
