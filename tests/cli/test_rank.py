"""``treeparse rank`` and ``suspects``: sentences by their exact values, gold arcs by how improbable they are."""

import gzip
import math
from functools import partial
from html import escape
from pathlib import Path

import pytest
from helpers.commands import Capture, error_of, run
from helpers.parsed_files import MULTIWORD, SENTENCES, conllu, written

from treeparse.cli.main import main
from treeparse.data.annotations import figure
from treeparse.data.conllu import read_conllu
from treeparse.model import Parse, Parser

rank = partial(run, "rank", "-q")


def value(parse: Parse, by: str) -> float:
    if by == "expected_gradient":
        assert parse.expected_gradient is not None
        return parse.expected_gradient
    assert parse.label_probs is not None and parse.entropy is not None
    return parse.entropy if by == "entropy" else math.fsum(1 - prob for prob in parse.label_probs)


@pytest.mark.parametrize("by", ["entropy", "expected_error", "expected_gradient"])
@pytest.mark.parametrize("per_word", [True, False])
def test_the_table_is_in_the_order_of_the_values(
    model: str, parser: Parser, source: str, capsys: Capture, by: str, per_word: bool
) -> None:
    assert rank(model, source, "--by", by, *(["--per-word"] if per_word else [])) == 0
    header, *rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert header == [f"{by}_per_word" if per_word else by, "file", "line", "sent_id", "words", "text"]
    lines, expected = {"s1": 1, "s2": 6, "s3": 9, "s4": 23}, []
    for number, (words, parse) in enumerate(
        zip(SENTENCES, parser.parse(SENTENCES, probabilities=True, gradient=True), strict=True), 1
    ):
        found = value(parse, by) / (len(words) if per_word else 1)
        expected.append((found, [source, str(lines[f"s{number}"]), f"s{number}", str(len(words)), " ".join(words)]))
    expected.sort(key=lambda row: -row[0])
    assert [row[1:] for row in rows] == [row for _, row in expected]
    assert [float(row[0]) for row in rows] == pytest.approx([found for found, _ in expected], rel=1e-4, abs=1e-6)


def test_conllu_keeps_the_sentences_as_they_were(model: str, parser: Parser, tmp_path: Path) -> None:
    """Of two files, one without its last line end and one with blank lines around: both stay whole sentences."""
    first = written(tmp_path / "a.conllu", "\ufeff\n" + MULTIWORD + "\n\n")
    second = written(tmp_path / "b.conllu", conllu(*SENTENCES).rstrip("\n"))
    target = tmp_path / "out.conllu.gz"
    assert rank(model, first, second, "-o", target, "--top", "3") == 0
    sentences = [*read_conllu(first), *read_conllu(second)]
    parses = parser.parse([sentence.words for sentence in sentences], probabilities=True)
    pairs = sorted(zip(parses, sentences, strict=True), key=lambda pair: -(pair[0].entropy or 0))[:3]
    expected = []
    for parse, sentence in pairs:
        rows = sentence.text.strip("\ufeff\n").split("\n")
        place = next(number for number, row in enumerate(rows) if not row.startswith("#"))
        expected.append("\n".join([*rows[:place], f"# entropy = {figure(parse.entropy or 0)}", *rows[place:], "", ""]))
    assert gzip.decompress(target.read_bytes()).decode() == "".join(expected)


def test_equal_values_stay_in_order_and_a_folder_gets_files(model: str, tmp_path: Path) -> None:
    source = written(tmp_path / "one.conllu", conllu(["a"], ["b"], ["c"]))  # one tree each
    assert rank(model, source, "-o", f"{tmp_path}/out/") == 0
    rows = (tmp_path / "out" / "one.tsv").read_text(encoding="utf-8").splitlines()[1:]
    assert [row.split("\t")[3] for row in rows] == ["s1", "s2", "s3"]


def test_a_mean_of_marginals_has_errors_alone(model: str, source: str, capsys: Capture) -> None:
    for by in ("entropy", "expected_gradient"):
        error = error_of(capsys, "rank", model, model, source, "--combine", "marginals", "--by", by)
        assert f"no exact {by.replace('_', ' ')}: rank --by expected_error" in error
    assert rank(model, model, source, "--combine", "marginals", "--by", "expected_error") == 0


@pytest.mark.parametrize("by", ["entropy", "expected_gradient"])
def test_what_is_known_leaves_nothing_open(model: str, source: str, tmp_path: Path, capsys: Capture, by: str) -> None:
    def values(*arguments: str | Path) -> list[float]:
        assert rank(model, *arguments, "--by", by) == 0
        return [float(line.split("\t")[0]) for line in capsys.readouterr().out.splitlines()[1:]]

    parsed = tmp_path / "parsed.conllu"
    assert main(["predict", model, source, "-o", str(parsed), "--device", "cpu", "-q"]) == 0
    assert values(parsed, "--keep-heads") == [0, 0, 0, 0]
    assert max(values(parsed)) > 1


def test_faulty_rules_are_an_error(model: str, source: str, tmp_path: Path, capsys: Capture) -> None:
    faulty = written(tmp_path / "rules.yaml", "at_most_one: 3\n")
    assert faulty in error_of(capsys, "rank", model, source, "--rules", faulty)


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


def test_suspects_are_drawn_and_highlighted(model: str, tmp_path: Path) -> None:
    """Sentences by their most doubtful word; in CoNLL-U nothing changes but the comments."""
    old = "# highlight tokens = 9\n"
    texts = [old + MULTIWORD, TREES.replace("# sent_id = t\n", "# sent_id = <b>\n# highlight deprels = 1\n")]
    first, second = (written(tmp_path / f"{name}.conllu", text) for name, text in zip("ab", texts, strict=True))
    target, page, look = (tmp_path / name for name in ("out.tsv", "out.html", "look.conllu"))
    options = ["--below", "1", "--top", "4", "--html", page, "--highlight", look]
    assert suspects(model, first, second, "-o", target, *options) == 0
    rows = [line.split("\t") for line in target.read_text(encoding="utf-8").splitlines()[1:]]
    by_sentence: dict[str, list[int]] = {}
    for row in rows:
        by_sentence.setdefault(row[3], []).append(int(row[4]))
    assert len(rows) == 4 and len(by_sentence) > 1
    found = list(read_conllu(look))
    for sentence in found:
        words = sorted(by_sentence.get(sentence.sent_id or "", []))
        shown = [" ".join(map(str, words))] if words else []
        assert [list(sentence.comments(f"highlight {kind}")) for kind in ("tokens", "deprels")] == [shown, shown]
    bare = [line for line in look.read_text(encoding="utf-8").splitlines() if not line.startswith("# highlight")]
    assert bare == [line for text in texts for line in text.splitlines() if not line.startswith("# highlight")]
    html = page.read_text(encoding="utf-8")
    assert "<script" not in html and "<b>" not in html
    places = [html.index(f'<section id="s-{escape(name)}"') if name else html.index('id="s-3"') for name in by_sentence]
    assert places == sorted(places) and html.count("<section") == len(by_sentence)
    for row in rows:
        own = f"{row[7]} of {row[6]} (probability {float(row[0]):.2g})"
        assert escape(f"{row[4]} {row[5]}: {own}; the model: {row[9]} of {row[8]} (probability ") in html


def test_suspects_that_cannot_be(model: str, tmp_path: Path, capsys: Capture) -> None:
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
