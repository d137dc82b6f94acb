"""The reports on what objectives cost and on how much sampled gradients vary, on a tiny parser."""

import re
from pathlib import Path

import pytest
from scripts.benchmarks import bench_objectives
from scripts.experiments import compare_risk_estimators


def test_costs_are_ratios_to_the_likelihood(trained_config: Path, tmp_path: Path) -> None:
    treebank, model = trained_config.parent / "train.conllu", trained_config.parent / "run" / "model"
    output = tmp_path / "costs.md"
    arguments = ["--treebank", str(treebank), "--model", str(model), "--batches", "2", "--rounds", "2", "--no-bf16"]
    bench_objectives.main([*arguments, "--output", str(output)])
    text = output.read_text(encoding="utf-8")
    rows = re.findall(r"^\| (.+?) \| (\d+) \| (\d+\.\d\d) \| (\d+\.\d\d) to (\d+\.\d\d) \|$", text, re.MULTILINE)
    assert rows[0][0] == bench_objectives.LIKELIHOOD
    assert rows[0][2:] == ("1.00", "1.00", "1.00")
    assert {"exact minimum risk", "likelihood and entropy", "likelihood and 20 constraints"} <= {row[0] for row in rows}
    assert len(rows) == 10
    for _, _, median, low, high in rows:
        assert float(low) <= float(median) <= float(high)


def test_estimates_are_unbiased_and_vary_less_without_replacement(
    trained_config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    treebank, model = trained_config.parent / "dev.conllu", trained_config.parent / "run" / "model"
    monkeypatch.setattr(compare_risk_estimators, "LENGTHS", range(3, 6))
    monkeypatch.setattr(compare_risk_estimators, "COUNTS", (2, 4))
    output = tmp_path / "estimates.md"
    arguments = ["--treebank", str(treebank), "--model", str(model), "--sentences", "8", "--repeats", "60"]
    compare_risk_estimators.main([*arguments, "--output", str(output)])
    pattern = r"^\| (\d) \| (\S+) \((\S+)\) \| (\S+) \((\S+)\) \| (\S+) \|$"
    rows = re.findall(pattern, output.read_text(encoding="utf-8"), re.MULTILINE)
    assert [row[0] for row in rows] == ["2", "4"]
    for _, with_replacement, off, without, also_off, ratio in rows:
        assert float(without) < float(with_replacement)
        assert float(ratio) == pytest.approx(float(without) / float(with_replacement), abs=0.02)
        assert max(float(off), float(also_off)) < 1.5
    assert float(rows[1][1]) < float(rows[0][1])
