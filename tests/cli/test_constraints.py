"""The command for constraints: what it extracts, how far it says that a model is, and what it refuses."""

from pathlib import Path

import pytest
import torch
from helpers.commands import Capture, error_of
from helpers.parsed_files import conllu, written
from helpers.sentences import learnable_sentences, text_of

from treeparse.cli.main import main
from treeparse.data import load_treebank
from treeparse.model import Parser
from treeparse.objectives.constraints import Constraint, Target, WordSet, read_constraints
from treeparse.sentence import Sentence


@pytest.fixture
def treebank(tmp_path: Path) -> str:
    return written(tmp_path / "trees.conllu", text_of(learnable_sentences(12, seed=4)))


def test_what_is_extracted_is_a_file_with_comments(treebank: str, tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    assert main(["constraints", "extract", treebank, "--count", "3", "-o", str(path)]) == 0
    assert read_constraints(path) == (
        Constraint(Target(1.0, 1.0), WordSet(("NOUN",)), WordSet(("VERB",)), "left"),
        Constraint(Target(1.0, 1.0), WordSet(("ADJ",)), WordSet(("NOUN",)), "left"),
        Constraint(Target(1.0, 1.0), WordSet(("VERB",)), "root"),
    )
    text = path.read_text(encoding="utf-8")
    assert text.startswith(
        f"# Constraints from 12 sentences of {sum(map(len, learnable_sentences(12, seed=4)))} words: "
    )
    assert "# VERB hangs from the root: 12 of 12, 1.000\n- dependent: {upos: VERB}\n  head: root\n" in text


def test_shares_as_they_were_seen(tmp_path: Path, capsys: Capture) -> None:
    trees = [Sentence(("a", "b"), ("X", "Y"), heads=heads, labels=("d", "d")) for heads in [(0, 1), (2, 0), (2, 0)]]
    treebank = written(tmp_path / "trees.conllu", text_of(trees))
    assert main(["constraints", "extract", treebank, "--exact", "--count", "1"]) == 0
    out, err = capsys.readouterr()
    assert err == "" and out.endswith("# X hangs from Y, to its left: 2 of 3, 0.667\n" + out[out.index("- dep") :])
    assert "  direction: left\n  probability: 0.6667\n" in out


def test_the_report_is_of_model_and_trees(
    model: str, parser: Parser, treebank: str, tmp_path: Path, capsys: Capture
) -> None:
    file = written(
        tmp_path / "c.yaml",
        "- {dependent: {upos: NOUN}, head: {upos: VERB}, probability: 0.9}\n"
        "- {dependent: {upos: ADJ}, label: amod, at_least: 0.25}\n"
        "- {dependent: {upos: SYM}, head: root, probability: 0.5}\n",
    )
    command = ["constraints", "report", model, file, treebank, "--device", "cpu"]
    assert main([*command, "--batch-words", "20"]) == 0
    header, *lines, blank, last = capsys.readouterr().out.splitlines()
    assert header.split() == ["constraint", "words", "target", "model", "distance", "gold"]
    sentences = [sentence.words for sentence in load_treebank(treebank)]
    shares = [by_arcs(parser, sentences, row) for row in (0, 1)]
    tags = [tag for sentence in sentences for tag in sentence.upos or ()]
    rows = [lines[0].rsplit(maxsplit=5), lines[1].replace("at least ", ">=").rsplit(maxsplit=5)]
    assert rows[0][0] == "NOUN hangs from VERB" and rows[1][0] == "ADJ hangs from any head, as amod"
    assert [row[1] for row in rows] == [str(tags.count("NOUN")), str(tags.count("ADJ"))]
    assert [float(row[-3]) for row in rows] == pytest.approx(shares, abs=6e-4)
    distances = [abs(shares[0] - 0.9), max(0.25 - shares[1], 0.0)]
    assert [float(row[-2]) for row in rows] == pytest.approx(distances, abs=6e-4)
    assert [row[-1] for row in rows] == ["1.000", "1.000"]
    assert lines[2].split()[-5:] == ["0", "0.5", "-", "-", "-"]
    assert blank == ""
    assert last == f"mean distance {sum(distances) / 2:.3f} of 2 constraints with words"
    assert main([*command, "-o", str(tmp_path / "table")]) == 0
    assert (tmp_path / "table").read_text().splitlines() == [header, *lines, blank, last]


@torch.inference_mode()
def by_arcs(parser: Parser, sentences: list[Sentence], row: int) -> float:
    """The share that one of the constraints above has, arc by arc from the labelled marginals."""
    total = words = 0.0
    for sentence in sentences:
        marginals = parser.distribution(parser.collate([sentence])).marginals[0]
        tags = ["ROOT", *(sentence.upos or ())]
        for word in (word for word, tag in enumerate(tags) if tag == ("NOUN", "ADJ")[row]):
            words += 1
            if row == 0:
                total += float(marginals[[head for head, tag in enumerate(tags) if tag == "VERB"], word].sum())
            else:
                total += float(marginals[:, word, parser.indexer.labels.index("amod")].sum())
    return total / words


def test_text_without_trees_has_no_gold_column(model: str, treebank: str, tmp_path: Path, capsys: Capture) -> None:
    text = written(tmp_path / "in.conllu", conllu(("a", "b")))
    file = written(tmp_path / "c.yaml", "- {dependent: {word: A}, direction: left, probability: 0.5}\n")
    assert main(["constraints", "report", model, file, text]) == 0
    header, line, *_ = capsys.readouterr().out.splitlines()
    assert header.split() == ["constraint", "words", "target", "model", "distance"]
    assert line.startswith("a hangs from any head, to its left      1  ")


def test_what_is_mistyped(model: str, treebank: str, tmp_path: Path, capsys: Capture) -> None:
    for command, problem in (
        (["report", model, treebank], "A report needs a model, constraints and text"),
        (["report", model, "c.yaml", treebank, "--count", "3"], "--count and --exact say what is extracted"),
        (["extract", written(tmp_path / "in.conllu", conllu(("a", "b")))], "Words must have UPOS"),
    ):
        assert problem in error_of(capsys, "constraints", *command)
