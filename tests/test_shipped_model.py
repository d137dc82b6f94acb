"""The model that comes with treeparse: small, licensed, and there by its name, from any folder."""

import shutil
from importlib import util
from pathlib import Path

import pytest
from helpers.commands import Capture, error_of, run
from helpers.parsers import random_parser

from treeparse import Parser
from treeparse.cli import models

FOLDER = Path(__file__).parents[1] / "data" / "models" / "en"
TEXT = "The dog chased the cat. It ran away.\n"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_it_parses_english() -> None:
    [parse] = Parser.from_pretrained("en").parse([["The", "dog", "chased", "the", "cat", "."]])
    assert parse.heads == (2, 3, 0, 5, 3, 3)
    assert parse.labels == ("det", "nsubj", "root", "det", "obj", "punct")


def test_it_is_small_and_licensed() -> None:
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 4_000_000 + (FOLDER / "LICENSE.txt").stat().st_size
    assert "Attribution-ShareAlike 4.0" in (FOLDER / "LICENSE.txt").read_text(encoding="utf-8")
    card = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert "license: cc-by-sa-4.0" in card and "Silveira et al. 2014" in card
    config = Parser.from_pretrained(FOLDER).config
    assert 1 not in (config.temperature, config.label_temperature)


@pytest.mark.parametrize(("has_spacy", "words"), [(True, [6, 4]), (False, [8])])
def test_it_reads_raw_text_where_spacy_is_installed(
    has_spacy: bool, words: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(models, "find_spec", lambda name: util.find_spec(name) if has_spacy else None)
    Path("in.txt").write_text(TEXT, encoding="utf-8")
    assert run("predict", "en", "in.txt", "--format", "text", "-o", "out.conllu", "-q") == 0
    blocks = Path("out.conllu").read_text(encoding="utf-8").strip().split("\n\n")
    assert [sum(line[0].isdigit() for line in block.splitlines()) for block in blocks] == words


def test_a_folder_of_its_name_comes_first(capsys: Capture) -> None:
    random_parser().float().save_pretrained("en")
    assert Parser.from_pretrained("en").label_names == random_parser().label_names
    shutil.rmtree("en")
    problem = "en is no folder that can be changed: say by -o DIR where the model goes"
    assert problem in error_of(capsys, "calibrate", "en", "dev.conllu")
