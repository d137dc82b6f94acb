"""The comparison of partial trees hides what it says, keeps everything else, and trains what is missing."""

import json
from pathlib import Path

import pytest
from scripts.experiments import experiment_partial

from treeparse.data import load_treebank


def test_half_of_the_heads_are_hidden(treebanks: Path, tmp_path: Path) -> None:
    data = experiment_partial.settings_of(experiment_partial.HEADS, treebanks, tmp_path / "data")
    whole = load_treebank(treebanks / "UD_English-EWT" / "en_ewt-ud-train.conllu")
    partial = load_treebank(str(data["data.train"]), partial=True)
    pairs = [
        pair
        for ours, theirs in zip(partial, whole, strict=True)
        for pair in zip(ours.words.heads or (), ours.words.labels or (), theirs.words.heads or (), strict=True)
    ]
    assert all((head, label != "_") in ((-1, False), (gold, True)) for head, label, gold in pairs)
    hidden = sum(head == -1 for head, _, _ in pairs)
    assert abs(hidden / len(pairs) - 0.5) < 4 * 0.5 / len(pairs) ** 0.5
    assert [s.words.forms for s in partial] == [s.words.forms for s in whole]


def test_every_second_sentence_is_left_out(treebanks: Path, tmp_path: Path) -> None:
    data = experiment_partial.settings_of(experiment_partial.SENTENCES, treebanks, tmp_path / "data")
    whole = load_treebank(treebanks / "UD_English-EWT" / "en_ewt-ud-train.conllu")
    assert [s.words for s in load_treebank(str(data["data.train"]))] == [s.words for s in whole[::2]]


def test_runs_are_made_once(
    treebanks: Path, tiny_config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "runs.jsonl"
    arguments = ["--treebanks", str(treebanks), "--config", str(tiny_config), "--output", str(output)]
    arguments += ["--settings", experiment_partial.HEADS]
    experiment_partial.main(arguments)
    [record] = [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]
    assert record["setting"] == experiment_partial.HEADS
    shown = capsys.readouterr().out
    assert "epoch   3" in shown
    assert f"| {100 * record['uas']:.2f} | {100 * record['las']:.2f} |" in shown
    experiment_partial.main(arguments)
    assert "epoch" not in capsys.readouterr().out
