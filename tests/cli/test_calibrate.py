"""``treeparse calibrate`` and ``evaluate --calibration``: a model in its folder, its figures before and after."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from helpers.commands import Capture, error_of, run
from helpers.parsed_files import trees_as_text, written
from helpers.sentences import learnable_sentences

from treeparse.metrics import parse_calibration
from treeparse.model import Parser
from treeparse.model.promises import fit_promises
from treeparse.model.temperature import fit_temperatures
from treeparse.sentence import Sentence

DEV = learnable_sentences(12, seed=7)


@pytest.fixture
def dev(tmp_path: Path) -> str:
    return written(tmp_path / "dev.conllu", trees_as_text(DEV))


def test_the_temperature_is_fitted_and_kept(model: str, dev: str, tmp_path: Path, capsys: Capture) -> None:
    folder = tmp_path / "model"
    shutil.copytree(model, folder)
    (folder / "README.md").write_text("a card", encoding="utf-8")
    parser = Parser.from_pretrained(model)
    parser.config = replace(parser.config, temperature=1.5, label_temperature=0.5)
    parser.save_config(folder)
    fits = fit_temperatures(parser, DEV)
    fit_promises(parser, DEV)
    assert run("calibrate", folder, dev) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "12 sentences"
    for line, name, fit, temperature in ((shown[3], "arcs", fits.arcs, 1.5), (shown[4], "labels", fits.labels, 0.5)):
        assert fit is not None
        numbers = (temperature, fit.temperature, fit.before, fit.after)
        assert line.split() == [name, str(fit.words), *(f"{number:.4f}" for number in numbers)]
    assert Parser.from_pretrained(folder).config == parser.config
    assert (folder / "README.md").read_text(encoding="utf-8") == "a card"

    assert run("calibrate", model, dev, "-o", tmp_path / "other", "-q") == 0
    assert capsys.readouterr().out == ""
    assert Parser.from_pretrained(tmp_path / "other").config == parser.config
    assert Parser.from_pretrained(model).config != parser.config


def test_what_is_on_the_hub_is_not_changed(dev: str, capsys: Capture) -> None:
    problem = "organisation/name is no folder that can be changed: say by -o DIR"
    assert problem in error_of(capsys, "calibrate", "organisation/name", dev)


def expected(parser: Parser, gold: list[Sentence]) -> dict[str, Any]:
    parses = parser.parse(gold, probabilities=True)
    system = [s.with_tree(parse.heads, parse.labels) for s, parse in zip(gold, parses, strict=True)]
    probs = [[parse.arc_probs or () for parse in parses], [parse.label_probs or () for parse in parses]]
    return {part: each.as_dict() for part, each in parse_calibration(gold, system, *probs).items()}


def test_errors_before_and_after_are_said_of_arcs_and_of_labels(
    model: str, dev: str, tmp_path: Path, capsys: Capture
) -> None:
    """Those that ``evaluate --calibration`` finds on the same sentences with the two models."""
    assert run("calibrate", model, dev, "-o", tmp_path / "other") == 0
    rows = [line.split("  ") for line in capsys.readouterr().out.splitlines()]
    shown = {row[0]: [cell.strip() for cell in row[1:] if cell.strip()] for row in rows}
    before, after = (expected(Parser.from_pretrained(folder), DEV) for folder in (model, tmp_path / "other"))
    assert shown["ECE"] == ["before", "after"]
    for part, title in (("arcs", "arcs"), ("labels", "labels given arcs"), ("labeled_arcs", "arcs and labels")):
        assert shown[title] == [f"{100 * errors[part]['ece']:.2f}" for errors in (before, after)]


def test_calibration_in_tables_and_json(model: str, parser: Parser, dev: str, tmp_path: Path, capsys: Capture) -> None:
    output = tmp_path / "scores.json"
    assert run("evaluate", "--model", model, dev, "--calibration", "--output", output) == 0
    [system] = json.loads(output.read_text(encoding="utf-8"))["systems"]
    calibration = expected(parser, DEV)
    for part, figures in calibration.items():
        assert system["calibration"][part]["ece"] == pytest.approx(figures["ece"], abs=1e-5)
        assert [row["words"] for row in system["calibration"][part]["bins"]] == [
            row["words"] for row in figures["bins"]
        ]
    shown = capsys.readouterr().out.split("\n")
    row = next(line for line in shown if line.startswith("arcs and labels"))
    found = calibration["labeled_arcs"]
    figures = [f"{100 * found[name]:.2f}" for name in ("confidence", "accuracy", "ece", "ece_mass")]
    assert row.split()[3:] == [str(found["words"]), *figures, f"{found['brier']:.4f}"]
    assert sum(line.startswith("arcs ") for line in shown) == 4  # two rows and two tables

    assert run("evaluate", "--model", model, dev, "--output", "-") == 0
    assert "calibration" not in json.loads(capsys.readouterr().out)["systems"][0]
    assert "--calibration is of a model's probabilities" in error_of(capsys, "evaluate", dev, dev, "--calibration")
