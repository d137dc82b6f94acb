"""Training on more than trees: unlabelled text beside them, several treebanks, or no tree at all."""

import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
import yaml
from helpers.broken_runs import break_off
from helpers.commands import Capture
from helpers.trained_runs import equal, rows, weights

from treeparse import Parser
from treeparse.batch import Batch
from treeparse.data.conllu import load_treebank
from treeparse.data.features.words import LexicalFeatures
from treeparse.errors import DataError, TreeparseError
from treeparse.objectives import Objective, Term
from treeparse.training import load_config, train

ENTROPY = {"objective": "treeparse.objectives.Entropy", "weight": 0.1, "data": "unlabelled"}
BOTH = {
    "class_path": "treeparse.objectives.WeightedSum",
    "init_args": {"terms": [{"objective": "treeparse.objectives.TreeLikelihood"}, ENTROPY]},
}
OF_TREES = {"class_path": "treeparse.objectives.TreeLikelihood"}
TURNS = {"mixing": "turns", "unlabelled_ratio": 2.5, "temperature": 3.0}
NEXT_WORD = {"objective": "own_objectives.NextWord"}
ENTROPY_OF_TREES = {"objective": "treeparse.objectives.Entropy", "weight": 0.1}
OF_NONE = {"class_path": "treeparse.objectives.WeightedSum", "init_args": {"terms": [NEXT_WORD, ENTROPY_OF_TREES]}}


@pytest.fixture(autouse=True)
def own_objective(one_thread: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bits of one thread; and an objective of the tests can be imported."""
    monkeypatch.syspath_prepend(Path(__file__).parent)


def changed(path: Path, objective: object = None, **data: object) -> Path:
    """The config with other settings of data, and with another objective if one is given."""
    settings = yaml.safe_load(path.read_text(encoding="utf-8"))
    settings["data"] |= data
    settings |= {} if objective is None else {"objective": objective}
    path.write_text(yaml.safe_dump(settings), encoding="utf-8")
    return path


def write_text(path: Path, like: str = "train", sentences: int = 30) -> Path:
    """Text of the words of a treebank beside it, of each sentence those at even places, and a few of its own."""
    words = [sentence.words.forms[::2] for sentence in load_treebank([path.with_name(f"{like}.conllu")])]
    lines = [" ".join([*forms, f"own{len(forms)}"]) for forms in words[:sentences]]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def two_treebanks(folder: Path, large: int = 32) -> list[str]:
    """The 40 training sentences in two files."""
    blocks = (folder / "train.conllu").read_text(encoding="utf-8").split("\n\n")[:-1]
    for name, part in (("large", blocks[:large]), ("small", blocks[large:])):
        (folder / f"{name}.conllu").write_text("".join(f"{block}\n\n" for block in part), encoding="utf-8")
    return [str(folder / f"{name}.conllu") for name in ("large", "small")]


def without_trees(path: Path) -> None:
    """Write ``_`` for all heads and labels of a file."""
    text = re.sub(r"\t\d+\t[a-z]+\t_\t_\n", "\t_\t_\t_\t_\n", path.read_text(encoding="utf-8"))
    path.write_text(text, encoding="utf-8")


@pytest.mark.parametrize("data", [{"unlabelled_ratio": 0.6}, TURNS], ids=["together", "turns"])
def test_a_broken_run_resumes_as_unbroken(
    tiny_config: Path, tmp_path: Path, data: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    if "temperature" in data:
        data = {**data, "train": two_treebanks(tmp_path)}
    text = write_text(tmp_path / "text.txt")
    path = changed(tiny_config, BOTH, unlabelled=[str(text), str(tmp_path / "dev.conllu")], **data)
    two = ["--optimization.epochs=2"]
    break_off(lambda: train(load_config(path, two), quiet=True), 1, 2, monkeypatch)
    train(load_config(path, two), resume=True, quiet=True)
    train(load_config(path, [*two, "--output", str(tmp_path / "whole")]), quiet=True)
    states = [torch.load(tmp_path / run / "checkpoints/last.ckpt", weights_only=True) for run in ("run", "whole")]
    assert equal(*(weights(tmp_path / run / "model") for run in ("run", "whole")))
    assert equal(*(state["state_dict"] for state in states))
    assert states[0]["global_step"] == states[1]["global_step"]
    for found, expected in zip(rows(tmp_path / "run"), rows(tmp_path / "whole"), strict=True):
        assert {**found, "seconds": "", "words_per_second": ""} == {**expected, "seconds": "", "words_per_second": ""}


def test_a_likelihood_and_an_entropy(tiny_config: Path, tmp_path: Path, capsys: Capture) -> None:
    path = changed(tiny_config, BOTH, unlabelled=str(write_text(tmp_path / "text.txt")))
    run = train(load_config(path, ["--optimization.epochs", "10"])).parent
    shown = capsys.readouterr().out
    # 221 words are asked for, and a sentence is not cut.
    assert re.search(r"40 sentences, 221 words, and 22[1-9] unlabelled ones an epoch: \d+ steps, 10 epochs", shown)
    history = rows(run)
    for name in ("term/TreeLikelihood", "term/Entropy"):
        assert 0 < float(history[-1][name]) < float(history[0][name]) / 2
    expected = float(history[-1]["term/TreeLikelihood"]) + 0.1 * float(history[-1]["term/Entropy"])
    # Nearly: a term is the mean over its own words, the loss that over all words of a batch.
    assert float(history[-1]["loss"]) == pytest.approx(expected, rel=1e-2)
    assert max(float(row["dev_uas"]) for row in history) > 0.8
    features = Parser.from_pretrained(run / "model").indexer.features
    assert isinstance(features, LexicalFeatures)
    assert "own2" in features.words and "own2" not in (tmp_path / "train.conllu").read_text(encoding="utf-8")


def test_what_a_run_with_text_may_go_on_with(tiny_config: Path, tmp_path: Path) -> None:
    text = write_text(tmp_path / "text.txt")
    path = changed(tiny_config, BOTH, unlabelled=str(text))
    one = ["--optimization.epochs", "1"]
    train(load_config(path, one), quiet=True)
    text.rename(tmp_path / "other.txt")
    other = [*one, "--data.unlabelled", str(tmp_path / "other.txt")]
    train(load_config(path, other), resume=True, quiet=True)
    with pytest.raises(TreeparseError, match=r"data\.unlabelled_ratio was 1\.0 and is 2\.0"):
        train(load_config(path, [*other, "--data.unlabelled_ratio", "2.0"]), resume=True, quiet=True)
    none = ["--data.unlabelled", "null", "--objective", "TreeLikelihood"]
    with pytest.raises(TreeparseError, match=r"the files of data\.unlabelled changed"):
        train(load_config(path, [*one, *none]), resume=True, quiet=True)
    with (tmp_path / "other.txt").open("a", encoding="utf-8") as file:
        file.write("one more\n")
    with pytest.raises(TreeparseError, match=r"the files of data\.unlabelled changed"):
        train(load_config(path, other), resume=True, quiet=True)


def test_faulty_text_stops_or_is_left_out(tiny_config: Path, tmp_path: Path, capsys: Capture) -> None:
    text = write_text(tmp_path / "text.txt")
    text.write_bytes(b"bad \xe9\nbad \xe9 too\n" + text.read_bytes())
    path = changed(tiny_config, BOTH, unlabelled=str(text))
    with pytest.raises(DataError, match=r"text\.txt:1: byte 5 of the line"):
        train(load_config(path), quiet=True)
    assert not (tmp_path / "run").exists()
    train(load_config(path, ["--data.skip_invalid", "true"]))
    said = capsys.readouterr().out
    assert said.count("leaving out sentences of data.unlabelled that are not valid, the first: ") == 1


def test_an_unlabelled_sentence_that_fails_is_named(
    tiny_config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loss_and_terms = Parser.loss_and_terms

    def broken(self: Parser, batch: Batch, objective: Objective) -> tuple[torch.Tensor, Sequence[Term]]:
        if not batch.is_labelled().any():
            raise ValueError("this one")
        return loss_and_terms(self, batch, objective)

    monkeypatch.setattr(Parser, "loss_and_terms", broken)
    path = changed(tiny_config, BOTH, unlabelled=str(write_text(tmp_path / "text.txt")), mixing="turns")
    with pytest.raises(
        TreeparseError, match=r"failed in epoch 1, batch \d+ \(sentences \S*text\.txt:\d+, .*: this one"
    ):
        train(load_config(path), quiet=True)


def test_a_temperature_is_said(tiny_config: Path, tmp_path: Path, capsys: Capture) -> None:
    large, small = two_treebanks(tmp_path)
    path = changed(tiny_config, train=[large, small], temperature=2.0)
    train(load_config(path, ["--optimization.epochs", "1"]))
    # Square roots of 32 and 8 are as 2 to 1.
    assert f"an epoch draws 27 of 32 sentences of {large}; 13 of 8 sentences of {small}\n" in capsys.readouterr().out
    again = ["--optimization.epochs", "1", "--data.train", json.dumps(two_treebanks(tmp_path, large=30))]
    with pytest.raises(TreeparseError, match=r"or data: the treebanks of data\.train changed\. Resume"):
        train(load_config(path, again), resume=True, quiet=True)


def test_without_any_tree(tiny_config: Path, tmp_path: Path, capsys: Capture) -> None:
    without_trees(tmp_path / "train.conllu")
    path = changed(tiny_config, OF_NONE)
    with pytest.raises(DataError, match=r"no head \(HEAD is _\); with data\.partial true, training takes such words"):
        train(load_config(path), quiet=True)
    changed(path, OF_NONE, partial=True)
    model = train(load_config(path))
    assert "no tree in data.train: the labels are root and dep, in data.dev too" in capsys.readouterr().out
    parser, history = Parser.from_pretrained(model), rows(model.parent)
    assert parser.indexer.labels.items == ("root", "dep")
    dev = [sentence.words.heads for sentence in load_treebank([tmp_path / "dev.conllu"])]
    next_words = [head == word + 1 for heads in dev for word, head in enumerate(heads or (), 1)]
    assert float(history[-1]["dev_uas"]) >= sum(next_words) / len(next_words) > 0.3
    assert all(row["dev_las"] == row["dev_uas"] for row in history)
    (parse,) = parser.parse([["adj1", "noun2", "verb0"]])
    assert sorted(parse.labels) == ["dep", "dep", "root"] and parse.labels[parse.heads.index(0)] == "root"
    before = rows(model.parent)
    train(load_config(path), resume=True, quiet=True)
    assert rows(model.parent) == before


def test_a_model_goes_on_without_any_tree(tiny_config: Path, trained_config: Path, tmp_path: Path) -> None:
    without_trees(tmp_path / "train.conllu")
    options = ["--init_from", str(trained_config.parent / "run" / "model"), "--optimization.epochs", "1"]
    model = train(load_config(changed(tiny_config, OF_NONE, partial=True), options), quiet=True)
    labels = [Parser.from_pretrained(path).indexer.labels.items for path in (model, options[1])]
    assert labels[0] == labels[1] and "nsubj" in labels[0]


DEV = {"unlabelled": "dev.conllu"}
EMPTY = {"unlabelled": "empty.txt"}


@pytest.mark.parametrize(
    ("objective", "data", "message"),
    [
        (BOTH, {"unlabelled": "none.txt"}, r"no file .*none\.txt"),
        (BOTH, {"unlabelled": "none-*.txt"}, r"no file .*none-\*\.txt"),
        (BOTH, {"unlabelled": []}, "at least one file"),
        (BOTH, EMPTY, r"empty\.txt.* no sentence"),
        (BOTH, EMPTY | {"skip_invalid": True}, r"No sentence .*empty\.txt"),
        (BOTH, DEV | {"unlabelled_ratio": 0}, r"unlabelled_ratio must be more than 0 .* 0"),
        (BOTH, DEV | {"unlabelled_ratio": 1e9}, "at most 1000"),
        (BOTH, DEV | {"unlabelled_max_words": 0}, "unlabelled_max_words must be at least 1, got 0"),
        (BOTH, DEV | {"mixing": "apart"}, "'together', 'turns'"),
        (BOTH, {}, "Entropy needs unlabelled sentences.* name files"),
        (OF_TREES, {"mixing": "turns"}, r"data\.mixing turns .*data\.unlabelled is null"),
        (OF_TREES, DEV, r"TreeLikelihood learns from trees alone.* data\.unl"),
        (OF_TREES, {"temperature": 2.0}, r"data\.temperature needs several treebanks.* data\.train names one"),
        (
            OF_TREES,
            {"temperature": 0, "train": ["a", "b"]},
            r"data\.temperature must be more than 0, or null, got 0\.0",
        ),
    ],
)
def test_faults_leave_no_run_behind(
    tiny_config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, objective: object, data: dict, message: str
) -> None:
    (tmp_path / "empty.txt").write_text("\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TreeparseError, match=message):
        train(load_config(changed(tiny_config, objective, **data)), quiet=True)
    assert not (tmp_path / "run").exists()


def test_an_objective_of_trees_without_any(tiny_config: Path, tmp_path: Path) -> None:
    without_trees(tmp_path / "train.conllu")
    with pytest.raises(TreeparseError, match=r"TreeLikelihood learns from trees, but data\.train has none"):
        train(load_config(changed(tiny_config, OF_TREES, partial=True)), quiet=True)
