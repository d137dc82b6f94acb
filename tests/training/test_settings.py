import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from helpers.commands import Capture

from treeparse.errors import TreeparseError
from treeparse.model.parser_config import TagWeights
from treeparse.nn import BiLSTMConfig
from treeparse.objectives import GeneralizedExpectation, HeadSelection
from treeparse.objectives.constraints import read_constraints
from treeparse.shipped import shipped_files
from treeparse.training.identity import differing_settings
from treeparse.training.reading import build_objective, describe_settings, load_config
from treeparse.training.train_config import TrainConfig


def write(path: Path, **values: object) -> Path:
    settings = {"output": "runs/x", "data": {"train": "a.conllu", "dev": ["b.conllu"]}, **values}
    path.write_text(yaml.safe_dump(settings), encoding="utf-8")
    return path


def test_file_then_options_then_defaults(tmp_path: Path) -> None:
    path = write(tmp_path / "c.yaml", optimization={"epochs": 4, "learning_rate": "3e-3"}, seed=7)
    config = load_config(path, ["--optimization.epochs", "9", "--data.train", "z.conllu", "--model.encoder.layers=2"])
    assert (config.optimization.epochs, config.optimization.learning_rate, config.seed) == (9, 3e-3, 7)
    assert (config.data.train, config.data.dev) == ("z.conllu", ["b.conllu"])
    assert isinstance(config.model.encoder, BiLSTMConfig) and config.model.encoder.layers == 2
    assert config.optimization.schedule == "linear"
    assert config.objective["class_path"] == "treeparse.objectives.TreeLikelihood"


def test_yaml_reads_back_equal(tmp_path: Path) -> None:
    config = load_config(write(tmp_path / "c.yaml", objective={"class_path": "HeadSelection"}))
    (tmp_path / "again.yaml").write_text(config.to_yaml(), encoding="utf-8")
    again = load_config(tmp_path / "again.yaml")
    assert again == config
    assert isinstance(build_objective(again.objective), HeadSelection)


def assert_said(call: Callable[[], object], *said: str) -> None:
    """The message is jsonargparse's own, or one of ours."""
    with pytest.raises(TreeparseError) as caught:
        call()
    assert all(word in str(caught.value) for word in said), caught.value


SETTINGS_AND_WHAT_IS_SAID = [
    ({"sed": 1}, "sed"),
    ({"model": {"encoder": {"layer": 1}}}, "layer"),
    ({"optimization": {"epochs": "many"}}, "optimization.epochs", "int", "many"),
    ({"optimization": {"epochs": 2.5}}, "optimization.epochs", "2.5"),
    ({"optimization": {"epochs": 0}}, "optimization.epochs", "at least 1", "0"),
    ({"optimization": {"epochs": None}}, "optimization.epochs", "null"),
    ({"optimization": {"average_decay": 1}}, "average_decay", "less than 1"),
    ({"data": {"train": "a", "temperature": 0}}, "temperature", "null"),
    ({"optimization": {"schedule": "steep"}}, "schedule", "steep"),
    ({"seed": None}, "seed", "None"),
    ({"data": {"dev": "a.conllu"}}, "data.train"),
    ({"data": {"train": "a", "batch_words": "some"}}, "data.batch_words", "int", "some"),
    ({"data": {"train": "a.conllu", "dev": 3}}, "data.dev", "list[str]", "3"),
    ({"data": 7}, "must be a mapping", "int"),
    ({"config": "other.yaml"}, "config"),
    ({1: 2}, "1"),
    ({"objective": {"class_path": "torch.nn.Linear"}}, "torch.nn.Linear", "Objective"),
    ({"objective": {"class_path": "no.such.Thing"}}, "no.such.Thing", "No module named"),
    ({"objective": {"class_path": "HeadSelection", "init_args": {"colour": 1}}}, "colour"),
    ({"objective": "/dev/zero"}, "objective", "/dev/zero"),
]
OPTIONS_AND_WHAT_IS_SAID = [
    ("--optimization.epoch 3", "--optimization.epoch"),
    ("stray", "stray"),
    ("--data.train a b --seed 4 stray", "stray"),
    ("--seed", "--seed"),
    ("--data /dev/zero", "data", "/dev/zero"),
    ("--seed -1", "seed", "0 to 2**63 - 1", "-1"),
    (f"--seed {2**63}", "seed", "0 to 2**63 - 1", str(2**63)),
    (f"--optimization.epochs {10**30}", "optimization.epochs", "at most 1000000", "10000"),
    (f"--optimization.warmup_steps {10**30}", "optimization.warmup_steps", "at most", "10000"),
    ("--optimization.learning_rate 1e400", "optimization.learning_rate", "finite", "inf"),
    ("--data.workers 100000", "data.workers", "at most", "100000"),
    ("--output=", "output", "empty", "folder"),
    (f"--model.encoder.layers {10**9}", "encoder.layers", "at most 1000", "1000000000"),
    (f"--model.encoder.char_widths [{10**9}]", "encoder.char_widths", "at most 1000", "1000000000"),
    (f"--model.label_size {10**30}", "label_size", "at most 1000000000", "10000"),
]


@pytest.mark.parametrize(("values", "said"), [(values, said) for values, *said in SETTINGS_AND_WHAT_IS_SAID])
def test_a_setting_that_is_wrong_is_named(tmp_path: Path, values: dict, said: list[str]) -> None:
    path = write(tmp_path / "c.yaml", **{str(name): value for name, value in values.items()})
    assert_said(lambda: load_config(path), *said)


@pytest.mark.parametrize(("options", "said"), [(options, said) for options, *said in OPTIONS_AND_WHAT_IS_SAID])
def test_an_option_that_is_wrong_is_named(tmp_path: Path, options: str, said: list[str]) -> None:
    path = write(tmp_path / "c.yaml")
    assert_said(lambda: load_config(path, options.split()), *said)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        *((content, "c.yaml") for content in (b"a: [", b"- 1\n- 2\n", b"just words", b"")),
        (b"output: !!python/object:os.system {}\n", "python/object"),
        (b"output: a\nseed: 1\noutput: b\n", "'output' is repeated"),
        (b"output: a\nmodel:\n  arc_size: 3\n  arc_size: 4\n", "'arc_size' is repeated"),
        (b"\xff\xfe\x00", "UTF-8"),
        (b"# \xe9", "UTF-8"),
        (None, "no config file"),
    ],
)
def test_files_that_are_no_config(tmp_path: Path, content: bytes | None, said: str) -> None:
    path = tmp_path / "c.yaml"
    if content is not None:
        path.write_bytes(content)
    assert_said(lambda: load_config(path), said)


def test_only_objectives_are_built() -> None:
    with pytest.raises(TreeparseError, match="subclass"):
        build_objective({"class_path": "torch.nn.Linear", "init_args": {"in_features": 1}})


def test_differences_are_named(tmp_path: Path) -> None:
    settings = {"model": {"encoder": {"char_widths": [3]}}, "optimization": {"epochs": 15}}
    first: TrainConfig = load_config(write(tmp_path / "c.yaml", **settings))
    second = load_config(tmp_path / "c.yaml", ["--optimization.epochs=4", "--model.encoder.char_widths=[3,4]"])
    assert differing_settings(first.to_dict(), first.to_dict()) == []
    assert differing_settings(first.to_dict(), second.to_dict()) == [
        "model.encoder.init_args.char_widths was [3] and is [3, 4]",
        "optimization.epochs was 15 and is 4",
    ]


def test_every_setting_is_described() -> None:
    text = describe_settings()
    for key in ("data.batch_words", "model.encoder.hidden_size", "optimization.average_decay", "trainer.accelerator"):
        assert f"--{key} " in text


LINEAR = {"linear", "linear_rich"}
BEYOND_LIKELIHOOD = {"mrt", "margin", "ge", "semisup", "distill", "partial"}  # these say what is not the default


@pytest.fixture
def named_files(trained_config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder in which there is what shipped configs name: a model."""
    shutil.copytree(trained_config.parent / "run" / "model", tmp_path / "runs" / "default" / "model")
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("name", shipped_files())
@pytest.mark.usefixtures("named_files")
def test_shipped_configs_are_valid(name: str) -> None:
    path = shipped_files()[name]
    config = load_config(path, ["--data.train", "a.conllu"])
    assert config.output == f"runs/{name}"
    sections, every = set(yaml.safe_load(path.read_text(encoding="utf-8"))), set(config.to_dict())
    if name in BEYOND_LIKELIHOOD:
        assert {"output", "seed", "data", "objective"} <= sections <= every
    elif name in LINEAR:
        assert sections == {"output", "seed", "data", "model", "learning"}
    else:
        assert sections == every - {"init_from"}


@pytest.mark.parametrize("name", sorted(shipped_files().keys() - {"demo"}))
def test_no_shipped_config_names_a_treebank(name: str) -> None:
    data = yaml.safe_load(shipped_files()[name].read_text(encoding="utf-8"))["data"]
    assert data["train"] is None and data["dev"] is None and data.get("unlabelled") is None


@pytest.mark.parametrize(
    ("options", "epochs", "steps"),
    [
        ([], 5, 100),
        (["--optimization.epochs", "2"], 2, "auto"),
        (["--optimization.epochs=2"], 2, "auto"),
        (["--optimization.steps", "30"], "auto", 30),
        (["--optimization.epochs", "2", "--optimization.steps", "30"], 2, 30),
        (["--optimization.epochs", "auto"], "auto", 100),
    ],
)
def test_an_option_for_epochs_or_steps_replaces_both_of_the_file(
    tmp_path: Path, options: list[str], epochs: object, steps: object
) -> None:
    path = write(tmp_path / "c.yaml", optimization={"epochs": 5, "steps": 100, "warmup_steps": 7})
    optimization = load_config(path, options).optimization
    assert (optimization.epochs, optimization.steps, optimization.warmup_steps) == (epochs, steps, 7)


@pytest.mark.parametrize("name", ["fast", "linear", "frozen"])
def test_a_printed_config_reads_back(name: str, tmp_path: Path, capsys: Capture) -> None:
    options = ["--data.train", "a.conllu", "--seed", "4"]
    with pytest.raises(SystemExit):
        load_config(shipped_files()[name], [*options, "--print_config"])
    (tmp_path / "printed.yaml").write_text(capsys.readouterr().out, encoding="utf-8")
    assert load_config(tmp_path / "printed.yaml") == load_config(shipped_files()[name], options)


def test_a_runs_own_file_keeps_its_steps(tmp_path: Path) -> None:
    path = write(tmp_path / "c.yaml", optimization={"epochs": 5, "steps": 100})
    assert load_config(path, ["--optimization.epochs", "9"], of_run=True).optimization.steps == 100


@pytest.mark.parametrize(
    ("options", "files"),
    [
        (["--data.train", "x.conllu", "y z.conllu"], ["x.conllu", "y z.conllu"]),
        (["--data.train=x.conllu", "y.conllu"], ["x.conllu", "y.conllu"]),
        (["--data.train", "[x.conllu, y.conllu]"], ["x.conllu", "y.conllu"]),
        (["--data.train", "x.conllu"], "x.conllu"),
    ],
)
def test_several_files_stand_one_after_the_other(tmp_path: Path, options: list[str], files: object) -> None:
    config = load_config(write(tmp_path / "c.yaml"), [*options, "--seed", "4", "--data.dev", "d.conllu", "e.conllu"])
    assert (config.data.train, config.data.dev, config.seed) == (files, ["d.conllu", "e.conllu"], 4)


def test_ge_has_the_constraints_that_ship() -> None:
    path = shipped_files()["ge"]
    objective = build_objective(load_config(path, ["--data.train", "a.conllu"]).objective)
    assert isinstance(objective, GeneralizedExpectation)
    assert objective.constraints == read_constraints(path.parent / "constraints" / "ud.yaml")


def test_the_papers_sizes() -> None:
    model = load_config(shipped_files()["dozat_manning"], ["--data.train", "a.conllu"]).model
    encoder = model.encoder
    assert isinstance(encoder, BiLSTMConfig)
    assert (encoder.layers, encoder.hidden_size, model.arc_size, model.label_size) == (3, 400, 500, 100)
    assert (model.dropout, encoder.dropout, encoder.word_size) == (0.33, 0.33, 100)
    assert encoder.recurrent_dropout == 0.33


def test_the_default_config_is_what_is_left_out(tmp_path: Path) -> None:
    shipped = load_config(shipped_files()["default"], ["--data.train", "a.conllu", "--output", "runs/x"])
    (tmp_path / "least.yaml").write_text("output: runs/x\ndata:\n  train: a.conllu\n", encoding="utf-8")
    left_out = load_config(tmp_path / "least.yaml")
    assert shipped.model.tags == TagWeights(upos="auto", feats="auto") and left_out.model.tags == TagWeights()
    encoder, own = shipped.model.encoder, left_out.model.encoder
    assert isinstance(encoder, BiLSTMConfig) and isinstance(own, BiLSTMConfig)
    assert encoder.recurrent_dropout == 0.25 and own.recurrent_dropout == 0
    own = replace(own, recurrent_dropout=0.25)
    assert replace(left_out, model=replace(left_out.model, tags=shipped.model.tags, encoder=own)) == shipped


SUGGESTED = [
    ("optimisation.epochs", "optimization.epochs"),
    ("optimization.epoch", "optimization.epochs"),
    ("epochs", "optimization.epochs"),
    ("learning-rate", "optimization.learning_rate"),
    ("trainer.max_epoch", "trainer.max_epochs"),
    ("model.encoder.hiden_size", "model.encoder.hidden_size"),
    ("hidden_size", "model.encoder.hidden_size"),
    ("ouput", "output"),
]


@pytest.mark.parametrize(("wrong", "right"), SUGGESTED)
def test_a_misspelt_setting_gets_a_suggestion(tmp_path: Path, wrong: str, right: str) -> None:
    path = write(tmp_path / "c.yaml")
    for options in ([f"--{wrong}", "3"], [f"--{wrong}=3"]):
        with pytest.raises(TreeparseError, match=rf"Did you mean --{right}\?$"):
            load_config(path, options)
    values: object = 3
    for name in reversed(wrong.split(".")):
        values = {name: values}
    write(path, **values)  # type: ignore[arg-type]
    with pytest.raises(TreeparseError, match=r"Did you mean \S+\?$"):
        load_config(path)


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("tags", "[upos]", ("upos",)),
        ("tags", "[upos,feats]", ("upos", "feats")),
        ("tags", "[]", ()),
        ("char_widths", "[3, 4]", (3, 4)),
    ],
)
def test_lists(tmp_path: Path, key: str, value: str, expected: tuple) -> None:
    path = write(tmp_path / "c.yaml")
    for options in ([f"--model.encoder.{key}", value], [f"--model.encoder.{key}={value}"]):
        assert getattr(load_config(path, options).model.encoder, key) == expected
    write(path, model={"encoder": {key: yaml.safe_load(value)}})
    assert getattr(load_config(path).model.encoder, key) == expected


def test_sections_of_nothing_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text("output: x\ndata: {train: a, dev: b}\noptimization:\nobjective:\n", encoding="utf-8")
    assert load_config(path).optimization == load_config(write(tmp_path / "d.yaml")).optimization


def test_aliases_are_read(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text("output: x\ndata: {train: &files [a, b], dev: *files}\n", encoding="utf-8")
    assert load_config(path).data.dev == ["a", "b"]


@pytest.mark.parametrize("name", ["1e5", "3", "null", "2020-01-01", "caf\u00e9 \U0001f600", "a: b", "{x}", "[y]", " z"])
def test_text_stays_text(tmp_path: Path, name: str) -> None:
    (tmp_path / "c.yaml").write_text(
        json.dumps({"output": name, "data": {"train": [name], "dev": "b"}}, ensure_ascii=False), encoding="utf-8"
    )
    config = load_config(tmp_path / "c.yaml")
    assert (config.output, config.data.train) == (name, [name])


def test_the_largest_seed_is_one(tmp_path: Path) -> None:
    assert load_config(write(tmp_path / "c.yaml"), ["--seed", str(2**63 - 1)]).seed == 2**63 - 1
