"""Objectives in training: custom ones, with parameters, several at once, and the configs that ship, only smaller."""

from collections.abc import Mapping, Sequence
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
from treeparse.cli.main import main
from treeparse.data import load_treebank
from treeparse.data.conllu import ConlluSentence, write_conllu
from treeparse.errors import DataError, TreeparseError
from treeparse.shipped import shipped_files
from treeparse.training import load_config, train

OWN_MODULE = Path(__file__).with_name("own_objectives.py")
TWO_EPOCHS = ["--optimization.epochs=2"]
OWN = {"class_path": "own_objectives.WeightedByUncertainty", "init_args": {"start": 0.5}}


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


ROOT = Path(__file__).parents[2]
LONGER = {"optimization__steps": 60}
SMALL = {
    "model.encoder.word_size": 24,
    "model.encoder.char_filters": 0,
    "model.encoder.hidden_size": 32,
    "model.encoder.layers": 1,
    "model.arc_size": 32,
    "model.label_size": 16,
    "data.batch_words": 300,
    "optimization.steps": 24,
    "optimization.learning_rate": 1e-2,
    "optimization.epochs": 1,
    "trainer.precision": "32-true",
    "trainer.accelerator": "cpu",
}
CONSTRAINTS = ROOT / "configs" / "constraints" / "ud.yaml"


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Parts of the demo treebank: trees, partial trees, tags alone, text."""
    folder = tmp_path_factory.mktemp("demo")
    sentences = load_treebank(ROOT / "data" / "demo-train.conllu")[:200]
    parts: Mapping[str, Sequence[ConlluSentence]] = {
        "few": sentences[:100],
        "rest": sentences[100:],
        "dev": load_treebank(ROOT / "data" / "demo-dev.conllu")[:20],
    }
    for name, part in parts.items():
        write_conllu(folder / f"{name}.conllu", part)
    few = (folder / "few.conllu").read_text(encoding="utf-8")
    (folder / "tagged.conllu").write_text(rewritten(few, hidden=1), encoding="utf-8")
    (folder / "partial.conllu").write_text(rewritten(few, hidden=2), encoding="utf-8")
    text = "\n".join(" ".join(sentence.words.forms) for sentence in sentences[100:])
    (folder / "rest.txt").write_text(text + "\n", encoding="utf-8")
    return {path.name: path for path in folder.iterdir()}


def rewritten(text: str, *, hidden: int) -> str:
    """CoNLL-U with every ``hidden``-th HEAD and DEPREL as ``_``; of the words between, two possible heads in MISC."""
    lines = []
    for number, line in enumerate(text.split("\n")):
        columns = line.split("\t")
        if len(columns) > 1 and number % hidden == 0:
            heads = {columns[6], "0" if columns[6] != "0" else "1"} - {columns[0]}
            columns[9] = f"Heads={','.join(sorted(heads))}" if hidden > 1 and number % 4 == 0 else "_"
            columns[6:8] = "_", "_"
        lines.append("\t".join(columns))
    return "\n".join(lines)


def trained(name: str, folder: Path, **options: object) -> Path:
    """The run of a shipped config, small."""
    settings = {**SMALL, "output": folder / name, **{key.replace("__", "."): value for key, value in options.items()}}
    arguments = [f"--{key}={value}" for key, value in settings.items()]
    return train(load_config(shipped_files()[name], arguments), quiet=True).parent


def columns_of(run: Path) -> dict[str, list[float]]:
    """What a run logged, by column."""
    logged = rows(run)
    return {name: [float(row[name]) for row in logged] for name in logged[0] if logged[0][name]}


def assert_learns(run: Path, *terms: str) -> None:
    """The loss, or each of its terms, falls, and the parser of the dev set gets better."""
    logged = columns_of(run)
    for name in terms or ["loss"]:
        assert logged[name][-1] < logged[name][0], name
    assert max(logged["dev_uas"]) > logged["dev_uas"][0]


@pytest.fixture(scope="module")
def start(demo: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model by likelihood."""
    data = {"data__train": demo["few.conllu"], "data__dev": demo["dev.conllu"], "optimization__steps": 40}
    return trained("default", tmp_path_factory.mktemp("start"), **data) / "model"


def test_every_config_is_here() -> None:
    tested = {"mrt", "margin", "ge", "semisup", "distill", "partial"}
    assert tested < set(shipped_files())
    for path in shipped_files().values():
        assert path.read_text(encoding="utf-8").startswith("# ")


def test_minimum_risk(demo: dict[str, Path], start: Path, tmp_path: Path) -> None:
    data = {"data__train": demo["few.conllu"], "data__dev": demo["dev.conllu"], "init_from": start}
    logged = columns_of(trained("mrt", tmp_path, **data, optimization__epochs=4))
    assert logged["loss"][-1] < logged["loss"][0] < 1  # the share of wrong words


def test_margin(demo: dict[str, Path], tmp_path: Path) -> None:
    assert_learns(trained("margin", tmp_path, data__train=demo["few.conllu"], data__dev=demo["dev.conllu"], **LONGER))


def test_constraints_without_a_tree(demo: dict[str, Path], tmp_path: Path) -> None:
    data = {"data__train": demo["tagged.conllu"], "data__dev": demo["dev.conllu"]}
    less = {"objective__init_args__constraints": CONSTRAINTS, "optimization__steps": 12}
    logged = columns_of(trained("ge", tmp_path, **data, **less))
    assert logged["loss"][-1] < 0.6 * logged["loss"][0]


def test_text_beside_trees(demo: dict[str, Path], tmp_path: Path) -> None:
    data = {"data.train": demo["few.conllu"], "data.dev": demo["dev.conllu"], "data.unlabelled": demo["rest.conllu"]}
    options = [f"--{key}={value}" for key, value in {**SMALL, **data, "output": tmp_path}.items()]
    assert main(["self-train", "--rounds", "1", "-q", *options]) == 0  # by the config semisup
    assert_learns(tmp_path / "round-1", "term/TreeLikelihood", "term/SilverTrees")


def test_the_other_terms_for_text(demo: dict[str, Path], start: Path, tmp_path: Path) -> None:
    """The objective that the comments of the config name, as it stands there."""
    text = shipped_files()["semisup"].read_text(encoding="utf-8")
    before, _, comments = text.partition("objective:\n")
    _, _, block = comments.partition("# objective:\n")
    lines = ["objective:", *(line.removeprefix("# ") for line in block.splitlines())]
    own = tmp_path / "own.yaml"
    named = "\n".join(lines).replace("runs/default/model", str(start)).replace("constraints.yaml", str(CONSTRAINTS))
    own.write_text(before + named, encoding="utf-8")
    terms = yaml.safe_load(named)["objective"]["init_args"]["terms"]
    objectives = [term["objective"] for term in terms]
    assert [(each if isinstance(each, str) else each["class_path"]).rpartition(".")[2] for each in objectives] == [
        "TreeLikelihood",
        "SilverTrees",
        "GeneralizedExpectation",
        "Entropy",
    ]
    data = {"data.train": demo["few.conllu"], "data.dev": demo["dev.conllu"], "data.unlabelled": demo["rest.conllu"]}
    options = [f"--{key}={value}" for key, value in {**SMALL, **data, "output": tmp_path / "run"}.items()]
    run = train(load_config(own, options), quiet=True).parent
    assert_learns(run, "term/GeneralizedExpectation")
    assert {"term/TreeLikelihood", "term/Entropy", "term/SilverTrees"} <= set(columns_of(run))


def test_distillation(demo: dict[str, Path], start: Path, tmp_path: Path) -> None:
    path = shipped_files()["distill"]
    own = tmp_path / "distill.yaml"
    text = path.read_text(encoding="utf-8")
    assert "models: [runs/default/model]" in text
    own.write_text(text.replace("runs/default/model", str(start)), encoding="utf-8")
    data = {"data.train": demo["few.conllu"], "data.dev": demo["dev.conllu"], "data.unlabelled": demo["rest.txt"]}
    options = [f"--{key}={value}" for key, value in {**SMALL, **data, "output": tmp_path / "run"}.items()]
    assert_learns(train(load_config(own, options), quiet=True).parent, "term/Divergence", "term/TreeLikelihood")


def test_partial_trees(demo: dict[str, Path], tmp_path: Path) -> None:
    assert_learns(trained("partial", tmp_path, data__train=demo["partial.conllu"], data__dev=demo["dev.conllu"]))
