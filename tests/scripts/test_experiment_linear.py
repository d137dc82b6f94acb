"""The comparison of linear models."""

import json
from pathlib import Path

import pytest
from helpers.sentences import learnable_sentences, text_of
from scripts.experiments import experiment_linear


def test_a_run_is_recorded_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(
        experiment_linear.METHODS, "perceptron", ("linear", {"learning.epochs": 1, "model.scorer.bits": 12})
    )
    files = tmp_path / "treebanks" / "UD_Maltese-MUDT"
    files.mkdir(parents=True)
    for seed, part in enumerate(("train", "dev", "test")):
        text = text_of(learnable_sentences(20, seed=seed))
        (files / f"mt_mudt-ud-{part}.conllu").write_text(text, encoding="utf-8")
    output = tmp_path / "runs.jsonl"
    options = ["Maltese", "--methods", "perceptron", "--output", str(output), "--treebanks", str(files.parent)]
    for _ in range(2):
        experiment_linear.main([*options, "--threads", "1"])
    [record] = map(json.loads, output.read_text(encoding="utf-8").splitlines())
    assert record["words_per_second"] > 0 and record["dev_uas"] > 0.5
    rows = capsys.readouterr().out.splitlines()
    assert rows[-2].startswith(f"| Maltese | perceptron | {100 * record['dev_uas']:.2f} |")
    assert rows[-1] == "| Maltese | UDPipe 1.2, published | | | 82.2 | 77.9 | | |"
