"""The experiment on reranking runs on a small treebank, and repeats nothing."""

import json
from pathlib import Path

import pytest
from scripts.experiments import experiment_rerank


def test_results_are_made_once(
    treebanks: Path, tiny_config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "results.jsonl"
    options = [
        *("--treebanks", treebanks, "--output", output, "--work", tmp_path / "work", "--config", tiny_config),
        *("--folds", 2, "--train-k", 4, "-k", 4, "--lists", "best", "samples", "--seeds", 1),
    ]
    experiment_rerank.main([*map(str, options)])
    records = [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]
    chosen = [(each["lists"], each["chosen_by"]) for each in records]
    best = ["oracle", "expected las", "parser", "global", "global, expected las"]
    assert chosen == [*(("best", by) for by in best), *(("samples", by) for by in best if by != "parser")]
    oracle, own = records[0]["oracle"], records[2]
    assert [each["size"] for each in oracle] == [1, 2, 4]
    assert oracle[0]["las"] == own["las"] <= oracle[-1]["las"]
    assert all(own["las"] - 1 <= each["las"] <= oracle[-1]["las"] for each in records[1:5])
    before, shown = output.read_bytes(), capsys.readouterr().out
    experiment_rerank.main([*map(str, options)])
    assert output.read_bytes() == before
    again = capsys.readouterr().out
    assert again in shown and "| K best | global | 1 |" in again and "| 4 | " in again
