"""What the comparisons of configs, methods and kinds of trees train, and which epochs by hand they show."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from scripts.experiments import experiment_linear, experiment_recipes, experiment_second_order

from treeparse.data.batches.mixing import BucketBatchSampler
from treeparse.shipped import shipped_files
from treeparse.training import TrainConfig, load_config
from treeparse.training.reading import build_objective
from treeparse.training.resolve import resolve_data, resolve_settings


def config_of(name: str, options: Mapping[str, object]) -> TrainConfig:
    settings = {"data.train": "a", **options}
    return load_config(shipped_files()[name], [f"--{key}={value}" for key, value in settings.items()])


@pytest.mark.parametrize("method", experiment_linear.METHODS)
def test_a_method_of_linear_models_has_its_templates(method: str) -> None:
    scorer = config_of(*experiment_linear.METHODS[method]).model.scorer
    assert len(scorer.arcs) == (52 if "rich" in method else 26)  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize("method", experiment_second_order.METHODS)
def test_a_kind_of_trees_has_its_objective_and_epochs(method: str) -> None:
    config = config_of("second_order", experiment_second_order.METHODS[method])
    resumes = method in experiment_second_order.STARTS
    objective = "MaxMargin" if resumes else "MeanField" if method == "mean_field" else "TreeLikelihood"
    assert type(build_objective(config.objective)).__name__ == objective
    assert config.optimization.epochs == (3 if resumes else 15)


@pytest.mark.parametrize(
    ("config", "setting", "epochs"),
    [("tiny", "before", 28), ("transformer", "before", 10), ("fast", "40", 40), ("fast", "now", 36)],
)
def test_a_config_has_the_epochs_of_its_setting(config: str, setting: str, epochs: int) -> None:
    options = experiment_recipes.settings_of(config, setting)
    settings = config_of(config, options)
    data = resolve_data(settings, [20] * 1000)
    steps = len(BucketBatchSampler([20] * 1000, max_words=data.batch_words, max_squared=data.batch_squared))
    assert resolve_settings(settings, data, steps).optimization.epochs == epochs


def test_the_epochs_by_hand_are_chosen_by_the_dev_set(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = [("before", 1, 70, 71), ("now", 1, 75, 74), ("now", 2, 75, 76), ("60", 1, 74, 72), ("120", 1, 72, 73)]
    records = [
        {"config": "tiny", "treebank": "EWT", "setting": setting, "seed": seed, "dev_las": dev / 100, "las": las / 100}
        for setting, seed, dev, las in runs
    ]
    output = tmp_path / "runs.jsonl"
    output.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    experiment_recipes.main(["EWT", "--configs", "tiny", "--settings", "before", "60", "--output", str(output)])
    assert "| 71.00 | 75.00 ± 1.41 | 72.00 | **60**, 120 |" in capsys.readouterr().out
