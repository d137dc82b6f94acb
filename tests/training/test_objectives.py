"""Objectives in training: of a user's own, with parameters that are learned, and several at once."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from helpers.broken_runs import break_off
from helpers.parsers import CONFIG, random_parser
from helpers.trained_runs import equal, rows, weights

from treeparse import ProjectiveCRF
from treeparse.errors import DataError, TreeparseError
from treeparse.training import load_config, train

OWN_MODULE = Path(__file__).with_name("learned_objective.py")
TWO_EPOCHS = ["--optimization.epochs=2"]
OWN = {"class_path": "learned_objective.WeightedByUncertainty", "init_args": {"start": 0.5}}


@pytest.fixture(autouse=True)
def own_module(monkeypatch: pytest.MonkeyPatch) -> None:
    """The objective's module can be imported, as one in the current folder can by the command."""
    monkeypatch.syspath_prepend(OWN_MODULE.parent)


def with_objective(path: Path, objective: dict[str, object]) -> Path:
    settings = yaml.safe_load(path.read_text(encoding="utf-8"))
    path.write_text(yaml.safe_dump({**settings, "objective": objective}), encoding="utf-8")
    return path


def state_of(run: Path) -> dict[str, torch.Tensor]:
    return torch.load(run / "checkpoints" / "last.ckpt", weights_only=True)["state_dict"]


@pytest.mark.usefixtures("one_thread")
def test_a_learned_parameter_is_resumed_bit_for_bit(
    tiny_config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = with_objective(tiny_config, OWN)
    break_off(lambda: train(load_config(path, TWO_EPOCHS), quiet=True), 1, 2, monkeypatch)
    train(load_config(path, TWO_EPOCHS), resume=True, quiet=True)
    train(load_config(path, [*TWO_EPOCHS, "--output", str(tmp_path / "unbroken")]), quiet=True)
    found, expected = (state_of(tmp_path / name) for name in ("run", "unbroken"))
    assert [name for name in found if name.startswith("objective.")] == ["objective.log_scale"]
    assert found["objective.log_scale"] != 0.5
    assert torch.equal(found["objective.log_scale"], expected["objective.log_scale"])
    assert equal(*(weights(tmp_path / name / "model") for name in ("run", "unbroken")))


def test_a_gradient_of_the_objective_is_clipped_with_the_others(tiny_config: Path) -> None:
    path = with_objective(tiny_config, {**OWN, "init_args": {"start": -30.0}})  # the loss times e^30
    options = ["--trainer.gradient_clip_val", "1e-9", "--optimization.eps", "1.0", "--optimization.epochs", "1"]
    state = state_of(train(load_config(path, options), quiet=True).parent)
    assert abs(state["objective.log_scale"].item() + 30.0) < 1e-6


def test_objectives_add_up_with_weights(tiny_config: Path) -> None:
    terms = [
        {"objective": f"treeparse.objectives.{name}", "weight": 0.5} for name in ("TreeLikelihood", "HeadSelection")
    ]
    own = {"objective": OWN, "weight": {"start": 0.5, "end": 0.0, "until": 0.9}}
    path = with_objective(
        tiny_config, {"class_path": "treeparse.objectives.WeightedSum", "init_args": {"terms": [*terms, own]}}
    )
    run = train(load_config(path), quiet=True).parent
    assert [name for name in state_of(run) if "log_scale" in name] == ["objective.objectives.2.log_scale"]
    before = (run / "metrics.csv").read_bytes()
    train(load_config(run / "config.yaml"), resume=True, quiet=True)
    assert (run / "metrics.csv").read_bytes() == before
    last = {name: float(value) for name, value in rows(run)[-1].items() if value}
    shown = [last[f"term/{name}"] for name in ("TreeLikelihood", "HeadSelection")]
    # In the last epoch the ramp is nearly at its end.
    assert last["loss"] == pytest.approx(sum(shown) / 2, rel=0.15)
    assert last["loss"] != pytest.approx(sum(shown) / 2, rel=1e-6)


def test_what_is_known_of_a_tree_must_be_part_of_one(tiny_config: Path, tmp_path: Path) -> None:
    lines = [f"{word}\tword\t_\t_\t_\t_\t{head}\t_\t_\t_" for word, head in enumerate("21_", 1)]
    (tmp_path / "train.conllu").write_text("\n".join(lines) + "\n\n", encoding="utf-8")
    with pytest.raises(DataError, match="words 1, 2 lead into a cycle"):
        train(load_config(tiny_config, ["--data.partial", "true"]), quiet=True)


def test_partial_trees_are_not_held_out(tiny_config: Path) -> None:
    with pytest.raises(TreeparseError, match=r"trees may be incomplete: name a file as data\.dev"):
        load_config(tiny_config, ["--data.partial", "true", "--data.dev", "null", "--data.dev_share", "0.1"])


def test_a_projective_model_decodes_projective_trees() -> None:
    parser = random_parser(replace(CONFIG, trees="projective"))
    sentences = [["adj1", "noun2", "verb0", "noun3"]]
    assert isinstance(parser.distribution(parser.collate(sentences)).base, ProjectiveCRF)
    (parse,), (every,) = parser.parse(sentences), parser.kbest(sentences, 10**5)
    assert np.logaddexp.reduce([each.log_prob for each in every]) == pytest.approx(0, abs=1e-9)
    assert parse.heads == every[0].heads and parse.log_prob == pytest.approx(every[0].log_prob)
    assert {each.heads for each in parser.sample(sentences, 50)[0]} <= {each.heads for each in every}
    assert len(parser.kbest(sentences, 10**5, decoder="nonprojective")[0]) > len(every)
