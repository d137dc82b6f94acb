"""Models of several treebanks on the command line and the server, by the text that these write."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from helpers.commands import Capture, error_of, run
from helpers.served import served
from helpers.two_treebanks import NAMES, prepositional, write_two_treebanks

from treeparse.data.conllu import read_conllu
from treeparse.metrics import attachment_scores
from treeparse.model import Parser
from treeparse.model.promises import fit_promises
from treeparse.model.temperature import fit_temperatures
from treeparse.training import load_config, train

REMARK = "treeparse: warning: no treebank is named, so the model uses the mean of content, function: name one by "


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run over two treebanks, and of their files."""
    folder = tmp_path_factory.mktemp("both")
    train(load_config(write_two_treebanks(folder), ["--optimization.epochs=5"]), quiet=True)
    return folder


def trees_of(path: Path) -> list[object]:
    return [(sentence.words.heads, sentence.words.labels) for sentence in read_conllu(path)]


def parsed(folder: Path, file: str, treebank: str | None) -> list[object]:
    parser = Parser.from_pretrained(folder / "run")
    parses = parser.parse([s.words for s in read_conllu(folder / file)], treebank=treebank)
    return [(parse.heads, parse.labels) for parse in parses]


@pytest.mark.parametrize("treebank", [*NAMES, None])
def test_predict_writes_the_trees_of_a_treebank(
    folder: Path, tmp_path: Path, capsys: Capture, treebank: str | None
) -> None:
    options = [] if treebank is None else ["--treebank", treebank]
    file, out = folder / "content-test.conllu", tmp_path / "out.conllu"
    assert run("predict", folder / "run", file, file, "-o", out, "--chunk", 4, *options) == 0
    assert trees_of(out) == 2 * parsed(folder, "content-test.conllu", treebank)
    said = capsys.readouterr().err.splitlines()
    assert [line.startswith(REMARK) for line in said] == [treebank is None] * (treebank is None) + [False]


def test_no_treebank_is_said_once_by_any_number_of_processes(folder: Path, tmp_path: Path, capsys: Capture) -> None:
    file, outputs = folder / "content-test.conllu", [tmp_path / "one.conllu", tmp_path / "two.conllu"]
    for out, options in zip(outputs, ([], ["--treebank", "content"]), strict=True):
        assert run("predict", folder / "run", file, "-o", out, "--jobs", 2, "--chunk", 4, *options) == 0
        assert capsys.readouterr().err.count(REMARK) == (not options)
    assert trees_of(outputs[1]) == parsed(folder, "content-test.conllu", "content")
    assert run("predict", "-q", folder / "run", file, "-o", outputs[0]) == 0
    assert capsys.readouterr().err == ""


def test_raw_text_is_noticed_beside_the_mean_of_treebanks(folder: Path, tmp_path: Path, capsys: Capture) -> None:
    """Also in a later chunk than that of the first remark."""
    model, text = tmp_path / "model", tmp_path / "text.txt"
    shutil.copytree(folder / "run" / "model", model)
    vocabulary, config = (json.loads((model / f"{name}.json").read_text()) for name in ("vocabulary", "config"))
    vocabulary["features"]["words"]["items"][-1] = [".", 9]
    del config["digests"]  # of the vocabulary as it was
    for name, values in (("vocabulary", vocabulary), ("config", config)):
        (model / f"{name}.json").write_text(json.dumps(values))
    text.write_text("noun1 saw\nThey saw her duck.\n", encoding="utf-8")
    options = ["--format", "text", "--chunk", 1, "-o", tmp_path / "out.conllu"]
    assert run("predict", model, text, *options) == 0
    first, second, _ = capsys.readouterr().err.splitlines()
    assert first.startswith(REMARK) and second.startswith("treeparse: warning: this looks like raw text")


@pytest.mark.parametrize("command", [["predict"], ["kbest", "-k", "2"], ["sample", "-k", "2"], ["suspects"]])
def test_unknown_treebanks_are_refused_and_the_known_ones_named(
    folder: Path, tmp_path: Path, capsys: Capture, command: list[str]
) -> None:
    file, out = folder / "content-test.conllu", tmp_path / "out.conllu"
    name, *options = command
    arguments = [name, "-q", folder / "run", file, "-o", out, *options]
    assert error_of(capsys, *arguments, "--treebank", "contents") == (
        "treeparse: error: Unknown treebank 'contents': the model knows content, function; did you mean content?"
    )
    assert not out.exists()
    assert run(*arguments, "--treebank", "content") == 0
    assert out.read_text()


def test_lists_and_suspects_are_of_the_treebank(folder: Path, tmp_path: Path, capsys: Capture) -> None:
    parser, file = Parser.from_pretrained(folder / "run"), folder / "function-test.conllu"
    words = [sentence.words for sentence in read_conllu(file)]
    for command, lists in (
        ("kbest", parser.kbest(words, 2, treebank="function")),
        ("sample", parser.sample(words, 2, treebank="function")),
    ):
        out = tmp_path / f"{command}.jsonl"
        assert run(command, "-q", "-k", 2, folder / "run", file, "-o", out, "--treebank", "function") == 0
        written = [json.loads(line)["parses"] for line in out.read_text().splitlines()]
        assert [[parse["heads"] for parse in parses] for parses in written] == [
            [[*parse.heads] for parse in parses] for parses in lists
        ]
    assert (
        run("suspects", folder / "run", file, "--below", 1, "-o", tmp_path / "own.tsv", "--treebank", "function") == 0
    )
    assert REMARK not in capsys.readouterr().err
    assert run("suspects", folder / "run", file, "--below", 1, "-o", tmp_path / "mean.tsv") == 0
    assert capsys.readouterr().err.count(REMARK) == 1
    lines = (tmp_path / "own.tsv").read_text().splitlines()
    scored = parser.score_trees(words, treebank="function")
    least = min(prob for parse in scored for prob in parse.label_probs or ())
    assert float(lines[1].split("\t")[0]) == pytest.approx(least, rel=1e-3)
    assert (tmp_path / "mean.tsv").read_text() != (tmp_path / "own.tsv").read_text()


def test_temperatures_are_fitted_to_the_trees_of_the_treebank(folder: Path, tmp_path: Path, capsys: Capture) -> None:
    model, file = folder / "run" / "model", folder / "function-test.conllu"
    for treebank in ("function", None):
        options = [] if treebank is None else ["--treebank", treebank]
        assert run("calibrate", model, file, "-o", tmp_path / "out", *options) == 0
        assert capsys.readouterr().err.count(REMARK) == (treebank is None)
        parser = Parser.from_pretrained(model)
        sentences = [replace(sentence.words, treebank=treebank) for sentence in read_conllu(file)]
        fit_temperatures(parser, sentences)
        fit_promises(parser, sentences)
        assert Parser.from_pretrained(tmp_path / "out").config == parser.config
    assert "Unknown treebank 'contents'" in error_of(capsys, "calibrate", model, file, "--treebank", "contents")


def las_of(folder: Path, name: str, treebank: str | None) -> float:
    gold = [sentence.words for sentence in read_conllu(folder / f"{name}-test.conllu")]
    parses = Parser.from_pretrained(folder / "run").parse(gold, treebank=treebank)
    return attachment_scores(gold, [s.with_tree(p.heads, p.labels) for s, p in zip(gold, parses, strict=True)]).las


def test_several_gold_files_have_a_row_each_and_their_mean(folder: Path, tmp_path: Path, capsys: Capture) -> None:
    files = [folder / f"{name}-test.conllu" for name in NAMES]
    named = [f"{name}={file}" for name, file in zip(NAMES, files, strict=True)]
    out = tmp_path / "scores.json"
    options = [part for item in named for part in ("--treebank", item)]
    assert run("evaluate", "--model", folder / "run", *options, "--output", out) == 0
    shown, said = capsys.readouterr()
    assert REMARK not in said
    expected = [las_of(folder, name, name) for name in NAMES]
    system, empty, title, *rows = shown.splitlines()
    assert (system, empty) == (f"system  {folder / 'run'}", "")
    assert title.split() == ["gold", "sentences", "words", "UAS", "LAS", "CLAS"]
    assert [row.split()[0] for row in rows] == [*map(str, files), "mean"]
    las = [float(row.split()[-2]) for row in rows]
    assert las == pytest.approx([100 * score for score in (*expected, sum(expected) / 2)], abs=0.006)
    scores = json.loads(out.read_text())
    assert [file["treebank"] for file in scores["files"]] == [*NAMES]
    assert scores["mean"]["las"] == pytest.approx(sum(expected) / 2)

    assert run("evaluate", *files, "--model", folder / "run", "--treebank", "content") == 0
    rows = capsys.readouterr().out.splitlines()[3:]
    expected = [las_of(folder, name, "content") for name in NAMES]
    assert [float(row.split()[-2]) for row in rows[:2]] == pytest.approx([100 * score for score in expected], abs=0.006)
    same = tmp_path / "same.conllu"
    same.write_bytes(files[0].read_bytes())
    options = ["--treebank", f"function={same}", "--treebank", f"content={files[0]}"]
    assert run("evaluate", "--model", folder / "run", *options) == 0
    rows = capsys.readouterr().out.splitlines()[3:]
    expected = [las_of(folder, "content", name) for name in ("function", "content")]
    assert [float(row.split()[-2]) for row in rows[:2]] == pytest.approx([100 * score for score in expected], abs=0.006)
    assert run("evaluate", "--model", folder / "run", *files) == 0
    assert capsys.readouterr().err.count(REMARK) == 1


def test_means_leave_out_files_without_labels(folder: Path, tmp_path: Path, capsys: Capture) -> None:
    labelled, bare, out = folder / "content-test.conllu", tmp_path / "bare.conllu", tmp_path / "scores.json"
    text = (folder / "function-test.conllu").read_text(encoding="utf-8")
    text = re.sub(r"^((?:[^\t\n]+\t){7})[^\t\n]+", r"\1_", text, flags=re.MULTILINE)
    bare.write_text(text + "1\tx\t_\t_\t_\t_\t5\t_\t_\t_\n\n", encoding="utf-8")
    files = ["--treebank", f"content={labelled}", "--treebank", f"function={bare}"]
    assert run("evaluate", "--model", folder / "run", *files, "--output", out, "--skip-invalid") == 0
    shown, said = capsys.readouterr()
    assert "treeparse: 1 faulty sentences left out" in said.splitlines()
    of_labelled, of_bare, mean = (line.split()[-2] for line in shown.splitlines()[3:])
    assert (of_bare, mean) == ("-", of_labelled)
    scores = json.loads(out.read_text(), parse_constant=pytest.fail)
    assert scores["mean"]["las"] == pytest.approx(las_of(folder, "content", "content"))


def test_one_gold_file_is_evaluated_as_its_treebank(folder: Path, tmp_path: Path, capsys: Capture) -> None:
    file, parses = folder / "function-test.conllu", tmp_path / "parsed.conllu"
    run("predict", "-q", folder / "run", file, "-o", parses, "--treebank", "content")
    for options in (["--treebank", f"function={file}"], [file, "--treebank", "function"]):
        assert run("evaluate", "--model", folder / "run", *options) == 0
        shown = capsys.readouterr().out
        assert "reads" not in shown
        line = next(line for line in shown.splitlines() if line.startswith("LAS  "))
        assert float(line.split()[1]) == pytest.approx(100 * las_of(folder, "function", "function"), abs=0.006)
    assert run("evaluate", "--model", folder / "run", file, parses, "--treebank", "function", "--resamples", 9) == 0
    assert f"\nB     {parses}\n" in capsys.readouterr().out, "a file of the same sentences is a system"


def test_mistakes_of_evaluate_become_sentences(folder: Path, capsys: Capture) -> None:
    one, two = (folder / f"{name}-test.conllu" for name in NAMES)
    model = ["--model", folder / "run"]
    for arguments, part in (
        ([one, two, "--treebank", "content"], "--treebank says as which treebank a model parses: name one by --model"),
        ([*model, one, "--treebank", "x"], "Unknown treebank 'x': the model knows content, function."),
        ([*model, one, two, "--html", "x.html"], "--html, --by-label and --calibration are of one gold file"),
        ([*model, *(f"--treebank={name}={one}" for name in NAMES)], f"{one} can have one treebank alone"),
        ([*model, *model, "--treebank", f"content={one}"], "--treebank NAME=GOLD is for one model"),
        ([*model, *model, one, two], "There are 3 systems to score"),
        ([*model, one, one, one], "There are 3 systems to score"),
    ):
        assert part in error_of(capsys, "evaluate", *arguments)


def test_the_server_parses_as_a_treebank(folder: Path) -> None:
    pytest.importorskip("aiohttp")
    parser = Parser.from_pretrained(folder / "run")
    [sentence] = prepositional("content", 1, 77)
    text, data = " ".join(sentence.forms), parser.parse([sentence], treebank="content")
    with served({"both": parser}) as server:
        answers = {
            name: server.process(text, input="horizontal", **({"treebank": name} if name else {}))
            for name in (*NAMES, "")
        }
        for name, answer in answers.items():
            [parse] = parser.parse([sentence.forms], treebank=name or None)
            rows = [line.split("\t") for line in answer.result.splitlines() if line[:1].isdigit()]
            assert ([int(row[6]) for row in rows], [row[7] for row in rows]) == ([*parse.heads], [*parse.labels])
        refused = server.process(text, input="horizontal", treebank="ewt")
        assert refused.status == 400
        assert refused.sentence == "Unknown treebank 'ewt': the model knows content, function."
        lists = server.process(text, input="horizontal", output="jsonl", kbest=1, treebank="content")
        assert json.loads(lists.result)["parses"][0]["heads"] == [*data[0].heads]
