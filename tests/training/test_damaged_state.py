"""Files of a run that load, but hold other things than a run wrote, are refused with a sentence that names the file."""

import io
import math
import re
import shutil
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from treeparse.errors import TreeparseError
from treeparse.training import TrainConfig, load_config, train
from treeparse.training.release import export_model
from treeparse.training.state.run_directory import RunDirectory

Values = dict[str, Any]
WEIGHT = "scorer.arcs.weight"


@pytest.fixture(scope="module")
def config(trained_config: Path, tmp_path_factory: pytest.TempPathFactory) -> TrainConfig:
    """A run of one's own to damage; a resumption that is refused leaves the rest of it as it is."""
    folder = tmp_path_factory.mktemp("damaged")
    shutil.copytree(trained_config.parent / "run", folder / "run")
    text = trained_config.read_text(encoding="utf-8").replace(f"{trained_config.parent}/run", f"{folder}/run")
    (folder / "config.yaml").write_text(text, encoding="utf-8")
    return load_config(folder / "config.yaml")


@pytest.fixture(scope="module")
def values(config: TrainConfig) -> Callable[[], Values]:
    """The state as it was written, read anew for every test."""
    data = (Path(config.output) / "checkpoints" / "last.ckpt").read_bytes()
    return lambda: torch.load(io.BytesIO(data), weights_only=True)


def refusal(config: TrainConfig, values: object) -> str:
    """The sentence with which a run that has such a state is refused."""
    state = Path(config.output) / "checkpoints" / "last.ckpt"
    torch.save(values, state)
    with pytest.raises(TreeparseError) as caught:
        train(config, resume=True, quiet=True)
    return str(caught.value)


def is_whole(message: str, config: TrainConfig) -> bool:
    """Whether it is one sentence that names the file and says what to do."""
    named = f"{config.output}/checkpoints/last.ckpt" in message and "train anew" in message
    return named and "\n" not in message and len(message) < 500


def turn(*path: Any, by: Callable[[Any], object]) -> Callable[[Values], None]:
    """Turns the value at a path of keys into another."""

    def change(values: Values) -> None:
        for key in path[:-1]:
            values = values[key]
        values[path[-1]] = by(values.get(path[-1]) if isinstance(values, dict) else values[path[-1]])

    return change


def put(*path: Any, value: object) -> Callable[[Values], None]:
    """Sets the value at a path of keys."""
    return turn(*path, by=lambda _: value)


def drop(*path: Any) -> Callable[[Values], None]:
    """Removes the last key of a path."""

    def change(values: Values) -> None:
        for key in path[:-1]:
            values = values[key]
        del values[path[-1]]

    return change


def looped() -> list:
    loop: list = []
    loop.append(loop)
    return loop


def multiplied() -> list:
    """A list of one list ten times, and so on: few bytes, 10 ** 19 items."""
    items: list = []
    for _ in range(19):
        items = [items] * 10
    return items


AVERAGES = ("optimizer", "state", 0)
OTHERS: dict[str, Callable[[Values], object]] = {
    "a list": lambda values: [values],
    "a tensor": lambda values: torch.zeros(0),
    "a number": lambda values: 7,
    "nothing": lambda values: None,
    "an empty mapping": lambda values: {},
    "weights alone": lambda values: values["weights"],
}
CHANGES: dict[str, Callable[[Values], None]] = {
    "another format": put("format", value=99),
    "a format that is a tensor": put("format", value=torch.tensor([1, 1])),
    "a format that is true": put("format", value=True),
    **{f"no {name}": drop(name) for name in ("identity", "threads", "step", "history", "weights", "optimizer")},
    "no average": drop("average"),
    "a field too many": put("more", value=1),
    "a field whose name is a number": put(7, value=1),
    "an identity that is a list": put("identity", value=[]),
    "an identity without digests": drop("identity", "digests"),
    "settings that are a text": put("identity", "settings", value="seed: 1"),
    "settings that are a tensor": put("identity", "settings", "seed", value=torch.zeros(3)),
    "settings named by numbers": put("identity", "settings", 7, value=1),
    "settings that hold themselves": put("identity", "settings", "seed", value=looped()),
    "settings that multiply": put("identity", "settings", "seed", value=multiplied()),
    "a digest that is a tensor": put("identity", "digests", "vocabulary", value=torch.zeros(3)),
    "threads that are a text": put("threads", value="two"),
    "threads below 1": put("threads", value=0),
    "a step that is NaN": put("step", value=math.nan),
    "a step that is a tensor": put("step", value=torch.tensor([1.0, math.nan])),
    "a step below 0": put("step", value=-1),
    "a step beyond measure": put("step", value=10**5000),
    "a history that is a number": put("history", value=3),
    "a history that is a text": put("history", value="123"),
    "an empty history": put("history", value=[]),
    "a history of numbers": put("history", value=[1, 2, 3]),
    "a record without its loss": drop("history", 1, "loss"),
    "a record with more": put("history", 0, "more", value=1.0),
    "a record with a text": put("history", 0, "dev_las", value="high"),
    "a record with NaN": put("history", 0, "dev_las", value=math.nan),
    "a record of endless seconds": put("history", 0, "seconds", value=math.inf),
    "a record of half an epoch": put("history", 0, "epoch", value=0.5),
    "records out of order": turn("history", by=lambda records: records[::-1]),
    "weights that are a list": turn("weights", by=lambda weights: list(weights.values())),
    "weights that lack one": drop("weights", WEIGHT),
    "weights with one more": put("weights", "more", value=torch.zeros(1)),
    "a weight that is a list": put("weights", WEIGHT, value=[1.0]),
    "a weight of another shape": turn("weights", WEIGHT, by=lambda weight: weight[1:]),
    "a weight of another type": turn("weights", WEIGHT, by=lambda weight: weight.double()),
    "a weight that is NaN": turn("weights", WEIGHT, by=lambda weight: weight * math.nan),
    "a weight without values": turn("weights", WEIGHT, by=lambda weight: weight.to("meta")),
    "a weight that is sparse": turn("weights", WEIGHT, by=lambda weight: weight.to_sparse()),
    "an average that is none": put("average", value=None),
    "an average that is a text": put("average", value="average"),
    "an average of other names": turn("average", by=lambda average: {"n_averaged": average["n_averaged"]}),
    "an average of another shape": turn("average", f"module.{WEIGHT}", by=lambda weight: weight[1:]),
    "an average of fewer than no steps": put("average", "n_averaged", value=torch.tensor(-10)),
    "an optimiser that is a list": put("optimizer", value=[]),
    "an optimiser without state": drop("optimizer", "state"),
    "an optimiser without groups": drop("optimizer", "param_groups"),
    "an optimiser of groups that are numbers": put("optimizer", "param_groups", value=[1]),
    "an optimiser whose state is empty": put("optimizer", "state", value={}),
    "an optimiser of one more parameter": put("optimizer", "state", 99, value={}),
    "an optimiser of fewer parameters": turn("optimizer", "param_groups", 0, "params", by=lambda params: params[1:]),
    "an optimiser of tensors for places": put("optimizer", "param_groups", 0, "params", value=torch.arange(3)),
    "averages that are a list": put(*AVERAGES, value=[]),
    "averages without a step": drop(*AVERAGES, "step"),
    "averages of NaN steps": put(*AVERAGES, "step", value=torch.tensor(math.nan)),
    "averages of no steps": put(*AVERAGES, "step", value=torch.tensor(0.0)),
    "averages of sparse steps": put(*AVERAGES, "step", value=torch.tensor(3.0).to_sparse()),
    "averages of another shape": put(*AVERAGES, "exp_avg", value=torch.zeros(2)),
    "averages of another type": turn(*AVERAGES, "exp_avg", by=lambda average: average.double()),
    "averages of squares below 0": turn(*AVERAGES, "exp_avg_sq", by=lambda average: average - 1),
}


@pytest.mark.parametrize("form", OTHERS)
def test_something_else_than_a_state(config: TrainConfig, values: Callable[[], Values], form: str) -> None:
    assert is_whole(refusal(config, OTHERS[form](values())), config)


@pytest.mark.parametrize("form", CHANGES)
def test_a_state_of_another_form(config: TrainConfig, values: Callable[[], Values], form: str) -> None:
    state = values()
    CHANGES[form](state)
    assert is_whole(refusal(config, state), config)


def test_the_sentence_says_what_is_wrong(config: TrainConfig, values: Callable[[], Values]) -> None:
    state = values()
    del state["step"], state["threads"]
    message = refusal(config, state)
    assert "lacks step, threads" in message and is_whole(message, config)
    state = values()
    put("weights", WEIGHT, value=torch.zeros(2, 3))(state)
    message = refusal(config, state)
    assert f"{WEIGHT} of its weights is float32 of shape (2, 3), not float32 of shape (16, 16)" in message
    assert is_whole(message, config)


def test_what_torch_may_change_in_a_state_is_taken(trained_config: Path, tmp_path: Path) -> None:
    """Weights as parameters, another kind of mapping, other settings of the optimiser: the config's are taken."""
    run = tmp_path / "run"
    shutil.copytree(trained_config.parent / "run", run)
    shutil.rmtree(run / "model")
    state = torch.load(run / "checkpoints" / "last.ckpt", weights_only=True)
    state["weights"] = OrderedDict((name, torch.nn.Parameter(value)) for name, value in state["weights"].items())
    state["optimizer"]["param_groups"][0] |= {"maximize": True, "lr": "fast"}
    torch.save(state, run / "checkpoints" / "last.ckpt")
    model = train(load_config(trained_config, ["--output", str(run)]), resume=True, quiet=True)
    expected = load_file(trained_config.parent / "run" / "model" / "model.safetensors")
    found = load_file(model / "model.safetensors")
    assert all(torch.equal(found[name], expected[name]) for name in expected)


@pytest.mark.parametrize(
    "change", [lambda weights: list(weights), lambda weights: {}, turn(WEIGHT, by=lambda weight: weight[1:])]
)
def test_best_weights_of_another_form(trained_config: Path, tmp_path: Path, change: Callable) -> None:
    run = tmp_path / "run"
    shutil.copytree(trained_config.parent / "run", run)
    shutil.rmtree(run / "model")
    [best] = (run / "checkpoints").glob("best-*.ckpt")
    weights = torch.load(best, weights_only=True)
    changed = change(weights)
    torch.save(weights if changed is None else changed, best)
    with pytest.raises(TreeparseError, match=f"{best} is no checkpoint of this run"):
        train(load_config(trained_config, ["--output", str(run)]), resume=True, quiet=True)
    assert not (run / "model").exists()


@pytest.mark.parametrize(
    "text", ["", "[", "[]", "{}", "[" * 10_000, '{"config": {}, "vocabulary": {}}', '{"config": null}', "\udcff"]
)
def test_a_parser_of_another_form(trained_config: Path, tmp_path: Path, text: str) -> None:
    run = RunDirectory(tmp_path)
    shutil.copytree(trained_config.parent / "run" / "checkpoints", run.checkpoints)
    run.parser.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(TreeparseError, match=re.escape(str(run.parser))):
        export_model(run)
    run.parser.unlink()
    with pytest.raises(TreeparseError, match=r"is missing.*--resume"):
        export_model(run)
    assert not run.model.exists()
