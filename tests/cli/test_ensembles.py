"""Several models on the command line: what parses as one, and what is refused."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers.commands import Capture, error_of, run
from helpers.parsed_files import SENTENCES, assert_same, lists_of, saved_with, trees_as_text, written
from helpers.sentences import learnable_sentences

from treeparse.cli.models import leading_models
from treeparse.data import read_conllu
from treeparse.model import Ensemble, Parser, ParserConfig
from treeparse.names import COMBINATIONS
from treeparse.nn import BiLSTMConfig


@pytest.fixture(scope="module")
def second(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The folder of another parser, of another size, with its labels in another order perhaps."""
    torch.manual_seed(5)
    encoder = BiLSTMConfig(min_count=1, word_size=4, char_size=4, char_filters=4, char_widths=(2,), hidden_size=4)
    sentences = learnable_sentences(20, seed=7)[::-1]
    parser = Parser.build(ParserConfig(encoder=encoder, arc_size=4, label_size=4), sentences)
    for weights in parser.parameters():
        torch.nn.init.normal_(weights)
    folder = tmp_path_factory.mktemp("second") / "model"
    parser.save_pretrained(folder)
    return str(folder)


@pytest.mark.parametrize("how", [None, *COMBINATIONS])
def test_parses_are_the_ensembles(model: str, second: str, source: str, tmp_path: Path, how: Any) -> None:
    chosen = ["--combine", how] if how else []
    ensemble = Ensemble.from_pretrained([model, second], how or "scores")
    assert run("predict", model, second, source, "-o", tmp_path / "out", *chosen) == 0
    found = [(s.words.heads, s.words.labels) for s in read_conllu(tmp_path / "out", require_trees=True)]
    assert found == [(parse.heads, parse.labels) for parse in ensemble.parse(SENTENCES)]
    options: dict[str, Any] = {"temperature": 1.5} if how != "marginals" else {}
    more = ["--temperature", 1.5] if options else []
    assert run("sample", model, second, source, "-k", 5, "--seed", 2, *more, "-o", tmp_path / "s.jsonl", *chosen) == 0
    expected = ensemble.sample(SENTENCES, 5, seed=2, **options)
    assert_same([parses for _, parses in lists_of(tmp_path / "s.jsonl")], expected)
    if how != "marginals":
        assert run("kbest", model, second, source, "-k", 3, "-o", tmp_path / "k.jsonl", *chosen) == 0
        assert_same([parses for _, parses in lists_of(tmp_path / "k.jsonl")], ensemble.kbest(SENTENCES, 3))


def test_models_are_the_first_folders(tmp_path: Path) -> None:
    one, two = (str(tmp_path / name) for name in ("one", "two"))
    for folder in (one, two):
        Path(folder).mkdir()
    assert leading_models([one, two, "in", one]) == ([one, two], ["in", one])
    assert leading_models(["absent", "-"]) == (["absent"], ["-"])
    assert leading_models([one, two]) == ([one, two], [])


def test_options_may_stand_anywhere(model: str, second: str, source: str, tmp_path: Path) -> None:
    assert run("predict", model, second, source, source, "-o", tmp_path / "one") == 0
    assert run("predict", model, "-q", second, source, source, "-o", tmp_path / "two") == 0
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    assert len(list(read_conllu(tmp_path / "one"))) == 2 * len(SENTENCES)


def test_what_is_refused(model: str, second: str, parser: Parser, source: str, tmp_path: Path, capsys: Capture) -> None:
    assert f"There is no input after the folders {model}, {second}" in error_of(capsys, "predict", model, second)
    assert "Unknown way to combine models 'mean'" in error_of(capsys, "predict", model, source, "--combine", "mean")
    problem = error_of(capsys, "kbest", "-k", 2, model, second, source, "--combine", "marginals")
    assert "models combined by marginals have one best tree, but no list of the best: choose scores or" in problem
    options = ["--combine", "marginals", "--temperature", 2]
    problem = error_of(capsys, "sample", "-k", 2, model, second, source, *options)
    assert "Temperatures other than 1, here 2.0, need" in problem
    several_roots = saved_with(parser, tmp_path / "model", single_root=False)
    problem = error_of(capsys, "predict", model, several_roots, source)
    assert "The models have different trees: the first has trees: nonprojective, single_root: true" in problem


@pytest.mark.parametrize("how", COMBINATIONS)
def test_ensembles_are_scored(model: str, second: str, tmp_path: Path, capsys: Capture, how: Any) -> None:
    """As what they parse is, wherever the files stand; two of them are compared."""
    gold = written(tmp_path / "gold.conllu", trees_as_text(learnable_sentences(6, seed=3)))
    assert run("predict", model, second, gold, "-o", tmp_path / "parsed", "-q", "--combine", how) == 0
    tables = []
    for arguments in (
        [gold, tmp_path / "parsed"],
        ["--model", model, second, gold, "--combine", how],
        [gold, "--model", model, second, "--combine", how],
    ):
        assert run("evaluate", *arguments) == 0
        tables.append(capsys.readouterr().out.splitlines())
    assert tables[1][1] == f"system  {model} + {second}"
    assert tables[1] == tables[2]
    assert tables[0][2:] == tables[1][2:]
    both = ["--model", model, second, "--model", second, gold, tmp_path / "parsed"]
    assert "There are 3 systems to score" in error_of(capsys, "evaluate", *both)
    assert run("evaluate", *both[:-1], "--resamples", 50, "--output", "-", "-q") == 0
    assert [s["system"] for s in json.loads(capsys.readouterr().out)["systems"]] == [f"{model} + {second}", second]


def test_faults_of_evaluating_an_ensemble(model: str, second: str, source: str, capsys: Capture) -> None:
    assert "There are no gold trees to score against" in error_of(capsys, "evaluate", "--model", model, second)
    problem = error_of(capsys, "evaluate", source, source, "--combine", "scores")
    assert "--combine says how several models parse as one" in problem
