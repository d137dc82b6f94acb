"""The comparison of trees by the parts that they score."""

import json
from pathlib import Path

import experiment_second_order
import pytest

from treeparse.shipped import shipped_files
from treeparse.training import load_config
from treeparse.training.settings.reading import build_objective


@pytest.mark.parametrize(
    ("method", "trees", "objective", "epochs"),
    [
        ("nonprojective", "nonprojective", "TreeLikelihood", 15),
        ("second_order", "second_order", "TreeLikelihood", 15),
        ("mean_field", "nonprojective_siblings", "MeanField", 15),
        ("nonprojective_margin", "nonprojective", "MaxMargin", 3),
        ("nonprojective_siblings", "nonprojective_siblings", "MaxMargin", 3),
    ],
)
def test_the_settings_of_a_method(method: str, trees: str, objective: str, epochs: int) -> None:
    options = {"data.train": "a", **experiment_second_order.METHODS[method]}
    config = load_config(shipped_files()["second_order"], [f"--{name}={value}" for name, value in options.items()])
    assert (config.model.trees, config.optimization.epochs) == (trees, epochs)
    assert type(build_objective(config.objective)).__name__ == objective


def test_the_table_has_means_over_seeds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scores = {"las": 0.5, "complete_match_unlabeled": 0.25, "complete_match": 0.125, "seconds": 60}
    records = [
        {"treebank": "Latin", "trees": trees, "seed": seed, "uas": uas, **scores}
        for trees, seed, uas in [("siblings", "1", 0.6), ("siblings", "2", 0.7), ("nonprojective", "1", 0.5)]
    ]
    output = tmp_path / "runs.jsonl"
    output.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    options = ["Latin", "--trees", "siblings", "--seeds", "1", "2", "--output", str(output)]
    experiment_second_order.main([*options, "--treebanks", str(tmp_path)])
    assert capsys.readouterr().out.splitlines()[2:] == [
        "| Latin | nonprojective | 1 | 50.00 | 50.00 | 25.00 | 12.50 | 1.00 |",
        "| Latin | siblings | 2 | 65.00 ± 7.07 | 50.00 ± 0.00 | 25.00 ± 0.00 | 12.50 ± 0.00 | 1.00 ± 0.00 |",
    ]
