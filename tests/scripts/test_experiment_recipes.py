"""The comparison of shipped configs with epochs by hand."""

import json
from pathlib import Path

import experiment_recipes
import pytest

from treeparse.shipped import shipped_files
from treeparse.training import load_config
from treeparse.training.settings.resolve import TreebankFacts, resolve_settings

LENGTHS = [20] * 1000


@pytest.mark.parametrize(
    ("config", "setting", "epochs", "warmup", "batch"),
    [
        ("tiny", "before", 28, 100, 1000),
        ("fast", "before", 15, 100, 1000),
        ("bilstm", "before", 34, 200, 1000),
        ("transformer", "before", 10, 200, 1000),
        ("fast", "40", 40, 100, 1000),
        ("fast", "now", 36, 90, 300),
    ],
)
def test_the_settings_of_a_run(config: str, setting: str, epochs: int, warmup: int, batch: int) -> None:
    settings = experiment_recipes.settings_of(config, setting)
    options = [f"--{name}={value}" for name, value in {"data.train": "a", **settings}.items()]
    plan = resolve_settings(load_config(shipped_files()[config], options), TreebankFacts(LENGTHS))
    assert (plan.optimization.epochs, plan.data.batch_words) == (epochs, batch)
    assert plan.optimization.warmup_steps == pytest.approx(warmup, abs=3)


def test_the_table_has_the_best_epochs_by_hand_by_the_dev_set(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [
        ("before", 1, 0.70, 0.71),
        ("now", 1, 0.75, 0.74),
        ("now", 2, 0.75, 0.76),
        ("60", 1, 0.74, 0.72),
        ("120", 1, 0.72, 0.73),
    ]
    output = tmp_path / "runs.jsonl"
    records = [
        {"config": "tiny", "treebank": "EWT-1000", "setting": setting, "seed": seed, "dev_las": dev, "las": las}
        for setting, seed, dev, las in runs
    ]
    output.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    options = ["EWT-1000", "--configs", "tiny", "--settings", "before", "60", "--output", str(output)]
    experiment_recipes.main(options)
    table = capsys.readouterr().out.splitlines()
    assert table[2:] == ["| tiny | EWT-1000 | 71.00 | 75.00 ± 1.41 | 72.00 | **60**, 120 |"]
