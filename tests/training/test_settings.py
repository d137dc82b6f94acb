from pathlib import Path

import pytest
import yaml

from treeparse.cli.config import shipped_configs
from treeparse.core import TreeparseError
from treeparse.objectives import HeadSelection
from treeparse.training.config import TrainConfig
from treeparse.training.settings import (
    build_objective,
    describe_settings,
    differing_settings,
    load_config,
)


def write(path: Path, **values: object) -> Path:
    settings = {"output": "runs/x", "data": {"train": "a.conllu", "dev": ["b.conllu"]}, **values}
    path.write_text(yaml.safe_dump(settings), encoding="utf-8")
    return path


def test_file_then_options_then_defaults(tmp_path: Path) -> None:
    path = write(tmp_path / "c.yaml", optimization={"epochs": 4, "learning_rate": "3e-3"}, seed=7)
    config = load_config(path, ["--optimization.epochs", "9", "--data.train", "z.conllu", "--model.encoder.layers=2"])
    assert (config.optimization.epochs, config.optimization.learning_rate, config.seed) == (9, 3e-3, 7)
    assert (config.data.train, config.data.dev) == ("z.conllu", ["b.conllu"])
    assert config.model.encoder.layers == 2
    assert config.optimization.schedule == "linear"
    assert config.objective["class_path"] == "treeparse.objectives.TreeLikelihood"


def test_yaml_reads_back_equal(tmp_path: Path) -> None:
    config = load_config(write(tmp_path / "c.yaml", objective={"class_path": "HeadSelection"}))
    (tmp_path / "again.yaml").write_text(config.to_yaml(), encoding="utf-8")
    again = load_config(tmp_path / "again.yaml")
    assert again == config
    assert isinstance(build_objective(again.objective), HeadSelection)


@pytest.mark.parametrize(
    ("values", "options", "words"),
    [
        ({"sed": 1}, [], ["sed"]),
        ({"model": {"encoder": {"layer": 1}}}, [], ["layer"]),
        ({"optimization": {"epochs": "many"}}, [], ["optimization.epochs", "int", "many"]),
        ({"optimization": {"epochs": 2.5}}, [], ["optimization.epochs", "2.5"]),
        ({"optimization": {"epochs": 0}}, [], ["optimization.epochs is 0", "at least 1"]),
        ({"optimization": {"average_decay": 1}}, [], ["average_decay", "less than 1"]),
        ({"optimization": {"clip_norm": 0}}, [], ["clip_norm", "null"]),
        ({"optimization": {"schedule": "steep"}}, [], ["schedule", "steep"]),
        ({"data": {"dev": "a.conllu"}}, [], ["data.train"]),
        ({"data": {"train": "a", "batch_words": "some"}}, [], ["data.batch_words", "int or auto", "some"]),
        ({"data": {"train": "a.conllu", "dev": 3}}, [], ["data.dev", "list[str] or str", "3"]),
        ({"data": 7}, [], ["data"]),
        ({"objective": {"class_path": "torch.nn.Linear"}}, [], ["torch.nn.Linear", "Objective"]),
        ({"objective": {"class_path": "no.such.Thing"}}, [], ["no.such.Thing"]),
        ({"objective": {"class_path": "HeadSelection", "init_args": {"colour": 1}}}, [], ["colour"]),
        ({}, ["--optimization.epoch", "3"], ["--optimization.epoch"]),
        ({}, ["stray"], ["stray"]),
        ({}, ["--seed"], ["--seed"]),
    ],
)
def test_faults_are_one_sentence(tmp_path: Path, values: dict, options: list[str], words: list[str]) -> None:
    path = write(tmp_path / "c.yaml", **values)
    with pytest.raises(TreeparseError) as caught:
        load_config(path, options)
    message = str(caught.value)
    assert "\n" not in message and "<class" not in message
    assert all(word in message for word in words), message


@pytest.mark.parametrize("text", ["a: [", "- 1\n- 2\n", "just words", "", "output: !!python/object:os.system {}\n"])
def test_files_that_are_no_config(tmp_path: Path, text: str) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(TreeparseError):
        load_config(path)


def test_missing_file() -> None:
    with pytest.raises(TreeparseError, match=r"no config file 'none\.yaml'"):
        load_config("none.yaml")


def test_only_objectives_are_built() -> None:
    with pytest.raises(TreeparseError, match="subclass"):
        build_objective({"class_path": "torch.nn.Linear", "init_args": {"in_features": 1}})


def test_differences_are_named(tmp_path: Path) -> None:
    settings = {"model": {"encoder": {"char_widths": [3]}}, "optimization": {"epochs": 15}}
    first: TrainConfig = load_config(write(tmp_path / "c.yaml", **settings))
    second = load_config(tmp_path / "c.yaml", ["--optimization.epochs=4", "--model.encoder.char_widths=[3,4]"])
    assert differing_settings(first.to_dict(), first.to_dict()) == []
    assert differing_settings(first.to_dict(), second.to_dict()) == [
        "model.encoder.char_widths was [3] and is [3, 4]",
        "optimization.epochs was 15 and is 4",
    ]


def test_every_setting_is_described() -> None:
    text = describe_settings()
    for key in ("data.batch_words", "model.encoder.hidden_size", "optimization.average_decay", "trainer.device"):
        assert f"--{key} " in text


@pytest.mark.parametrize("name", shipped_configs())
def test_shipped_configs_are_valid(name: str) -> None:
    path = shipped_configs()[name]
    config = load_config(path, ["--data.train", "a.conllu"])
    assert config.output == f"runs/{name}"
    assert set(yaml.safe_load(path.read_text(encoding="utf-8"))) == set(config.to_dict()) - {"init_from"}


def test_the_papers_sizes() -> None:
    model = load_config(shipped_configs()["dozat_manning"]).model
    assert (model.encoder.layers, model.encoder.hidden_size, model.arc_size, model.label_size) == (3, 400, 500, 100)
    assert (model.dropout, model.encoder.dropout, model.encoder.word_size) == (0.33, 0.33, 100)
    assert model.encoder.recurrent_dropout == 0.33


def test_the_default_config_is_what_is_left_out(tmp_path: Path) -> None:
    shipped = load_config(shipped_configs()["default"], ["--data.train", "a.conllu", "--output", "runs/x"])
    (tmp_path / "least.yaml").write_text("output: runs/x\ndata:\n  train: a.conllu\n", encoding="utf-8")
    assert load_config(tmp_path / "least.yaml") == shipped
