"""``predict --tags`` and the scores of tags in ``evaluate``."""

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from helpers.commands import Capture
from helpers.parsed_files import MULTIWORD, conllu, written
from helpers.sentences import learnable_sentences
from udtools import udeval

from treeparse.cli.main import main
from treeparse.model import Parser, ParserConfig
from treeparse.model.tagging import TagWeights

TITLES = {"upos": "UPOS", "xpos": "XPOS", "ufeats": "UFeats", "all_tags": "AllTags"}


@pytest.fixture(scope="module")
def tagger(parser: Parser, tmp_path_factory: pytest.TempPathFactory) -> tuple[Parser, str]:
    """A parser of random weights that predicts UPOS and FEATS, and its folder."""
    torch.manual_seed(1)
    tagged = [
        replace(s, feats=tuple("Case=Nom" if tag == "NOUN" else "_" for tag in s.upos or ()))
        for s in learnable_sentences(30, seed=1)
    ]
    config = ParserConfig(**{**vars(parser.config), "tags": TagWeights(upos=1.0, feats=1.0)})
    model = Parser.build(config, tagged)
    for weights in model.parameters():
        torch.nn.init.normal_(weights)
    folder = tmp_path_factory.mktemp("tagger") / "model"
    model.save_pretrained(folder)
    return model.eval(), str(folder)


def rows(text: str) -> list[list[str]]:
    return [line.split("\t") for line in text.splitlines() if "\t" in line]


def test_only_words_get_the_tags_that_are_predicted(tagger: tuple[Parser, str], tmp_path: Path) -> None:
    model, folder = tagger
    source = written(tmp_path / "in.conllu", MULTIWORD.replace("\tya\tADV\t_", "\tya\tADV\tRG"))
    for name, options in (("plain", []), ("tagged", ["--tags"])):
        assert main(["predict", "-q", folder, source, "-o", str(tmp_path / name), *options]) == 0
    plain, tagged = ((tmp_path / name).read_text(encoding="utf-8") for name in ("plain", "tagged"))
    [parse] = model.parse([["da", "me", "lo", "ya"]])
    expected = rows(plain)
    words = [row for row in expected if row[0].isdigit()]
    for row, upos, feats in zip(words, parse.upos or (), parse.feats or (), strict=True):
        row[3], row[5] = upos, feats
    assert rows(tagged) == expected  # the multiword token and the empty node too
    assert expected[-1][4] == "RG" and tagged.startswith("# newdoc\n")
    assert [row[3] for row in rows(plain)] == [row[3] for row in rows(Path(source).read_text(encoding="utf-8"))]


def test_a_model_without_tags(model: str, tagger: tuple[Parser, str], tmp_path: Path, capsys: Capture) -> None:
    source = written(tmp_path / "in.conllu", conllu(("a", "b")))
    for models in ([model], [tagger[1], model]):
        assert main(["predict", "-q", *models, source, "--tags", "-o", str(tmp_path / "out.conllu")]) == 2
        assert "predicts no tags" in capsys.readouterr().err
    assert not (tmp_path / "out.conllu").exists()


def gold_file(tmp_path: Path) -> str:
    rows = ["1\tNoun1\t_\tNOUN\tN\tCase=Nom|Typo=Yes\t2\tnsubj\t_\t_", "2\tVerb1\t_\tVERB\tV\t_\t0\troot\t_\t_"]
    return written(tmp_path / "gold.conllu", "\n".join(rows) + "\n\n")


def test_scores_are_the_official_ones(tagger: tuple[Parser, str], tmp_path: Path, capsys: Capture) -> None:
    gold = gold_file(tmp_path)
    changed = Path(gold).read_text(encoding="utf-8").replace("\tVERB\tV\t_", "\tAUX\tA\tMood=Ind")
    system = written(tmp_path / "system.conllu", changed.replace("|Typo=Yes", ""))
    texts = (Path(path).read_text(encoding="utf-8") for path in (gold, system))
    official = udeval.evaluate(*(udeval.load_conllu(io.StringIO(text), "memory", {}) for text in texts))
    assert main(["evaluate", gold, system, "--output", str(tmp_path / "scores.json")]) == 0
    shown = capsys.readouterr().out
    [found] = json.loads((tmp_path / "scores.json").read_text(encoding="utf-8"))["systems"]
    assert found["tags"] == {name: official[title].f1 for name, title in TITLES.items()}
    assert found["tags"]["upos"] == 0.5
    for title in TITLES.values():
        assert f"{100 * official[title].f1:.2f}" in next(line for line in shown.splitlines() if line.startswith(title))


def test_columns_copied_from_gold_are_not_scored(tmp_path: Path) -> None:
    """As by a parser that predicts UPOS alone, or no tags."""
    gold, scores = gold_file(tmp_path), tmp_path / "scores.json"
    text = Path(gold).read_text(encoding="utf-8")
    for changed, expected in ((text, {}), (text.replace("VERB", "AUX"), {"tags": {"upos": 0.5}})):
        system = written(tmp_path / "system.conllu", changed)
        assert main(["evaluate", "-q", gold, system, "--output", str(scores)]) == 0
        [found] = json.loads(scores.read_text(encoding="utf-8"))["systems"]
        assert {name: found[name] for name in found if name == "tags"} == expected


def test_a_model_is_scored_by_the_tags_that_it_predicts(
    model: str, tagger: tuple[Parser, str], tmp_path: Path, capsys: Capture
) -> None:
    gold = gold_file(tmp_path)
    assert main(["evaluate", gold, "--model", model]) == 0
    assert "UPOS" not in capsys.readouterr().out
    assert main(["evaluate", gold, "--model", tagger[1], "--model", model]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    [parse] = tagger[0].parse([["Noun1", "Verb1"]])
    right = sum(map(str.__eq__, parse.upos or (), ("NOUN", "VERB")))
    assert ["UPOS", f"{50 * right:.2f}", "-"] in lines
    assert not [line for line in lines if line[:1] in (["XPOS"], ["AllTags"])]
