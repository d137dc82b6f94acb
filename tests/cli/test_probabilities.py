"""``treeparse predict --probabilities``: what stands in MISC and comments is the parser's, and the files stay valid."""

from pathlib import Path

import pytest
from helpers.parsed_files import MULTIWORD, SENTENCES, incidents, written

from treeparse.cli.main import main
from treeparse.data.annotations import figure
from treeparse.data.conllu import ConlluSentence, read_conllu
from treeparse.model import Parser

TAGGED = MULTIWORD.replace("advmod\t_\t_", "advmod\t_\tGloss=now|ArcProb=0.1").replace("id = m", "id = n")


def comments_of(sentence: ConlluSentence) -> dict[str, str]:
    lines = [line[1:].split("=", 1) for line in sentence.text.split("\n") if line.startswith("#") and "=" in line]
    return {key.strip(): value.strip() for key, value in lines}


def misc_of(sentence: ConlluSentence) -> list[dict[str, str]]:
    rows = [row for row in sentence.rows() if row[0].isdecimal()]
    return [dict(item.split("=", 1) for item in row[9].split("|")) for row in rows]


def predict(*arguments: str | Path) -> int:
    return main(["predict", *map(str, arguments), "--device", "cpu", "-q"])


def test_they_are_the_parsers(model: str, parser: Parser, source: str, tmp_path: Path) -> None:
    target = tmp_path / "out.conllu"
    assert predict(model, source, "-o", target, "--probabilities") == 0
    for sentence, parse in zip(read_conllu(target), parser.parse(SENTENCES, probabilities=True), strict=True):
        assert (sentence.words.heads, sentence.words.labels) == (parse.heads, parse.labels)
        for entry, arc, labeled in zip(misc_of(sentence), parse.arc_probs or (), parse.label_probs or (), strict=True):
            assert entry.keys() == {"ArcProb", "LabelProb"}
            assert (float(entry["ArcProb"]), float(entry["LabelProb"])) == pytest.approx((arc, labeled), abs=6e-5)
            assert len(entry["ArcProb"]) == len(entry["LabelProb"]) == len("0.9731")
        comments = comments_of(sentence)
        assert float(comments["entropy"]) == pytest.approx(parse.entropy, abs=1e-4)
        assert float(comments["tree_prob"]) == pytest.approx(2.718281828459045**parse.log_prob, rel=1e-3)
    bare = tmp_path / "bare.conllu"
    assert predict(model, source, "-o", bare) == 0
    assert "Prob" not in bare.read_text(encoding="utf-8")


def test_a_second_time_changes_nothing(model: str, tmp_path: Path) -> None:
    source = written(tmp_path / "in.conllu", TAGGED)
    once, twice = tmp_path / "once.conllu", tmp_path / "twice.conllu"
    assert predict(model, source, "-o", once, "--probabilities") == 0
    assert predict(model, once, "-o", twice, "--probabilities") == 0
    assert once.read_bytes() == twice.read_bytes()
    [sentence] = read_conllu(once)
    assert misc_of(sentence)[3].keys() == {"Gloss", "ArcProb", "LabelProb"}
    assert [row[9] for row in sentence.rows() if not row[0].isdecimal()] == ["_", "_"]


def test_official_validator_accepts_what_it_accepted(model: str, tmp_path: Path) -> None:
    source, target = written(tmp_path / "in.conllu", MULTIWORD + TAGGED), tmp_path / "out.conllu"
    assert predict(model, source, "-o", target, "--drop-empty", "--probabilities") == 0
    assert "Gloss=now|ArcProb=" in target.read_text(encoding="utf-8")
    assert incidents(target) == []


def test_models_by_marginals_have_no_entropy(model: str, source: str, tmp_path: Path) -> None:
    target = tmp_path / "out.conllu"
    assert predict(model, model, source, "-o", target, "--probabilities", "--combine", "marginals") == 0
    for sentence in read_conllu(target):
        assert "tree_prob" in comments_of(sentence) and "entropy" not in comments_of(sentence)


def test_small_probabilities_keep_their_digits() -> None:
    assert figure(1.23456789e-40) == "1.23457e-40"
