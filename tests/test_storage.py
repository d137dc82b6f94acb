"""The model's folder is read strictly: whatever does not fit becomes a sentence, and nothing in it runs."""

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load, save_file
from sentences import learnable_sentences
from torch import Tensor, nn

from treeparse.core import TreeparseError
from treeparse.model import Parser, ParserConfig
from treeparse.nn import BiLSTMConfig

CONFIG = ParserConfig(
    encoder=BiLSTMConfig(word_size=8, char_size=4, char_filters=4, tags=("upos",), hidden_size=8, layers=1),
    arc_size=8,
    label_size=8,
)
TRAIN = learnable_sentences(20, seed=1)
FILES = ["config.json", "model.safetensors", "vocabulary.json"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    torch.manual_seed(0)
    Parser.build(CONFIG, TRAIN).save_pretrained(tmp_path / "model")
    return tmp_path / "model"


def change_json(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    data = json.loads(path.read_text(encoding="utf-8"))
    change(data)
    path.write_text(json.dumps(data), encoding="utf-8")


def change_weights(path: Path, change: Callable[[dict[str, Tensor]], object]) -> None:
    weights = load(path.read_bytes())  # not load_file: it maps the file that is about to be overwritten
    change(weights)
    save_file(weights, path)


def refused(folder: Path) -> str:
    """The sentence with which the folder is refused; it names the folder."""
    with pytest.raises(TreeparseError, match=re.escape(str(folder))) as caught:
        Parser.from_pretrained(folder)
    return str(caught.value)


def test_a_saved_parser_comes_back(folder: Path) -> None:
    torch.manual_seed(0)
    parser = Parser.build(CONFIG, TRAIN)
    loaded = Parser.from_pretrained(str(folder))
    assert loaded.config == CONFIG and not loaded.training
    assert loaded.indexer.to_json() == parser.indexer.to_json()
    own, others = parser.state_dict(), loaded.state_dict()
    assert own.keys() == others.keys() and all(torch.equal(own[name], others[name]) for name in own)


def test_folder_holds_plain_data_alone(folder: Path) -> None:
    assert sorted(os.listdir(folder)) == FILES
    config = json.loads((folder / "config.json").read_bytes())
    assert config["encoder"]["type"] == "bilstm" and "class_path" not in json.dumps(config)
    json.loads((folder / "vocabulary.json").read_bytes())
    with safe_open(folder / "model.safetensors", framework="pt") as weights:
        assert set(weights.keys()) == Parser.build(CONFIG, TRAIN).state_dict().keys()


def test_saving_replaces_the_whole_folder(folder: Path) -> None:
    (folder / "left.over").touch()
    Parser.from_pretrained(folder).save_pretrained(folder)
    assert sorted(os.listdir(folder)) == FILES


def test_failed_save_leaves_the_old_model(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError("disk full")

    parser = Parser.from_pretrained(folder)
    before = {name: (folder / name).read_bytes() for name in FILES}
    monkeypatch.setattr("treeparse.storage.save_file", fail)
    with pytest.raises(OSError, match="disk full"):
        parser.save_pretrained(folder)
    assert {name: (folder / name).read_bytes() for name in os.listdir(folder)} == before
    assert os.listdir(folder.parent) == ["model"]


@pytest.mark.parametrize("name", FILES)
def test_missing_file(folder: Path, name: str) -> None:
    (folder / name).unlink()
    assert f"is no model folder: it has no {name}" in refused(folder)


def test_no_folder_at_all(tmp_path: Path) -> None:
    assert "is no model folder" in refused(tmp_path / "nothing")


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("keep", [0, 5, 0.5, 0.99])
def test_cut_file(folder: Path, name: str, keep: float) -> None:
    data = (folder / name).read_bytes()
    (folder / name).write_bytes(data[: keep if isinstance(keep, int) else int(keep * len(data))])
    assert f"{name} is damaged" in refused(folder)


@pytest.mark.parametrize("name", ["config.json", "vocabulary.json"])
@pytest.mark.parametrize("data", [b"[1, 2]", b"null", b'{"a": "\xff"}', b"[" * 100_000])
def test_json_of_another_kind(folder: Path, name: str, data: bytes) -> None:
    (folder / name).write_bytes(data)
    assert f"{name} is damaged" in refused(folder)


def test_weights_that_are_a_pickle(folder: Path) -> None:
    torch.save(Parser.from_pretrained(folder).state_dict(), folder / "model.safetensors")
    assert "model.safetensors is damaged" in refused(folder)


@pytest.mark.parametrize("change", [lambda config: config.pop("format"), lambda config: config.update(format=99)])
def test_other_format(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    change_json(folder / "config.json", change)
    assert "another format" in refused(folder)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda c: c.update(class_path="os.system"), "not known: class_path"),
        (lambda c: c["encoder"].update(init_args={}), "not known: init_args"),
        (lambda c: c.pop("arc_size"), "missing or not known: arc_size"),
        (lambda c: c["encoder"].pop("layers"), "encoder does not fit this version.*: layers"),
        (lambda c: c.update(encoder="big"), "encoder should hold a mapping"),
        (lambda c: c["encoder"].update(hidden_size="big"), 'encoder, hidden_size is "big", but must be of type int'),
        (lambda c: c["encoder"].update(hidden_size=8.5), "hidden_size is 8.5"),
        (lambda c: c["encoder"].update(layers=True), "layers is true"),
        (lambda c: c["encoder"].update(layers=None), "layers is null"),
        (lambda c: c.update(single_root=1), "single_root is 1, but must be of type bool"),
        (lambda c: c.update(dropout="0.3"), 'dropout is "0.3", but must be a finite number'),
        (lambda c: c.update(dropout=float("nan")), "dropout is NaN"),
        (lambda c: c.update(dropout=[0.1]), "dropout is \\[0.1\\]"),
        (lambda c: c["encoder"].update(type="os.system"), 'type is "os.system", but must be "bilstm"'),
        (lambda c: c["encoder"].update(tags=["lemma"]), 'tags is "lemma", but must be "upos" or "xpos" or "feats"'),
        (lambda c: c["encoder"].update(tags="upos"), 'tags is "upos"'),
        (lambda c: c["encoder"].update(char_widths=[3, "4"]), 'char_widths is "4"'),
        (lambda c: c.update(arc_size=-8), "arc_size is -8"),
        (lambda c: c["encoder"].update(word_dropout=1), "word_dropout is 1"),
    ],
)
def test_wrong_setting(folder: Path, change: Callable[[dict[str, Any]], object], words: str) -> None:
    change_json(folder / "config.json", change)
    assert re.search(words, refused(folder))


@pytest.mark.parametrize(
    "change",
    [
        lambda v: v.clear(),
        lambda v: v.update(labels=None),
        lambda v: v["labels"].update(items=[["root"]]),
        lambda v: v["labels"].update(items=[["root", 1], ["root", 1]]),
        lambda v: v["features"].update(words=[]),
        lambda v: v["features"]["words"].update(specials=[]),
        lambda v: v["features"]["words"].update(unknown="?"),
        lambda v: v["features"]["tags"].clear(),
    ],
)
def test_vocabulary_of_another_kind(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    change_json(folder / "vocabulary.json", change)
    assert "vocabulary.json" in refused(folder)


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (lambda w: w.pop("scorer.arcs.weight"), "scorer.arcs.weight"),
        (lambda w: w.update(extra=torch.zeros(1)), "extra"),
        (lambda w: w.update({"scorer.arcs.bias": torch.zeros(9)}), "scorer.arcs.bias"),
        (lambda w: w.update({"scorer.arcs.bias": torch.zeros(8, 1)}), "scorer.arcs.bias"),
        (lambda w: w.clear(), "..."),
    ],
)
def test_weights_of_another_model(folder: Path, change: Callable[[dict[str, Tensor]], object], name: str) -> None:
    change_weights(folder / "model.safetensors", change)
    assert re.search(f"do not fit its config, see .*{re.escape(name)}", refused(folder))


BIG = 10**9


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (lambda c: c["encoder"].update(hidden_size=BIG), r"encoder.hidden_size \(1000000000\)"),
        (lambda c: c["encoder"].update(char_filters=BIG), r"encoder.char_filters \(1000000000\)"),
        (lambda c: c["encoder"].update(word_size=BIG), r"encoder.word_size \(1000000000\)"),
        (lambda c: c["encoder"].update(layers=1000, hidden_size=1000), r"encoder.(layers|hidden_size) \(1000\)"),
        (lambda c: c.update(arc_size=BIG), r"arc_size \(1000000000\)"),
        (lambda c: c.update(label_size=BIG), r"label_size \(1000000000\)"),
        (lambda c: c["encoder"].update(layers=BIG), "encoder.layers is 1000000000, but must be at most 1000"),
        (lambda c: c["encoder"].update(char_widths=[BIG]), "encoder.char_widths is 1000000000, but must be at most"),
        (lambda c: c["encoder"].update(char_widths=[3] * 10**5), "the number of encoder.char_widths is 100000"),
        (lambda c: c.update(arc_size=10**30), "arc_size is 10+, but must be at most 1000000000"),
    ],
)
def test_a_config_of_a_model_too_large_to_be_held(
    folder: Path, change: Callable[[dict[str, Any]], object], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nn.Linear, "__init__", fail_at_once)
    change_json(folder / "config.json", change)
    problem = refused(folder)
    assert re.search(name, problem) and "0x" not in problem and len(problem) < 600


def fail_at_once(*_: object, **__: object) -> None:
    raise AssertionError("a part of the model was built")


def test_vocabulary_of_another_model(folder: Path) -> None:
    change_json(folder / "vocabulary.json", lambda v: v["features"]["words"]["items"].append(["new", 1]))
    assert "scorer.encoder.embedding.words.weight" in refused(folder)
