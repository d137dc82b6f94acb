"""``treeparse suspects``: the gold arcs that the model finds improbable, with their places in the files."""

from functools import partial
from pathlib import Path

import pytest
from helpers.commands import Capture, error_of, run
from helpers.parsed_files import MULTIWORD, written

from treeparse.data.conllu import read_conllu
from treeparse.model import Parser

TREES = (
    "# sent_id = t\n1\tNoun1\t_\tNOUN\t_\t_\t2\tnsubj\t_\t_\n2\tVerb1\t_\tVERB\t_\t_\t0\troot\t_\t_\n\n"
    "1\tAdj1\t_\tADJ\t_\t_\t3\tunknown\t_\t_\n2\tNoun1\t_\t_\t_\t_\t3\tnsubj\t_\t_\n3\tVerb1\t_\t_\t_\t_\t0\troot\t_\t_\n"
)


suspects = partial(run, "suspects", "-q")


def test_rows_are_the_words_by_their_probability(model: str, parser: Parser, tmp_path: Path, capsys: Capture) -> None:
    first, second = written(tmp_path / "a.conllu", "\n" + MULTIWORD), written(tmp_path / "b.conllu", TREES)
    assert suspects(model, first, second, "--below", "1") == 0
    header, *rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    names = "probability file line sent_id word form head label model_head model_label model_probability"
    assert " ".join(header) == names
    sentences = [*read_conllu(first), *read_conllu(second)]
    words = [sentence.words for sentence in sentences]
    expected = []
    for sentence, gold, own in zip(
        sentences, parser.score_trees(words), parser.parse(words, probabilities=True), strict=True
    ):
        for place, form in enumerate(sentence.words.forms):
            numbered = [*enumerate(Path(sentence.source).read_text(encoding="utf-8").split("\n"), 1)]
            lines = [number for number, row in numbered if row.startswith(f"{place + 1}\t{form}\t")]
            figures = (gold.label_probs or ())[place], (own.label_probs or ())[place]
            row = [sentence.source, str(lines[0]), sentence.sent_id or "", str(place + 1), form]
            row += [str(gold.heads[place]), gold.labels[place], str(own.heads[place]), own.labels[place]]
            expected.append((figures, row))
    expected = sorted((each for each in expected if each[0][0] < 1), key=lambda each: each[0][0])
    assert [row[1:-1] for row in rows] == [row for _, row in expected]
    for row, (figures, _) in zip(rows, expected, strict=True):
        assert (float(row[0]), float(row[-1])) == pytest.approx(figures, rel=1e-4, abs=1e-9)
    unknown = next(row for row in rows if row[7] == "unknown")
    assert (unknown[0], unknown[2:6]) == ("0", ["5", "", "1", "Adj1"])


def test_the_list_can_be_shorter(model: str, tmp_path: Path) -> None:
    source, target = written(tmp_path / "b.conllu", TREES), tmp_path / "out.tsv"
    counts = []
    for options in (["--below", "1"], ["--below", "1", "--top", "2"], ["--below", "0"]):
        assert suspects(model, source, "-o", target, *options) == 0
        rows = target.read_text(encoding="utf-8").splitlines()[1:]
        assert [float(row.split("\t")[0]) for row in rows] == sorted(float(row.split("\t")[0]) for row in rows)
        counts.append(len(rows))
    assert counts == [5, 2, 0]
    assert suspects(model, source, "-o", target) == 0
    rows = target.read_text(encoding="utf-8").splitlines()[1:]
    assert rows and all(float(row.split("\t")[0]) < 0.03 for row in rows)


def test_mistakes_become_sentences(model: str, tmp_path: Path, capsys: Capture) -> None:
    bare = written(tmp_path / "bare.conllu", TREES.replace("\t0\t", "\t_\t"))
    for arguments, problem in (
        ([bare], f"{bare}:3: sentence t: word 2 has no head"),
        ([model], "There is no input after the folders"),
        ([bare, "--below", "1.5"], "must be a probability from 0 to 1, got '1.5'"),
    ):
        assert problem in error_of(capsys, "suspects", model, *arguments)


def test_a_word_without_a_label_has_the_probability_of_its_head(
    model: str, parser: Parser, tmp_path: Path, capsys: Capture
) -> None:
    bare = written(tmp_path / "bare.conllu", TREES.replace("nsubj", "_"))
    assert suspects(model, bare, "--below", "1") == 0
    rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()[1:]]
    scored = parser.score_trees([sentence.words for sentence in read_conllu(bare)])
    expected = [(parse.arc_probs or ())[word] for parse, word in zip(scored, (0, 1), strict=True)]
    assert sorted(float(row[0]) for row in rows if row[7] == "_") == pytest.approx(sorted(expected), rel=1e-4)
