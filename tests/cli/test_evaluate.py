"""``treeparse evaluate``: its figures against the official scorer, its tables, and a sentence for every bad input."""

import gzip
import io
import json
import math
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers.commands import Capture, error_of
from helpers.drawn import read_drawn
from helpers.parsed_files import written
from udtools import udeval

from treeparse.cli.common import aligned, percent
from treeparse.cli.main import main
from treeparse.data.conllu import read_conllu, write_conllu
from treeparse.data.nbest import write_nbest
from treeparse.data.parses import NBestList, Parse
from treeparse.metrics import attachment_scores, paired_bootstrap
from treeparse.model import Parser, ParserConfig
from treeparse.names import DECODERS
from treeparse.nn import BiLSTMConfig

GOLD = """\
# sent_id = first
# text = don't go.
1-2\tdon't\t_\t_\t_\t_\t_\t_\t_\t_
1\tdo\tdo\tAUX\t_\t_\t3\taux\t_\t_
2\tn't\tnot\tPART\t_\t_\t3\tadvmod:neg\t_\t_
3\tgo\tgo\tVERB\t_\t_\t0\troot\t_\t_
4\t.\t.\tPUNCT\t_\t_\t3\tpunct\t_\t_

# sent_id = second
1\ta\ta\tDET\t_\t_\t2\tdet\t_\t_
2\thearing\thearing\tNOUN\t_\t_\t4\tnsubj:pass\t_\t_
3\tis\tbe\tAUX\t_\t_\t4\taux:pass\t_\t_
4\tscheduled\tschedule\tVERB\t_\t_\t0\troot\t_\t_
4.1\tscheduled\tschedule\tVERB\t_\t_\t_\t_\t_\t_
5\ton\ton\tADP\t_\t_\t7\tcase\t_\t_
6\tthe\tthe\tDET\t_\t_\t7\tdet\t_\t_
7\tissue\tissue\tNOUN\t_\t_\t2\tnmod\t_\t_

# sent_id = third
1\tYes\tyes\tINTJ\t_\t_\t0\troot\t_\t_

"""
# "n't" loses its subtype, "issue" gets another head and label.
SYSTEM = GOLD.replace("3\tadvmod:neg", "3\tadvmod").replace("2\tnmod", "4\tobl")


# The same text: "don't" stays whole, and the last two sentences are one.
RAW = """\
1\tdon't\t_\tAUX\t_\t_\t2\taux\t_\t_
2\tgo\t_\tVERB\t_\t_\t0\troot\t_\t_
3\t.\t_\tPUNCT\t_\t_\t2\tpunct\t_\t_

1\ta\t_\tDET\t_\t_\t2\tdet\t_\t_
2\thearing\t_\tVERB\t_\t_\t4\tnsubj:pass\t_\t_
3\tis\t_\tAUX\t_\t_\t4\taux\t_\t_
4\tscheduled\t_\tVERB\t_\t_\t0\troot\t_\t_
5\ton\t_\tADP\t_\t_\t7\tcase\t_\t_
6\tthe\t_\tDET\t_\t_\t7\tdet\t_\t_
7\tissue\t_\tNOUN\t_\t_\t4\tobl\t_\t_
8\tYes\t_\tINTJ\t_\t_\t4\tdiscourse\t_\t_

"""


@pytest.fixture
def gold(tmp_path: Path) -> str:
    return written(tmp_path / "gold.conllu", GOLD)


@pytest.fixture
def system(tmp_path: Path) -> str:
    return written(tmp_path / "system.conllu", SYSTEM)


def table_row(output: str, name: str) -> list[str]:
    [line] = [line for line in output.splitlines() if line.startswith(name + "  ")]
    return line.removeprefix(name).split()


def official(gold: str, system: str, names: Sequence[str] = ("UAS", "LAS", "CLAS")) -> dict[str, str]:
    texts = (Path(path).read_text(encoding="utf-8") for path in (gold, system))
    scores = udeval.evaluate(*(udeval.load_conllu(io.StringIO(text), "memory", {}) for text in texts))
    return {name: f"{100 * scores[name].f1:.2f}" for name in names}


def test_other_words_of_the_text_are_aligned(gold: str, tmp_path: Path, capsys: Capture) -> None:
    system, output = written(tmp_path / "raw.conllu", RAW), tmp_path / "scores.json"
    assert main(["evaluate", gold, system, "--output", str(output)]) == 0
    shown, names = capsys.readouterr().out, ("Tokens", "Sentences", "Words", "UPOS", "UAS", "LAS", "CLAS")
    assert "they are aligned as by the official scorer" in shown
    expected = official(gold, system, names)
    assert {name: table_row(shown, name)[0] for name in names} == expected
    [scores] = json.loads(output.read_bytes())["systems"]
    assert {name: f"{100 * scores['aligned'][name]['f1']:.2f}" for name in names} == expected
    for others in (["--by-label"], ["--html", str(tmp_path / "x.html")], [gold]):
        assert "split into the same words" in error_of(capsys, "evaluate", gold, system, *others)
    other = written(tmp_path / "other.conllu", RAW.replace("issue", "issues"))
    problem = "other.conllu:5: the text is not gold's, from here on: 'sYes', in gold 'Yes'; score a parse of the same"
    assert problem in error_of(capsys, "evaluate", gold, other)


def evaluated(capsys: Capture, *arguments: object) -> str:
    """The tables on standard output."""
    assert main(["evaluate", *map(str, arguments)]) == 0
    return capsys.readouterr().out


def test_the_table_prints_the_official_figures(gold: str, system: str, capsys: Capture):
    output = evaluated(capsys, gold, system)
    for name, figure in official(gold, system).items():
        assert table_row(output, name)[0] == figure
    assert table_row(output, "UAS") == ["91.67", "90.91"]
    assert table_row(output, "LAS with subtypes") == ["83.33", "81.82"]
    assert table_row(output, "complete match") == ["66.67", "66.67"]
    assert table_row(output, "sentences") == ["3", "3"]
    assert table_row(output, "words") == ["12", "11"]
    assert table_row(output, "non-projective")[:3] == ["1", "7", "85.71"]
    assert table_row(output, "1-10 words")[:3] == ["3", "12", "91.67"]
    assert "label  " not in output


def test_by_label(gold: str, system: str, capsys: Capture):
    output = evaluated(capsys, gold, system, "--by-label")
    assert table_row(output, "nsubj") == ["1", "1", "100.00", "100.00", "100.00"]
    assert table_row(output, "nmod") == ["1", "0", "-", "0.00", "0.00"]
    assert table_row(output, "obl") == ["0", "1", "0.00", "-", "0.00"]


def test_json_holds_the_whole_report(gold: str, system: str, tmp_path: Path, capsys: Capture):
    target = tmp_path / "scores.json"
    assert evaluated(capsys, gold, system, "--output", str(target), "-q") == ""
    report = attachment_scores(*([s.words for s in read_conllu(path)] for path in (gold, system)))
    assert json.loads(target.read_text()) == {
        "gold": gold,
        "sentences_left_out": 0,
        "systems": [{"system": system, "scores": report.as_dict()}],
    }
    assert json.loads(evaluated(capsys, gold, system, "--output", "-")) == json.loads(target.read_text())


def test_two_systems_are_compared(gold: str, system: str, tmp_path: Path, capsys: Capture):
    target = tmp_path / "scores.json"
    arguments = ["--resamples", "300", "--seed", "4", "--by-label", "--output", str(target)]
    output = evaluated(capsys, gold, system, gold, *arguments)
    sides = [[s.words for s in read_conllu(path)] for path in (gold, system, gold)]
    expected = paired_bootstrap(*sides, resamples=300, seed=4)["las"]
    assert output.splitlines()[:3] == [f"gold  {gold}", f"A     {system}", f"B     {gold}"]
    [las, _] = [line.split() for line in output.splitlines() if line.startswith("LAS  ")]
    assert las[1:4] == ["91.67", "100.00", "+8.33"]
    assert las[4:] == [
        percent(expected.low, signed=True),
        "to",
        f"{100 * expected.high:+.2f}",
        f"{expected.p_value:.4f}",
    ]
    assert table_row(output, "non-projective") == ["1", "7", "85.71", "100.00", "+14.29"]
    assert table_row(output, "nmod") == ["1", "0.00", "100.00", "+100.00"]
    comparison = json.loads(target.read_text())["comparison"]
    assert comparison["seed"] == 4
    assert comparison["scores"]["las"]["p_value"] == expected.p_value


def nbest_files(gold: str, tmp_path: Path) -> list[str]:
    """The same lists in both formats: the second tree is better than the first, the third sentence has one alone."""
    trees = {"first": [((3, 3, 0, 1), -1.0), ((3, 3, 0, 3), -2.0)], "third": [((0,), 0.0)]}
    trees["second"] = [((2, 4, 4, 0, 7, 7, 4), -1.0), ((2, 4, 4, 0, 7, 7, 2), -1.0), ((2, 4, 4, 0, 7, 7, 4), -1.0)]
    lists = []
    for sentence in read_conllu(gold):
        words, labels = sentence.words, sentence.words.labels or ()
        parses = (Parse(words.forms, heads, labels, figure, 0.0) for heads, figure in trees[sentence.sent_id or ""])
        lists.append(NBestList(sentence, tuple(parses)))
    paths = [str(tmp_path / name) for name in ("best.conllu", "best.jsonl.gz")]
    for path in paths:
        write_nbest(path, lists)
    return paths


def test_nbest_files_get_oracle_scores(gold: str, tmp_path: Path, capsys: Capture):
    outputs = []
    for path in nbest_files(gold, tmp_path):
        outputs.append(evaluated(capsys, gold, path, "--output", str(tmp_path / "scores.json")).replace(path, "PATH"))
        oracle = json.loads((tmp_path / "scores.json").read_text())["systems"][0]["oracle"]
        assert [row["size"] for row in oracle] == [1, 2, 3]
        assert [row["las"] for row in oracle] == [10 / 12, 1, 1]
        masses = [(2 * math.exp(-1) + 1) / 3, (3 * math.exp(-1) + math.exp(-2) + 1) / 3]
        assert [row["mass"] for row in oracle] == pytest.approx([*masses, masses[1]])
    assert outputs[0] == outputs[1]
    assert table_row(outputs[0], "LAS")[0] == "83.33"
    head, *rows = outputs[0].split("PATH\n")[-1].splitlines()
    assert head.split()[4:] == ["different", "trees", "UAS", "LAS", "complete", "match", "mass"]
    assert [row.split()[:5] for row in rows] == [
        ["1", "1.00", "83.33", "83.33", "33.33"],
        ["2", "1.67", "100.00", "100.00", "100.00"],
        ["3", "1.67", "100.00", "100.00", "100.00"],
    ]


def test_nbest_files_compare_by_their_first_trees(gold: str, system: str, tmp_path: Path, capsys: Capture):
    path, _ = nbest_files(gold, tmp_path)
    output = evaluated(capsys, gold, system, path, "--resamples", "50")
    uas = next(line for line in output.splitlines() if line.startswith("UAS"))
    assert uas.split()[1:4] == ["91.67", "83.33", "-8.33"]
    assert output.count("oracle of the first") == 1
    bad_gold = written(tmp_path / "bad.conllu", faulty(GOLD))
    assert main(["evaluate", bad_gold, path, "--skip-invalid"]) == 0
    shown = capsys.readouterr()
    assert shown.err == "treeparse: 1 faulty sentences left out\n"
    assert shown.out.splitlines()[-1].split()[:4] == ["2", "1.50", "100.00", "100.00"]


def test_faults_of_nbest_files(gold: str, system: str, tmp_path: Path, capsys: Capture):
    conllu, jsonl = nbest_files(gold, tmp_path)
    text = Path(conllu).read_text(encoding="utf-8")
    cut = written(tmp_path / "cut.conllu", text[: text.index("# sent_id = third.1")])
    assert f"3 in {gold}, 2 in {cut}" in error_of(capsys, "evaluate", gold, cut)
    for words in (text, SYSTEM):
        other = written(tmp_path / "other.conllu", words.replace("6\tthe", "6\tthis"))
        assert "word 6 is 'the' in gold but 'this' in the" in error_of(capsys, "evaluate", gold, other)
    mixed = tmp_path / "mixed"
    mixed.mkdir()
    written(mixed / "1.conllu", text)
    written(mixed / "2.conllu", SYSTEM)
    assert "1.conllu (n-best), " in error_of(capsys, "evaluate", gold, str(mixed / "*.conllu"))
    roots = written(
        tmp_path / "roots.jsonl",
        gzip.decompress(Path(jsonl).read_bytes()).decode().replace("[3, 3, 0, 3]", "[0, 3, 0, 3]"),
    )
    assert "sentence first: tree 2: words 1, 3 all hang from the root" in error_of(capsys, "evaluate", gold, roots)
    assert main(["evaluate", gold, roots, "--multi-root"]) == 0


def faulty(text: str) -> str:
    return text.replace("4\tnsubj:pass", "1\tnsubj:pass")  # "a" and "hearing" hang from each other


def test_faulty_sentences_are_errors_or_left_out_of_both(gold: str, tmp_path: Path, capsys: Capture):
    bad_gold = written(tmp_path / "bad-gold.conllu", faulty(GOLD))
    bad_system = written(tmp_path / "bad-system.conllu", GOLD.replace("INTJ\t_\t_\t0", "INTJ\t_\t_\tx"))
    assert f"{bad_gold}:10: sentence second: " in error_of(capsys, "evaluate", bad_gold, gold)
    assert f"{bad_system}:20: sentence third: " in error_of(capsys, "evaluate", gold, bad_system)
    assert main(["evaluate", "--skip-invalid", bad_gold, bad_system]) == 0
    captured = capsys.readouterr()
    assert captured.err == "treeparse: 2 faulty sentences left out\n"
    assert table_row(captured.out, "sentences") == ["1", "1"]
    assert table_row(captured.out, "words") == ["4", "3"]


def test_no_sound_sentence_is_an_error(tmp_path: Path, capsys: Capture):
    bad = written(tmp_path / "bad.conllu", "1\ta\t_\t_\t_\t_\t1\tdep\t_\t_\n\n")
    assert "No sentence is sound" in error_of(capsys, "evaluate", "--skip-invalid", bad, bad)
    empty = written(tmp_path / "empty.conllu", "")
    assert "no sentence" in error_of(capsys, "evaluate", "--skip-invalid", empty, empty)


def test_multi_root_files(tmp_path: Path, capsys: Capture):
    rows = "1\ta\t_\t_\t_\t_\t0\troot\t_\t_\n2\tb\t_\t_\t_\t_\t0\troot\t_\t_\n\n"
    path = written(tmp_path / "roots.conllu", rows)
    assert "has one root" in error_of(capsys, "evaluate", path, path)
    assert table_row(evaluated(capsys, "--multi-root", path, path), "root accuracy") == ["100.00", "100.00"]


def test_bad_usage_gets_a_sentence(gold: str, system: str, capsys: Capture):
    assert "There are 0 systems to score" in error_of(capsys, "evaluate", gold)
    assert "There are 3 systems to score" in error_of(capsys, "evaluate", gold, system, system, system)
    assert "--decoder says how a model parses" in error_of(capsys, "evaluate", gold, system, "--decoder", "projective")


@pytest.fixture
def parser(gold: str, tmp_path: Path) -> Parser:
    """A parser with weights drawn at random, for which every decoder has another score; saved as ``model``."""
    encoder = BiLSTMConfig(char_filters=100, char_widths=(3,), hidden_size=8, layers=1, min_count=1)
    config = ParserConfig(encoder=encoder, arc_size=8, label_size=8)
    torch.manual_seed(10)
    parser = Parser.build(config, [sentence.words for sentence in read_conllu(gold)]).eval()
    for weights in parser.parameters():
        torch.nn.init.normal_(weights, std=0.3)
    parser.save_pretrained(tmp_path / "model")
    return parser


def write_parses(path: str, gold: str, parser: Parser, decoder: str = "nonprojective") -> None:
    sentences = list(read_conllu(gold))
    name: Any = decoder
    parses = parser.parse([sentence.words for sentence in sentences], decoder=name)
    write_conllu(path, [s.with_parse(parse.heads, parse.labels) for s, parse in zip(sentences, parses, strict=True)])


def test_the_tags_that_a_model_reads_are_named(gold: str, tmp_path: Path, capsys: Capture):
    sentences, model = [sentence.words for sentence in read_conllu(gold)], str(tmp_path / "reading")
    tagged = [replace(words, upos=("X",) * len(words), feats=("_",) * len(words)) for words in sentences]
    encoder = BiLSTMConfig(min_count=1, word_size=4, char_filters=0, tags=("upos", "feats"), hidden_size=4, layers=1)
    Parser.build(ParserConfig(encoder=encoder, arc_size=4, label_size=4), tagged).save_pretrained(model)
    report = tmp_path / "report.json"
    lines = evaluated(capsys, "--model", model, gold, "--output", str(report)).splitlines()
    assert lines[1] == f"system  {model}, which reads UPOS and FEATS of gold"
    assert json.loads(report.read_text(encoding="utf-8"))["systems"][0]["reads"] == "UPOS and FEATS"


def test_a_model_is_scored_on_what_it_parses_under_every_decoder(
    gold: str, parser: Parser, tmp_path: Path, capsys: Capture
):
    model, parsed = str(tmp_path / "model"), str(tmp_path / "parsed.conllu")
    seen = set()
    for decoder in (None, *DECODERS):
        write_parses(parsed, gold, parser, decoder or "nonprojective")
        options = ["--decoder", decoder] if decoder else ["--device", "cpu"]
        system, *from_model = evaluated(capsys, "--model", model, gold, *options).splitlines()[1:]
        assert system == f"system  {model}" and from_model == evaluated(capsys, gold, parsed).splitlines()[2:]
        seen.add("\n".join(from_model))
    assert len(seen) == 4
    write_parses(parsed, gold, parser)
    assert "1.0000" in evaluated(capsys, "--model", model, gold, parsed, "--resamples", "50")


def test_tables_align_and_zero_has_no_minus():
    assert aligned([["", "a"], ["row", "100"], ["x", ""]]) == ["       a", "row  100", "x"]
    assert percent(-0.00001, signed=True) == "+0.00"
    assert percent(0.12345) == "12.35"  # 12.345 lies a trifle above in binary


def test_what_one_system_alone_has_right_is_shown(gold: str, tmp_path: Path, capsys: Capture) -> None:
    """By label and by sentence, in both directions, in the tables, in JSON and on the page."""
    first = written(tmp_path / "a.conllu", SYSTEM)  # wrong: issue, whose label is another one
    second = written(tmp_path / "b.conllu", GOLD.replace("7\tdet", "5\tdet"))  # wrong: the
    report, scores = tmp_path / "report.html", tmp_path / "scores.json"
    arguments = [gold, first, second, "--resamples", "9", "--html", str(report), "--output", str(scores)]
    assert main(["evaluate", *arguments]) == 0
    output, page = capsys.readouterr().out, report.read_text(encoding="utf-8")
    assert table_row(output, "det at another head") == ["1"]
    assert table_row(output, "nmod taken for obl") == ["1"]
    assert "A right, B wrong: by label" in output and "B right, A wrong: by label" in output
    assert table_row(output, "6 the (det)") == table_row(output, "7 issue (nmod)") == ["second", "1", "1"]
    assert "parses better" not in page
    for words in ("A right, B wrong: by label", "<td>nmod taken for obl</td><td>1</td>"):
        assert words in page
    word = {"sentence": "second", "word": 6, "form": "the", "label": "det", "other_label": "det"}
    other = {"sentence": "second", "word": 7, "form": "issue", "label": "nmod", "other_label": "obl"}
    assert json.loads(scores.read_text(encoding="utf-8"))["right_alone"] == {"A": [word], "B": [other]}

    assert main(["evaluate", gold, first, gold, "--resamples", "9", "--html", str(report)]) == 0
    output, page = capsys.readouterr().out, report.read_text(encoding="utf-8")
    assert "A right, B wrong: by" not in output and "A parses better" not in page
    assert table_row(output, "7 issue (nmod)") == ["second", "1", "0"]
    [better] = re.findall(r"Sentences that B parses better.*?</section>(.*?</section>)", page, re.DOTALL)
    assert 'id="b-s-second"' in better
    drawn = [read_drawn(svg) for svg in re.findall(r"<svg .*?</svg>", better, re.DOTALL)]
    assert [sorted(each.classes.get("tp-other-head", ())) for each in drawn] == [[], [(4, 7)], []]
    assert len({*re.findall(r' id="([^"]*)"', page)}) == page.count(' id="')


def test_tables_of_what_one_system_alone_has_right_are_short(tmp_path: Path, capsys: Capture) -> None:
    """Ten kinds of mistakes, ten sentences, the furthest ahead first, and three words of each."""
    labels = [f"x{label}" for label in "abcdefghijklm"]
    rows = "".join(f"{word}\tw{word}" + "\t_" * 4 + f"\t1\t{label}\t_\t_\n" for word, label in enumerate(labels, 2))
    root = "1\tw1" + "\t_" * 4 + "\t0\troot\t_\t_\n"
    gold = "".join(f"# sent_id = {number}\n{root}{rows}\n" for number in range(12))
    blocks = gold.split("\n\n")
    wrong = [blocks[0].replace("1\tx", "1\ty"), *(block.replace("xa", "ya") for block in blocks[1:])]
    paths = [written(tmp_path / f"{n}.conllu", text) for n, text in enumerate((gold, gold, "\n\n".join(wrong)))]
    output = evaluated(capsys, *paths, "--resamples", "9")
    assert table_row(output, "xa taken for ya") == ["12"]
    assert table_row(output, "3 other kinds") == ["3"] and table_row(output, "all") == ["24"]
    lines = output[output.index("A right, B wrong: by sentence") :].splitlines()[1:]
    assert len(lines) == 10
    assert lines[0].split("  ")[0] == "2 w2 (xa), 3 w3 (xb), 4 w4 (xc), ..."
    assert lines[0].split()[-3:] == ["0", "13", "0"] and lines[1].split()[-3:] == ["1", "1", "0"]


def test_a_report(gold: str, system: str, tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "report.html"
    assert main(["evaluate", gold, system, "--html", str(path)]) == 0
    page = path.read_text(encoding="utf-8")
    assert "<td>UAS</td><td>91.67</td>" in page.replace("\n", "") and "91.67" in capsys.readouterr().out
    rows = re.findall(r"<tr><td>(nmod)</td><td>(obl)</td><td>(1)</td><td>(0.00%)</td></tr>", page)
    assert rows == [("nmod", "obl", "1", "0.00%")]
    drawn = [read_drawn(svg) for svg in re.findall(r"<svg .*?</svg>", page, re.DOTALL) if "tp-arc" in svg]
    assert [sorted(each.classes.get("tp-other-head", ())) for each in drawn] == [[], [(4, 7)]]  # of the second alone
    assert [text for _, text in drawn[0].words] == ["a", "hearing", "is", "scheduled", "on", "the", "issue"]
    assert "learning" not in page and "dev UAS" not in page


def test_a_report_of_parses_without_an_error(gold: str, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    assert main(["evaluate", gold, gold, "--html", str(path), "-q"]) == 0
    assert "Sentences of most errors" not in path.read_text(encoding="utf-8")


def test_a_report_of_two_systems_one_a_runs_model(gold: str, system: str, trained_config: Path, tmp_path: Path) -> None:
    run, path = trained_config.parent / "run", tmp_path / "report.html"
    for folder in (run, run / "model"):
        given = ["--model", str(folder), gold, system, "--html", str(path), "--resamples", "10"]
        assert main(["evaluate", *given, "--device", "cpu"]) == 0
        page = path.read_text(encoding="utf-8")
        assert page.count(">dev LAS</text>") == 1 and page.count("scores on the dev set, %, by epoch</title>") == 1
        assert '<th scope="col">B - A</th>' in page and 'id="system-2"' in page
        drawn = [read_drawn(svg) for svg in re.findall(r"<svg .*?</svg>", page, re.DOTALL) if "tp-arc" in svg]
        assert len(drawn) % 3 == 0 and drawn


def test_a_report_draws_how_often_probabilities_come_true(
    gold: str, system: str, trained_config: Path, tmp_path: Path
) -> None:
    """Of the model alone: a curve of the bins beside the diagonal, for arcs, labels, and both."""
    model, path = trained_config.parent / "run" / "model", tmp_path / "report.html"
    scores = tmp_path / "scores.json"
    given = ["evaluate", "--model", str(model), gold, system, "--calibration", "--resamples", "10", "--device", "cpu"]
    assert main([*given, "--html", str(path), "--output", str(scores), "-q"]) == 0
    pictures = re.findall(r"<svg .*?</svg>", path.read_text(encoding="utf-8"), re.DOTALL)
    drawn = [svg for svg in pictures if "as found" in svg]
    first, second = json.loads(scores.read_text(encoding="utf-8"))["systems"]
    assert "calibration" not in second and len(drawn) == len(first["calibration"]) == 3
    compared = 0
    for svg, found in zip(drawn, first["calibration"].values(), strict=True):
        curve, ((left, low), (right, high)) = (
            [tuple(map(float, point.split())) for point in points.split("L")]
            for points in re.findall(r'class="tp-curve" d="M([^"]*)"', svg)
        )
        assert len(curve) == len(found["bins"])
        for (x, y), each in zip(curve, found["bins"], strict=True) if right > left else ():
            below = y - (low + (x - left) * (high - low) / (right - left))  # downwards, as pictures count
            assert (below > 0) == (each["accuracy"] < each["confidence"])
            compared += 1
    assert compared >= 3


def test_gold_without_labels_has_no_scores_of_labels(tmp_path: Path, capsys: Capture) -> None:
    rows = [line.split("\t") for line in GOLD.split("\n")]
    bare = "\n".join("\t".join([*row[:7], "_", *row[8:]] if len(row) > 1 else row) for row in rows)
    gold, system = written(tmp_path / "bare.conllu", bare), written(tmp_path / "system.conllu", SYSTEM)
    report, scores = tmp_path / "report.html", tmp_path / "scores.json"
    assert main(["evaluate", gold, system, "--by-label", "--html", str(report), "--output", str(scores)]) == 0
    out, err = capsys.readouterr()
    shown = dict(re.findall(r"^([A-Z].*?|complete match)  +(\S+) +\S+$", out, re.MULTILINE))
    assert (shown["UAS"], shown["LAS"], shown["CLAS"]) == ("91.67", "-", "-")
    assert f"in {gold} 12 of 12 words with a head have no label (DEPREL is _)" in err
    values = json.loads(scores.read_text("utf-8"))["systems"][0]["scores"]
    assert values["las"] is values["nopunct"]["label_accuracy"] is None and values["by_label"] == {}
    assert "nan" not in report.read_text("utf-8")
    assert main(["evaluate", "-q", gold, system, gold, "--html", str(report)]) == 0
    assert "nan" not in capsys.readouterr().out + report.read_text("utf-8")
