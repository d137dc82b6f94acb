"""``treeparse crossparse``, ``train-reranker`` and ``rerank --model``: from a treebank to reranked parses."""

import os
from pathlib import Path

import pytest
from helpers.commands import Capture, error_of

from treeparse.cli.main import main
from treeparse.data import load_treebank, read_nbest
from treeparse.rerank import ExpectedAccuracy, Reranker, rerank


def run(*arguments: str | Path | int) -> int:
    return main([*map(str, arguments)])


@pytest.fixture
def lists(model: str, tiny_config: Path, tmp_path: Path) -> Path:
    """Lists of the dev sentences of a tiny treebank by a parser that knows nothing of them."""
    assert tiny_config.is_file()
    assert run("sample", model, tmp_path / "dev.conllu", "-k", 6, "-q", "-o", tmp_path / "lists.jsonl") == 0
    return tmp_path / "lists.jsonl"


def test_from_a_treebank_to_reranked_parses(tiny_config: Path, tmp_path: Path, capsys: Capture) -> None:
    train, dev, folds, best = (tmp_path / name for name in ("train.conllu", "dev.conllu", "folds", "best.jsonl"))
    crossparse = ["crossparse", "--config", tiny_config, "--output", folds, "-k", 4, "--folds", 2]
    assert run(*crossparse, "--optimization.epochs", 1) == 0
    assert capsys.readouterr().out.endswith(f"lists: {folds / 'best-4.jsonl'}\n")
    assert "training differ" in error_of(capsys, *crossparse, "--optimization.epochs", 2, "-q")
    reranker = tmp_path / "reranker"
    assert run("train-reranker", train, folds / "best-4.jsonl", "-o", reranker, "--epochs", 2) == 0
    shown = capsys.readouterr()
    assert shown.err.count("epoch") == 2 and str(reranker) in shown.out
    assert run("kbest", folds / "fold0" / "run", dev, "-k", 4, "-q", "-o", best) == 0
    for options, scorer in (([], lambda own: own), (["--mbr", "uas"], lambda own: ExpectedAccuracy("uas", scorer=own))):
        assert run("rerank", best, "--model", reranker, "-q", "-o", tmp_path / "out.conllu", *options) == 0
        chosen = [(s.words.heads, s.words.labels) for s in load_treebank(tmp_path / "out.conllu")]
        expected = rerank(read_nbest(best), scorer(Reranker.from_pretrained(reranker)))
        assert chosen == [(n.parses[0].heads, n.parses[0].labels) for n in expected]


def test_lists_to_choose_by_and_another_base_weight(lists: Path, tmp_path: Path) -> None:
    dev = tmp_path / "dev.conllu"
    one, two = tmp_path / "one", tmp_path / "two"
    learn = ["train-reranker", dev, lists, "--epochs", 1, "-q"]
    assert run(*learn, "--dev", dev, lists, "-o", one) == 0
    assert run("train-reranker", dev, lists, "--tune", one, "-o", two, "-q") == 0
    first, second = Reranker.from_pretrained(one), Reranker.from_pretrained(two)
    gold = [sentence.words for sentence in load_treebank(dev)]
    assert second.base_weight == first.tuned(gold, read_nbest(lists)).base_weight
    assert (one / "model.safetensors").read_bytes() == (two / "model.safetensors").read_bytes()


def test_tags_are_those_of_gold_where_lists_have_none(model: str, lists: Path, tmp_path: Path, capsys: Capture) -> None:
    dev, tagged, reranker = tmp_path / "dev.conllu", tmp_path / "lists.conllu", tmp_path / "reranker"
    assert run("train-reranker", dev, lists, "-o", reranker, "--epochs", 1, "--upos", "-q") == 0
    assert "JSONL has no tags" in error_of(capsys, "rerank", lists, "--model", reranker, "-q")
    assert run("sample", model, dev, "-k", 6, "-q", "-o", tagged) == 0
    assert run("train-reranker", dev, tagged, "-o", tmp_path / "other", "--epochs", 1, "--upos", "-q") == 0
    assert run("rerank", tagged, "--model", reranker, "--lists", "-q", "-o", tmp_path / "one.jsonl") == 0
    assert run("rerank", tagged, "--model", tmp_path / "other", "--lists", "-q", "-o", tmp_path / "two.jsonl") == 0
    one, two = (list(read_nbest(tmp_path / name)) for name in ("one.jsonl", "two.jsonl"))
    assert [nbest.parses for nbest in one] == [nbest.parses for nbest in two]


def test_faults_are_sentences(lists: Path, tmp_path: Path, capsys: Capture) -> None:
    dev, train, target = tmp_path / "dev.conllu", tmp_path / "train.conllu", tmp_path / "reranker"
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter.txt").write_text("dear", encoding="utf-8")
    learn, cross = ["train-reranker", "-q"], ["crossparse", "-q", "--config", tmp_path / "config.yaml", "--output"]
    faults = [
        ([*learn, train, lists, "-o", target], "is not of its gold sentence"),
        ([*learn, dev, lists, "-o", tmp_path / "full"], "holds other things than a reranker, letter.txt is one"),
        ([*learn, dev, lists, "-o", target, "--tune", tmp_path / "no"], f"There is no folder {tmp_path / 'no'}"),
        ([*learn, dev, lists, "-o", target, "--tune", "x", "--dev", dev, lists], "needs no --dev"),
        ([*learn, dev, dev, "-o", target], "every tree of an n-best list must have a comment # rank"),
        ([*cross, tmp_path / "full"], "holds other things"),
        (["rerank", lists, "--model", tmp_path, "-q"], "is not the folder of a reranker"),
        (["rerank", lists, "--model", tmp_path, "--scorer", "math.sin", "-q"], "give one of them"),
        ([*cross, target, "--folds", 99], "99"),
    ]
    for arguments, problem in faults:
        assert problem in error_of(capsys, *arguments)
        assert not target.exists()
    assert os.listdir(tmp_path / "full") == ["letter.txt"]
