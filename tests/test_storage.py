"""The model's folder is read strictly: whatever does not fit becomes a sentence, and nothing in it runs."""

import hashlib
import json
import os
import re
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers.sentences import learnable_sentences
from safetensors import safe_open
from safetensors.torch import load, save_file

from treeparse.errors import TreeparseError
from treeparse.model import Parser, ParserConfig
from treeparse.model.folder import check_model_files, check_model_folder, model_folder
from treeparse.model.settings import plain_settings
from treeparse.nn import BiLSTMConfig, TransformerConfig
from treeparse.rerank.reranker import Reranker
from treeparse.shipped import installed_version

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


def without_digests(folder: Path) -> Path:
    """The model, so that the readers after the check of digests are tried."""
    change_json(folder / "config.json", lambda config: config.pop("digests", None))
    return folder


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


def test_folder_holds_plain_data_and_the_version_that_wrote_it(folder: Path) -> None:
    assert sorted(os.listdir(folder)) == FILES
    config = json.loads((folder / "config.json").read_bytes())
    assert config["encoder"]["class_path"] == "BiLSTMConfig"
    assert (config["format"], config["treeparse"]) == (1, installed_version())
    json.loads((folder / "vocabulary.json").read_bytes())
    with safe_open(folder / "model.safetensors", framework="pt") as weights:
        assert set(weights.keys()) == Parser.build(CONFIG, TRAIN).state_dict().keys()


def test_saving_replaces_the_whole_folder(folder: Path) -> None:
    (folder / "left.over").touch()
    Parser.from_pretrained(folder).save_pretrained(folder)
    assert sorted(os.listdir(folder)) == FILES


@pytest.mark.parametrize("step", ["save_file", "shutil.copymode", "file_digest", "_write_json"])
def test_failed_save_leaves_the_old_model(folder: Path, step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError("disk full")

    parser = Parser.from_pretrained(folder)
    before = {name: (folder / name).read_bytes() for name in FILES}
    monkeypatch.setattr(f"treeparse.model.folder.{step}", fail)
    with pytest.raises(OSError, match="disk full"):
        parser.save_pretrained(folder)
    assert {name: (folder / name).read_bytes() for name in os.listdir(folder)} == before
    assert os.listdir(folder.parent) == ["model"]


@pytest.mark.parametrize("name", FILES)
def test_missing_file(folder: Path, name: str) -> None:
    (folder / name).unlink()
    assert f"is no model folder: it has no {name}" in refused(folder)


def test_a_name_of_no_folder_is_told_from_one_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "notes").touch()
    assert refused(tmp_path / "nothing").startswith(f"There is no folder {tmp_path}/nothing: name the folder")
    assert refused(tmp_path / "notes").startswith(f"{tmp_path}/notes is a file: name the folder of a model")


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("share", [0, 0.99])
def test_cut_file(folder: Path, name: str, share: float) -> None:
    data = (folder / name).read_bytes()
    (folder / name).write_bytes(data[: int(share * len(data))])
    assert f"{name} is damaged" in refused(folder)


@pytest.mark.parametrize("number", [None, 99])
def test_a_folder_of_another_format_is_refused(folder: Path, number: object) -> None:
    """With the version that wrote it, to be installed."""
    change_json(folder / "config.json", lambda config: config.update(format=number, treeparse="9.8.7"))
    problem = refused(folder)
    assert json.dumps(number) in problem and "format 1" in problem and "install treeparse 9.8.7" in problem


def test_an_unknown_setting_is_named(folder: Path) -> None:
    change_json(folder / "config.json", lambda config: config["encoder"]["init_args"].update(later=1))
    assert "BiLSTMConfig does not have: later" in refused(folder)


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("os.system", "os.system"),
        ("subprocess.Popen", "subprocess.Popen"),
        ("intruder.Encoder", "is not imported, and loading"),
    ],
)
def test_a_class_path_runs_no_code(
    folder: Path, path: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "intruder.py").write_text("raise AssertionError('code of the folder runs')", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    for section, place in (("encoder", None), ("scorer", None), ("encoder", "architecture")):
        config: dict[str, Any] = {"class_path": path, "init_args": {"args": ["touch", "intruded"]}}
        if place is not None:
            config = {"class_path": "TransformerConfig", "init_args": {place: config}}
        change_json(folder / "config.json", lambda whole: whole.update({section: config}))  # noqa: B023
        assert place is not None or words in refused(folder)
        assert refused(folder) and "intruder" not in sys.modules and not (tmp_path / "intruded").exists()


TEXTS = [
    "intruder.Encoder",
    "{class_path: intruder.Encoder}",
    '{"class_path": "intruder\\u002eEncoder"}',
    '{a: {class_path: "intruder\\u002eEncoder"}}',
]


@pytest.mark.parametrize("text", TEXTS)
def test_no_text_in_a_config_is_read_as_a_class(
    folder: Path, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Instead of any setting of the parser or of an encoder; left to itself, jsonargparse reads texts as YAML."""
    ran = tmp_path / "ran"
    (tmp_path / "intruder.py").write_text(f"open({str(ran)!r}, 'w').close()\nclass Encoder: pass", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    written = json.loads((folder / "config.json").read_bytes())
    changes = [{name: text} for name in written.keys() - {"format", "treeparse", "digests"}]
    for encoder in (written["encoder"], plain_settings(ParserConfig(TransformerConfig()))["encoder"]):
        settings = encoder["init_args"]
        changes += [{"encoder": {**encoder, name: text}} for name in encoder]
        changes += [{"encoder": {**encoder, "init_args": {**settings, name: text}}} for name in settings]
        changes += [{"encoder": {**encoder, "init_args": {**settings, "architecture": {"a": text}}}}]
    changes += [{f"{name}.class_path": text} for name in ("encoder", "scorer", "tags")]
    for change in changes:
        (folder / "config.json").write_text(json.dumps(written | change), encoding="utf-8")
        refused(folder)
        sys.modules.pop("intruder", None)
        assert not ran.exists(), change


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda c: c.update(encoder="big"), "encoder.*big"),
        (lambda c: c.update(encoder=7), "encoder"),
        (lambda c: c["encoder"]["init_args"].update(layers="many"), "layers.*int.*many"),
        (lambda c: c.update(dropout=float("nan")), "dropout must be from 0 to less than 1, got nan"),
        (lambda c: c["encoder"].update(class_path="SystemConfig"), "encoder.*SystemConfig"),
        (lambda c: c["encoder"]["init_args"].update(tags=["lemma"]), "lemma.*tags"),
        (lambda c: c["encoder"]["init_args"].update(char_widths=[3, "x"]), "char_widths.*x"),
        (lambda c: c.update(arc_size=10**30), "arc_size must be at most 1000000000, got 10+"),
        (lambda c: c["encoder"]["init_args"].update(word_dropout=1), "word_dropout must be from 0 to less than 1"),
    ],
)
def test_wrong_setting(folder: Path, change: Callable[[dict[str, Any]], object], words: str) -> None:
    change_json(folder / "config.json", change)
    assert re.search(words, refused(folder), re.DOTALL)


def test_digests_are_of_the_files_of_a_model_and_no_others(folder: Path) -> None:
    def change(config: dict[str, Any]) -> None:
        config["digests"] = {"/dev/zero": "", "vocabulary.json": config["digests"]["vocabulary.json"]}

    change_json(folder / "config.json", change)
    assert re.search("model.safetensors is damaged .*: copy the model again", refused(folder))


def test_a_vocabulary_of_another_kind_is_refused(folder: Path) -> None:
    change_json(without_digests(folder) / "vocabulary.json", lambda vocabulary: vocabulary["features"].update(words=[]))
    assert "vocabulary.json and config.json" in refused(folder)


@pytest.mark.parametrize("name", ["scorer.arcs.weight", "extra"])
def test_weights_of_another_model_are_named(folder: Path, name: str) -> None:
    path = without_digests(folder) / "model.safetensors"
    save_file({**load(path.read_bytes()), name: torch.zeros(1)}, path)
    assert f"do not fit its config, see {name}" in refused(folder)


def test_vocabulary_of_another_model(folder: Path) -> None:
    old = without_digests(folder)
    change_json(old / "vocabulary.json", lambda v: v["features"]["words"]["items"].append(["new", 1]))
    assert "scorer.encoder.embedding.words.weight" in refused(folder)


def test_files_have_digests(folder: Path) -> None:
    digests = json.loads((folder / "config.json").read_bytes())["digests"]
    expected = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in FILES[1:]}
    assert digests == {name: f"sha256:{digest}" for name, digest in expected.items()}


@pytest.mark.parametrize("name", FILES[1:])
def test_a_changed_byte_is_found(folder: Path, name: str) -> None:
    """Whatever it changes: a weight in its tenth digit, or a character of a rare word."""
    data = bytearray((folder / name).read_bytes())
    data[-9] ^= 1
    (folder / name).write_bytes(data)
    assert f"{name} is damaged (it is not the file that was saved" in refused(folder)


@pytest.mark.parametrize("umask", [0o022, 0o077])
def test_files_have_ordinary_permissions(tmp_path: Path, umask: int) -> None:
    torch.manual_seed(0)
    parser = Parser.build(CONFIG, TRAIN)
    before = os.umask(umask)
    try:
        parser.save_pretrained(tmp_path / "model")
    finally:
        os.umask(before)
    modes = {name: stat.S_IMODE((tmp_path / "model" / name).stat().st_mode) for name in FILES}
    assert modes == dict.fromkeys(FILES, 0o666 & ~umask)


def test_files_that_cannot_be_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(path: Path) -> bytes:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "read_bytes", fail)
    assert "cannot be read: [Errno 13] Permission denied" in refused(folder)


@pytest.mark.parametrize("read", [check_model_files, lambda path: check_model_folder(path, "model"), None])
def test_whoever_reads_a_model_finds_the_folder_that_a_killed_writer_renamed(
    folder: Path, read: Callable[[Path], None] | None
) -> None:
    folder.rename(folder.with_name(".model.old"))
    if read is None:
        assert model_folder(folder.parent) == folder
    else:
        read(folder)
    assert Parser.from_pretrained(folder).config == CONFIG


def test_whoever_reads_a_reranker_finds_the_folder_that_a_killed_writer_renamed(folder: Path, tmp_path: Path) -> None:
    folder.rename(tmp_path / ".reranker.old")
    with pytest.raises(TreeparseError, match="of a parser, not of a reranker"):
        Reranker.from_pretrained(tmp_path / "reranker")
