"""Configs, runs and models that name classes and settings as earlier versions did."""

import inspect
import json
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

import pytest
import yaml

from treeparse import upgrades
from treeparse.objectives import Objective
from treeparse.training import load_config
from treeparse.training.settings.reading import build_objective
from treeparse.upgrades import CLASS_PATHS, present_class_paths, upgraded_settings

# Every path of a class that a config could name before the table began: objectives and what they are built from.
OLD_CLASSES = """
treeparse.model.OwnEncoder
treeparse.model.Teacher
treeparse.model.encoders.own.OwnEncoder
treeparse.model.parser.Objective
treeparse.model.teacher.Reference
treeparse.model.teacher.Teacher
treeparse.objectives.ArcScores
treeparse.objectives.Divergence
treeparse.objectives.Entropy
treeparse.objectives.GeneralizedExpectation
treeparse.objectives.HeadSelection
treeparse.objectives.Itself
treeparse.objectives.KBestRisk
treeparse.objectives.MaxMargin
treeparse.objectives.MinimumRisk
treeparse.objectives.Objective
treeparse.objectives.PosteriorRegularization
treeparse.objectives.Ramp
treeparse.objectives.Reference
treeparse.objectives.SampledRisk
treeparse.objectives.ShortArcs
treeparse.objectives.SilverTrees
treeparse.objectives.TreeLikelihood
treeparse.objectives.Weighted
treeparse.objectives.WeightedSum
treeparse.objectives.constraints.GeneralizedExpectation
treeparse.objectives.constraints.PosteriorRegularization
treeparse.objectives.constraints.generalized_expectation.GeneralizedExpectation
treeparse.objectives.constraints.generalized_expectation.Objective
treeparse.objectives.constraints.posterior_regularization.Objective
treeparse.objectives.constraints.posterior_regularization.PosteriorRegularization
treeparse.objectives.entropy.Entropy
treeparse.objectives.entropy.Objective
treeparse.objectives.likelihood.HeadSelection
treeparse.objectives.likelihood.Objective
treeparse.objectives.likelihood.TreeLikelihood
treeparse.objectives.listed_risk.KBestRisk
treeparse.objectives.listed_risk.Objective
treeparse.objectives.listed_risk.Ramp
treeparse.objectives.listed_risk.SampledRisk
treeparse.objectives.margin.MaxMargin
treeparse.objectives.margin.Objective
treeparse.objectives.objective.Objective
treeparse.objectives.reference.ArcScores
treeparse.objectives.reference.Itself
treeparse.objectives.reference.Reference
treeparse.objectives.reference.ShortArcs
treeparse.objectives.risk.MinimumRisk
treeparse.objectives.risk.Objective
treeparse.objectives.schedule.Ramp
treeparse.objectives.teaching.Divergence
treeparse.objectives.teaching.Itself
treeparse.objectives.teaching.Objective
treeparse.objectives.teaching.Reference
treeparse.objectives.teaching.SilverTrees
treeparse.objectives.weighted_sum.Objective
treeparse.objectives.weighted_sum.Weighted
treeparse.objectives.weighted_sum.WeightedSum
"""
OLD_PATHS = OLD_CLASSES.split()
OLD_SUM = {
    "class_path": "treeparse.objectives.weighted_sum.WeightedSum",
    "init_args": {
        "terms": [
            {"objective": "treeparse.objectives.likelihood.TreeLikelihood"},
            {
                "objective": {
                    "class_path": "treeparse.objectives.teaching.Divergence",
                    "init_args": {"reference": {"class_path": "treeparse.objectives.reference.ShortArcs"}},
                },
                "data": "unlabelled",
                "weight": {
                    "class_path": "treeparse.objectives.schedule.Ramp",
                    "init_args": {"start": 0.0, "end": 0.1, "begin": 0.0, "until": 1.0},
                },
            },
        ]
    },
}


def resolved(path: str) -> object:
    module, _, name = present_class_paths(path).rpartition(".")
    return getattr(import_module(module), name)


@pytest.mark.parametrize("path", OLD_PATHS)
def test_an_old_class_path_resolves_to_the_class_of_its_name(path: str) -> None:
    found = resolved(path)
    assert inspect.isclass(found) and found.__name__ == path.rpartition(".")[2]


def test_the_table_holds_no_other_paths_than_those_that_resolve() -> None:
    assert all(
        inspect.isclass(resolved(path)) and present_class_paths(path) == CLASS_PATHS[path] for path in CLASS_PATHS
    )


def objective_paths() -> list[str]:
    return [path for path in OLD_PATHS if isinstance(found := resolved(path), type) and is_usable(found)]


def is_usable(found: type) -> bool:
    """Whether the class is an objective that needs no arguments."""
    parameters = [*inspect.signature(found).parameters.values()]
    needed = [each for each in parameters if each.default is inspect.Parameter.empty]
    return issubclass(found, Objective) and not inspect.isabstract(found) and not needed


@pytest.mark.parametrize("path", objective_paths())
def test_an_old_path_of_an_objective_builds_it(path: str) -> None:
    assert type(build_objective({"class_path": path})) is resolved(path)


def test_a_config_file_with_old_class_paths_is_the_one_with_the_present_paths(tmp_path: Path) -> None:
    (tmp_path / "old.yaml").write_text(yaml.safe_dump({"output": "o", "data": {"train": "t"}, "objective": OLD_SUM}))
    objective = load_config(tmp_path / "old.yaml").objective
    assert objective["class_path"] == "treeparse.objectives.WeightedSum"
    assert not any(path in json.dumps(objective) for path in CLASS_PATHS)
    assert upgraded_settings(OLD_SUM)["init_args"]["terms"][1]["weight"] == objective["init_args"]["terms"][1]["weight"]
    build_objective(objective)


@pytest.mark.parametrize(
    "options",
    [
        ["--objective", "treeparse.objectives.entropy.Entropy", "--objective.init_args.order", "2.0"],
        ["--objective=treeparse.objectives.entropy.Entropy", "--objective.init_args.order=2.0"],
        ["--objective.class_path", "treeparse.objectives.entropy.Entropy", "--objective.init_args.order", "2.0"],
        ["--objective", '{"class_path": "treeparse.objectives.entropy.Entropy", "init_args": {"order": 2.0}}'],
    ],
)
def test_an_option_takes_an_old_class_path(options: list[str]) -> None:
    objective = load_config(None, ["--output", "o", "--data.train", "t", *options]).objective
    assert objective["class_path"] == "treeparse.objectives.Entropy"
    assert objective["init_args"]["order"] == 2.0


@pytest.mark.parametrize(
    "text", ["mine.treeparse.objectives.risk.MinimumRisk", "x/treeparse.objectives.risk.MinimumRisk"]
)
def test_other_texts_stay(text: str) -> None:
    assert present_class_paths(text) == text


def test_renamed_settings_are_read_by_their_old_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    keys: Mapping[str, str] = {"model.arcs": "model.scorer.arc_size", "optimization.rate": "optimization.learning_rate"}
    monkeypatch.setattr(upgrades, "SETTING_KEYS", keys)
    old = {"model": {"arcs": 8, "dropout": 0.1}, "optimization": {"rate": 1.0}, "seed": 3}
    present = {"model": {"scorer": {"arc_size": 8}, "dropout": 0.1}, "optimization": {"learning_rate": 1.0}, "seed": 3}
    assert upgraded_settings(old) == present
    assert upgraded_settings(old["model"], "model.") == present["model"]
    assert upgraded_settings(present) == present
