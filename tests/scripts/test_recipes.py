"""The recipes are short, and do what they say: by enumeration, by optimality conditions, or by what they learn."""

import os
import re
import subprocess
import sys
from pathlib import Path

import demo
import distillation
import entropy_regularization
import expectation_constraints
import latent_tree
import minimum_risk
import posterior_regularization
import pytest
import torch
import yaml
from helpers.commands import Capture
from torch import Tensor
from torch.distributions import kl_divergence

from treeparse import LabeledCRF, NonProjectiveCRF, ProjectiveCRF
from treeparse.batch import Batch
from treeparse.cli.main import main as cli
from treeparse.objectives import TreeLikelihood
from treeparse.trees import TreeCRF

FOLDER = Path(demo.__file__).parent
RECIPES = sorted(path for path in FOLDER.glob("*.py") if path.stem != "demo")


def seeded_scores(*shape: int, seed: int = 1) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_a_recipe_has_at_most_forty_lines_and_its_place_in_the_index(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 40
    assert f"`{path.name}`" in (FOLDER / "README.md").read_text(encoding="utf-8")


def test_the_gradient_of_the_expected_number_of_wrong_words_by_enumeration() -> None:
    scores, label_scores = seeded_scores(1, 4, 4).requires_grad_(), seeded_scores(1, 4, 4, 2)
    p = LabeledCRF(NonProjectiveCRF(scores), label_scores)
    heads, labels = torch.tensor([[-1, 2, 0, -1]]), torch.tensor([[-1, 1, 0, 0]])  # the last head is unknown
    trees, names = (part[:, 0, 1:] for part in p.enumerate_support())
    wrong = ((trees[:, :2] != heads[0, 1:3]) | (names[:, :2] != labels[0, 1:3])).sum(-1)
    words = torch.arange(1, 4)
    totals = (scores[0][trees, words] + label_scores[0][trees, words, names]).sum(-1)
    expected = (totals.softmax(0) * wrong).sum()
    batch = Batch(torch.tensor([3]), torch.tensor([0]), {}, heads, labels)
    found = minimum_risk.MinimumRisk()(p, batch)
    torch.testing.assert_close(found, expected.unsqueeze(0))
    gradients = [torch.autograd.grad(value.sum(), scores)[0] for value in (found, expected)]
    torch.testing.assert_close(*gradients)


def test_minimum_risk_lowers_the_risk_more_than_it_was() -> None:
    torch.manual_seed(1)
    some = demo.sentences()[:20]
    parser = demo.small_parser(some, size=16)
    before = minimum_risk.train(parser, some, TreeLikelihood(), 5)
    assert minimum_risk.train(parser, some, minimum_risk.MinimumRisk(), 15) < 0.8 * before


def test_the_objective_trains_by_its_class_path(tiny_config: Path, capsys: Capture) -> None:
    assert cli(["train", "--config", str(tiny_config), "--objective", "minimum_risk.MinimumRisk"]) == 0
    (written,) = tiny_config.parent.glob("run/**/config.yaml")
    assert yaml.safe_load(written.read_text())["objective"]["class_path"] == "minimum_risk.MinimumRisk"


def test_the_encoder_trains_by_its_class_path_and_parses(tmp_path: Path, capsys: Capture) -> None:
    run = str(tmp_path / "run")
    encoder = ["--model.encoder", "own_encoder.WindowsConfig", "--model.encoder.width", "5"]
    assert cli(["train", "--config", "demo", "--output", run, *encoder, "--optimization.epochs=3"]) == 0
    (las,) = re.findall(r"best dev UAS .*LAS ([0-9.]+)%", capsys.readouterr().out)
    assert float(las) > 50
    parsed = str(tmp_path / "parsed.conllu")
    assert cli(["predict", run, "data/demo-test.conllu", "-q", "-o", parsed, "--import", "own_encoder"]) == 0
    assert cli(["check", "-q", parsed]) == 0


def test_expected_rates_move_to_their_targets() -> None:
    first, *_, last = expectation_constraints.learn(demo.sentences()[:40])
    targets = torch.tensor([*expectation_constraints.RULES.values()])
    before, after = ((torch.tensor(rates) - targets).abs() for rates in (first, last))
    assert before.min() > 0.4 and after.max() < 0.06


def test_the_entropy_of_unlabelled_sentences_falls() -> None:
    sentences, found = demo.sentences()[:25], []
    for weight in (0.0, 1.0):
        torch.manual_seed(1)
        parser = demo.small_parser(sentences, size=16)
        found.append(entropy_regularization.train(parser, sentences[:10], sentences[10:], weight, 30))
    assert found[1] < 0.7 * found[0]


def test_the_student_comes_near_the_teacher() -> None:
    torch.manual_seed(1)
    some = demo.sentences()[:6]
    teacher, student = demo.small_parser(some, size=16), demo.small_parser(some, size=32)
    with torch.no_grad():
        for weight in teacher.parameters():
            weight.mul_(2)  # far from the student's
    found = distillation.distil(teacher, student, some, 80)
    assert min(found) >= 0 and found[-1] < 0.05 * found[0]


def test_a_layer_over_trees_learns_what_softmax_cannot() -> None:
    torch.manual_seed(1)
    assert latent_tree.learn(structured=False) < 0.75
    assert latent_tree.learn(structured=True) > 0.95


def test_the_layers_gradients() -> None:
    layer = latent_tree.TreeAttention(3).double()
    arguments = seeded_scores(2, 5, 3).requires_grad_(), seeded_scores(2, 5, 2, seed=2).requires_grad_()
    assert torch.autograd.gradcheck(layer, arguments)


@pytest.mark.parametrize("family", [NonProjectiveCRF, ProjectiveCRF])
@pytest.mark.parametrize("scale", [0.1, 1.0, 3.0])
def test_the_projection_meets_the_conditions_of_optimality(family: type[TreeCRF], scale: float) -> None:
    p = family(scale * seeded_scores(8, 5, 5))
    features = seeded_scores(8, 5, 5, 3, seed=2).abs()
    tilt = torch.tensor([0.7, 0.3, 0.0], dtype=torch.float64)
    bounds = p.with_scores(p.scores - features @ tilt).expectation(features)
    bounds[:, 2] += 0.1  # the third bound is slack
    q, multipliers = posterior_regularization.project(p, features, bounds)
    excess = q.expectation(features) - bounds
    assert bool((p.expectation(features) > bounds + 1e-6).any(-1).all())  # p breaks them
    assert excess.max() <= 1e-6 and multipliers.min() >= 0 and (multipliers * excess).abs().max() <= 1e-6
    # Stationarity, tree by tree: log q is log p less the multipliers times the tree's features, and a constant.
    trees = p.enumerate_support()
    flat = trees.clamp_min(0)[..., 1:]
    position, item = torch.arange(1, 5), torch.arange(8)[:, None]
    counts = features[item, flat, position].sum(-2)
    constant = q.log_prob(trees) - p.log_prob(trees) + (counts * multipliers).sum(-1)
    torch.testing.assert_close(constant, constant[:1].expand_as(constant))
    # So no other distribution within the bounds is nearer: by duality its divergence is at least this one's.
    dual = -(multipliers * bounds).sum(-1) - (q.log_partition - p.log_partition)
    torch.testing.assert_close(kl_divergence(q, p), dual, atol=1e-6, rtol=0)


def output_of(name: str, library: str, *launcher: str) -> str:
    """What a recipe prints in a process of its own."""
    pytest.importorskip(library)
    own = {"PYTHONPATH": str(FOLDER.parents[1]), "OMP_NUM_THREADS": "1", "PYSPARK_PYTHON": sys.executable}
    command = [sys.executable, *launcher, str(FOLDER / f"{name}.py")]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | own, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(("name", "library"), [("datatrove_step", "datatrove"), ("spark_arrow", "pyspark")])
def test_a_step_of_another_pipeline_parses_its_documents(name: str, library: str) -> None:
    text = output_of(name, library)
    assert text.count("# newdoc id = ") == 2 and text.count("# text = ") == 3
    assert "2\tdog\t_\t_\t_\t_\t3\tnsubj\t_\t_\n3\tsees\t_\t_\t_\t_\t0\troot" in text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "library", "processes"),
    [("plain_loop", "torch", 1), ("lightning_loop", "torch", 1), ("transformers_loop", "accelerate", 1)]
    + [("accelerate_loop", "accelerate", count) for count in (1, 2)],
)
def test_a_loop_of_another_library_trains(name: str, library: str, processes: int) -> None:
    """To far more than the share of words that any rule without learning gets right; one process speaks for all."""
    several = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    found = re.findall(r"dev (?:UAS|LAS) (\d+\.\d\d)%", output_of(name, library, *(several if processes > 1 else ())))
    assert len(found) == (3 if name == "plain_loop" else 1)
    assert float(found[-1]) > 33
